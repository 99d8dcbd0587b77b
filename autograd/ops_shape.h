#pragma once
// Ops that rearrange elements: views, joins, masks.
#include <optional>
#include <vector>

#include "autograd/node.h"
#include "autograd/tensor.h"

namespace onestep {

// ---- masks (ops/mask.cpp) ------------------------------------------------------------------------------------------------

/// x with `value` and gradient 0 where `mask` (bool) is true; both broadcast, in place only mask (torch.Tensor.masked_fill).
Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value);
Tensor masked_fill_(const Tensor& x, const Tensor& mask, Scalar value);
/// The same with a rank-0 tensor, which gets the sum of the gradients that x misses.
Tensor masked_fill(const Tensor& x, const Tensor& mask, const Tensor& value);
Tensor masked_fill_(const Tensor& x, const Tensor& mask, const Tensor& value);
/// The lower triangle of the last two dims: keeps column - row <= diagonal, else 0.
Tensor tril(const Tensor& x, int64_t diagonal = 0);
/// The upper triangle of the last two dims: keeps column - row >= diagonal, else 0.
Tensor triu(const Tensor& x, int64_t diagonal = 0);

// ---- shape (ops/shape.cpp): views share storage where they can ----------------------------------------------------------

/// The same elements in another shape without a copy; one size may be -1. Throws ShapeError where strides do not allow it.
Tensor view(const Tensor& x, const Shape& shape);
/// view where possible, else a copy.
Tensor reshape(const Tensor& x, const Shape& shape);
/// Dims start_dim .. end_dim become one.
Tensor flatten(const Tensor& x, int64_t start_dim = 0, int64_t end_dim = -1);
/// Swaps two dims (a view).
Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1);
/// Swaps the dims of a matrix; a vector stays (torch.t).
Tensor t(const Tensor& x);
/// Reorders all dims (a view).
Tensor permute(const Tensor& x, const Shape& dims);
/// x itself if its rows are in order, else a row-major copy.
Tensor contiguous(const Tensor& x);
/// A row-major copy; differentiable.
Tensor clone(const Tensor& x);
/// Drops every size-1 dim, or the given one if its size is 1 (a view).
Tensor squeeze(const Tensor& x);
Tensor squeeze(const Tensor& x, int64_t dim);
/// Drops those of the given dims whose size is 1 (a view).
Tensor squeeze(const Tensor& x, const Shape& dims);
/// Inserts a size-1 dim (a view).
Tensor unsqueeze(const Tensor& x, int64_t dim);
/// Repeats size-1 dims without a copy (stride 0); -1 keeps a size; new leading dims may be added.
Tensor expand(const Tensor& x, const Shape& shape);
/// x[start:end:step] along `dim`, with Python's clamping and negative indices; step >= 1 (a view).
Tensor slice(const Tensor& x, int64_t dim, int64_t start, int64_t end, int64_t step = 1);
/// x[index] along `dim`, which disappears (a view).
Tensor select(const Tensor& x, int64_t dim, int64_t index);
/// `length` places from `start` along `dim` (a view).
Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length);
/// Any view of x's storage: element [i, j, ...] is at offset + i strides[0] + j strides[1] + ..., by default from x's own
/// offset on. Elements may share memory (torch.as_strided). Throws ShapeError where it reaches beyond the storage. ops/view.cpp
Tensor as_strided(const Tensor& x, const Shape& shape, const Shape& strides, std::optional<int64_t> offset = {});
/// Joins along an existing dim (torch.cat).
Tensor cat(TensorList tensors, int64_t dim = 0);
/// Joins along a new dim (torch.stack).
Tensor stack(TensorList tensors, int64_t dim = 0);
/// Views of `split_size` places (0 only of none) along `dim`, the last one smaller (torch.split); or of the given sizes.
std::vector<Tensor> split(const Tensor& x, int64_t split_size, int64_t dim = 0);
std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int64_t dim = 0);
/// At most `chunks` equal views along `dim`, the last one smaller; of an empty dim all `chunks` (torch.chunk).
std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int64_t dim = 0);

// ---- composed of these (ops/rearrange.cpp) -------------------------------------------------------------------------------

/// view, reshape and expand to the shape of another tensor.
Tensor view_as(const Tensor& x, const Tensor& other);
Tensor reshape_as(const Tensor& x, const Tensor& other);
Tensor expand_as(const Tensor& x, const Tensor& other);
/// expand under NumPy's name.
Tensor broadcast_to(const Tensor& x, const Shape& shape);
/// All elements in one dim: reshape(x, -1).
Tensor ravel(const Tensor& x);
/// Dim `dim` as several, of which one size may be -1 (a view).
Tensor unflatten(const Tensor& x, int64_t dim, const Shape& sizes);
/// transpose under other names.
Tensor swapaxes(const Tensor& x, int64_t axis0, int64_t axis1);
Tensor swapdims(const Tensor& x, int64_t dim0, int64_t dim1);
/// Moves dims `source` to the places `destination`; the others keep their order (a view; torch.movedim).
Tensor movedim(const Tensor& x, const Shape& source, const Shape& destination);
/// At least 1, 2 or 3 dims, by views: [n] -> [1, n] -> [1, n, 1] and [m, n] -> [m, n, 1].
Tensor atleast_1d(const Tensor& x);
Tensor atleast_2d(const Tensor& x);
Tensor atleast_3d(const Tensor& x);
/// Copies of x along each dim: [2, 3] repeated {4, 1, 2} gives [4, 2, 6]. tile takes fewer repeats than dims, too.
Tensor repeat(const Tensor& x, const Shape& repeats);
Tensor tile(const Tensor& x, const Shape& repeats);
/// Each element `repeats` times, one copy beside the other, along `dim` or of x flattened; `repeats` may be a tensor with one
/// number for each place (torch.repeat_interleave).
Tensor repeat_interleave(const Tensor& x, int64_t repeats, std::optional<int64_t> dim = {});
Tensor repeat_interleave(const Tensor& x, const Tensor& repeats, std::optional<int64_t> dim = {});
/// The elements in opposite order along `dims`, in a copy (torch.flip).
Tensor flip(const Tensor& x, const Shape& dims);
/// Columns (dim 1) or rows (dim 0) in opposite order.
Tensor fliplr(const Tensor& x);
Tensor flipud(const Tensor& x);
/// Elements shifted along `dims`, coming in again at the other end; without dims, of x flattened (torch.roll).
Tensor roll(const Tensor& x, const Shape& shifts, const Shape& dims = {});
/// Turned k quarters from dims[0] towards dims[1] (torch.rot90).
Tensor rot90(const Tensor& x, int64_t k = 1, const Shape& dims = {0, 1});
/// A view for each place of `dim`, without that dim.
std::vector<Tensor> unbind(const Tensor& x, int64_t dim = 0);
/// Views along `dim`: `sections` of them, the first ones one larger where it does not divide evenly; or cut at the indices
/// (torch.tensor_split).
std::vector<Tensor> tensor_split(const Tensor& x, int64_t sections, int64_t dim = 0);
std::vector<Tensor> tensor_split(const Tensor& x, const std::vector<int64_t>& indices, int64_t dim = 0);
/// The grid of several vectors: for each a view of the shape of their sizes, in which it varies along its own dim. With "xy"
/// the first two dims are swapped (torch.meshgrid).
enum class GridIndexing { ij, xy };
std::vector<Tensor> meshgrid(TensorList tensors, GridIndexing indexing = GridIndexing::ij);
/// Joins columns side by side (vectors end to end), rows, or along a third dim (torch.hstack, vstack, dstack).
Tensor hstack(TensorList tensors);
Tensor vstack(TensorList tensors);
Tensor dstack(TensorList tensors);
/// hstack with vectors as columns.
Tensor column_stack(TensorList tensors);

// ---- diagonals and windows (ops/diagonal.cpp) ----------------------------------------------------------------------------

/// The elements with equal indices in dim1 and dim2, or index + offset in dim2; they become the last dim (a view).
Tensor diagonal(const Tensor& x, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1);
/// Zeros with the last dim of x on the diagonal of dims dim1 and dim2 of the result (torch.diag_embed).
Tensor diag_embed(const Tensor& x, int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1);
/// A matrix with the vector x on its diagonal, or the diagonal of the matrix x in a copy (torch.diag).
Tensor diag(const Tensor& x, int64_t diagonal = 0);
/// All windows of `size` places along `dimension`, `step` apart, whose places become the last dim (a view;
/// torch.Tensor.unfold).
Tensor unfold(const Tensor& x, int64_t dimension, int64_t size, int64_t step);

}  // namespace onestep
