#pragma once
// The text of a config of kind `text`.
#include <string>

#include "train/config.h"

namespace onestep::train {

/// data.text, the file data.path, or the files of data.paths one after the other, each once. Throws ConfigError for a pattern
/// without a file, IoError for a file that cannot be read, is larger than 4 GiB, or (tokenizers but byte) is not UTF-8.
std::string read_text(const Config& config);

}  // namespace onestep::train
