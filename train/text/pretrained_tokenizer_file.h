#pragma once
// tokenizer.json of the tokenizers library. Not a public header: it names the JSON library.
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "train/text/pretrained_tokenizer.h"

namespace onestep::train {

/// Whether this is the root of such a file, and not of a run's own tokenizer.json.
bool is_tokenizer_description(const nlohmann::json& root);

/// What the file says; `text` is the file, `source` its name in messages. Throws IoError, naming the key, for a part that is
/// missing, unknown or does not fit.
TokenizerDescription read_tokenizer_description(const nlohmann::json& root, std::string text, const std::string& source);

}  // namespace onestep::train
