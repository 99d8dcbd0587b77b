// The keys of the section `model`.
#include "train/config/field_rows.h"

namespace onestep::train {

namespace {

/// What the peft package adapts in models of the kind.
std::vector<std::string> usual_targets(const ModelConfig& model) {
  if (model.kind == ModelKind::attention && model.attention != AttentionKind::fused_qkv) return {"W_query", "W_value"};
  if (model.kind == ModelKind::gpt && model.rope) return {"q_proj", "v_proj"};
  return {"c_attn"};
}

}  // namespace

std::vector<Field> model_fields() {
  using M = ModelConfig;
  using L = LoraConfig;
  constexpr auto in = &Config::model;
  constexpr std::string_view kind = "model.kind", type = "model.attention", scaling = "model.rope_scaling",
                             rank = "model.lora.rank";
  FieldRows rows;
  rows.add<in, &M::kind>(kind,
                         "attention: one layer between embeddings and a head, head(attention(token + position embedding)); "
                         "gpt: GPT-2's blocks of attention and feed-forward layer on a residual stream");
  rows.add<in, &M::attention>(type, "type of attention, by the name the chapter gives it").applies_if(kind, {"attention"});
  rows.add<in, &M::d_model>("model.d_model", "width of the embeddings and of every layer's output").range(1, kMaxWidth);
  rows.add<in, &M::num_heads>("model.num_heads", "attention heads; must divide d_model, for gpt where head_dim is 0")
      .range(1, kMaxWidth)
      .applies_if(type, {"multi_head_wrapper", "multi_head", "einsum", "fused_qkv"})
      .applies_if(kind, {"gpt"})
      .elsewhere_only("1");
  rows.add<in, &M::context_length>("model.context_length", "longest sequence, in tokens").range(1, kMaxLength);
  rows.add<in, &M::dropout>("model.dropout",
                            "probability that an attention weight is dropped in training; gpt: also an element of the "
                            "embeddings and of what a block adds")
      .range(0, 1)
      .applies_if(type, {"causal", "multi_head_wrapper", "multi_head", "einsum", "fused_qkv"})
      .applies_if(kind, {"gpt"})
      .elsewhere_only("0");
  rows.add<in, &M::qkv_bias>("model.qkv_bias", "whether the query, key and value projections have a bias")
      .applies_if(type, {"self_v2", "causal", "multi_head_wrapper", "multi_head", "einsum", "fused_qkv"})
      .elsewhere_only("false");
  rows.add<in, &M::vocab_size>("model.vocab_size",
                               "tokens that the model knows, at least as many as the data has; 0 is as many")
      .range(0, kMaxVocab);
  rows.add<in, &M::num_layers>("model.num_layers", "blocks").range(1, 1000).applies_if(kind, {"gpt"});
  rows.add<in, &M::d_ff>("model.d_ff", "hidden width of the feed-forward layers")
      .range(1, 16 * kMaxWidth)
      .applies_if(kind, {"gpt"})
      .defaults_to("4 d_model; for activation swiglu 8/3 d_model, rounded up to a multiple of 8", [](Config& c) {
        const int64_t d = c.model.d_model;
        c.model.d_ff = c.model.activation == Activation::swiglu ? (d + 2) / 3 * 8 : 4 * d;
      });
  rows.add<in, &M::activation>(
          "model.activation",
          "of the feed-forward layers; gelu_tanh is GPT-2's, gelu takes erf; swiglu is silu with a gate, of three matrices")
      .applies_if(kind, {"gpt"});
  rows.add<in, &M::norm>("model.norm", "the norm before attention, feed-forward layer and head").applies_if(kind, {"gpt"});
  rows.add<in, &M::norm_eps>("model.norm_eps", "added to the variance or the mean square in the norms")
      .at_least(0)
      .applies_if(kind, {"gpt"});
  rows.add<in, &M::bias>("model.bias", "whether linear layers and layer norms have a bias (the head has none)")
      .applies_if(kind, {"gpt"});
  rows.add<in, &M::tie_weights>("model.tie_weights", "whether the head's weight is that of the token embedding")
      .applies_if(kind, {"gpt"});
  rows.add<in, &M::num_kv_heads>("model.num_kv_heads",
                                 "heads of keys and values (grouped-query attention); must divide num_heads")
      .range(1, kMaxWidth)
      .applies_if(type, {"fused_qkv"})
      .applies_if(kind, {"gpt"})
      .defaults_to("num_heads", [](Config& c) { c.model.num_kv_heads = c.model.num_heads; });
  rows.add<in, &M::window>(
          "model.window",
          "sliding-window attention: a token attends to itself and the window - 1 tokens before it; 0 is all before it")
      .range(0, kMaxLength)
      .applies_if(type, {"fused_qkv"})
      .applies_if(kind, {"gpt"});
  rows.add<in, &M::rope>(
          "model.rope",
          "rotary position embedding of queries and keys, in the convention of GPT-NeoX and LLaMA; a gpt then has no other")
      .applies_if(type, {"fused_qkv"})
      .applies_if(kind, {"gpt"});
  rows.add<in, &M::rope_theta>("model.rope_theta", "base of the rotation's wavelengths")
      .range(1, 1e12)
      .applies_if(type, {"fused_qkv"})
      .applies_if(kind, {"gpt"});
  rows.add<in, &M::head_dim>("model.head_dim", "features of a head; 0 is d_model / num_heads")
      .range(0, kMaxWidth)
      .applies_if(kind, {"gpt"});
  rows.add<in, &M::qk_norm>(
          "model.qk_norm",
          "whether queries and keys are normalised by an RMS norm over each head before they are rotated, as in Qwen3")
      .applies_if(kind, {"gpt"});
  rows.add<in, &M::attention_bias>("model.attention_bias",
                                   "which projections of attention have a bias: qkv is queries, keys and values alone, as in "
                                   "Qwen2; auto is as bias says")
      .applies_if(kind, {"gpt"});
  rows.add<in, &M::mlp_bias>("model.mlp_bias", "whether the linear layers of the feed-forward layers have one, auto likewise")
      .one_of({"auto", "none", "all"})
      .applies_if(kind, {"gpt"});
  rows.add<in, &M::rope_scaling>(scaling,
                                 "what stretches the wavelengths of the rotation for a longer context: linear divides all "
                                 "frequencies by rope_factor, llama3 only the low ones, as Llama 3.1 does")
      .applies_if(kind, {"gpt"});
  rows.add<in, &M::rope_factor>("model.rope_factor", "by which frequencies are divided")
      .range(1, 1e6)
      .applies_if(scaling, {"linear", "llama3"});
  rows.add<in, &M::rope_low_freq_factor>("model.rope_low_freq_factor",
                                         "frequencies of fewer turns than this within rope_original_context are divided")
      .range(1e-6, 1e6)
      .applies_if(scaling, {"llama3"});
  rows.add<in, &M::rope_high_freq_factor>(
          "model.rope_high_freq_factor",
          "those of more turns than this are kept, those between are blended; must be above rope_low_freq_factor")
      .range(1e-6, 1e6)
      .applies_if(scaling, {"llama3"});
  rows.add<in, &M::rope_original_context>("model.rope_original_context", "tokens of the context before it was stretched")
      .range(1, kMaxLength)
      .applies_if(scaling, {"llama3"});
  rows.add<in, &M::eos_token_ids>("model.eos_token_ids",
                                  "tokens at which a generated text ends, as those of an imported model do")
      .range(0, kMaxVocab - 1)
      .may_be_absent()
      .changeable();
  rows.add<in, &M::rng_dialect>(
      "model.rng_dialect",
      "whose dropout masks: torch (2.7 and later, and all CPUs but Intel's) or torch-mkl (older, on Intel CPUs)");
  rows.add_lora<&L::rank>(
          "model.lora.rank",
          "low-rank adapters (LoRA): to the output of each target, B A dropout(x) alpha / rank is added, where A has so many "
          "rows. Adapters alone are trained; the parameters of the model, which train.init_from gives, are frozen")
      .range(1, kMaxWidth)
      .may_be_absent();
  rows.add_lora<&L::alpha>("model.lora.alpha", "divided by rank: what the output of an adapter is multiplied by")
      .range(1e-6, 1e6)
      .only_beside(rank)
      .defaults_to("rank", [](Config& c) { c.model.lora.alpha = static_cast<double>(c.model.lora.rank); });
  rows.add_lora<&L::dropout>("model.lora.dropout", "probability that an element of an adapter's input is dropped in training")
      .from_to_below(0, 1)
      .only_beside(rank);
  rows.add_lora<&L::targets>(
          "model.lora.targets",
          "linear layers that get one, by the last parts of their names, in which * stands for any characters and ? for one: "
          "c_attn, attn.c_proj, h.0.*. In a gpt with rope queries, keys and values are layers of their own, q_proj, k_proj and "
          "v_proj, with the other names of a Llama, too (o_proj); c_attn is then one adapter for all three")
      .only_beside(rank)
      .defaults_to("c_attn, with rope q_proj and v_proj, for the chapter's attention W_query and W_value",
                   [](Config& c) { c.model.lora.targets = usual_targets(c.model); });
  return rows.all;
}

}  // namespace onestep::train
