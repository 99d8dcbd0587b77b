#include "cli/commands/continuations.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/progress_bar.h"

namespace onestep::cli {

using namespace train;
using nlohmann::ordered_json;

Continuations::Continuations(LoadedRun& run, const std::vector<std::vector<int64_t>>& prompts,
                             const ContinuationOptions& options)
    : run_(run), prompts_(prompts), options_(options), as_it_comes_(options.output == Output::text && prompts.size() == 1) {
  for (size_t i = 0; i < prompts.size(); ++i) generators_.emplace_back(options.seed);
}

void Continuations::print_sample() {
  const auto batch = static_cast<size_t>(options_.batch);
  for (size_t first = 0; first < prompts_.size(); first += batch) print_some(first, std::min(batch, prompts_.size() - first));
  ++sample_;
}

void Continuations::print_some(size_t first, size_t count) {
  std::deque<Growing> growing;  // whose texts refer to options_
  for (size_t place = first; place < first + count; ++place) {
    Growing& next = growing.emplace_back(Growing{place, {run_.tokenizer.get(), options_.stops}, {}});
    std::string prompt;
    for (const int64_t id : run_.without_prefix(prompts_[place])) prompt += next.text.follow(id);
    if (options_.output == Output::text) next.written = prompt;
  }
  if (as_it_comes_) {
    separate();
    std::cout << growing[0].written << std::flush;
  }
  const std::vector<Generated> results = generate_some(growing);
  for (size_t i = 0; i < count; ++i) {
    const std::string rest = growing[i].text.finish();
    growing[i].written += rest;
    if (as_it_comes_) std::cout << rest << std::endl;
    if (!as_it_comes_) print_result(growing[i], results[i]);
  }
}

/// generate() with progress on stderr, unless the user sees the text as it comes.
std::vector<Generated> Continuations::generate_some(std::deque<Growing>& growing) {
  const bool visible = (as_it_comes_ || options_.output == Output::json_lines) && ::isatty(STDOUT_FILENO) == 1;
  ProgressBar progress("generating", options_.generate.tokens * std::ssize(growing), "tokens", options_.quiet || visible);
  std::vector<Prompt> prompts;
  prompts.reserve(growing.size());
  for (Growing& each : growing)
    prompts.push_back({.ids = prompts_[each.place], .generator = &generators_[each.place], .ends = [&each](int64_t) {
                         return each.text.stopped();
                       }});
  int64_t done = 0;
  return generate(*run_.model, prompts, options_.generate, [&](size_t i, const Generated& so_far) {
    take(growing[i], so_far);
    progress.show(++done);
  });
}

/// Shows the newest token, where tokens are shown as they come.
void Continuations::take(Growing& growing, const Generated& so_far) {
  const std::string piece = growing.text.add(so_far.ids.back());
  growing.written += piece;
  if (as_it_comes_) std::cout << piece << std::flush;
  if (options_.output != Output::json_lines) return;
  ordered_json line = place_json(growing);
  line.update({{"id", so_far.ids.back()}, {"text", nullptr}, {"logprob", so_far.logprobs.back()}});
  if (run_.tokenizer) line["text"] = piece;
  if (!so_far.alternatives.empty()) line["alternatives"] = alternatives_json(so_far.alternatives.back());
  std::cout << line.dump() << std::endl;
}

void Continuations::print_result(const Growing& growing, const Generated& result) {
  if (options_.output == Output::text) {
    separate();
    std::cout << growing.written << std::endl;
    return;
  }
  ordered_json line = options_.output == Output::json ? ordered_json::object() : place_json(growing);
  line.update({{"ids", result.ids}, {"text", nullptr}, {"logprobs", result.logprobs}});
  if (run_.tokenizer) line["text"] = growing.written;
  for (const auto& alternatives : result.alternatives) line["alternatives"].push_back(alternatives_json(alternatives));
  line["finish_reason"] = growing.text.stopped() ? "stop" : "length";
  std::cout << line.dump() << std::endl;
}

ordered_json Continuations::place_json(const Growing& growing) const {
  return {{"sample", sample_}, {"prompt", growing.place}};
}

ordered_json Continuations::alternatives_json(const std::vector<TokenLogprob>& alternatives) const {
  ordered_json list = ordered_json::array();
  for (const TokenLogprob& token : alternatives) {
    list.push_back({{"id", token.id}, {"text", nullptr}, {"logprob", token.logprob}});
    if (!run_.tokenizer) continue;
    StreamDecoder text(run_.tokenizer.get());
    list.back()["text"] = text.add(token.id) + text.finish();
  }
  return list;
}

void Continuations::separate() {
  if (printed_) std::cout << "---------------\n";
  printed_ = true;
}

}  // namespace onestep::cli
