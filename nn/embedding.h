#pragma once
#include <memory>
#include <optional>

#include "autograd/ops_index.h"
#include "autograd/ops_nn.h"
#include "autograd/packed_weight.h"
#include "autograd/random/generator.h"
#include "nn/module.h"

namespace onestep::nn {

/// A row of the weight for each index: int64 [...] -> [..., embedding_dim] (torch.nn.Embedding).
class Embedding : public Layer {
 public:
  /// Draws the weight from the standard normal; row `padding_idx` (negative counts from the end) is zero and gets no gradient.
  /// Throws ShapeError on a negative size or a padding_idx outside the table.
  Embedding(int64_t num_embeddings, int64_t embedding_dim, Generator& generator = default_generator(),
            std::optional<int64_t> padding_idx = {});

  Tensor forward(const Tensor& index) const override {
    return packed ? packed->embedding(index) : embedding(index, weight, padding_idx_);
  }
  std::string name() const override { return "Embedding"; }
  std::string extra_repr() const override;
  void visit(Visitor& visitor) override { visitor.parameter("weight", weight); }

  Tensor weight;                                    // [num_embeddings, embedding_dim]
  std::shared_ptr<const PackedWeight> packed = {};  // in place of weight, which is then undefined (pack_weights)

 private:
  std::optional<int64_t> padding_idx_;
};

}  // namespace onestep::nn
