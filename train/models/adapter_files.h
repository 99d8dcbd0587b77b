#pragma once
// Adapters alone in the files of Hugging Face's peft: adapter_config.json and adapter_model.safetensors.
#include <filesystem>

#include "autograd/dtype.h"
#include "nn/module.h"
#include "train/models/pretrained_files.h"

namespace onestep::train {

/// Writes the folder that PeftModel.from_pretrained reads beside the exported base, of a model with adapters; an adapter of
/// queries, keys and values at once is one of each in a Llama, with the same A. An earlier export is replaced whole or not at
/// all. Throws ConfigError for a model that write_pretrained refuses, or without adapters, and IoError for files that cannot be
/// written, or for a folder that holds something else of these names.
void write_adapters(const std::filesystem::path& folder, const Pretrained& model, DType dtype = DType::float32,
                    bool quiet = true);

/// Adapters as model.lora and the tensors of their state dict, in float32.
struct PretrainedAdapters {
  LoraConfig lora;
  nn::NamedTensors state;
};

/// Reads such a folder for a model of this config. Throws IoError, naming the file and the key or tensor, for anything that is
/// missing, unknown or of another shape, and for what our adapters do not have (DoRA, biases, ranks that differ).
PretrainedAdapters read_adapters(const std::filesystem::path& folder, const ModelConfig& base);

}  // namespace onestep::train
