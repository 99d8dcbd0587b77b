// Products over dims, and their gradients without a division.
#include <algorithm>

#include "autograd/operators.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/vector_loop.h"

namespace onestep {

using ops::Blocks;
using ops::without_dims;

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
  const Tensor y = dispatch(x.dtype(), [&]<class T>() {
    return ops::reduce<T>(x, dims, [](const Tensor& from, T* to, const Blocks& b) { product_blocks(from.data<T>(), to, b); });
  });
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
