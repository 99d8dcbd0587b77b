// Rows of a table by index.
#include <algorithm>
#include <vector>

#include "autograd/kernels/kernels.h"
#include "autograd/ops/indexing.h"
#include "autograd/ops_nn.h"
#include "autograd/ops_shape.h"

namespace onestep {
namespace {

/// sum += add_taken(dy, sum.shape(), 0, index, skipped), of which only the rows that `index` names are made: the same bits, but
/// that a -0 in the others stays one.
void add_rows_taken(Tensor& sum, const Tensor& dy, const Tensor& index, std::optional<int64_t> skipped) {
  const auto* const picked = index.data<int64_t>();
  std::vector<int64_t> rows(picked, picked + index.numel());
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  const auto row_of = [&rows](int64_t place) { return std::lower_bound(rows.begin(), rows.end(), place) - rows.begin(); };
  Tensor compact = empty(index.shape(), DType::int64);
  std::transform(picked, picked + index.numel(), compact.mutable_data<int64_t>(), row_of);
  if (skipped) skipped = std::binary_search(rows.begin(), rows.end(), *skipped) ? row_of(*skipped) : -1;
  const auto count = static_cast<int64_t>(rows.size()), n = sum.shape()[1];
  const Tensor addend = ops::add_taken(dy, {count, n}, 0, compact, skipped);
  dispatch_floating(sum.dtype(), "embedding", [&]<class T>() {
    T* const to = sum.mutable_data<T>();
    const T* const from = addend.data<T>();
    for (int64_t i = 0; i < count; ++i) {
      T* const row = to + rows[static_cast<size_t>(i)] * n;
      kernels::add(row, 1, from + i * n, 1, row, n);
    }
  });
}

/// dweight[index[i]] += dy[i], i ascending. Of a large table few rows were looked up: where a head that shares it has left its
/// gradient, they are added to that.
Tensor weight_gradient(const Backward& b, std::optional<int64_t> padding_idx) {
  const Tensor index = ops::contiguous_values(b.saved(0));
  Tensor* const sum = is_narrow(b.grad().dtype()) ? nullptr : b.arrived(0);
  if (sum == nullptr || index.numel() >= b.input_shape(0)[0])
    return ops::add_taken(b.grad(), b.input_shape(0), 0, index, padding_idx);
  add_rows_taken(*sum, b.grad(), index, padding_idx);
  return {};
}

}  // namespace

Tensor embedding(const Tensor& index, const Tensor& weight, std::optional<int64_t> padding_idx) {
  ONESTEP_CHECK(ShapeError, weight.dim() == 2, "embedding: weight must be [V, d]: got ", weight.shape());
  const int64_t rows = weight.shape()[0];
  ONESTEP_CHECK(ShapeError, !padding_idx || (-rows <= *padding_idx && *padding_idx < rows), "embedding: padding_idx ",
                padding_idx.value_or(0), " is out of range for weight ", weight.shape());
  if (padding_idx && *padding_idx < 0) *padding_idx += rows;
  const Tensor picked = ops::checked_index("embedding", index, weight.shape(), 0);
  Shape shape = index.shape();
  shape.push_back(weight.shape()[1]);
  return record("embedding", view(ops::take(weight, 0, picked), shape), {weight}, {view(picked, index.shape())},
                [padding_idx](const Backward& b) -> Grads { return {weight_gradient(b, padding_idx)}; });
}

}  // namespace onestep
