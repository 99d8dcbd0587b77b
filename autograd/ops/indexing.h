#pragma once
// Picking slices by index and its transpose, adding slices back: what index_select and embedding share.
#include <optional>

#include "autograd/ops/common.h"
#include "autograd/ops_index.h"

namespace onestep::ops {

/// The row-major values of `index` (int64 or int32) as int64. Throws DTypeError.
Tensor int64_places(const char* op, const Tensor& index);

/// Whether one of n places, `step` apart, is not in [0, size).
bool any_outside(const int64_t* places, int64_t n, int64_t step, int64_t size);

/// Throws IndexError for the first place that is not in [lowest, the size of dim `dim` of `shape`).
void check_places(const char* op, const Tensor& places, const Shape& shape, int dim, int64_t lowest = 0);

/// int64_places(), all of them places along `dim` of `shape`, or not below `lowest`. Throws DTypeError or IndexError.
Tensor checked_index(const char* op, const Tensor& index, const Shape& shape, int dim, int64_t lowest = 0);

/// The same for positions that may count from the end of the dim, as places from its start.
Tensor checked_from_start(const char* op, const Tensor& index, const Shape& shape, int dim);

/// out[..., i, ...] = x[..., index[i], ...] along `dim`; not recorded. `index` comes from checked_index.
Tensor take(const Tensor& x, int dim, const Tensor& index);

/// take, recorded as index_select.
Tensor selected(const Tensor& x, int dim, const Tensor& index);

/// The transpose of take: zeros of `shape`, then dx[..., index[i], ...] += dy[..., i, ...] in ascending i. Slices with index
/// `skipped` are left out, which is for rows of a matrix.
Tensor add_taken(const Tensor& dy, const Shape& shape, int dim, const Tensor& index, std::optional<int64_t> skipped = {});

}  // namespace onestep::ops
