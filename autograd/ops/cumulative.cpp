// Running sums, products, extrema and logarithms of sums along a dim.
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

constexpr int64_t kColumns = 64;
constexpr int64_t kRows = 4;  // whose sums and products wait for the ones before them

/// Elements along a dim, in the order in which they are taken: `length` of them, `distance` apart, from `first` on; and of
/// `count` such runs, each `apart` from the one before.
struct Runs {
  int64_t first, length, distance, count, apart;
};

/// Calls f(N, runs) for groups of at most N runs along the middle dim, from its end with `reverse`: neighbouring columns, or
/// ROWS rows.
template <int64_t ROWS, class F>
void for_each_runs(const ops::Blocks& b, bool reverse, const F& f) {
  if (b.reduced == 0) return;
  const int64_t start = reverse ? (b.reduced - 1) * b.inner : 0, distance = reverse ? -b.inner : b.inner;
  const bool rows = b.inner == 1;
  const int64_t each = rows ? ROWS : kColumns, runs = rows ? b.outer : b.inner, groups = (runs + each - 1) / each;
  const double cost = 2 * static_cast<double>(b.reduced * std::min(runs, each));
  kernels::parallel_for(rows ? groups : b.outer * groups, cost, [=](int64_t g, int64_t end) {
    for (; g < end; ++g) {
      const int64_t run = g % groups * each, count = std::min(runs - run, each);
      if (rows)
        f(std::integral_constant<int64_t, ROWS>(), Runs{run * b.reduced + start, b.reduced, distance, count, b.reduced});
      else
        f(std::integral_constant<int64_t, kColumns>(),
          Runs{g / groups * b.reduced * b.inner + run + start, b.reduced, distance, count, 1});
    }
  });
}

/// step(run, place, element) along the runs, all of them by one element after the other. Always inlined, with constants for
/// what can be one: columns are vectorized, and what a step keeps of four rows stays in registers.
template <int64_t N, class Step>
[[gnu::always_inline]] inline void go_along(const Runs& runs, const Step& step) {
  const int64_t apart = N == kColumns ? 1 : runs.apart;
  const auto go = [&](int64_t count) __attribute__((always_inline)) {
    for (int64_t r = 0, at = runs.first; r < runs.length; ++r, at += runs.distance)
      for (int64_t i = 0; i < count; ++i) step(i, r, at + i * apart);
  };
  if (runs.count == N)
    go(N);
  else
    go(runs.count);
}

/// The type of sums and products of T: double for float32, as in PyTorch.
template <class T>
using Sum = std::conditional_t<is_floating(dtype_of<T>()), double, T>;

/// y_i = x_0 + ... + x_i along dim `d`, or from the end with `reverse`.
Tensor cumsum_values(const Tensor& x, int d, bool reverse) {
  if (is_narrow(x.dtype())) return ops::rounded(cumsum_values(ops::widened(x), d, reverse), x.dtype());
  const Tensor rows = ops::contiguous_values(x);
  Tensor y = empty(x.shape(), x.dtype());
  dispatch(x.dtype(), [&]<class T>() {
    const T* const from = rows.data<T>();
    T* const to = y.mutable_data<T>();
    for_each_runs<kRows>(ops::blocks_of(x.shape(), d, d), reverse,
                         [=]<int64_t N>(std::integral_constant<int64_t, N>, const Runs& runs) {
                           std::array<Sum<T>, N> totals{};
                           go_along<N>(runs, [&](int64_t i, int64_t, int64_t at) {
                             Sum<T>& total = totals[static_cast<size_t>(i)];
                             to[at] = static_cast<T>(total = ops::plus(total, static_cast<Sum<T>>(from[at])));
                           });
                         });
  });
  return y;
}

/// cumsum_values, recorded: dx_i = dy_i + ... + dy_n, and the other way round.
Tensor running_sums(const Tensor& x, int d, bool reverse) {
  return record("cumsum", cumsum_values(x, d, reverse), {x}, {},
                [d, reverse](const Backward& b) -> Grads { return {running_sums(b.grad(), d, !reverse)}; });
}

/// y_i = b_i + a_i y_{i-1} along dim `d`, or b_i + a_i y_{i+1} from the end with `reverse`; a running product of a where b is
/// undefined. With `cut` nothing comes past a factor of 0, be it infinite.
Tensor recurrence(const Tensor& a, const Tensor& b, int d, bool reverse, bool cut = false) {
  const Tensor factors = ops::contiguous_values(a), addends = ops::rows_or_undefined(b);
  Tensor y = empty(a.shape(), a.dtype());
  dispatch(a.dtype(), [&]<class T>() {
    const T *const factor = factors.data<T>(), *const addend = ops::data_or_null<T>(addends);
    T* const to = y.mutable_data<T>();
    for_each_runs<kRows>(
        ops::blocks_of(a.shape(), d, d), reverse, [=]<int64_t N>(std::integral_constant<int64_t, N>, const Runs& runs) {
          std::array<Sum<T>, N> totals;
          totals.fill(addend ? Sum<T>(0) : Sum<T>(1));
          go_along<N>(runs, [&](int64_t i, int64_t r, int64_t at) {
            Sum<T>& total = totals[static_cast<size_t>(i)];
            const Sum<T> product = ops::times(static_cast<Sum<T>>(factor[at]), total);
            if (addend)
              total = ops::plus(static_cast<Sum<T>>(addend[at]), r == 0 || (cut && factor[at] == 0) ? Sum<T>(0) : product);
            else
              total = product;
            to[at] = static_cast<T>(total);
          });
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

Tensor cumsum(const Tensor& input, int64_t dim) {
  const Tensor x = input.is_floating() ? input : to(input, DType::int64);
  return running_sums(x, normalize_dim("cumsum", dim, x.dim()), /*reverse=*/false);
}

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
  dispatch(rows.dtype(), [&]<class T>() {
    const T* const from = rows.data<T>();
    T* const to = values.mutable_data<T>();
    auto* const places = indices.mutable_data<int64_t>();
    const auto replaces = [takes](T v, T before) { return v != v || (before == before && takes(v, before)); };
    // One row, whose next extremum is foreseen: more of them push each other out of the L1 cache.
    for_each_runs<1>(ops::blocks_of(x.shape(), d, d), false,
                     [=]<int64_t N>(std::integral_constant<int64_t, N>, const Runs& runs) {
                       std::array<T, N> best{};
                       std::array<int64_t, N> place{};
                       for (int64_t i = 0; i < runs.count; ++i)
                         best[static_cast<size_t>(i)] = from[runs.first + i * runs.apart];
                       go_along<N>(runs, [&](int64_t run, int64_t r, int64_t at) {
                         const auto i = static_cast<size_t>(run);
                         const T v = from[at];
                         const bool taken = __builtin_expect(replaces(v, best[i]), false);
                         to[at] = best[i] = taken ? v : best[i];
                         places[at] = place[i] = taken ? r : place[i];
                       });
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
