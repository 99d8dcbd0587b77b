#pragma once
#include "attention/attention.h"
#include "autograd/random/generator.h"
#include "nn/dropout.h"
#include "nn/linear.h"

namespace onestep::attention {

/// Self-attention in which a token attends to itself and the tokens before it: scores of later tokens are set to -inf before
/// the softmax, and the attention weights go through dropout.
class CausalAttention : public Attention {
 public:
  /// Draws W_query, W_key and W_value in this order; dropout masks come from `generator`, which must outlive the module.
  /// Throws ShapeError unless all sizes are positive, ConfigError unless 0 <= dropout <= 1.
  CausalAttention(int64_t d_in, int64_t d_out, int64_t context_length, double dropout, bool qkv_bias = false,
                  Generator& generator = default_generator());

  std::string name() const override { return "CausalAttention"; }
  void visit(nn::Visitor& visitor) override;

  nn::Linear W_query, W_key, W_value;  // [d_in] -> [d_out]
  nn::Dropout dropout;                 // on the attention weights
  Tensor mask;                         // bool [context_length, context_length], true where a key comes after the query

 private:
  Tensor attend(const Tensor& x, Tensor* weights, KvCache* cache) const override;
};

}  // namespace onestep::attention
