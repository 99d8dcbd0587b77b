#pragma once
// A trained run as `generate` and `chat` use it.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "autograd/random/generator.h"
#include "cli/arguments.h"
#include "train/models/generate.h"
#include "train/text/stopping_text.h"
#include "train/text/tokenizer.h"

namespace onestep::cli {

/// The model of a run, and its tokenizer unless it was trained on ids.
struct LoadedRun {
  std::string name;  ///< As the command line has it.
  train::Config config;
  Generator generator;  ///< Of the initial values, which are then overwritten, and of dropout, which is off.
  std::unique_ptr<train::LanguageModel> model;
  std::shared_ptr<const train::Tokenizer> tokenizer;

  /// The ids of a text to continue; `what` stands for it in messages. Throws ConfigError, also where there is no tokenizer.
  std::vector<int64_t> encode(const std::string& text, const std::string& what) const;
  /// The ids without those that the tokenizer puts before every text to continue.
  std::span<const int64_t> without_prefix(std::span<const int64_t> ids) const;
};

/// What a model makes of a text.
enum class Gives : uint8_t { text, label };

/// Loads a checkpoint (last, best or step-N) of a run, its weights in the format of that name. Throws ConfigError, also for a
/// run that gives something else, or IoError.
std::unique_ptr<LoadedRun> load_run(const std::string& name, const std::string& checkpoint, const std::string& weights,
                                    Gives gives = Gives::text);

/// Adds the tokens that end a text of the run's model.
void stop_at_eos(const LoadedRun& run, train::Stops& stops);

/// --ignore-eos
void add_ignore_eos(Command& command, bool& ignore);

/// --temperature, --top-k, --top-p, --min-p, --repetition-penalty and --seed.
void add_sampling_options(Command& command, train::SamplingOptions& sampling, int64_t& seed);

}  // namespace onestep::cli
