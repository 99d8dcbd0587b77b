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
/// Any view of x's storage: element [i, j, ...] stands at offset + i strides[0] + j strides[1] + ..., by default from x's own
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

}  // namespace onestep
