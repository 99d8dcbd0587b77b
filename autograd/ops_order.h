#pragma once
// Ops that order elements, search among them, count and draw them.
#include <optional>

#include "autograd/ops_math.h"
#include "autograd/random/generator.h"
#include "autograd/tensor.h"

namespace onestep {

// ---- order along a dim (ops/sort.cpp) -------------------------------------------------------------------------------------
// NaN counts as larger than any number, and -0 as 0. Elements that are equal keep their order, also among the indices (int64)
// of what is picked: so a result depends on the values alone. The gradient goes to the picked elements. A rank-0 tensor is a
// row of one.

/// x in ascending or descending order along `dim`, and where each element was; always stable (torch.sort).
ValuesIndices sort(const Tensor& x, int64_t dim = -1, bool descending = false, bool stable = false);
/// The indices of sort (torch.argsort).
Tensor argsort(const Tensor& x, int64_t dim = -1, bool descending = false, bool stable = false);
/// The k largest or smallest along `dim`, in this order (with `sorted` false, too) (torch.topk). Throws ShapeError unless
/// 0 <= k <= size.
ValuesIndices topk(const Tensor& x, int64_t k, int64_t dim = -1, bool largest = true, bool sorted = true);
/// The k-th smallest along `dim`, k counted from 1 (torch.kthvalue). Throws ShapeError unless 1 <= k <= size.
ValuesIndices kthvalue(const Tensor& x, int64_t k, int64_t dim = -1, bool keepdim = false);
/// The element in the middle of all, the lower one of two; NaN where there is one, or nothing at all. Elements equal to it
/// share the gradient evenly (torch.median).
Tensor median(const Tensor& x);
/// The same along `dim`, and where it is. Throws ShapeError over nothing.
ValuesIndices median(const Tensor& x, int64_t dim, bool keepdim = false);

// ---- search (ops/search.cpp): no gradient -----------------------------------------------------------------------------------

/// For each value the place in `sorted` (ascending along the last dim, a vector or of values' leading sizes) where it would be
/// inserted: the first i with value <= sorted[i], or with `right` value < sorted[i]; NaN after all. int64 (int32 with
/// `out_int32`), of values' shape (torch.searchsorted). `sorter`, of sorted's shape, holds the order (argsort) of a `sorted`
/// that is not.
Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool out_int32 = false, bool right = false,
                    const Tensor& sorter = {});
Tensor searchsorted(const Tensor& sorted, Scalar value, bool out_int32 = false, bool right = false, const Tensor& sorter = {});
/// searchsorted with the vector `boundaries` (torch.bucketize).
Tensor bucketize(const Tensor& values, const Tensor& boundaries, bool out_int32 = false, bool right = false);
Tensor bucketize(Scalar value, const Tensor& boundaries, bool out_int32 = false, bool right = false);

/// What unique found; `inverse` and `counts` (int64) are undefined unless asked for.
struct UniqueResult {
  Tensor values, inverse, counts;
};
/// The distinct elements in ascending order (always), for every element of x the place of its value, and how often each occurs;
/// or with `dim` the distinct slices along it, in lexicographic order. A NaN differs from every other (torch.unique).
UniqueResult unique(const Tensor& x, bool sorted = true, bool return_inverse = false, bool return_counts = false,
                    std::optional<int64_t> dim = {});

// ---- counting and drawing (ops/count.cpp): no gradient ----------------------------------------------------------------------

/// How often each number 0, 1, ... occurs in the int64 vector x, at least `minlength` of them: int64; with `weights`, of x's
/// shape, the sum of the weights: of their dtype, float64 for integers (torch.bincount). Throws IndexError on a negative
/// number.
Tensor bincount(const Tensor& x, const Tensor& weights = {}, int64_t minlength = 0);
/// How many elements fall into each of `bins` bins of equal width from min to max, that of max included; others are left out.
/// Where min = max the least and largest element are taken, and where these are equal one less and one more (torch.histc).
Tensor histc(const Tensor& x, int64_t bins = 100, double min = 0, double max = 0);
/// A last dim of size num_classes (-1: the largest class + 1) that is 1 at the class, else 0: int64
/// (torch.nn.functional.one_hot). Throws IndexError on a class outside.
Tensor one_hot(const Tensor& classes, int64_t num_classes = -1);
/// num_samples category indices a row, by weights [n] or [rows, n] of any scale, from PyTorch's stream (torch.multinomial; see
/// multinomial in random_fill.h). Throws ConfigError on weights from which that cannot be drawn.
Tensor multinomial(const Tensor& weights, int64_t num_samples, bool replacement = false,
                   Generator& generator = default_generator());

}  // namespace onestep
