#pragma once
// A model as its config describes it: its parameters, from which files of other programs and the estimate of memory follow.
#include <string>
#include <vector>

#include "autograd/rotary_scaling.h"
#include "autograd/shape.h"
#include "train/config/config.h"

namespace onestep::train {

/// The config with what it leaves to other keys written out: num_kv_heads, head_dim, attention_bias and mlp_bias.
ModelConfig written_out(ModelConfig model);

/// Features of all query heads of a layer, or of all its heads of keys or values; of a config that is written out.
inline int64_t query_width(const ModelConfig& model) { return model.num_heads * model.head_dim; }
inline int64_t key_width(const ModelConfig& model) { return model.num_kv_heads * model.head_dim; }

/// How the rotary embedding is scaled.
inline RotaryScaling rotary_scaling(const ModelConfig& m) {
  return {m.rope_scaling, m.rope_factor, m.rope_low_freq_factor, m.rope_high_freq_factor, m.rope_original_context};
}

/// One parameter of a model.
struct DecoderParameter {
  std::string module;  ///< `transformer.h.#.attn.c_attn`, # being the number of the block.
  int64_t block = -1;  ///< That number; -1 outside of the blocks.
  const char* field;   ///< `weight` or `bias`; in the chapter's attention also others.
  Shape shape;
  bool linear = false;  ///< The weight of a Linear.

  /// The key in the state dict: `transformer.h.3.attn.c_attn.weight`.
  std::string name() const;
};

/// The head of a classifier: its logits are those of classes.
inline constexpr const char* kClassHead = "score";

/// `pattern` with the number of a block for its #.
std::string numbered(std::string_view pattern, int64_t block);

/// All parameters of a gpt, in the order of its state dict; a tied head is none, one over classes is.
std::vector<DecoderParameter> decoder_parameters(const ModelConfig& model, int64_t vocab_size, int64_t num_classes = 0);

/// The same for a model of either kind, without its adapters.
std::vector<DecoderParameter> base_parameters(const ModelConfig& model, int64_t vocab_size, int64_t num_classes = 0);

}  // namespace onestep::train
