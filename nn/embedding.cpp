#include "nn/embedding.h"

#include <sstream>

#include "autograd/ops_math.h"
#include "nn/init.h"

namespace onestep::nn {

Embedding::Embedding(int64_t num_embeddings, int64_t embedding_dim, Generator& generator, std::optional<int64_t> padding_idx)
    : padding_idx_(padding_idx) {
  ONESTEP_CHECK(ShapeError, num_embeddings >= 0 && embedding_dim >= 0,
                "Embedding: sizes cannot be negative: num_embeddings=", num_embeddings, ", embedding_dim=", embedding_dim);
  weight = empty({num_embeddings, embedding_dim}).requires_grad_();
  init::normal_(weight, 0.0, 1.0, generator);
  if (!padding_idx) return;
  ONESTEP_CHECK(ShapeError, -num_embeddings <= *padding_idx && *padding_idx < num_embeddings,
                "Embedding: padding_idx is outside the table: ", *padding_idx, " of ", num_embeddings, " rows");
  if (*padding_idx < 0) *padding_idx_ += num_embeddings;
  NoGradGuard no_grad;
  Tensor row = weight.detach()[*padding_idx_];
  fill_(row, 0.0);
}

std::string Embedding::extra_repr() const {
  std::ostringstream text;
  const Shape& shape = packed ? packed->shape() : weight.shape();
  text << shape[0] << ", " << shape[1];
  if (padding_idx_) text << ", padding_idx=" << *padding_idx_;
  return text.str();
}

}  // namespace onestep::nn
