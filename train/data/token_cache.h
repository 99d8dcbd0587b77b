#pragma once
// Text files are turned into tokens once: the token files are kept for the next run.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "train/data/token_file.h"
#include "train/text/tokenizer.h"

namespace onestep::train {

/// A text as tokens.
struct TokenisedText {
  std::shared_ptr<const Tokens> tokens;
  std::shared_ptr<const Tokenizer> tokenizer;
};

/// Where token files are kept: $ONESTEP_CACHE, else $XDG_CACHE_HOME/onestep, else ~/.cache/onestep. Throws ConfigError if none
/// of the variables is set.
std::filesystem::path token_cache_folder();

/// The tokens of the files as one text, from the token file of an earlier call if files and tokenizer are still the same.
/// Without a tokenizer the vocabulary (`kind` characters, words or bytes) is that of the text. The text is read in parts and
/// the tokens are mapped: memory does not grow with them. Progress goes to stderr unless `quiet`. Throws IoError naming the
/// file and place, ConfigError for a text without a symbol.
TokenisedText tokenise_files(const std::vector<std::string>& files, TokenizerKind kind,
                             std::shared_ptr<const Tokenizer> tokenizer, bool quiet);

}  // namespace onestep::train
