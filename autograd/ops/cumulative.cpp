// Running products, extrema and logarithms of sums along a dim, by one linear recurrence.
#include <algorithm>
#include <array>
#include <limits>

#include "autograd/operators.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/scatter.h"

namespace onestep {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// x moved one place onwards along dim `d` (or back, with `reverse`), `incoming` coming in.
Tensor shifted(const Tensor& x, int d, bool reverse, double incoming = 0) {
  Shape one = x.shape();
  one[d] = 1;
  const Tensor first = full(one, incoming, x.dtype()), rest = narrow(x, d, reverse ? 1 : 0, x.size(d) - 1);
  return reverse ? cat({rest, first}, d) : cat({first, rest}, d);
}

constexpr int64_t kColumns = 64, kRows = 4;

/// Calls f(first, width) for blocks of `width` neighbouring columns, at most kColumns: their first row begins at `first`.
template <class F>
void for_each_columns(const ops::Blocks& b, const F& f) {
  if (b.reduced == 0) return;
  const int64_t groups = (b.inner + kColumns - 1) / kColumns;
  const double cost = 2 * static_cast<double>(b.reduced * std::min(b.inner, kColumns));
  kernels::parallel_for(b.outer * groups, cost, [&](int64_t g, int64_t end) {
    for (; g < end; ++g) {
      const int64_t column = g % groups * kColumns;
      f(g / groups * b.reduced * b.inner + column, std::min(b.inner - column, kColumns));
    }
  });
}

/// y_r = b_r + a_r y_{r-1} down columns that are `apart`, or a_r y_{r-1} from 1 on where b is null; the distance between rows
/// is negative to go up. With `cut` nothing comes past a factor of 0, be it infinite. Always inlined: with a constant for
/// `apart` it is vectorized.
template <class T, int64_t columns>
[[gnu::always_inline]] inline void run_columns(const T* a, const T* b, T* y, int64_t rows, int64_t distance, int64_t apart,
                                               bool cut, int64_t used) {
  using Sum = std::conditional_t<is_floating(dtype_of<T>()), double, T>;
  std::array<Sum, columns> totals;
  totals.fill(b ? Sum(0) : Sum(1));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < used; ++i) {
      const int64_t at = r * distance + i * apart;
      Sum& total = totals[static_cast<size_t>(i)];
      const Sum product = ops::times(static_cast<Sum>(a[at]), total);
      if (b)
        total = ops::plus(static_cast<Sum>(b[at]), r == 0 || (cut && a[at] == 0) ? Sum(0) : product);
      else
        total = product;
      y[at] = static_cast<T>(total);
    }
  }
}

/// y_i = b_i + a_i y_{i-1} along dim `d`, or b_i + a_i y_{i+1} from the end with `reverse`; float32 sums in double, as cumsum.
/// The running product of a where b is undefined.
Tensor recurrence(const Tensor& a, const Tensor& b, int d, bool reverse, bool cut = false) {
  const Tensor factors = ops::contiguous_values(a), addends = ops::rows_or_undefined(b);
  Tensor y = empty(a.shape(), a.dtype());
  const ops::Blocks blocks = ops::blocks_of(a.shape(), d, d);
  dispatch(a.dtype(), [&]<class T>() {
    const T *const factor = factors.data<T>(), *const addend = ops::data_or_null<T>(addends);
    T* const to = y.mutable_data<T>();
    const int64_t last = reverse ? (blocks.reduced - 1) * blocks.inner : 0, distance = reverse ? -blocks.inner : blocks.inner;
    if (blocks.inner == 1) {  // several rows at once, since each product waits for the one before
      const int64_t n = blocks.reduced;
      return kernels::parallel_for((blocks.outer + kRows - 1) / kRows, 2.0 * kRows * static_cast<double>(n),
                                   [=](int64_t i, int64_t end) {
                                     for (; i < end; ++i) {
                                       const int64_t row = i * kRows, at = row * n + last;
                                       run_columns<T, kRows>(factor + at, addend ? addend + at : addend, to + at, n, distance,
                                                             n, cut, std::min(blocks.outer - row, kRows));
                                     }
                                   });
    }
    for_each_columns(blocks, [=](int64_t at, int64_t width) {
      at += last;
      run_columns<T, kColumns>(factor + at, addend ? addend + at : addend, to + at, blocks.reduced, distance, 1, cut, width);
    });
  });
  return record("recurrence", y, {a, b}, {a, y}, [d, reverse, product = !b.defined()](const Backward& back) -> Grads {
    // s_i = dy_i + a_{i+1} s_{i+1}; db = s, da_i = s_i y_{i-1}. A factor of 0 keeps out infinities, as in PyTorch.
    const bool cuts = !back.recording();
    const Tensor s = recurrence(shifted(back.saved(0), d, !reverse), back.grad(), d, !reverse, cuts);
    if (!back.needs(0)) return {Tensor(), s};
    const Tensor before = shifted(back.saved(1), d, reverse, product ? 1 : 0), da = mul(s, before);
    return {cuts ? masked_fill(da, eq(before, 0), 0) : da, s};
  });
}

}  // namespace

Tensor cumprod(const Tensor& input, int64_t dim) {
  if (is_half(input.dtype())) return to(cumprod(ops::wide(input), dim), input.dtype());
  const Tensor x = is_floating(input.dtype()) ? input : to(input, DType::int64);
  const int d = normalize_dim("cumprod", dim, x.dim());
  if (x.dim() == 0 || x.numel() == 0 || x.shape()[d] == 1) return clone(x);
  return recurrence(x, Tensor(), d, /*reverse=*/false);
}

namespace {

/// The place of the extremum of x_0 .. x_i, which is replaced by x_i where `takes(x_i, extremum)`, and by NaN.
template <class Takes>
ValuesIndices running_extremum(const char* op, const Tensor& x, int64_t dim, const Takes& takes) {
  const int d = normalize_dim(op, dim, x.dim());
  const Tensor rows = ops::contiguous_values(ops::widened(x));
  Tensor values = empty(x.shape(), rows.dtype()), indices = empty(x.shape(), DType::int64);
  const ops::Blocks b = x.dim() == 0 ? ops::Blocks() : ops::blocks_of(x.shape(), d, d);
  dispatch(rows.dtype(), [&]<class T>() {
    const T* const from = rows.data<T>();
    T* const to = values.mutable_data<T>();
    auto* const places = indices.mutable_data<int64_t>();
    const auto replaces = [takes](T v, T best) { return v != v || (best == best && takes(v, best)); };
    for_each_columns(b, [=](int64_t at, int64_t width) {
      if (b.inner == 1) {  // in registers
        T best = from[at];
        int64_t place = 0;
        for (int64_t r = 0; r < b.reduced; ++r) {
          const bool taken = replaces(from[at + r], best);
          to[at + r] = best = taken ? from[at + r] : best;
          places[at + r] = place = taken ? r : place;
        }
        return;
      }
      std::copy_n(from + at, width, to + at);
      std::fill_n(places + at, width, 0);
      for (int64_t r = 1; r < b.reduced; ++r) {
        at += b.inner;
        for (int64_t i = 0; i < width; ++i) {
          const T v = from[at + i], best = to[at + i - b.inner];
          const bool taken = replaces(v, best);
          to[at + i] = taken ? v : best;
          places[at + i] = taken ? r : places[at + i - b.inner];
        }
      }
    });
  });
  values = record(op, ops::rounded(values, x.dtype()), {x}, {indices}, [d](const Backward& back) -> Grads {
    return {scatter_add_(zeros(back.input_shape(0), back.grad().dtype()), d, back.saved(0), back.grad())};
  });  // dx = the sum of dy where x is the extremum
  return {values, indices};
}

}  // namespace

ValuesIndices cummax(const Tensor& x, int64_t dim) {
  return running_extremum("cummax", x, dim, [](auto v, auto best) { return v >= best; });
}
ValuesIndices cummin(const Tensor& x, int64_t dim) {
  return running_extremum("cummin", x, dim, [](auto v, auto best) { return v <= best; });
}

Tensor logcumsumexp(const Tensor& x, int64_t dim) {
  ops::check_floating("logcumsumexp", x);
  if (is_narrow(x.dtype())) return to(logcumsumexp(ops::wide(x), dim), x.dtype());
  const int d = normalize_dim("logcumsumexp", dim, x.dim());
  if (x.dim() == 0 || x.numel() == 0) return clone(x);
  Tensor most, shrink;  // m_i = max(x_0, ..., x_i), 0 where that is infinite; exp(m_{i-1} - m_i)
  {
    const NoGradGuard no_grad;
    most = cummax(x, d).values;
    const Tensor before = shifted(most, d, /*reverse=*/false);
    shrink = where(eq(before, most), 1, exp(sub(before, most)));
    most = masked_fill(most, eq(abs(most), kInfinity), 0);
  }
  return add(log(recurrence(shrink, exp(sub(x, most)), d, /*reverse=*/false)), most);  // m_i + log(sum of exp(x - m_i))
}

}  // namespace onestep
