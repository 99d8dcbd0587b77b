#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "autograd/ops_index.h"
#include "autograd/ops_nn.h"
#include "cli/commands/commands.h"
#include "cli/commands/prompts.h"
#include "nn/module.h"

namespace onestep::cli {
namespace {

struct Options {
  std::string run, checkpoint = "last", weights = "float32", prompt_file;
  std::vector<std::string> prompts;
  bool json_lines = false;
};

/// The probability of each label for a text, of which the first tokens that fit into the context are read.
std::vector<double> probabilities(const LoadedRun& run, std::vector<int64_t> ids) {
  const auto longest = static_cast<size_t>(run.model->context_length());
  if (ids.size() > longest) ids.resize(longest);
  ModelCache cache;
  ModelCache* const caches[] = {&cache};
  const Tensor logits = run.model->next_logits(from_values(ids, {1, static_cast<int64_t>(ids.size())}), caches);  // [1, C]
  return softmax(logits.to(DType::float64), -1).to_vector<double>();
}

int classify(const Options& options) {
  const std::unique_ptr<LoadedRun> run = load_run(options.run, options.checkpoint, options.weights, Gives::label);
  const nn::EvaluationMode mode(*run->model);
  std::vector<std::vector<int64_t>> texts;
  if (!options.prompt_file.empty()) texts = read_prompts(options.prompt_file, *run);
  for (const std::string& prompt : options.prompts) {
    texts.push_back(run->encode(prompt, "--prompt"));
    ONESTEP_CHECK(ConfigError, !texts.back().empty(), "--prompt: is empty");
  }
  ONESTEP_CHECK(ConfigError, !texts.empty(), "classify: needs one of --prompt and --prompts");
  const std::vector<std::string>& labels = run->config.data.labels;
  for (const std::vector<int64_t>& ids : texts) {
    const std::vector<double> all = probabilities(*run, ids);
    const auto best = static_cast<size_t>(std::max_element(all.begin(), all.end()) - all.begin());
    if (!options.json_lines) {
      std::cout << labels[best] << '\n';
      continue;
    }
    nlohmann::ordered_json line{{"label", labels[best]}, {"probabilities", nlohmann::ordered_json::object()}};
    for (size_t i = 0; i < labels.size(); ++i) line["probabilities"][labels[i]] = all[i];
    std::cout << line.dump() << '\n';
  }
  return 0;
}

}  // namespace

void add_classify(Command& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("classify", "The labels that a trained classifier gives to texts, one a line");
  command->add_option("RUN", options->run, "The run folder")->required();
  auto* prompt = command->add_repeatable_option("--prompt", options->prompts, "A text");
  prompt->type_name("TEXT");
  command
      ->add_option("--prompts", options->prompt_file,
                   "A file with a text on each line (- for standard input); of a .jsonl file a JSON string a line")
      ->type_name("FILE")
      ->excludes(prompt);
  command->add_flag("--json", options->json_lines, "A line of JSON for each text: label and probabilities");
  command->add_checkpoint_option(options->checkpoint);
  command->add_weights_option(options->weights);
  command->callback([options, &action] { action = [options] { return classify(*options); }; });
}

}  // namespace onestep::cli
