#include <cmath>
#include <iostream>
#include <memory>

#include "train/checkpoint.h"
#include "train/commands/commands.h"
#include "train/run_folder.h"
#include "train/trainer.h"

namespace onestep::train::commands {
namespace {

struct Options {
  std::string run, checkpoint = "last";
};

int evaluate_run(const Options& options) {
  const std::filesystem::path run = run_path(options.run);
  const Config config = load_run_config(run);
  const FoundCheckpoint found = find_checkpoint(run, options.checkpoint);
  for (const auto& [_, reason] : found.damaged) std::cerr << "onestep: " << reason << " (an older checkpoint is taken)\n";
  Trainer trainer(config, load_run_tokenizer(run));
  const std::string file = (found.folder / "model.safetensors").string();
  try {
    trainer.model().load_state_dict(found.checkpoint.trainer.model);
  } catch (const ConfigError& error) {
    throw IoError(file + ": does not fit the run's config: " + error.what());
  }
  const Evaluation result = trainer.evaluate();
  if (!std::isfinite(result.loss)) {
    std::cerr << "onestep: " << file << ": its loss is not finite: the model has diverged or the file was damaged\n";
    return 1;
  }
  std::cout << "checkpoint   " << found.folder.string() << '\n'
            << "loss         " << grouped(result.loss, 4) << '\n'
            << "perplexity   " << grouped(std::exp(result.loss), 4) << '\n'
            << "accuracy     " << grouped(100 * result.accuracy, 2) << " % of " << grouped(static_cast<double>(result.tokens))
            << " predictions on " << trainer.data().evaluates_on() << '\n';
  return 0;
}

}  // namespace

void add_eval(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("eval", "Loss, perplexity and accuracy of a trained run on its held-out data");
  command->add_option("RUN", options->run, "The run folder")->required();
  command->add_option("--checkpoint", options->checkpoint, "last (default), best (by validation loss) or step-N")
      ->type_name("WHICH");
  command->callback([options, &action] { action = [options] { return evaluate_run(*options); }; });
}

}  // namespace onestep::train::commands
