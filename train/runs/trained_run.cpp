#include "train/runs/trained_run.h"

#include <iostream>

#include "base/format.h"
#include "base/utf8.h"
#include "train/data/task.h"
#include "train/memory_need.h"
#include "train/models/adapters.h"
#include "train/run_folder.h"

namespace onestep::train {
namespace {

/// Throws unless the file is large enough for the model of the config, before memory for it is allocated.
void check_holds_model(const FoundCheckpoint& found, const Config& config) {
  const MemoryNeed need = memory_need(config, trained_vocabulary(found), 1);
  const double needed = static_cast<double>(need.parameters) + need.mask_bytes;  // a mask has an element a byte
  double held = 0;
  for (const auto& [_, tensor] : found.checkpoint.trainer.model) held += static_cast<double>(tensor.numel());
  ONESTEP_CHECK(IoError, needed <= held, (found.folder / "model.safetensors").string(), ": does not fit the config: holds ",
                grouped(held), " numbers, the model has ", grouped(needed));
}

}  // namespace

int64_t trained_vocabulary(const FoundCheckpoint& found) {
  for (const auto& [name, tensor] : found.checkpoint.trainer.model)
    if ((name == "tok_emb.weight" || name == "transformer.wte.weight") && tensor.dim() == 2) return tensor.size(0);
  fail<IoError>((found.folder / "model.safetensors").string(),
                ": has no token embedding (tok_emb.weight or transformer.wte.weight)");
}

FoundCheckpoint choose_checkpoint(const std::filesystem::path& run, const Config& config, const std::string& which) {
  FoundCheckpoint found = find_checkpoint(run, which);
  for (const auto& [_, reason] : found.damaged)
    std::cerr << "onestep: " << escaped(reason) << " (an older checkpoint is taken)\n";
  check_trained_with(found.checkpoint.trainer.config, config, "");
  check_holds_model(found, config);
  return found;
}

std::shared_ptr<const Tokenizer> prompt_tokenizer(const std::filesystem::path& run, const Config& config) {
  return config.data.kind == DataKind::task ? task_tokenizer(config.data) : load_run_tokenizer(run);
}

FoundCheckpoint without_adapters(const FoundCheckpoint& found, const ModelConfig& model) {
  FoundCheckpoint merged = found;
  if (model.lora.rank > 0) merged.checkpoint.trainer.model = merged_state(found.checkpoint.trainer.model, model);
  return merged;
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
                                                  Generator& generator, WeightFormat format) {
  ModelConfig plain = config.model;
  plain.lora = {};
  auto model = make_language_model(plain, vocab_size, generator, num_classes(config));
  if (format == WeightFormat::float32) model->to(config.train.dtype);
  load_model(*model, without_adapters(found, config.model));
  nn::pack_weights(*model, format);
  return model;
}

}  // namespace onestep::train
