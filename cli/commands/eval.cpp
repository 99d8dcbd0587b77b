#include <cmath>
#include <iostream>
#include <limits>
#include <memory>

#include "base/enum_names.h"
#include "base/format.h"
#include "base/progress_bar.h"
#include "base/utf8.h"
#include "cli/commands/commands.h"
#include "nn/pack_weights.h"
#include "train/data/token_cache.h"
#include "train/run_folder.h"
#include "train/runs/trained_run.h"
#include "train/trainer.h"

namespace onestep::cli {
namespace {

struct Options {
  std::string run, checkpoint = "last", data, weights = "float32";
  bool quiet = false;
};

constexpr int64_t kAllBatches = 1 << 20;  // of a file of examples: as many as a config may ask for

struct Result {
  Evaluation figures;
  std::string on;  ///< what was evaluated, in words
};

/// On the run's own held-out data.
Result evaluate_held_out(Config config, std::shared_ptr<const Tokenizer> tokenizer, const FoundCheckpoint& found,
                         WeightFormat weights, bool quiet) {
  ONESTEP_CHECK(ConfigError, config.data.kind != DataKind::none, config.origin.at("/data/kind"),
                ": none: there is nothing to evaluate on (give --data FILE)");
  if (weights != WeightFormat::float32) {  // their sums are in float32
    config.train.dtype = DType::float32;
    config.train.precision = Precision::float32;
  }
  if (has_examples(config.data.kind)) config.train.eval_batches = kAllBatches;
  Trainer trainer(config, std::move(tokenizer), quiet);
  load_trained(trainer, found);
  nn::pack_weights(trainer.model(), weights);
  const int64_t batches = trainer.data().eval_batches(config.train.batch_size, config.train.eval_batches);
  ProgressBar progress("evaluating", batches, "batches", quiet);
  int64_t done = 0;
  return {trainer.evaluate([&] { return progress.show(done++), false; }), evaluates_on(config.data)};
}

/// On all examples of another file.
Result evaluate_examples(Config config, const std::shared_ptr<const Tokenizer>& tokenizer, const FoundCheckpoint& found,
                         WeightFormat weights, const Options& options) {
  config.data.path = options.data;
  config.data.paths.clear();
  config.data.val_path.clear();
  config.data.val_fraction = 0;
  config.origin.run.clear();  // the name is the command line's
  const std::unique_ptr<Data> data = make_data(config, tokenizer, options.quiet);
  Generator generator(config.seed);
  const auto model = make_trained_model(config, trained_vocabulary(found), found, generator, weights);
  const int64_t batches = data->eval_batches(config.train.batch_size, std::numeric_limits<int64_t>::max());
  ProgressBar progress("evaluating " + options.data, batches, "batches", options.quiet);
  int64_t done = 0;
  return {evaluate(*model, *data, batches, config.train.batch_size, generator, [&] { return progress.show(done++), false; }),
          options.data};
}

/// On all of another text. The training text need not exist any more.
Result evaluate_text(const Config& config, const std::shared_ptr<const Tokenizer>& tokenizer, const FoundCheckpoint& found,
                     WeightFormat weights, const Options& options) {
  ONESTEP_CHECK(ConfigError, tokenizer != nullptr, options.run, ": was not trained on text, so --data cannot be evaluated");
  const TokenisedText text = tokenise_files({options.data}, tokenizer->kind(), tokenizer, options.quiet);
  ONESTEP_CHECK(ConfigError, text.tokens->size() >= 2, options.data,
                ": must have at least 2 tokens, of which one is predicted: got ", text.tokens->size());
  Generator generator(config.seed);
  const auto model = make_trained_model(config, tokenizer->vocab_size(), found, generator, weights);
  ProgressBar progress("evaluating " + options.data, text.tokens->size(), "tokens", options.quiet);
  return {evaluate_all(*model, *text.tokens, *tokenizer, config.train.batch_size, [&](int64_t done) { progress.show(done); }),
          options.data};
}

/// Macro F1, and a table of how often each label was taken for each other one.
void print_confusion(const Evaluation& result, const std::vector<std::string>& labels) {
  std::vector<std::vector<std::string>> rows{{"label, predicted:"}};
  for (const std::string& label : labels) rows[0].push_back(printable(label));
  for (size_t i = 0; i < labels.size(); ++i) {
    std::vector<std::string>& row = rows.emplace_back(1, printable(labels[i]));
    for (size_t j = 0; j < labels.size(); ++j) row.push_back(grouped_count(result.confusion[i * labels.size() + j]));
  }
  std::cout << "macro F1     " << grouped(result.macro_f1(), 4) << '\n' << text_table(rows);
}

int evaluate_run(const Options& options) {
  const std::filesystem::path run = run_path(options.run);
  const Config config = load_run_config(run);
  const FoundCheckpoint found = choose_checkpoint(run, config, options.checkpoint);
  const auto tokenizer = load_run_tokenizer(run);
  const WeightFormat weights = *value_named<WeightFormat>(options.weights);
  const auto [result, on] = options.data.empty() ? evaluate_held_out(config, tokenizer, found, weights, options.quiet)
                            : has_examples(config.data.kind) ? evaluate_examples(config, tokenizer, found, weights, options)
                                                             : evaluate_text(config, tokenizer, found, weights, options);
  if (!std::isfinite(result.loss)) {
    std::cerr << "onestep: " << found.folder.string()
              << ": its loss is not finite: the model has diverged or the file was damaged\n";
    return 1;
  }
  std::cout << "checkpoint   " << found.folder.string() << '\n'
            << "loss         " << loss_text(result.loss) << '\n'
            << "perplexity   " << grouped(std::exp(result.loss), 4) << '\n'
            << "accuracy     " << grouped(100 * result.accuracy, 2) << " % of " << grouped_count(result.tokens)
            << " predictions on " << on << '\n';
  if (!result.confusion.empty()) print_confusion(result, config.data.labels);
  if (result.characters > 0)
    std::cout << "bits/char    " << grouped(result.bits_per_character(), 4) << "\nbits/byte    "
              << grouped(result.bits_per_byte(), 4) << '\n';
  return 0;
}

}  // namespace

void add_eval(Command& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand(
      "eval",
      "Loss, perplexity, accuracy and bits per character of a trained run, or the F1 of a classifier, on its held-out data or "
      "another text");
  command->add_option("RUN", options->run, "The run folder")->required();
  command->add_checkpoint_option(options->checkpoint);
  command->add_weights_option(options->weights);
  command
      ->add_option("--data", options->data,
                   "Evaluate all of this file instead: a text, or examples like those of the run; with the run's tokenizer")
      ->type_name("FILE");
  command->add_flag("--quiet", options->quiet, "No progress on stderr");
  command->callback([options, &action] { action = [options] { return evaluate_run(*options); }; });
}

}  // namespace onestep::cli
