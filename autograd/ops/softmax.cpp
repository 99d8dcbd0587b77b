// Softmax, its logarithm, and logsumexp. The kernels work on contiguous rows: another dim is swapped with the last one first.
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "autograd/kernels/kernels.h"
#include "autograd/operators.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops_nn.h"

namespace onestep {
namespace {

/// What is taken at once where rows go along another dim than the last: as much as keeps what is swapped in the L2 caches.
struct Parts {
  int64_t slices, columns;  // of dim 0, and of the last dim
};
Parts parts_of(const Shape& shape, int dim) {
  constexpr int64_t line = 16, elements = 1 << 16;  // of a core
  const int64_t cols = shape.back(), most = kernels::num_threads() * elements, slice = shape.numel() / shape[0];
  if (dim > 0 && slice <= most) return {most / slice, cols};
  const int64_t column = (dim > 0 ? slice : shape.numel()) / cols;
  return {dim > 0 ? 1 : shape[0], std::max(most / column / line, int64_t{1}) * line};
}

/// Calls `kernel(x..., y, rows, cols)` on rows along `dim`: inputs of one shape -> a new tensor of that shape.
template <class F, class... Inputs>
Tensor along(const char* op, int dim, F kernel, const Inputs&... inputs) {
  const NoGradGuard no_grad;
  const Tensor& like = std::get<0>(std::tie(inputs...));
  if (is_narrow(like.dtype())) return ops::rounded(along(op, dim, kernel, ops::widened(inputs)...), like.dtype());
  const auto run = [&](const Tensor& first, const auto&... others) {
    Tensor y = empty(first.shape(), first.dtype());
    if (y.numel() == 0) return y;  // of any dtype
    dispatch_floating(y.dtype(), op, [&]<class T>() {
      const int64_t cols = y.dim() == 0 ? 1 : y.shape().back();
      kernel(first.template data<T>(), others.template data<T>()..., y.template mutable_data<T>(), y.numel() / cols, cols);
    });
    return y;
  };
  const int last = like.dim() - 1;
  if (dim >= last || like.numel() == 0) return run(ops::contiguous_values(inputs)...);
  Tensor y = empty(like.shape(), like.dtype());
  const Parts parts = parts_of(y.shape(), dim);
  for (int64_t s = 0; s < y.shape()[0]; s += parts.slices)
    for (int64_t c = 0; c < y.shape().back(); c += parts.columns) {
      const auto part = [&](const Tensor& x) { return slice(slice(x, 0, s, s + parts.slices), last, c, c + parts.columns); };
      Tensor to = part(y);
      ops::copy_values(to, transpose(run(ops::contiguous_values(transpose(part(inputs), dim, -1))...), dim, -1));
    }
  return y;
}

}  // namespace

Tensor softmax(const Tensor& x, int64_t dim) {
  const int d = normalize_dim("softmax", dim, x.dim());
  const auto forward = [](const auto* from, auto* to, int64_t rows, int64_t cols) {
    kernels::softmax_rows(from, to, rows, cols);
  };
  const Tensor y = along("softmax", d, forward, x);
  return record("softmax", y, {x}, {y}, [d](const Backward& b) -> Grads {  // dx = y (dy - sum(y dy))
    if (b.recording()) {
      const Tensor weighted = b.saved(0) * b.grad();
      return {weighted - b.saved(0) * sum(weighted, d, true)};
    }
    const auto gradient = [](const auto* saved, const auto* dy, auto* dx, int64_t rows, int64_t cols) {
      kernels::softmax_grad_rows(saved, dy, dx, rows, cols);
    };
    return {along("softmax", d, gradient, b.saved(0), b.grad())};
  });
}

Tensor softmin(const Tensor& x, int64_t dim) {
  ops::check_floating("softmin", x);
  return softmax(neg(x), normalize_dim("softmin", dim, x.dim()));
}

Tensor log_softmax(const Tensor& x, int64_t dim) {
  const int d = normalize_dim("log_softmax", dim, x.dim());
  const auto forward = [](const auto* from, auto* to, int64_t rows, int64_t cols) {
    kernels::log_softmax_rows(from, to, rows, cols);
  };
  const Tensor y = along("log_softmax", d, forward, x);
  return record("log_softmax", y, {x}, {y}, [d](const Backward& b) -> Grads {  // dx = dy - exp(y) sum(dy)
    if (b.recording()) return {b.grad() - exp(b.saved(0)) * sum(b.grad(), d, true)};
    const auto gradient = [](const auto* saved, const auto* dy, auto* dx, int64_t rows, int64_t cols) {
      kernels::log_softmax_grad_rows(saved, dy, dx, rows, cols);
    };
    return {along("log_softmax", d, gradient, b.saved(0), b.grad())};
  });
}

namespace {

/// The order of dims that puts `dims` (sorted) last and keeps the others.
Shape dims_last(const Shape& dims, int rank) {
  Shape order;
  for (int i = 0, next = 0; i < rank; ++i) {
    if (next < dims.rank() && dims[next] == i)
      ++next;
    else
      order.push_back(i);
  }
  for (int64_t dim : dims) order.push_back(dim);
  return order;
}

/// permute(x, order) in contiguous rows; not recorded.
Tensor in_order(const Tensor& x, const Shape& order) {
  const NoGradGuard no_grad;
  return ops::contiguous_values(permute(x, order));
}

/// exp(x_i - logsumexp(x)) of a row whose softmax is NaN: beside an infinity what is smaller gets 0, and all else is NaN.
template <class T>
void weigh_infinite(const T* x, T* y, int64_t n) {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  const bool no_nan = std::none_of(x, x + n, [](T v) { return std::isnan(v); });
  const bool infinite = no_nan && std::find(x, x + n, infinity) != x + n;
  for (int64_t i = 0; i < n; ++i) y[i] = infinite && x[i] < infinity ? T(0) : std::numeric_limits<T>::quiet_NaN();
}

}  // namespace

Tensor logsumexp(const Tensor& input, const Shape& dims, bool keepdim) {
  const Tensor x = ops::as_floating(input);
  if (is_half(x.dtype())) return to(logsumexp(ops::wide(x), dims, keepdim), x.dtype());
  const Shape reduced = normalize_dims("logsumexp", dims, x.dim()), order = dims_last(reduced, x.dim());
  const Tensor rows_of_x = in_order(x, order);
  Tensor y = empty(reduced_shape(x.shape(), reduced, keepdim), x.dtype());
  dispatch_floating(x.dtype(), "logsumexp", [&]<class T>() {
    const int64_t rows = y.numel();
    if (rows > 0) kernels::logsumexp_rows(rows_of_x.data<T>(), y.mutable_data<T>(), rows, x.numel() / rows);
  });
  return record("logsumexp", y, {x}, {x}, [order, reduced](const Backward& b) -> Grads {  // dx = softmax(x) dy
    if (b.recording()) {
      const Tensor& v = b.saved(0);
      return {exp(v - logsumexp(v, reduced, true)) * ops::with_dims(b.grad(), v.shape(), reduced)};
    }
    const Tensor values = in_order(b.saved(0), order), dy = ops::contiguous_values(b.grad());
    Tensor dx = empty(values.shape(), values.dtype());
    dispatch_floating(dx.dtype(), "logsumexp", [&]<class T>() {
      if (dx.numel() == 0) return;
      const int64_t rows = dy.numel(), cols = dx.numel() / rows;
      const T *from = values.data<T>(), *scale = dy.data<T>();
      T* to = dx.mutable_data<T>();
      kernels::parallel_for(rows, 2.0 * static_cast<double>(cols), [=](int64_t r, int64_t end) {
        for (; r < end; ++r) {
          kernels::softmax_rows(from + r * cols, to + r * cols, 1, cols);
          if (std::isnan(to[r * cols])) weigh_infinite(from + r * cols, to + r * cols, cols);
          kernels::mul(to + r * cols, 1, scale + r, 0, to + r * cols, cols);
        }
      });
    });
    return {permute(dx, ops::inverse_order(order))};
  });
}

}  // namespace onestep
