#pragma once
// config.json of Hugging Face's transformers: GPT-2 and the families that followed Llama.
#include <string>

#include "base/enum_names.h"
#include "train/config/config.h"

namespace onestep::train {

/// Families of decoders, by transformers' model_type.
enum class Family : uint8_t { gpt2, llama, mistral, qwen2, qwen3 };
constexpr auto names(Family /*all*/) { return std::to_array<std::string_view>({"gpt2", "llama", "mistral", "qwen2", "qwen3"}); }

/// Reads a config.json of one of these, and the tokens that end a text from generation_config.json beside it, if that has them.
/// Throws IoError, naming the file and the key, for a value that is missing, out of range
/// or asks for what our gpt does not have.
ModelConfig read_pretrained_config(const std::string& path);

/// The first family that has all that a gpt has. Throws ConfigError, naming the key of our config, where there is none.
Family family_of(const ModelConfig& model);

/// The config.json of a gpt, `dtype` being that of its file of tensors. Throws ConfigError as family_of does.
std::string pretrained_config_json(const ModelConfig& model, DType dtype);

}  // namespace onestep::train
