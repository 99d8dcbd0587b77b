// Rows of a table by index.
#include "autograd/ops/indexing.h"

namespace onestep {

Tensor embedding(const Tensor& index, const Tensor& weight, std::optional<int64_t> padding_idx) {
  check<ShapeError>(weight.dim() == 2, "embedding: weight must be [V, d]: got ", weight.shape());
  const int64_t rows = weight.shape()[0];
  check<ShapeError>(!padding_idx || (-rows <= *padding_idx && *padding_idx < rows), "embedding: padding_idx ",
                    padding_idx.value_or(0), " is out of range for weight ", weight.shape());
  if (padding_idx && *padding_idx < 0) *padding_idx += rows;
  const Tensor picked = ops::checked_index("embedding", index, weight.shape(), 0);
  Shape shape = index.shape();
  shape.push_back(weight.shape()[1]);
  return record("embedding", view(ops::take(weight, 0, picked), shape), {weight}, {index},
                [padding_idx](const Backward& b) -> Grads {  // dweight[index[i]] += dy[i], i ascending
                  return {ops::add_taken(b.grad(), b.input_shape(0), 0, ops::contiguous_values(b.saved(0)), padding_idx)};
                });
}

}  // namespace onestep
