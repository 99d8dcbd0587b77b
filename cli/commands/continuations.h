#pragma once
// What `generate` prints of the texts that it continues.
#include <deque>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "cli/commands/loaded_run.h"
#include "train/models/generate.h"
#include "train/text/stopping_text.h"

namespace onestep::cli {

/// text: prompt and continuation, a single one as it comes; json: a line a continuation; json_lines: before it a line a token,
/// as it comes.
enum class Output : uint8_t { text, json, json_lines };

struct ContinuationOptions {
  train::GenerateOptions generate = {};
  train::Stops stops = {};
  Output output = Output::text;
  int64_t seed = 0, batch = 16;  ///< `batch` prompts are continued at a time.
  bool quiet = false;            ///< No progress on stderr.
};

/// Continues prompts, each with a generator of its own: it gets what it would get alone.
class Continuations {
 public:
  Continuations(LoadedRun& run, const std::vector<std::vector<int64_t>>& prompts, const ContinuationOptions& options);
  /// One continuation of each prompt, in their order. Throws DivergedError.
  void print_sample();

 private:
  /// A prompt while it is being continued.
  struct Growing {
    size_t place;  // among all prompts
    train::StoppingText text;
    std::string written;
  };

  void print_some(size_t first, size_t count);
  std::vector<train::Generated> generate_some(std::deque<Growing>& growing);
  void take(Growing& growing, const train::Generated& so_far);
  void print_result(const Growing& growing, const train::Generated& result);
  nlohmann::ordered_json place_json(const Growing& growing) const;
  nlohmann::ordered_json alternatives_json(const std::vector<train::TokenLogprob>& alternatives) const;
  void separate();

  LoadedRun& run_;
  const std::vector<std::vector<int64_t>>& prompts_;
  const ContinuationOptions& options_;
  bool as_it_comes_, printed_ = false;
  int64_t sample_ = 0;
  std::deque<Generator> generators_;  // of each prompt
};

}  // namespace onestep::cli
