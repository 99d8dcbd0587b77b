#pragma once
// Decoders in the files of Hugging Face's transformers: config.json and model.safetensors.
#include <filesystem>

#include "nn/module.h"
#include "train/config/config.h"
#include "train/text/tokenizer.h"

namespace onestep::train {

/// A decoder as our `gpt`: `model.vocab_size` is set, `state` is the model's state_dict().
struct Pretrained {
  ModelConfig model;
  nn::NamedTensors state;
};

/// Reads a GPT-2, Llama, Mistral, Qwen2 or Qwen3 for causal language modelling, or its base model without the head, from its
/// folder: config.json, and model.safetensors or the files that model.safetensors.index.json lists, in float32, bfloat16 or
/// float16. The state is float32 and the only copy of the weights in memory. Throws IoError, naming the file and the key or
/// tensor, for anything that is missing, unknown, of another shape or dtype, or that our model does not have; no tensor is made
/// that the files do not hold. Progress goes to stderr unless `quiet`.
Pretrained read_pretrained(const std::filesystem::path& folder, bool quiet = true);

/// How a model is written.
struct PretrainedOptions {
  const Tokenizer* tokenizer = nullptr;  ///< Whose files are written beside it, if it is a byte-pair encoding.
  DType dtype = DType::float32;          ///< Or bfloat16 or float16, to which numbers are rounded.
  bool quiet = true;                     ///< No progress on stderr.
};

/// Writes the folder that transformers' from_pretrained reads, with the files of a byte-pair encoding if there is one (GPT-2's
/// vocab.json and merges.txt, or tokenizer.json where it was read from that): as a GPT-2 without
/// rope (biases that the model lacks are zeros then), else as the first of Llama, Mistral, Qwen2 and Qwen3 that has what the
/// model has. An earlier export is replaced whole, its tokenizer too, or not at all. Throws ConfigError for a model that is
/// none of these (naming the key of the config), and IoError for files that cannot be written or a folder that holds something
/// else of these names, or a tokenizer alone where there is none to write.
void write_pretrained(const std::filesystem::path& folder, const Pretrained& model, const PretrainedOptions& options = {});

/// Throws ConfigError, naming the tensor of an export, where a number would become infinite in `dtype`.
void check_range(const std::string& name, const Tensor& tensor, DType dtype);

}  // namespace onestep::train
