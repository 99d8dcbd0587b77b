// Reductions over dims. Each run of adjacent reduced dims is one step over [outer, reduced, inner], innermost run first, and
// each output element is summed in one fixed order: neither threads nor layout can change a bit of it.
#include "autograd/ops/reduce.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "autograd/operators.h"
#include "autograd/ops/pointwise.h"
#include "autograd/vector_loop.h"

namespace onestep {

using ops::Blocks;
using ops::count_of;
using ops::with_dims;
using ops::without_dims;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

/// Rows longer than this are summed in 64 equal chunks, which can go to threads, and then over the chunks.
constexpr int64_t kLongRow = 65536;

template <class T>
ONESTEP_EACH_ISA T sum_integers(const T* x, int64_t n) {
  return std::accumulate(x, x + n, T(0), ops::plus<T>);
}

template <class T>
T sum_part(const T* x, int64_t n) {
  if constexpr (std::is_floating_point_v<T>)
    return kernels::sum(x, n);
  else
    return sum_integers(x, n);
}

/// The sum of n numbers; sum(first, count) is that of some of them.
template <class T, class Sum>
T sum_row(int64_t n, const Sum& sum) {
  if (n <= kLongRow) return sum(0, n);
  std::array<T, 64> sums;
  const auto chunks = static_cast<int64_t>(sums.size());
  kernels::parallel_for(chunks, 0.2 * static_cast<double>(n) / static_cast<double>(chunks), [&](int64_t c, int64_t end) {
    for (; c < end; ++c) {
      const int64_t first = n * c / chunks, last = n * (c + 1) / chunks;
      sums[static_cast<size_t>(c)] = sum(first, last - first);
    }
  });
  return sum_part(sums.data(), chunks);
}

/// y[r] = the sum of row r of x [rows, n].
template <class T>
void sum_each(const T* x, T* y, int64_t rows, int64_t n) {
  if constexpr (std::is_floating_point_v<T>)
    kernels::row_sums(x, y, rows, n);
  else
    for (int64_t r = 0; r < rows; ++r) y[r] = sum_integers(x + r * n, n);
}

template <class T>
void sum_blocks(const T* x, T* y, const Blocks& b) {
  kernels::parallel_for(b.outer, ops::kLoopCost * static_cast<double>(b.reduced * b.inner), [=](int64_t o, int64_t end) {
    if (b.inner == 1) return sum_each(x + o * b.reduced, y + o, end - o, b.reduced);
    for (; o < end; ++o) {
      const T* from = x + o * b.reduced * b.inner;
      T* to = y + o * b.inner;
      if constexpr (std::is_floating_point_v<T>) {
        kernels::sum_rows(from, to, b.reduced, b.inner, b.inner);
      } else {
        std::fill_n(to, b.inner, T(0));
        for (int64_t r = 0; r < b.reduced; ++r)
          vector_loop([](T u, T v) { return ops::plus(u, v); }, to, b.inner, to, from + r * b.inner);
      }
    }
  });
}

/// y[o] = sum(first, n) of row o's elements of [outer, reduced], part by part where they are many.
template <class T, class Sum>
void sum_each_row(T* y, const Blocks& b, const Sum& sum) {
  kernels::parallel_for(b.outer, ops::kLoopCost * static_cast<double>(b.reduced), [&](int64_t o, int64_t end) {
    for (; o < end; ++o) y[o] = sum_row<T>(b.reduced, [&](int64_t first, int64_t n) { return sum(o * b.reduced + first, n); });
  });
}

/// The sum of n elements of a contiguous x.
template <class T>
T sum_elements(const Tensor& x, int64_t first, int64_t n) {
  if constexpr (std::is_same_v<T, float>) {
    const auto& k = kernels::table<float>();
    const auto widen = x.dtype() == DType::float16 ? k.from_half : k.from_bf16;
    if (is_narrow(x.dtype())) return k.sum_widened(widen, static_cast<const uint16_t*>(x.data_ptr()) + first, n);
  }
  return sum_part(x.data<T>() + first, n);
}

template <class T>
void sum_step(const Tensor& x, T* y, const Blocks& b) {
  constexpr int64_t few = 512;  // narrow ones, which are sooner widened with those of other rows
  if (b.inner == 1 && b.reduced > (is_narrow(x.dtype()) ? few : kLongRow))
    return sum_each_row(y, b, [&](int64_t first, int64_t n) { return sum_elements<T>(x, first, n); });
  ops::reduce_in_pieces(x, y, b, sum_blocks<T>, [](T* to, const T* part, int64_t n) {
    vector_loop([](T u, T v) { return ops::plus(u, v); }, to, n, to, part);
  });
}

/// The sum over `dims` (sorted), which stay with size 1; x of a floating dtype or int64.
Tensor sum_values(const Tensor& x, const Shape& dims) {
  const Tensor y = dispatch(compute_type(x.dtype()), [&]<class T>() { return ops::reduce<T>(x, dims, sum_step<T>); });
  return ops::rounded(y, x.dtype());
}

/// sum_values(x * x, dims) bit for bit, without the squares in memory where x's last dim is reduced; x of float32 or float64.
Tensor sum_of_squares(const Tensor& x, const Shape& dims) {
  Shape before = dims, last;  // the run of dims that ends with x's last one
  for (int d = x.dim() - 1; !before.empty() && before.back() == d; --d) {
    last.insert(0, d);
    before.erase(before.rank() - 1);
  }
  constexpr int64_t few = 16;  // whose sums are faster without a call for each row
  if (last.empty() || count_of(x.shape(), last) <= few) return sum_values(mul(x, x), dims);
  const Tensor sums = dispatch_floating(x.dtype(), "norm", [&]<class T>() {
    return ops::reduce<T>(x, last, [](const Tensor& from, T* to, const Blocks& b) {
      sum_each_row(to, b,
                   [x = from.data<T>()](int64_t first, int64_t n) { return kernels::sum_rounded_squares(x + first, n); });
    });
  });
  return before.empty() ? sums : sum_values(sums, before);
}

/// How many are true over `dims` (sorted), which stay with size 1, without the numbers as int64 in memory.
Tensor count_values(const Tensor& x, const Shape& dims) {
  const int last = x.dim() - 1;
  if (dims.empty() || dims.back() != last || !x.is_contiguous()) return sum_values(to(x, DType::int64), dims);
  Tensor counts = empty(x.shape().first(last), DType::int64);
  const auto* const from = x.data<bool>();
  auto* const to = counts.mutable_data<int64_t>();
  const int64_t n = x.shape()[last];
  kernels::parallel_for(counts.numel(), 0.1 * static_cast<double>(n), [=](int64_t r, int64_t end) {
    for (; r < end; ++r) to[r] = std::count(from + r * n, from + (r + 1) * n, true);
  });
  return sum_values(unsqueeze(counts, last), dims);
}

Tensor deviations(const Tensor& x, const Shape& dims) { return sub(x, mean(x, dims, true)); }

}  // namespace

Tensor ops::sum_to(const Tensor& grad, const Shape& shape) {
  if (grad.shape() == shape) return grad;
  const int added = grad.dim() - shape.rank();
  Shape dims;
  for (int i = 0; i < grad.dim(); ++i)
    if (i < added || (shape[i - added] == 1 && grad.shape()[i] != 1)) dims.push_back(i);
  if (detail::should_record({grad})) return reshape(sum(grad, dims), shape);
  const Tensor y = sum_values(grad, dims);
  return view_of(y, shape, contiguous_strides(shape), y.offset());
}

Tensor sum(const Tensor& x) { return sum(x, {}); }

Tensor sum(const Tensor& input, const Shape& wanted, bool keepdim) {
  const Shape dims = normalize_dims("sum", wanted, input.dim());
  if (input.dtype() == DType::boolean) return without_dims(count_values(input, dims), input.shape(), dims, keepdim);
  const Tensor x = input.is_floating() ? input : to(input, DType::int64);
  const Tensor y = without_dims(sum_values(x, dims), x.shape(), dims, keepdim);
  return record("sum", y, {x}, {}, [dims](const Backward& b) -> Grads {
    const Shape& shape = b.input_shape(0);
    return {expand(with_dims(b.grad(), shape, dims), shape)};  // dx = dy, repeated
  });
}

Tensor mean(const Tensor& x) { return mean(x, {}); }

Tensor mean(const Tensor& x, const Shape& wanted, bool keepdim) {
  ops::check_floating("mean", x);
  if (is_narrow(x.dtype())) return to(mean(ops::wide(x), wanted, keepdim), x.dtype());
  const Shape dims = normalize_dims("mean", wanted, x.dim());
  const auto n = static_cast<double>(count_of(x.shape(), dims));
  Tensor y = without_dims(sum_values(x, dims), x.shape(), dims, keepdim);
  y = div(y, n);
  return record("mean", y, {x}, {}, [dims, n](const Backward& b) -> Grads {
    const Shape& shape = b.input_shape(0);
    return {expand(with_dims(div(b.grad(), n), shape, dims), shape)};  // dx = dy / n, repeated
  });
}

Tensor var(const Tensor& x, const Shape& wanted, double correction, bool keepdim) {
  ops::check_floating("var", x);
  if (is_narrow(x.dtype())) return to(var(ops::wide(x), wanted, correction, keepdim), x.dtype());
  const Shape dims = normalize_dims("var", wanted, x.dim());
  const auto n = static_cast<double>(count_of(x.shape(), dims));
  Tensor y;
  {
    const NoGradGuard no_grad;
    const Tensor d = deviations(x, dims);
    y = without_dims(sum_values(mul(d, d), dims), x.shape(), dims, keepdim);
    y = div(y, std::max(n - correction, 0.0));
  }
  const double scale = 2.0 / (n - correction);
  const bool infinite = n <= correction && (wanted.empty() || x.dim() == 0);  // PyTorch looks at it where no dims are given
  return record("var", y, {x}, {x}, [dims, scale, infinite](const Backward& b) -> Grads {
    const Tensor& v = b.saved(0);
    if (infinite) return {mul(b.grad(), masked_fill(full_like(v, kInfinity), eq(v, mean(v)), kNaN))};
    return {mul(mul(with_dims(b.grad(), v.shape(), dims), scale), deviations(v, dims))};
  });  // dx = dy 2 (x - mean) / (n - correction)
}

Tensor std(const Tensor& x, const Shape& wanted, double correction, bool keepdim) {
  ops::check_floating("std", x);
  if (is_narrow(x.dtype())) return to(std(ops::wide(x), wanted, correction, keepdim), x.dtype());
  const Shape dims = normalize_dims("std", wanted, x.dim());
  Tensor y;
  {
    const NoGradGuard no_grad;
    y = sqrt(var(x, wanted, correction, keepdim));
  }
  const double n = static_cast<double>(count_of(x.shape(), dims)) - correction;
  return record("std", y, {x}, {x, y}, [dims, n](const Backward& b) -> Grads {
    const Tensor& v = b.saved(0);
    const Tensor y_kept = with_dims(b.saved(1), v.shape(), dims), dy = with_dims(b.grad(), v.shape(), dims);
    const Tensor none = eq(y_kept, 0), scale = masked_fill(div(dy, mul(masked_fill(y_kept, none, 1), n)), none, 0);
    return {mul(scale, deviations(v, dims))};
  });  // dx = dy (x - mean) / ((n - correction) std), 0 where std = 0
}

namespace {

Tensor norm_values(const Tensor& x, double p, const Shape& dims, bool keepdim) {
  const NoGradGuard no_grad;
  if (p == 2) return sqrt(without_dims(sum_of_squares(x, dims), x.shape(), dims, keepdim));
  const Tensor sizes = abs(x);
  if (p == 1) return sum(sizes, dims, keepdim);
  if (p == 0) return to(sum(ne(x, 0), dims, keepdim), x.dtype());
  if (p == kInfinity) return amax(sizes, dims, keepdim);
  if (p == -kInfinity) return amin(sizes, dims, keepdim);
  return pow(sum(pow(sizes, p), dims, keepdim), 1 / p);
}

}  // namespace

Tensor norm(const Tensor& x, double p, const Shape& wanted, bool keepdim) {
  ops::check_floating("norm", x);
  if (is_narrow(x.dtype())) return to(norm(ops::wide(x), p, wanted, keepdim), x.dtype());
  const Shape dims = normalize_dims("norm", wanted, x.dim());
  const Tensor y = norm_values(x, p, dims, keepdim);
  return record("norm", y, {x}, {x, y}, [p, dims](const Backward& b) -> Grads {
    const Tensor& v = b.saved(0);
    const Tensor dy = with_dims(b.grad(), v.shape(), dims);
    Tensor norms = with_dims(b.saved(1), v.shape(), dims);
    if (p == 0) return {Tensor()};
    if (p == 1) return {mul(dy, sign(v))};
    const Tensor sizes = abs(v);
    if (std::isinf(p)) {  // the extrema share it evenly
      const Tensor chosen = to(eq(sizes, norms), v.dtype());
      return {mul(mul(dy, sign(v)), div(chosen, sum(chosen, dims, true)))};
    }
    const Tensor none = eq(norms, 0);
    if (p == 2) return {mul(dy, masked_fill(div(v, norms), none, 0))};  // the second derivative at 0 is NaN, as in PyTorch
    norms = masked_fill(norms, none, 1);  // an infinite derivative would stay in the second one: 0 * inf is NaN
    const Tensor scale = masked_fill(div(dy, pow(norms, p - 1)), none, 0);
    return {mul(scale, mul(sign(v), pow(masked_fill(sizes, eq(v, 0), 1), p - 1)))};
  });  // dx = dy sign(x) (|x| / norm)^(p - 1)
}

}  // namespace onestep
