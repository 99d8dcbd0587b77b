// Softmax, its logarithm, and logsumexp: of rows where the dim is the last one, or of columns side by side.
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "autograd/kernels/kernels.h"
#include "autograd/operators.h"
#include "autograd/ops/pieces.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops_nn.h"

namespace onestep {
namespace {

using ops::Blocks;
using ops::Piece;

/// Columns that are taken side by side at most.
constexpr int64_t kMostColumns = 1024;

/// Calls f(the offset of the row) for each row of columns.
template <class F>
void each_row(const Piece& columns, F f) {
  for (int64_t r = 0; r < columns.rows; ++r) f(r * columns.ld);
}

/// Calls f(Piece) for all columns of `blocks`, in long pieces of rows, as memory is read in order; but narrow ones, which are
/// widened, in pieces that stay in the L2 cache where there are not too many rows.
template <class F>
void over_columns(const Blocks& blocks, DType dtype, F f) {
  constexpr int64_t line = 16, narrow_size = 32 * ops::kPieceSize;
  const int64_t n = blocks.reduced, inner = blocks.inner, share = blocks.outer * inner / kernels::num_threads();
  const int64_t wanted = is_narrow(dtype) ? std::min(share, narrow_size / n) : share;
  const int64_t width = std::clamp(wanted / line * line, 2 * line, kMostColumns), parts = (inner + width - 1) / width;
  kernels::parallel_for(blocks.outer * parts, 2.0 * static_cast<double>(n * width), [=](int64_t i, int64_t end) {
    for (; i < end; ++i) {
      const int64_t column = i % parts * width;
      f(Piece{i / parts * n * inner + column, n, std::min(width, inner - column), inner});
    }
  });
}

/// largest [cols] of x, and y = exp(x - largest) with its sums, total [cols].
template <class T>
void exp_columns(const Piece& c, const T* x, T* y, T* largest, T* total) {
  std::copy_n(x, c.cols, largest);
  each_row(c, [=](int64_t at) { kernels::maximum(x + at, 1, largest, 1, largest, c.cols); });
  each_row(c, [=](int64_t at) {
    kernels::sub(x + at, 1, largest, 1, y + at, c.cols);
    kernels::exp(y + at, y + at, c.cols);
  });
  kernels::sum_rows(y, total, c.rows, c.cols, c.ld);
}

// What the functions of rows in kernels.h compute, of columns.

template <class T>
void softmax_columns(const Piece& c, const T* x, T* y) {
  T scale[kMostColumns], total[kMostColumns];
  exp_columns(c, x, y, scale, total);
  const T one = 1;
  kernels::div(&one, 0, total, 1, scale, c.cols);
  each_row(c, [&](int64_t at) { kernels::mul(y + at, 1, scale, 1, y + at, c.cols); });
}

template <class T>
void softmax_grad_columns(const Piece& c, const T* y, const T* dy, T* dx) {
  T mean[kMostColumns];
  each_row(c, [&](int64_t at) { kernels::mul(y + at, 1, dy + at, 1, dx + at, c.cols); });
  kernels::sum_rows(dx, mean, c.rows, c.cols, c.ld);
  each_row(c, [&](int64_t at) {
    kernels::sub(dy + at, 1, mean, 1, dx + at, c.cols);
    kernels::mul(y + at, 1, dx + at, 1, dx + at, c.cols);
  });
}

template <class T>
void log_softmax_columns(const Piece& c, const T* x, T* y) {
  T largest[kMostColumns], rest[kMostColumns];
  exp_columns(c, x, y, largest, rest);
  kernels::log(rest, rest, c.cols);
  each_row(c, [&](int64_t at) {
    kernels::sub(x + at, 1, largest, 1, y + at, c.cols);
    kernels::sub(y + at, 1, rest, 1, y + at, c.cols);
  });
}

template <class T>
void log_softmax_grad_columns(const Piece& c, const T* y, const T* dy, T* dx) {
  T total[kMostColumns];
  kernels::sum_rows(dy, total, c.rows, c.cols, c.ld);
  each_row(c, [&](int64_t at) {
    kernels::exp(y + at, dx + at, c.cols);
    kernels::mul(dx + at, 1, total, 1, dx + at, c.cols);
    kernels::sub(dy + at, 1, dx + at, 1, dx + at, c.cols);
  });
}

/// Inputs of one shape -> a new tensor of that shape, by `rows(x..., y, rows, cols)` or `columns(Piece, x..., y)`.
template <class R, class C, class... Inputs>
Tensor along(const char* op, int dim, R rows, C columns, const Inputs&... inputs) {
  const NoGradGuard no_grad;
  const Tensor& like = std::get<0>(std::tie(inputs...));
  const Blocks blocks = ops::blocks_of(like.shape(), dim, dim);
  constexpr int64_t few = 40;  // columns, which are sooner made rows
  if (1 < blocks.inner && blocks.inner < few)
    return ops::contiguous_values(transpose(along(op, like.dim() - 1, rows, columns, transpose(inputs, dim, -1)...), dim, -1));
  const auto run = [&](const auto&... from) {
    Tensor y = empty(like.shape(), like.dtype());
    if (y.numel() == 0) return y;  // of any dtype
    void* const to = y.mutable_data_ptr();
    dispatch_floating(compute_type(y.dtype()), op, [&, dtype = y.dtype()]<class T>() {
      using Read = ops::ReadPiece<T>;
      using Written = ops::WrittenPiece<T>;
      if (blocks.inner == 1)
        return ops::for_row_pieces(
            dtype, blocks.outer, blocks.reduced, ops::piece_rows(blocks.reduced), 2.0,
            [&](const Piece& p) { rows(Read(from, p).data()..., Written(to, dtype, p).data(), p.rows, p.cols); });
      over_columns(blocks, dtype,
                   [&](const Piece& p) { columns(p.in_memory(dtype), Read(from, p).data()..., Written(to, dtype, p).data()); });
    });
    return y;
  };
  return run(ops::contiguous_values(inputs)...);
}

}  // namespace

Tensor softmax(const Tensor& x, int64_t dim) {
  const int d = normalize_dim("softmax", dim, x.dim());
  const auto rows = [](const auto* from, auto* to, int64_t count, int64_t cols) {
    kernels::softmax_rows(from, to, count, cols);
  };
  const auto columns = [](const Piece& c, const auto* from, auto* to) { softmax_columns(c, from, to); };
  const Tensor y = along("softmax", d, rows, columns, x);
  return record("softmax", y, {x}, {y}, [d](const Backward& b) -> Grads {  // dx = y (dy - sum(y dy))
    if (b.recording()) {
      const Tensor weighted = b.saved(0) * b.grad();
      return {weighted - b.saved(0) * sum(weighted, d, true)};
    }
    const auto grad_rows = [](const auto* saved, const auto* dy, auto* dx, int64_t count, int64_t cols) {
      kernels::softmax_grad_rows(saved, dy, dx, count, cols);
    };
    const auto grad_columns = [](const Piece& c, const auto* saved, const auto* dy, auto* dx) {
      softmax_grad_columns(c, saved, dy, dx);
    };
    return {along("softmax", d, grad_rows, grad_columns, b.saved(0), b.grad())};
  });
}

Tensor softmin(const Tensor& x, int64_t dim) {
  ops::check_floating("softmin", x);
  return softmax(neg(x), normalize_dim("softmin", dim, x.dim()));
}

Tensor log_softmax(const Tensor& x, int64_t dim) {
  const int d = normalize_dim("log_softmax", dim, x.dim());
  const auto rows = [](const auto* from, auto* to, int64_t count, int64_t cols) {
    kernels::log_softmax_rows(from, to, count, cols);
  };
  const auto columns = [](const Piece& c, const auto* from, auto* to) { log_softmax_columns(c, from, to); };
  const Tensor y = along("log_softmax", d, rows, columns, x);
  return record("log_softmax", y, {x}, {y}, [d](const Backward& b) -> Grads {  // dx = dy - exp(y) sum(dy)
    if (b.recording()) return {b.grad() - exp(b.saved(0)) * sum(b.grad(), d, true)};
    const auto grad_rows = [](const auto* saved, const auto* dy, auto* dx, int64_t count, int64_t cols) {
      kernels::log_softmax_grad_rows(saved, dy, dx, count, cols);
    };
    const auto grad_columns = [](const Piece& c, const auto* saved, const auto* dy, auto* dx) {
      log_softmax_grad_columns(c, saved, dy, dx);
    };
    return {along("log_softmax", d, grad_rows, grad_columns, b.saved(0), b.grad())};
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
