#pragma once
// Byte-pair encodings in JSON. Apart from bpe_files.h, since the JSON library is no part of the public headers.
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "train/text/bpe_files.h"

namespace onestep::train {

/// What bpe_to_json writes, checked as read_bpe_folder checks its files; `source` stands for the file name in messages.
BpeVocabulary bpe_from_json(const nlohmann::json& root, const std::string& source);

}  // namespace onestep::train
