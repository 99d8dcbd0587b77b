#pragma once
// What reductions share: each run of adjacent reduced dims is one step over [outer, reduced, inner], innermost run first.
#include "autograd/operators.h"
#include "autograd/ops/elementwise.h"
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

/// Applies `step(from, to, blocks)` to every run of adjacent dims in `dims` (sorted); the result keeps them with size 1.
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
    Tensor reduced = empty(shape, y.dtype());
    step(y.data<T>(), reduced.mutable_data<T>(), blocks);
    y = reduced;
    d = first;
  }
  return y;
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
