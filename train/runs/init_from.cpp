#include "train/runs/init_from.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "train/models/adapters.h"
#include "train/run_folder.h"
#include "train/runs/trained_run.h"

namespace onestep::train {

namespace {

namespace fs = std::filesystem;

/// Compares the model sections, since shapes may fit where the parameters would mean something else (num_heads). Dropout may
/// differ, and with rope, where no parameter goes with it, context_length; vocab_size may be left to the data and is checked by
/// the shapes.
void check_starts_from(const FoundCheckpoint& found, const Config& config) {
  std::map<std::string, std::string> trained = found.checkpoint.trainer.config;
  for (const char* const path : {"model.dropout", "model.rng_dialect", "model.vocab_size"}) trained.erase(path);
  if (config.model.rope) trained.erase("model.context_length");
  try {
    check_trained_with(trained, config, "model");
  } catch (const ConfigError& error) {
    throw ConfigError(found.folder.string() + ": cannot be started from: " + error.what());
  }
}

}  // namespace

FoundCheckpoint find_start(const Config& config) {
  const fs::path run = run_path(config.train.init_from);
  const FoundCheckpoint found = find_checkpoint(run, "last");
  check_starts_from(found, config);
  if (!found.checkpoint.trainer.config.contains("model.lora.rank")) return found;
  const Config theirs = load_run_config(run);
  check_trained_with(found.checkpoint.trainer.config, theirs, "");
  return without_adapters(found, theirs.model);
}

void load_start(LanguageModel& model, FoundCheckpoint start) {
  nn::NamedTensors& state = start.checkpoint.trainer.model;
  if (model.num_classes() > 0) std::erase_if(state, [](const auto& named) { return named.first == "lm_head.weight"; });
  for (const auto& own : model.state_dict()) {
    const auto is_it = [&](const auto& named) { return named.first == own.first; };
    if (is_new_parameter(own.first) && std::none_of(state.begin(), state.end(), is_it)) state.push_back(own);
  }
  load_model(model, std::move(start));
}

void take_eos(Config& config) {
  if (config.origin.given.contains("model.eos_token_ids")) return;
  config.model.eos_token_ids = load_run_config(run_path(config.train.init_from)).model.eos_token_ids;
}

std::shared_ptr<const Tokenizer> take_tokenizer(Config& config) {
  const fs::path from = run_path(config.train.init_from);
  DataConfig& data = config.data;
  auto tokenizer = reads_text(data.kind) ? load_run_tokenizer(from) : nullptr;
  if (tokenizer == nullptr) return nullptr;
  const TokenizerKind kind = tokenizer->kind();
  ONESTEP_CHECK(ConfigError, !config.origin.given.contains("data.tokenizer") || data.tokenizer == kind,
                config.origin.at("/data/tokenizer"), ": must be ", name_of(kind), ", that of ", from.string(), ": got ",
                name_of(data.tokenizer), " (leave it out)");
  data.tokenizer = kind;
  if (!data.tokenizer_path.empty()) check_tokenizer_path(config, *tokenizer, from);
  if (kind == TokenizerKind::bpe && data.tokenizer_path.empty()) data.tokenizer_path = from.string();
  return tokenizer;
}

void check_tokenizer_path(const Config& config, const Tokenizer& tokenizer, const fs::path& from) {
  const std::string& path = config.data.tokenizer_path;
  try {
    ONESTEP_CHECK(ConfigError, open_tokenizer(path)->to_json() == tokenizer.to_json(), path, " has another vocabulary");
  } catch (const Error& error) {
    throw ConfigError(config.origin.at("/data/tokenizer_path") + ": must have the tokenizer of " + from.string() +
                      ", with which the text is read: " + error.what());
  }
}

}  // namespace onestep::train
