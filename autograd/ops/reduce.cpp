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

/// `sum` is sum_part or what sums in the same way.
template <class T, class Sum>
T sum_row(const T* x, int64_t n, const Sum& sum) {
  if (n <= kLongRow) return sum(x, n);
  std::array<T, 64> sums;
  const auto chunks = static_cast<int64_t>(sums.size());
  kernels::parallel_for(chunks, 0.2 * static_cast<double>(n) / static_cast<double>(chunks), [&](int64_t c, int64_t end) {
    for (; c < end; ++c) {
      const int64_t first = n * c / chunks, last = n * (c + 1) / chunks;
      sums[static_cast<size_t>(c)] = sum(x + first, last - first);
    }
  });
  return sum_part(sums.data(), chunks);
}

template <class T>
void sum_blocks(const T* x, T* y, const Blocks& b) {
  kernels::parallel_for(b.outer, ops::kLoopCost * static_cast<double>(b.reduced * b.inner), [=](int64_t o, int64_t end) {
    for (; o < end; ++o) {
      const T* from = x + o * b.reduced * b.inner;
      T* to = y + o * b.inner;
      if (b.inner == 1) {
        *to = sum_row(from, b.reduced, sum_part<T>);
      } else if constexpr (std::is_floating_point_v<T>) {
        kernels::sum_rows(from, to, b.reduced, b.inner, b.inner);
      } else {
        std::fill_n(to, b.inner, T(0));
        for (int64_t r = 0; r < b.reduced; ++r)
          vector_loop([](T u, T v) { return ops::plus(u, v); }, to, b.inner, to, from + r * b.inner);
      }
    }
  });
}

/// The sum over `dims` (sorted), which stay with size 1; x of a floating dtype or int64.
Tensor sum_values(const Tensor& x, const Shape& dims) {
  if (is_narrow(x.dtype())) return ops::rounded(sum_values(ops::widened(x), dims), x.dtype());
  return dispatch(x.dtype(), [&]<class T>() { return ops::reduce<T>(x, dims, sum_blocks<T>); });
}

template <class T>
void sum_square_rows(const T* x, T* y, const Blocks& b) {
  kernels::parallel_for(b.outer, ops::kLoopCost * static_cast<double>(b.reduced), [=](int64_t o, int64_t end) {
    for (; o < end; ++o) y[o] = sum_row(x + o * b.reduced, b.reduced, kernels::sum_rounded_squares<T>);
  });
}

/// sum_values(x * x, dims) bit for bit, without the squares in memory where x's last dim is reduced; x of float32 or float64.
Tensor sum_of_squares(const Tensor& x, const Shape& dims) {
  Shape before = dims, last;  // the run of dims that ends with x's last one
  for (int d = x.dim() - 1; !before.empty() && before.back() == d; --d) {
    last.insert(0, d);
    before.erase(before.rank() - 1);
  }
  if (last.empty()) return sum_values(mul(x, x), dims);
  const Tensor sums =
      dispatch_floating(x.dtype(), "norm", [&]<class T>() { return ops::reduce<T>(x, last, sum_square_rows<T>); });
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

namespace {

constexpr int64_t kProducts = 16;

/// The products of a row's n numbers as 16: 64 of every 64th, in pairs 16, which take what is left in 16s. Returns what they
/// took.
template <class T>
int64_t partial_products(const T* x, int64_t n, T* to) {
  constexpr int64_t many = 4 * kProducts;
  T products[many];
  std::fill_n(products, many, T(1));
  int64_t i = 0;
  for (; i + many <= n; i += many)
    for (int64_t j = 0; j < many; ++j) products[j] = ops::times(products[j], x[i + j]);
  for (int64_t half = many / 2; half >= kProducts; half /= 2)
    for (int64_t j = 0; j < half; ++j) products[j] = ops::times(products[j], products[j + half]);
  for (; i + kProducts <= n; i += kProducts)
    for (int64_t j = 0; j < kProducts; ++j) products[j] = ops::times(products[j], x[i + j]);
  std::copy_n(products, kProducts, to);
  return i;
}

/// The product of each row of x [rows, n]. Eight rows at a time: each of a row's last products waits for the one before.
template <class T>
ONESTEP_EACH_ISA void products_of_rows(const T* x, int64_t n, int64_t rows, T* y) {
  constexpr int64_t together = 8;
  for (int64_t first = 0; first < rows; first += together) {
    const int64_t count = std::min(rows - first, together);
    const T* const from = x + first * n;
    T parts[together][kProducts], all[together];
    for (T* const row : parts) std::fill_n(row, kProducts, T(1));
    std::fill_n(all, together, T(1));
    int64_t taken = 0;
    for (int64_t r = 0; r < count; ++r) taken = partial_products(from + r * n, n, parts[r]);
    for (int64_t j = 0; j < kProducts; ++j)
      for (int64_t r = 0; r < together; ++r) all[r] = ops::times(all[r], parts[r][j]);
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t i = taken; i < n; ++i) all[r] = ops::times(all[r], from[r * n + i]);
      y[first + r] = all[r];
    }
  }
}

template <class T>
void product_blocks(const T* x, T* y, const Blocks& b) {
  kernels::parallel_for(b.outer, ops::kLoopCost * static_cast<double>(b.reduced * b.inner), [=](int64_t o, int64_t end) {
    if (b.inner == 1) return products_of_rows(x + o * b.reduced, b.reduced, end - o, y + o);
    for (; o < end; ++o) {
      const T* from = x + o * b.reduced * b.inner;
      T* to = y + o * b.inner;
      std::fill_n(to, b.inner, T(1));
      for (int64_t r = 0; r < b.reduced; ++r)
        vector_loop([](T u, T v) { return ops::times(u, v); }, to, b.inner, to, from + r * b.inner);
    }
  });
}

/// dx_i = dy (x_0 ... x_{i-1}) (x_{i+1} ... x_n): no division, so that zeros do no harm. First a row's products of what is
/// before, and of what is after together with the next row's first: each waits for the one before it.
template <class T>
void product_grad_rows(const T* x, const T* dy, T* dx, int64_t n, int64_t rows) {
  const auto times_before = [=](int64_t at, T& before) {
    dx[at] = before;
    before *= x[at];
  };
  const auto times_after = [=](int64_t at, T& after) {
    dx[at] *= after;
    after *= x[at];
  };
  T before = dy[0], after = T(1);
  for (int64_t i = 0; i < n; ++i) times_before(i, before);
  for (int64_t r = 1; r < rows; ++r) {
    before = dy[r], after = T(1);
    for (int64_t i = 0; i < n; ++i) {
      times_before(r * n + i, before);
      times_after(r * n - 1 - i, after);
    }
  }
  after = T(1);
  for (int64_t i = rows * n; i-- > (rows - 1) * n;) times_after(i, after);
}

constexpr int64_t kProductColumns = 64;

/// The same for at most kProductColumns columns of n rows that are `step` apart, side by side.
template <class T>
ONESTEP_EACH_ISA void product_grad_columns(const T* x, const T* dy, T* dx, int64_t n, int64_t step, int64_t columns) {
  T before[kProductColumns], after[kProductColumns];
  std::copy_n(dy, columns, before);
  std::fill_n(after, columns, T(1));
  for (int64_t at = 0; at < n * step; at += step)
    for (int64_t c = 0; c < columns; ++c) {
      dx[at + c] = before[c];
      before[c] *= x[at + c];
    }
  for (int64_t at = (n - 1) * step; at >= 0; at -= step)
    for (int64_t c = 0; c < columns; ++c) {
      dx[at + c] *= after[c];
      after[c] *= x[at + c];
    }
}

template <class T>
void product_grad_blocks(const T* x, const T* dy, T* dx, const Blocks& b) {
  if (b.inner == 1)
    return kernels::parallel_for(b.outer, ops::kLoopCost * static_cast<double>(b.reduced), [=](int64_t r, int64_t end) {
      product_grad_rows(x + r * b.reduced, dy + r, dx + r * b.reduced, b.reduced, end - r);
    });
  const auto cost = ops::kLoopCost * static_cast<double>(b.reduced);
  ops::for_each_column_range(b.outer, b.inner, cost, [=](int64_t o, int64_t c, int64_t end) {
    for (const int64_t first = o * b.reduced * b.inner; c < end; c += kProductColumns)
      product_grad_columns(x + first + c, dy + o * b.inner + c, dx + first + c, b.reduced, b.inner,
                           std::min(end - c, kProductColumns));
  });
}

/// product_grad_blocks in ops that are recorded, x [.., n, ..] and dy [.., 1, ..]: every element is multiplied with another
/// one, the products with each other, and so on; then each gets the gradient of its pair times the other one.
Tensor product_grad(const Tensor& x, const Tensor& dy, int64_t d) {
  const int64_t n = x.size(d), half = n / 2;
  if (n < 2) return n == 0 ? zeros_like(x) : dy;
  const Tensor a = slice(x, d, 0, half), b = slice(x, d, half, 2 * half), rest = slice(x, d, 2 * half, n);
  const Tensor grads = product_grad(cat({a * b, rest}, d), dy, d), pairs = slice(grads, d, 0, half);
  return cat({pairs * b, pairs * a, slice(grads, d, half, half + n % 2)}, d);
}

/// The product over `dims`, adjacent ones or none.
Tensor product(const Tensor& input, const Shape& dims, bool keepdim) {
  if (is_half(input.dtype())) return to(product(ops::wide(input), dims, keepdim), input.dtype());
  const Tensor x = input.is_floating() ? input : to(input, DType::int64);
  const Tensor y = dispatch(x.dtype(), [&]<class T>() { return ops::reduce<T>(x, dims, product_blocks<T>); });
  return record("prod", without_dims(y, x.shape(), dims, keepdim), {x}, {x}, [dims](const Backward& b) -> Grads {
    const Shape& shape = b.input_shape(0);
    const Blocks blocks =
        dims.empty() ? Blocks() : ops::blocks_of(shape, static_cast<int>(dims[0]), static_cast<int>(dims.back()));
    if (b.recording()) {
      if (blocks.reduced == 1 && shape.rank() > 0 && !any(eq(b.saved(0), 0)).item<bool>())  // as PyTorch's dy y / x
        return {reshape(b.grad(), shape) * ops::record_constant("prod", ones_like(b.saved(0)), b.saved(0))};
      const Tensor columns = reshape(b.saved(0), {blocks.outer, blocks.reduced, blocks.inner});
      return {reshape(product_grad(columns, reshape(b.grad(), {blocks.outer, 1, blocks.inner}), 1), shape)};
    }
    const Tensor v = ops::contiguous_values(b.saved(0)), dy = ops::contiguous_values(b.grad());
    Tensor dx = empty(v.shape(), v.dtype());
    dispatch_floating(v.dtype(), "prod",
                      [&]<class T>() { product_grad_blocks(v.data<T>(), dy.data<T>(), dx.mutable_data<T>(), blocks); });
    return {dx};
  });
}

}  // namespace

Tensor prod(const Tensor& x) { return product(x, normalize_dims("prod", {}, x.dim()), false); }
Tensor prod(const Tensor& x, int64_t dim, bool keepdim) {
  const int d = normalize_dim("prod", dim, x.dim());
  return product(x, x.dim() == 0 ? Shape() : Shape{d}, keepdim);
}

}  // namespace onestep
