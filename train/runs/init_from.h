#pragma once
// train.init_from: a run that starts from the parameters of another one and reads text with its tokenizer.
#include <filesystem>
#include <memory>

#include "train/checkpoint/checkpoint.h"
#include "train/config/config.h"
#include "train/models/language_model.h"
#include "train/text/tokenizer.h"

namespace onestep::train {

/// The newest checkpoint of the run train.init_from, with adapters merged. Throws IoError where there is none, and ConfigError
/// for a model section with which its parameters would not mean what they do there.
FoundCheckpoint find_start(const Config& config);

/// Gives a new run's model the parameters that it starts from; what is new in it (is_new_parameter) stays as it was drawn.
/// Throws IoError where they do not fit.
void load_start(LanguageModel& model, FoundCheckpoint start);

/// Gives the config the tokens that end a text of the run train.init_from, unless it says which.
void take_eos(Config& config);

/// The tokenizer of the run train.init_from for a config of kind text (null for others), which is made to name it. Throws
/// ConfigError for one that names another.
std::shared_ptr<const Tokenizer> take_tokenizer(Config& config);

/// Throws ConfigError unless data.tokenizer_path has the vocabulary of `tokenizer`, that of the run `from`, with which the text
/// is read in any case.
void check_tokenizer_path(const Config& config, const Tokenizer& tokenizer, const std::filesystem::path& from);

}  // namespace onestep::train
