#pragma once
// model.lora: which layers of a model have adapters, and the model without them.
#include <string>
#include <vector>

#include "nn/module.h"
#include "train/models/decoder.h"

namespace onestep::train {

/// One adapter: of a Linear, or of some of its rows.
struct Adapter {
  std::string module;  ///< Of the Linear, with # as in DecoderParameter.
  int64_t block = -1;
  std::string part = {};                    ///< q_proj, k_proj or v_proj; empty: all rows.
  int64_t first_row = 0, rows = 0, in = 0;  ///< A head has the rows of model.vocab_size, which may be left to the data (0).

  /// `transformer.h.3.attn.c_attn`
  std::string layer() const { return numbered(module, block); }
  /// What its parameters are called before `.lora_A.weight`: layer(), or that with the part.
  std::string name() const { return layer() + (part.empty() ? "" : '.' + part); }
};

/// The adapters of a model, in its order; none where lora.rank is 0. Throws ConfigError for a target that names no linear
/// layer, at its place in the config.
std::vector<Adapter> adapters(const ModelConfig& model, const ConfigOrigin& origin = {});

/// All parameters of a model: base_parameters() and those of its adapters.
std::vector<DecoderParameter> model_parameters(const ModelConfig& model, int64_t vocab_size, int64_t num_classes = 0);

/// Whether a parameter is one that a model does not have before it is fine-tuned: of an adapter, or a head over classes. With
/// adapters these alone are trained.
bool is_new_parameter(const std::string& name);

/// Gives a model its adapters, drawn in its order, and trains new parameters alone.
void add_adapters(nn::Module& net, const ModelConfig& model, Generator& generator);

/// The state dict of the model without adapters that computes the same: each product is added to its weight.
nn::NamedTensors merged_state(const nn::NamedTensors& state, const ModelConfig& model);

}  // namespace onestep::train
