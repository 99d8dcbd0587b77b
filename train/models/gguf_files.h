#pragma once
// Decoders in GGUF, the files of llama.cpp.
#include <filesystem>

#include "train/checkpoint/gguf.h"
#include "train/models/pretrained_files.h"

namespace onestep::train {

/// How numbers are stored: matrices as `type` (those of a Q8_0 file whose rows are no multiple of 32 numbers as float16),
/// vectors, norms and position embeddings in float32.
struct GgufOptions {
  const Tokenizer* tokenizer = nullptr;  ///< Written into the file if it is a byte-pair encoding.
  GgmlType type = GgmlType::f32;
  bool quiet = true;  ///< No progress on stderr.
};

/// Writes a gpt as llama.cpp's convert_hf_to_gguf.py would write its family: architecture gpt2, llama (for Mistral, too), qwen2
/// or qwen3, rows of queries and keys reordered for llama, whose pairs of features are neighbours there. Throws ConfigError as
/// write_pretrained does, and for a tokenizer whose words llama.cpp cuts otherwise; IoError for a file that cannot be written
/// or is there and no GGUF.
void write_gguf(const std::filesystem::path& file, const Pretrained& model, const GgufOptions& options = {});

}  // namespace onestep::train
