#pragma once
// The folder of a run: resolved config, metrics, tokenizer and checkpoints.
#include <filesystem>
#include <memory>
#include <string>

#include "nn/module.h"
#include "train/config.h"
#include "train/tokenizer.h"

namespace onestep::train {

/// Where `onestep train CONFIG` writes: runs/NAME, NAME being the config's file name without its extension.
std::filesystem::path default_run_folder(const std::string& config_path);

/// Writes checkpoints/step-N/model.safetensors with PyTorch's parameter names: into a temporary folder beside it, then renamed,
/// so that a checkpoint is there whole or not at all. Keeps the newest `keep` ones. Throws IoError.
void save_checkpoint(const std::filesystem::path& run, int64_t step, const nn::Module& model, int64_t keep);

/// The folder of the newest checkpoint; throws IoError when there is none.
std::filesystem::path latest_checkpoint(const std::filesystem::path& run);

/// The config a run was trained with; throws IoError naming the folder if it is no run.
Config load_run_config(const std::filesystem::path& run);

/// The tokenizer a run was trained with; null for a run without text.
std::shared_ptr<const Tokenizer> load_run_tokenizer(const std::filesystem::path& run);

}  // namespace onestep::train
