#include "cli/commands/loaded_run.h"

#include <algorithm>

#include "base/enum_names.h"
#include "train/run_folder.h"
#include "train/runs/trained_run.h"

namespace onestep::cli {

using namespace train;

std::vector<int64_t> LoadedRun::encode(const std::string& text, const std::string& what) const {
  ONESTEP_CHECK(ConfigError, tokenizer != nullptr, what, ": ", name,
                " was trained on ids and has no tokenizer (use --prompt-ids)");
  try {
    return tokenizer->encode_prompt(text);
  } catch (const ConfigError& error) {
    throw ConfigError(what + ": " + error.what());
  }
}

std::span<const int64_t> LoadedRun::without_prefix(std::span<const int64_t> ids) const {
  const std::vector<int64_t> prefix = tokenizer ? tokenizer->prompt_prefix() : std::vector<int64_t>{};
  const bool prefixed = ids.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), ids.begin());
  return prefixed ? ids.subspan(prefix.size()) : ids;
}

std::unique_ptr<LoadedRun> load_run(const std::string& name, const std::string& checkpoint, const std::string& weights,
                                    Gives gives) {
  auto loaded = std::make_unique<LoadedRun>();
  const std::filesystem::path run = run_path(name);
  loaded->name = name;
  loaded->config = load_run_config(run);
  const bool classifies = num_classes(loaded->config) > 0;
  ONESTEP_CHECK(ConfigError, classifies == (gives == Gives::label), name,
                classifies ? ": is a classifier and writes no text (onestep classify gives the labels of texts)"
                           : ": is no classifier: its data.kind is not classification");
  const FoundCheckpoint found = choose_checkpoint(run, loaded->config, checkpoint);
  loaded->tokenizer = prompt_tokenizer(run, loaded->config);
  loaded->model = make_trained_model(loaded->config, trained_vocabulary(found), found, loaded->generator,
                                     *value_named<WeightFormat>(weights));
  return loaded;
}

void stop_at_eos(const LoadedRun& run, Stops& stops) {
  const std::vector<int64_t>& eos = run.config.model.eos_token_ids;
  stops.ids.insert(stops.ids.end(), eos.begin(), eos.end());
}

void add_ignore_eos(Command& command, bool& ignore) {
  command.add_flag("--ignore-eos", ignore, "Continue past the tokens that end a text (model.eos_token_ids)");
}

void add_sampling_options(Command& command, SamplingOptions& sampling, int64_t& seed) {
  const auto number = [&](const std::string& name, double& value, const std::string& description, const Check& check) {
    command.add_option(name, value, description)->type_name("N")->capture_default_str()->check(check);
  };
  number("--temperature", sampling.temperature, "Logits are divided by it; 0 takes the most likely token", at_least_0());
  command.add_whole_number("--top-k", sampling.top_k, "Only the N most likely tokens; 0: all", 0, INT64_MAX);
  number("--top-p", sampling.top_p, "Only the most likely tokens whose probabilities add up to N",
         decimal_number("above 0 and at most 1", [](double p) { return p > 0 && p <= 1; }));
  number("--min-p", sampling.min_p, "Only tokens at least N times as likely as the most likely one",
         decimal_number("from 0 to 1", [](double p) { return p >= 0 && p <= 1; }));
  number("--repetition-penalty", sampling.repetition_penalty,
         "Logits of tokens that the text has are divided by N where positive, else multiplied; 1: none",
         decimal_number("from 1e-6 to 1e6", [](double penalty) { return penalty >= 1e-6 && penalty <= 1e6; }));
  command.add_whole_number("--seed", seed, "Seed of the draws", INT64_MIN, INT64_MAX);
}

}  // namespace onestep::cli
