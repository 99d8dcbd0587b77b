#pragma once
// What reductions share: each run of adjacent reduced dims is one step over [outer, reduced, inner], innermost run first.
#include "autograd/operators.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/pieces.h"
#include "autograd/ops_shape.h"

namespace onestep::ops {

/// A contiguous tensor seen as [outer, reduced, inner].
struct Blocks {
  int64_t outer = 1, reduced = 1, inner = 1;
};

inline Blocks blocks_of(const Shape& shape, int first, int last) {
  Blocks blocks;
  for (int i = 0; i < shape.rank(); ++i) (i < first ? blocks.outer : i <= last ? blocks.reduced : blocks.inner) *= shape[i];
  return blocks;
}

/// Applies `step(from, to, blocks)`, from a contiguous tensor to elements of its compute type T, to every run of adjacent dims
/// in `dims` (sorted); the result, of T unless `dims` is empty, keeps them with size 1.
template <class T, class Step>
Tensor reduce(const Tensor& x, const Shape& dims, const Step& step) {
  const NoGradGuard no_grad;
  Tensor y = dims.empty() ? clone(x) : contiguous_values(x);
  for (int d = dims.rank() - 1; d >= 0; --d) {
    int first = d;
    while (first > 0 && dims[first - 1] == dims[first] - 1) --first;
    const Blocks blocks = blocks_of(y.shape(), static_cast<int>(dims[first]), static_cast<int>(dims[d]));
    Shape shape = y.shape();
    for (int i = first; i <= d; ++i) shape[static_cast<int>(dims[i])] = 1;
    Tensor reduced = empty(shape, compute_type(x.dtype()));
    step(y, reduced.mutable_data<T>(), blocks);
    y = reduced;
    d = first;
  }
  return y;
}

/// step(x's elements, y, blocks) for a contiguous x. A narrow one goes in pieces: as many blocks as fit in the cache, whole
/// rows (inner = 1), or kSumRows rows of some columns of a block, whose results combine(y, result, n) joins to those before.
template <class T, class Step, class Combine>
void reduce_in_pieces(const Tensor& x, T* y, const Blocks& b, const Step& step, const Combine& combine) {
  if (!is_narrow(x.dtype())) return step(x.data<T>(), y, b);
  const int64_t size = b.reduced * b.inner;
  if (size == 0) return step(static_cast<const T*>(nullptr), y, b);
  if (b.inner == 1 || size <= kPieceSize)
    return for_row_pieces(x.dtype(), b.outer, size, piece_rows(size), kLoopCost, [&](const Piece& p) {
      step(ReadPiece<T>(x, p).data(), y + p.first / size * b.inner, {p.rows, b.reduced, b.inner});
    });
  constexpr int64_t width = 512;
  const int64_t parts = (b.inner + width - 1) / width;
  kernels::parallel_for(b.outer * parts, kLoopCost * static_cast<double>(b.reduced * width), [&](int64_t i, int64_t end) {
    for (; i < end; ++i) {
      const int64_t block = i / parts, column = i % parts * width, cols = std::min(width, b.inner - column);
      T* const to = y + block * b.inner + column;
      T part[width];
      for (int64_t r = 0; r < b.reduced; r += kernels::kSumRows) {
        const int64_t rows = std::min(kernels::kSumRows, b.reduced - r);
        const ReadPiece<T> from(x, {block * size + r * b.inner + column, rows, cols, b.inner});
        step(from.data(), r == 0 ? to : part, {1, rows, cols});
        if (r > 0) combine(to, part, cols);
      }
    }
  });
}

/// `y` with the reduced dims of size 1 removed, unless they are to be kept.
inline Tensor without_dims(const Tensor& y, const Shape& shape, const Shape& dims, bool keepdim) {
  const Shape result = reduced_shape(shape, dims, keepdim);
  return view_of(y, result, contiguous_strides(result), y.offset());
}

/// The gradient of a reduction's output as it stands before the dims were removed: [.., 1, ..] broadcasts to the input.
inline Tensor with_dims(const Tensor& dy, const Shape& shape, const Shape& dims) {
  return reshape(dy, reduced_shape(shape, dims, true));
}

/// `dy` over the number of places along `dims` that are `chosen`, there; 0 elsewhere.
inline Tensor shared_evenly(const Tensor& dy, const Tensor& chosen, const Shape& dims) {
  const Tensor share = 1 / sum(to(chosen, dy.dtype()), dims, true);
  return mul(where(chosen, dy, zeros({}, dy.dtype())), share);
}

/// The same for the elements of x that are equal to the rank-0 y; here NaN is equal to NaN.
inline Tensor shared_among_equals(const Tensor& dy, const Tensor& x, const Tensor& y, const Shape& dims) {
  return shared_evenly(dy, isnan(y).item<bool>() ? isnan(x) : eq(x, y), dims);
}

inline int64_t count_of(const Shape& shape, const Shape& dims) {
  int64_t count = 1;
  for (int64_t d : dims) count *= shape[static_cast<int>(d)];
  return count;
}

}  // namespace onestep::ops
