#include "train/models/tensor_names.h"

#include <algorithm>
#include <numeric>

#include "autograd/creation.h"
#include "autograd/ops_shape.h"

namespace onestep::train {
namespace {

const std::vector<ModuleNames>& llama_names() {
  static const std::vector<ModuleNames> names{
      {"transformer.wte", {"model.embed_tokens"}},
      {"transformer.h.#.ln_1", {"model.layers.#.input_layernorm"}},
      {"transformer.h.#.attn.c_attn",
       {"model.layers.#.self_attn.q_proj", "model.layers.#.self_attn.k_proj", "model.layers.#.self_attn.v_proj"}},
      {"transformer.h.#.attn.c_proj", {"model.layers.#.self_attn.o_proj"}},
      {"transformer.h.#.attn.q_norm", {"model.layers.#.self_attn.q_norm"}},
      {"transformer.h.#.attn.k_norm", {"model.layers.#.self_attn.k_norm"}},
      {"transformer.h.#.ln_2", {"model.layers.#.post_attention_layernorm"}},
      {"transformer.h.#.mlp.gate_proj", {"model.layers.#.mlp.gate_proj"}},
      {"transformer.h.#.mlp.up_proj", {"model.layers.#.mlp.up_proj"}},
      {"transformer.h.#.mlp.down_proj", {"model.layers.#.mlp.down_proj"}},
      {"transformer.ln_f", {"model.norm"}},
      {"lm_head", {"lm_head"}},
  };
  return names;
}

/// GPT-2's names are ours; all its linear layers are Conv1D.
std::vector<FileTensor> gpt2_tensors(const ModelConfig& m) {
  const ModelConfig model = with_all_biases(m);
  std::vector<FileTensor> list;
  for (const DecoderParameter& parameter : decoder_parameters(model, model.vocab_size)) {
    const Shape& shape = parameter.shape;
    const bool transposed = parameter.block >= 0 && shape.rank() == 2;
    list.push_back({parameter.name(), transposed ? Shape{shape[1], shape[0]} : shape, parameter.name(), 0, transposed});
  }
  return list;
}

}  // namespace

Tensor FileTensor::part_of(const Tensor& all) const {
  if (transposed) return transpose(all, 0, 1);
  return all.shape() == shape ? all : narrow(all, 0, first_row, shape[0]);
}

Tensor exported(const FileTensor& tensor, const std::map<std::string, Tensor>& state) {
  const auto found = state.find(tensor.parameter);
  ONESTEP_CHECK(ConfigError, found != state.end() || tensor.name.ends_with(".bias"), "export: the model has no ",
                tensor.parameter);
  return found == state.end() ? zeros(tensor.shape) : tensor.part_of(found->second);
}

std::vector<FileTensor> file_tensors(const ModelConfig& model, const std::vector<ModuleNames>& names) {
  const ModelConfig m = written_out(model);
  const std::vector<int64_t> qkv{query_width(m), key_width(m), key_width(m)};
  std::vector<FileTensor> list;
  for (const DecoderParameter& parameter : decoder_parameters(m, m.vocab_size)) {
    const auto found = std::find_if(names.begin(), names.end(), [&](const auto& n) { return n.ours == parameter.module; });
    int64_t first_row = 0;
    for (size_t i = 0; i < found->theirs.size(); ++i) {
      Shape shape = parameter.shape;
      if (found->theirs.size() > 1) shape[0] = qkv[i];
      list.push_back({numbered(found->theirs[i], parameter.block) + '.' + parameter.field, shape, parameter.name(), first_row});
      first_row += shape[0];
    }
  }
  return list;
}

ModelConfig with_all_biases(ModelConfig model) {
  model.bias = true;
  model.attention_bias = model.mlp_bias = Biases::all;
  return model;
}

std::vector<FileTensor> pretrained_tensors(const ModelConfig& model) {
  return model.rope ? file_tensors(model, llama_names()) : gpt2_tensors(model);
}

std::vector<std::string> pretrained_modules(const ModelConfig& model, const std::string& module, int64_t block) {
  if (!model.rope) return {numbered(module, block)};
  const auto found =
      std::find_if(llama_names().begin(), llama_names().end(), [&](const auto& names) { return names.ours == module; });
  ONESTEP_CHECK(ConfigError, found != llama_names().end(), "export: no family of models has the layer ",
                numbered(module, block));
  std::vector<std::string> theirs;
  for (const std::string_view name : found->theirs) theirs.push_back(numbered(name, block));
  return theirs;
}

}  // namespace onestep::train
