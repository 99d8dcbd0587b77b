#pragma once
// The last two dims of a tensor as gemm reads them, and where each matrix of a batch starts.
#include <optional>
#include <utility>
#include <vector>

#include "autograd/memory.h"
#include "autograd/ops/common.h"

namespace onestep::ops {

/// Matrices [..., m, k]: the elements of `values` from its first one on, in an arrangement of their own, for which no view is
/// made.
struct Matrices {
  Matrices(const Tensor& x) : values(x), shape(x.shape()), strides(x.strides()) {}
  Matrices(Tensor x, const Shape& sizes, const Shape& steps) : values(std::move(x)), shape(sizes), strides(steps) {}
  Tensor view() const { return view_of(values, shape, strides, values.offset()); }

  Tensor values;
  Shape shape, strides;
};

/// [..., m, k] -> [..., k, m]
inline Matrices transposed(Matrices x) {
  const int rows = x.shape.rank() - 2, cols = x.shape.rank() - 1;
  std::swap(x.shape[rows], x.shape[cols]);
  std::swap(x.strides[rows], x.strides[cols]);
  return x;
}

/// Matrices as gemm reads them: rows of unit stride `ld` apart, or columns of unit stride with `trans`. Those are the given
/// ones where they lie, which must live on, or else a row-major copy.
struct GemmOperand {
  explicit GemmOperand(const Matrices& x) : matrices(&x) {
    const int rows = x.shape.rank() - 2, cols = x.shape.rank() - 1;
    trans = x.shape[cols] > 1 && x.strides[cols] != 1;
    ld = x.strides[trans ? cols : rows];
    if (!trans || x.shape[rows] <= 1 || x.strides[rows] == 1) return;
    matrices = &copy.emplace(contiguous_values(x.view()));
    trans = false;
    ld = x.shape[cols];
  }
  GemmOperand(const GemmOperand&) = delete;
  GemmOperand& operator=(const GemmOperand&) = delete;

  const Matrices* matrices;
  bool trans;
  int64_t ld;
  std::optional<Matrices> copy;
};

/// Throws ShapeError unless x [..., in] and a bias [out], or none, fit a weight of shape [out, in].
void check_linear_shapes(const Tensor& x, const Shape& weight, const Tensor& bias);

/// The dims before the last two.
inline Shape batch_dims(const Shape& shape) { return shape.first(shape.rank() - 2); }

using Offsets = std::vector<int64_t, memory::Allocator<int64_t>>;

/// Where each matrix of the broadcast batch starts in matrices of this shape and these strides, in elements.
inline Offsets batch_starts(const Shape& shape, const Shape& strides, const Shape& batch) {
  const int missing = batch.rank() + 2 - shape.rank();
  Offsets starts(static_cast<size_t>(batch.numel()));
  int64_t done = 1;  // those of the inner dims, which every place along the next one repeats
  for (int dim = batch.rank() - 1; dim >= missing && !starts.empty(); --dim) {
    const int64_t step = shape[dim - missing] == 1 ? 0 : strides[dim - missing];
    for (int64_t i = done; i < done * batch[dim]; ++i)
      starts[static_cast<size_t>(i)] = starts[static_cast<size_t>(i - done)] + step;
    done *= batch[dim];
  }
  for (int64_t i = done; i < batch.numel(); ++i) starts[static_cast<size_t>(i)] = starts[static_cast<size_t>(i - done)];
  return starts;
}

}  // namespace onestep::ops
