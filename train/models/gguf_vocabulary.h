#pragma once
// The vocabulary in a GGUF.
#include "train/checkpoint/gguf.h"
#include "train/text/tokenizer.h"

namespace onestep::train {

/// Adds the keys tokenizer.ggml.*: tokens, their types, merges or scores, how words are cut, what comes before a text, the
/// first of the tokens that end one (the format has room for one). Ids from the tokenizer's to the model's `vocab_size` are
/// unused tokens. A tokenizer that is no byte-pair encoding, or none, is that of a model without a vocabulary. Throws
/// ConfigError for one whose words llama.cpp has no name for.
void add_vocabulary(GgufWriter& file, const Tokenizer* tokenizer, int64_t vocab_size,
                    const std::vector<int64_t>& eos_token_ids);

}  // namespace onestep::train
