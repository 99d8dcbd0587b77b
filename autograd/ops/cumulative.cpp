// Running products, extrema and logarithms of sums along a dim, by one linear recurrence.
#include <limits>

#include "autograd/ops/reduce.h"
#include "autograd/ops/scatter.h"

namespace onestep {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// x moved one place onwards along dim `d` (or back, with `reverse`), a zero coming in.
Tensor shifted(const Tensor& x, int d, bool reverse) {
  Shape one = x.shape();
  one[d] = 1;
  const Tensor zero = zeros(one, x.dtype()), rest = narrow(x, d, reverse ? 1 : 0, x.size(d) - 1);
  return reverse ? cat({rest, zero}, d) : cat({zero, rest}, d);
}

/// y_i = b_i + a_i y_{i-1} along dim `d`, or b_i + a_i y_{i+1} from the end with `reverse`; float32 sums in double, as cumsum.
Tensor recurrence(const Tensor& a, const Tensor& b, int d, bool reverse) {
  const Tensor factors = ops::contiguous_values(a), addends = ops::contiguous_values(b);
  Tensor y = empty(a.shape(), a.dtype());
  const ops::Blocks blocks = ops::blocks_of(a.shape(), d, d);
  dispatch(a.dtype(), [&]<class T>() {
    using Sum = std::conditional_t<is_floating(dtype_of<T>()), double, T>;
    const T *const factor = factors.data<T>(), *const addend = addends.data<T>();
    T* const to = y.mutable_data<T>();
    const int64_t distance = reverse ? -blocks.inner : blocks.inner;
    kernels::parallel_for(blocks.outer * blocks.inner, 2 * static_cast<double>(blocks.reduced), [=](int64_t c, int64_t end) {
      for (; c < end; ++c) {
        int64_t at = c / blocks.inner * blocks.reduced * blocks.inner + c % blocks.inner;
        if (reverse) at += (blocks.reduced - 1) * blocks.inner;
        Sum total(0);
        for (int64_t i = 0; i < blocks.reduced; ++i, at += distance) {
          total = ops::plus(static_cast<Sum>(addend[at]), i == 0 ? Sum(0) : ops::times(static_cast<Sum>(factor[at]), total));
          to[at] = static_cast<T>(total);
        }
      }
    });
  });
  return record("recurrence", y, {a, b}, {a, y}, [d, reverse](const Backward& back) -> Grads {
    // s_i = dy_i + a_{i+1} s_{i+1}; db = s, da_i = s_i y_{i-1}
    const Tensor s = recurrence(shifted(back.saved(0), d, !reverse), back.grad(), d, !reverse);
    return {back.needs(0) ? mul(s, shifted(back.saved(1), d, reverse)) : Tensor(), s};
  });
}

}  // namespace

Tensor cumprod(const Tensor& input, int64_t dim) {
  if (input.is_floating() && is_narrow(input.dtype())) return to(cumprod(ops::wide(input), dim), input.dtype());
  const Tensor x = is_floating(input.dtype()) ? input : to(input, DType::int64);
  const int d = normalize_dim("cumprod", dim, x.dim());
  if (x.dim() == 0 || x.numel() == 0) return clone(x);
  Shape rest = x.shape();
  rest[d] -= 1;
  const Tensor start = cat({narrow(x, d, 0, 1), full(rest, -0.0, x.dtype())}, d);  // -0: adding it keeps a product of -0
  return recurrence(x, start, d, /*reverse=*/false);                               // y_i = x_i y_{i-1}, y_0 = x_0
}

namespace {

/// Where the extremum of x_0 .. x_i stands that is replaced by x_i where `takes(x_i, extremum)`, and by NaN.
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
    kernels::parallel_for(b.outer * b.inner, 2 * static_cast<double>(b.reduced), [=](int64_t c, int64_t end) {
      for (; c < end; ++c) {
        int64_t at = c / b.inner * b.reduced * b.inner + c % b.inner, place = 0;
        for (int64_t i = 0; i < b.reduced; ++i, at += b.inner) {
          const T v = from[at], best = i == 0 ? v : to[at - b.inner];
          if (v != v || (best == best && takes(v, best))) place = i;
          to[at] = place == i ? v : best;
          places[at] = place;
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
