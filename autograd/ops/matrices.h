#pragma once
// The last two dims of a tensor as gemm reads them, and where each matrix of a batch starts.
#include <vector>

#include "autograd/memory.h"
#include "autograd/ops/common.h"

namespace onestep::ops {

/// Matrices of one layout: rows of unit stride `ld` apart, or columns of unit stride with `trans`.
struct Matrices {
  Tensor values;
  bool trans;
  int64_t ld;
};

/// x [..., m, k] where it lies if its rows or columns have unit stride, else a row-major copy.
inline Matrices matrices(const Tensor& x) {
  const int rows = x.dim() - 2, cols = x.dim() - 1;
  if (x.shape()[cols] <= 1 || x.strides()[cols] == 1) return {x, false, x.strides()[rows]};
  if (x.shape()[rows] <= 1 || x.strides()[rows] == 1) return {x, true, x.strides()[cols]};
  return {contiguous_values(x), false, x.shape()[cols]};
}

/// The dims before the last two.
inline Shape batch_dims(const Shape& shape) {
  Shape batch = shape;
  batch.erase(batch.rank() - 1);
  batch.erase(batch.rank() - 1);
  return batch;
}

using Offsets = std::vector<int64_t, memory::Allocator<int64_t>>;

/// Where each matrix of the broadcast batch starts in x, in elements.
inline Offsets batch_starts(const Tensor& x, const Shape& batch) {
  const int missing = batch.rank() + 2 - x.dim();
  Offsets starts(static_cast<size_t>(batch.numel()));
  int64_t done = 1;  // those of the inner dims, which every place along the next one repeats
  for (int dim = batch.rank() - 1; dim >= missing && !starts.empty(); --dim) {
    const int64_t step = x.shape()[dim - missing] == 1 ? 0 : x.strides()[dim - missing];
    for (int64_t i = done; i < done * batch[dim]; ++i)
      starts[static_cast<size_t>(i)] = starts[static_cast<size_t>(i - done)] + step;
    done *= batch[dim];
  }
  for (int64_t i = done; i < batch.numel(); ++i) starts[static_cast<size_t>(i)] = starts[static_cast<size_t>(i - done)];
  return starts;
}

}  // namespace onestep::ops
