#pragma once
// Ops that pick elements by position.
#include "autograd/tensor.h"
#include "autograd/tensor_index.h"

namespace onestep {

// ---- indexing (ops/indexing.cpp, ops/index.cpp) ---------------------------------------------------------------------------

/// Python's x[...] (autograd/tensor_index.h): `index(x, {0, Slice(1, 3), Ellipsis, mask})`. Positions, slices, None and
/// Ellipsis give a view. Index tensors broadcast and give a copy; their dims stand where the first of them stood, or in front
/// where others came between, as in PyTorch (torch.Tensor.index). Throws ShapeError on a position outside or too many indices.
Tensor index(const Tensor& x, const IndexList& indices);
/// x[...] = values, or += with `accumulate`, which adds repeated positions in ascending order; without it the last of them
/// stays (torch.Tensor.index_put_).
Tensor index_put_(const Tensor& x, const IndexList& indices, const Tensor& values, bool accumulate = false);
Tensor index_put_(const Tensor& x, const IndexList& indices, Scalar value);
/// The positions of all elements that are not 0, in row-major order: int64 [N, rank] (torch.nonzero).
Tensor nonzero(const Tensor& x);
/// Rows along `dim` picked by a rank-1 int64 index; repeated rows add their gradients (torch.index_select).
Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index);
/// out[i][j] = x[i][index[i][j]] for dim 1, and so on: index has x's rank (torch.gather).
Tensor gather(const Tensor& x, int64_t dim, const Tensor& index);

}  // namespace onestep
