#pragma once
// Ops that pick elements by position or by a mask, and their counterparts that write there.
#include <optional>
#include <string_view>
#include <vector>

#include "autograd/tensor.h"
#include "autograd/tensor_index.h"

namespace onestep {

// ---- indexing (ops/indexing.cpp, ops/index.cpp) ---------------------------------------------------------------------------

/// Python's x[...] (autograd/tensor_index.h): `index(x, {0, Slice(1, 3), Ellipsis, mask})`. Positions, slices, None and
/// Ellipsis give a view. Index tensors broadcast and give a copy; their dims go where the first of them was, or in front
/// where others came between, as in PyTorch (torch.Tensor.index). Throws ShapeError on a position outside or too many indices.
Tensor index(const Tensor& x, const IndexList& indices);
/// x with x[...] = values, or += with `accumulate`, which adds repeated positions in ascending order; without it the last of
/// them stays (torch.index_put).
Tensor index_put(const Tensor& x, const IndexList& indices, const Tensor& values, bool accumulate = false);
Tensor index_put_(const Tensor& x, const IndexList& indices, const Tensor& values, bool accumulate = false);
Tensor index_put_(const Tensor& x, const IndexList& indices, Scalar value);
/// The positions of all elements that are not 0, in row-major order: int64 [N, rank] (torch.nonzero).
Tensor nonzero(const Tensor& x);
/// The same as one index tensor a dim, with which x[...] picks these elements (torch.nonzero with as_tuple, and torch.where of
/// a condition alone).
std::vector<Tensor> nonzero_numpy(const Tensor& x);
/// Rows along `dim` picked by a rank-1 int64 index; repeated rows add their gradients (torch.index_select). Throws IndexError
/// on a position outside.
Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index);
/// out[i][j] = x[i][index[i][j]] for dim 1, and so on: index has x's rank, and other dims at most of x's sizes; a rank-0 tensor
/// counts as a vector of one (torch.gather). Throws IndexError on a position outside.
Tensor gather(const Tensor& x, int64_t dim, const Tensor& index);

// ---- picking (ops/pick.cpp) -----------------------------------------------------------------------------------------------

/// The elements of the flattened x at `index` (int64, negative from the end), in the index's shape (torch.take). Throws
/// IndexError on one outside.
Tensor take(const Tensor& x, const Tensor& index);
/// gather after x and index broadcast in all dims but `dim`; without a dim, of the flattened x (torch.take_along_dim).
Tensor take_along_dim(const Tensor& x, const Tensor& index, std::optional<int64_t> dim = {});
/// The elements where `mask` (bool) is true, in row-major order, after both broadcast: [N] (torch.masked_select).
Tensor masked_select(const Tensor& x, const Tensor& mask);
/// x with the elements where `mask` (bool) is true replaced by those of `source`, in row-major order; x and mask broadcast, in
/// place only mask (torch.Tensor.masked_scatter). Throws ShapeError where source has too few elements.
Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source);
Tensor masked_scatter_(const Tensor& x, const Tensor& mask, const Tensor& source);

// ---- writing to positions along a dim (ops/scatter.cpp) -------------------------------------------------------------------
// For dim 1, element index[i][j] of row i: out[i][index[i][j]] = src[i][j], and so on. index and src have x's rank; index is at
// most as large as src, and in the dims other than `dim` as x. A rank-0 tensor counts as a vector of one. Where a position is
// named several times its elements are taken in ascending order, whatever the number of threads. Throw IndexError on a position
// outside, ShapeError on sizes that do not fit, DTypeError unless src has x's dtype.

/// The last of the elements that name a position stays there. With `reduce` they are reduced with x's own: "add" or "multiply"
/// (torch.scatter).
Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce = {});
Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, Scalar value, std::string_view reduce = {});
Tensor scatter_(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce = {});
Tensor scatter_(const Tensor& x, int64_t dim, const Tensor& index, Scalar value, std::string_view reduce = {});
/// x plus the elements of src at their positions (torch.scatter_add).
Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src);
Tensor scatter_add_(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src);
/// Every position that is named gets the "sum", "prod", "mean", "amax" or "amin" of its elements, x's own among them unless
/// `include_self` is false; extrema share the gradient evenly (torch.scatter_reduce). The mean of integers rounds down.
Tensor scatter_reduce(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                      bool include_self = true);
Tensor scatter_reduce_(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                       bool include_self = true);

// ---- writing slices along a dim (ops/index_write.cpp) ---------------------------------------------------------------------
// Slice index[i] along `dim` of x meets slice i of source; index is a vector or rank 0, and source has x's sizes in the other
// dims. Order and errors as above.

/// x[index[i]] += alpha source[i] (torch.index_add).
Tensor index_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha = 1);
Tensor index_add_(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha = 1);
/// x[index[i]] = source[i]; the last of several stays (torch.index_copy).
Tensor index_copy(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);
Tensor index_copy_(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);
/// x[index[i]] = value, a number or a rank-0 tensor (torch.index_fill).
Tensor index_fill(const Tensor& x, int64_t dim, const Tensor& index, Scalar value);
Tensor index_fill(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& value);
Tensor index_fill_(const Tensor& x, int64_t dim, const Tensor& index, Scalar value);
Tensor index_fill_(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& value);

}  // namespace onestep
