#pragma once
// A trained run: choosing a checkpoint and building its model.

#include <filesystem>
#include <memory>
#include <string>

#include "nn/pack_weights.h"
#include "train/checkpoint/checkpoint.h"
#include "train/trainer.h"

namespace onestep::train {

/// find_checkpoint; says on stderr which newer ones are damaged. Throws ConfigError if the config, that of the run, was changed
/// where it may not change, and IoError if the checkpoint holds less than the model that it describes.
FoundCheckpoint choose_checkpoint(const std::filesystem::path& run, const Config& config, const std::string& which);

/// Rows of the token embedding in a checkpoint.
int64_t trained_vocabulary(const FoundCheckpoint& found);

/// The tokenizer with which people write to a run: that of its text, or the names of its task's symbols. Null for a run on ids.
std::shared_ptr<const Tokenizer> prompt_tokenizer(const std::filesystem::path& run, const Config& config);

/// A checkpoint of a model with these adapters as one of the model without them (merged_state).
FoundCheckpoint without_adapters(const FoundCheckpoint& found, const ModelConfig& model);

/// Gives the trainer of the run the parameters of a checkpoint. Throws ConfigError if its data is not what was trained on.
void load_trained(Trainer& trainer, const FoundCheckpoint& found);

/// The model of a config with the parameters of a checkpoint, adapters merged into them, without its data; its weights in
/// `format`, other than float32 for inference alone. `generator` must outlive it. Throws IoError.
std::unique_ptr<LanguageModel> make_trained_model(const Config& config, int64_t vocab_size, const FoundCheckpoint& found,
                                                  Generator& generator, WeightFormat format = WeightFormat::float32);

}  // namespace onestep::train
