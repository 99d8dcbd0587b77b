#include "train/commands/trained_run.h"

#include <iostream>

#include "train/utf8.h"

namespace onestep::train::commands {

void add_checkpoint_option(CLI::App& command, std::string& which) {
  command.add_option("--checkpoint", which, "last (default), best (by validation loss) or step-N")->type_name("WHICH");
}

FoundCheckpoint choose_checkpoint(const std::filesystem::path& run, const Config& config, const std::string& which) {
  FoundCheckpoint found = find_checkpoint(run, which);
  for (const auto& [_, reason] : found.damaged)
    std::cerr << "onestep: " << escaped(reason) << " (an older checkpoint is taken)\n";
  check_trained_with(found.checkpoint.trainer.config, config, "");
  return found;
}

void load_trained(Trainer& trainer, const FoundCheckpoint& found) {
  try {
    trainer.check_data(found.checkpoint.trainer);
  } catch (const ConfigError& error) {
    throw ConfigError(found.folder.string() + ": cannot be evaluated: " + error.what());
  }
  load_model(trainer.model(), found);
}

std::unique_ptr<LanguageModel> make_trained_model(const Config& config, int64_t vocab_size, const FoundCheckpoint& found,
                                                  Generator& generator) {
  auto model = make_language_model(config.model, vocab_size, generator);
  model->to(config.train.dtype == "float64" ? DType::float64 : DType::float32);
  load_model(*model, found);
  return model;
}

}  // namespace onestep::train::commands
