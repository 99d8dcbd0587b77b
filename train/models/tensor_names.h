#pragma once
// Where the parameters of a gpt are in the files of other programs: under which names, in which parts.
#include <map>
#include <string>
#include <vector>

#include "autograd/tensor.h"
#include "train/models/decoder.h"

namespace onestep::train {

/// One tensor of a file.
struct FileTensor {
  std::string name;       ///< In the file.
  Shape shape;            ///< In the file.
  std::string parameter;  ///< Ours, of which it is all or some rows.
  int64_t first_row = 0;
  bool transposed = false;  ///< [in, out] where our Linear has [out, in], as in GPT-2's Conv1D.

  /// The part of the parameter that it is, in the shape of the file: a view.
  Tensor part_of(const Tensor& parameter) const;
};

/// The values of a tensor of an export, from a state dict; zeros for a bias that the model lacks. Throws ConfigError for
/// anything else that is missing.
Tensor exported(const FileTensor& tensor, const std::map<std::string, Tensor>& state);

/// Our name of a module and those in a file; of several each is a part of its rows: queries, keys and values.
struct ModuleNames {
  std::string_view ours;
  std::vector<std::string_view> theirs;
};

/// The tensors of a file that has these names, in the order of decoder_parameters.
std::vector<FileTensor> file_tensors(const ModelConfig& model, const std::vector<ModuleNames>& names);

/// A GPT-2 has all biases in the files of other programs.
ModelConfig with_all_biases(ModelConfig model);

/// The tensors of transformers' files: those of GPT2LMHeadModel for a gpt without rope, which has all biases there, else those
/// of LlamaForCausalLM, whose names Mistral, Qwen2 and Qwen3 have, too.
std::vector<FileTensor> pretrained_tensors(const ModelConfig& model);

/// What transformers' files call a module of ours with weights (# and `block` as in DecoderParameter), or its parts: queries,
/// keys and values. Throws ConfigError for one that no family has.
std::vector<std::string> pretrained_modules(const ModelConfig& model, const std::string& module, int64_t block);

}  // namespace onestep::train
