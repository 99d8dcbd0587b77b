#pragma once
// What the op files share: plain-value helpers that record nothing.
#include <string_view>

#include "autograd/ops.h"

namespace onestep::ops {

/// A view of x's storage without graph.
Tensor view_of(const Tensor& x, const Shape& shape, const Shape& strides, int64_t offset);

/// x itself if its rows are in order, else a row-major copy; not recorded.
Tensor contiguous_values(const Tensor& x);

/// x seen in a broadcast shape (stride 0 along repeated dims); not recorded. Throws ShapeError naming `op`.
Tensor expand_values(std::string_view op, const Tensor& x, const Shape& shape);

/// Undoes broadcasting: sums `grad` over the dims along which a tensor of `shape` was repeated; not recorded.
Tensor sum_to(const Tensor& grad, const Shape& shape);

}  // namespace onestep::ops
