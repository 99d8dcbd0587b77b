#pragma once
#include "attention/attention.h"
#include "autograd/random/generator.h"
#include "nn/dropout.h"

namespace onestep::attention {

/// MultiHeadAttention written as sums over named dims (onestep::einsum): the heads are a dim of the parameters, so nothing is
/// reshaped or split. Always unfused: the weights [..., H, T, T] are stored whether they are asked for or not.
class MultiHeadAttentionEinsum : public Attention {
 public:
  /// Draws W_query, W_key, W_value and W_out as MultiHeadAttention draws its Linear layers (each weight, then its bias): the
  /// same generator gives the same values in the order of memory. Dropout masks come from `generator`, which must outlive the
  /// module. Throws ShapeError unless all sizes are positive and num_heads divides d_out, ConfigError unless 0 <= dropout <= 1.
  MultiHeadAttentionEinsum(int64_t d_in, int64_t d_out, int64_t context_length, double dropout, int64_t num_heads,
                           bool qkv_bias = false, Generator& generator = default_generator());

  std::string name() const override { return "MultiHeadAttentionEinsum"; }
  void visit(nn::Visitor& visitor) override;

  int64_t num_heads() const { return W_query.size(0); }
  int64_t head_dim() const { return W_query.size(1); }

  Tensor W_query, b_query;  // [H, head_dim, d_in], [H, 1, head_dim] or undefined
  Tensor W_key, b_key;
  Tensor W_value, b_value;
  Tensor W_out, b_out;  // [d_out, H, head_dim], [d_out]
  nn::Dropout dropout;  // on the attention weights
  Tensor mask;          // bool [context_length, context_length], true where a key comes after the query

 private:
  Tensor attend(const Tensor& x, Tensor* weights, KvCache* cache) const override;
};

}  // namespace onestep::attention
