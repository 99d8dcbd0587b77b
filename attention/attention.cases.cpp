// Module cases of attention/.
#include "attention/factory.h"
#include "attention/multi_head_attention.h"
#include "attention/self_attention.h"
#include "autograd/ops_math.h"
#include "nn/module_case.h"

namespace onestep::attention {
namespace {

using nn::Layer;

/// Builds a type of attention, d_in = 4, with room for six tokens.
auto make(AttentionKind kind, Options options) {
  options.d_in = 4;
  options.context_length = 6;
  return [=](Generator& generator) -> std::unique_ptr<Layer> { return make_attention(kind, options, generator); };
}

auto tokens(const Shape& shape) {
  return [shape](Generator& generator) { return randn(shape, generator); };
}

/// Two texts of five tokens, and one text of three.
const auto kBatch = tokens({2, 5, 4});
const auto kText = tokens({3, 4});

/// All keys are masked for queries 0 and 2.
std::unique_ptr<Layer> make_fully_masked_rows(Generator& generator) {
  auto module = std::make_unique<MultiHeadAttention>(4, 4, 6, 0.0, 2, true, generator);
  for (const int64_t row : {0, 2}) {
    Tensor keys = module->mask[row];
    fill_(keys, true);
  }
  return module;
}

const nn::RegisterModuleCases registered([] {
  return nn::ModuleCases{
      {"SimplifiedSelfAttention", "", make(AttentionKind::simplified, {.d_out = 4}), kBatch},
      {"SimplifiedSelfAttention", "one text", make(AttentionKind::simplified, {.d_out = 4}), kText},
      {"SelfAttention_v1", "", make(AttentionKind::self_v1, {.d_out = 3}), kBatch},
      {"SelfAttention_v1", "one text", make(AttentionKind::self_v1, {.d_out = 3}), kText},
      {"SelfAttention_v2", "", make(AttentionKind::self_v2, {.d_out = 3}), kBatch},
      {"SelfAttention_v2", "bias and one text", make(AttentionKind::self_v2, {.d_out = 3, .qkv_bias = true}), kText},
      {"CausalAttention", "", make(AttentionKind::causal, {.d_out = 3}), kBatch},
      {"CausalAttention", "bias and one text", make(AttentionKind::causal, {.d_out = 3, .qkv_bias = true}), kText},
      {"CausalAttention", "dropout", make(AttentionKind::causal, {.d_out = 3, .dropout = 0.3}), kBatch},
      {"MultiHeadAttentionWrapper", "", make(AttentionKind::multi_head_wrapper, {.d_out = 6, .num_heads = 3}), kBatch},
      {"MultiHeadAttentionWrapper", "dropout and one text",
       make(AttentionKind::multi_head_wrapper, {.d_out = 4, .num_heads = 2, .dropout = 0.3, .qkv_bias = true}), kText},
      {"MultiHeadAttention", "", make(AttentionKind::multi_head, {.d_out = 6, .num_heads = 3}), kBatch},
      {"MultiHeadAttention", "bias and one text",
       make(AttentionKind::multi_head, {.d_out = 4, .num_heads = 2, .qkv_bias = true}), kText},
      {"MultiHeadAttention", "dropout", make(AttentionKind::multi_head, {.d_out = 4, .num_heads = 2, .dropout = 0.3}), kBatch},
      {"MultiHeadAttention", "fully masked rows", make_fully_masked_rows, kBatch},
      {"MultiHeadAttentionEinsum", "", make(AttentionKind::einsum, {.d_out = 6, .num_heads = 3}), kBatch},
      {"MultiHeadAttentionEinsum", "bias and one text",
       make(AttentionKind::einsum, {.d_out = 4, .num_heads = 2, .qkv_bias = true}), kText},
      {"MultiHeadAttentionEinsum", "dropout", make(AttentionKind::einsum, {.d_out = 4, .num_heads = 2, .dropout = 0.3}),
       kBatch},
      {"CausalSelfAttention", "", make(AttentionKind::fused_qkv, {.d_out = 6, .num_heads = 3, .out_bias = false}), kBatch},
      {"CausalSelfAttention", "bias and one text",
       make(AttentionKind::fused_qkv, {.d_out = 4, .num_heads = 2, .qkv_bias = true}), kText},
      {"CausalSelfAttention", "grouped queries",
       make(AttentionKind::fused_qkv, {.d_out = 8, .num_heads = 4, .num_kv_heads = 2}), kBatch},
      {"CausalSelfAttention", "one head of keys and values with dropout",
       make(AttentionKind::fused_qkv, {.d_out = 6, .num_heads = 3, .dropout = 0.3, .num_kv_heads = 1}), kText},
      {"CausalSelfAttention", "window", make(AttentionKind::fused_qkv, {.d_out = 4, .num_heads = 2, .window = 2}), kBatch},
      {"CausalSelfAttention", "rope", make(AttentionKind::fused_qkv, {.d_out = 8, .num_heads = 2, .rope = true}), kBatch},
      {"CausalSelfAttention", "all options",
       make(AttentionKind::fused_qkv,
            {.d_out = 8, .num_heads = 4, .qkv_bias = true, .num_kv_heads = 2, .window = 3, .rope = true}),
       kBatch},
      {"CausalSelfAttention", "dropout", make(AttentionKind::fused_qkv, {.d_out = 4, .num_heads = 2, .dropout = 0.3}), kBatch},
  };
});

}  // namespace
}  // namespace onestep::attention
