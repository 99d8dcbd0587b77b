#pragma once
// GPT-2 in the files of Hugging Face's transformers: config.json and model.safetensors.
#include <filesystem>

#include "nn/module.h"
#include "train/config/config.h"
#include "train/text/bpe_vocabulary.h"

namespace onestep::train {

/// A GPT-2 as our `gpt`: `model.vocab_size` is set, `state` is the model's state_dict().
struct Gpt2 {
  ModelConfig model;
  nn::NamedTensors state;
};

/// Reads a GPT2LMHeadModel (or a GPT2Model, whose names lack the prefix transformer) from its folder. Throws IoError, naming
/// the file and the key or tensor, for anything that is missing, unknown, of another shape or dtype, or that our model does not
/// have; no tensor is made that the file does not hold. Progress goes to stderr unless `quiet`.
Gpt2 read_gpt2(const std::filesystem::path& folder, bool quiet = true);

/// Writes the folder that GPT2LMHeadModel.from_pretrained reads, with the tokenizer's files if there is one; biases that the
/// model lacks are written as zeros. An earlier export is replaced whole, its tokenizer too, or not at all. Throws ConfigError
/// for a model that is no GPT-2 (naming the key of the config), and IoError for files that cannot be written or a folder that
/// holds something else of these names, or a tokenizer alone where there is none to write. Progress goes to stderr unless
/// `quiet`.
void write_gpt2(const std::filesystem::path& folder, const Gpt2& gpt2, const BpeVocabulary* tokenizer = nullptr,
                bool quiet = true);

}  // namespace onestep::train
