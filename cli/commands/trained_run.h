#pragma once
// What the commands on trained runs share: choosing a checkpoint and building its model.

#include <filesystem>
#include <memory>
#include <string>

#include "cli/arguments.h"
#include "train/checkpoint/checkpoint.h"
#include "train/trainer.h"

namespace onestep::cli {

/// Adds `--checkpoint last, best or step-N`; `which` holds the default.
void add_checkpoint_option(Command& command, std::string& which);

/// find_checkpoint; says on stderr which newer ones are damaged. Throws ConfigError if the config, that of the run, was changed
/// where it may not change, and IoError if the checkpoint holds less than the model that it describes.
train::FoundCheckpoint choose_checkpoint(const std::filesystem::path& run, const train::Config& config,
                                         const std::string& which);

/// Rows of the token embedding in a checkpoint.
int64_t trained_vocabulary(const train::FoundCheckpoint& found);

/// Gives the trainer of the run the parameters of a checkpoint. Throws ConfigError if its data is not what was trained on.
void load_trained(train::Trainer& trainer, const train::FoundCheckpoint& found);

/// The model of a config with the parameters of a checkpoint, without its data. `generator` must outlive it. Throws IoError.
std::unique_ptr<train::LanguageModel> make_trained_model(const train::Config& config, int64_t vocab_size,
                                                         const train::FoundCheckpoint& found, Generator& generator);

}  // namespace onestep::cli
