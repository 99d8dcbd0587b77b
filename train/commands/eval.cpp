#include <cmath>
#include <iostream>
#include <memory>

#include "train/commands/commands.h"
#include "train/run_folder.h"
#include "train/safetensors.h"
#include "train/trainer.h"

namespace onestep::train::commands {
namespace {

int evaluate_run(const std::string& run) {
  Trainer trainer(load_run_config(run), load_run_tokenizer(run));
  const auto checkpoint = latest_checkpoint(run);
  const std::string file = (checkpoint / "model.safetensors").string();
  try {
    trainer.model().load_state_dict(read_safetensors(file).tensors);
  } catch (const ConfigError& error) {
    throw IoError(file + ": does not fit the run's config: " + error.what());
  }
  const Evaluation result = trainer.evaluate();
  if (!std::isfinite(result.loss)) {
    std::cerr << "onestep: " << file << ": its loss is not finite: the model has diverged or the file was damaged\n";
    return 1;
  }
  std::cout << "checkpoint   " << checkpoint.string() << '\n'
            << "loss         " << grouped(result.loss, 4) << '\n'
            << "perplexity   " << grouped(std::exp(result.loss), 4) << '\n'
            << "accuracy     " << grouped(100 * result.accuracy, 2) << " % of " << grouped(static_cast<double>(result.tokens))
            << " predictions on " << trainer.data().evaluates_on() << '\n';
  return 0;
}

}  // namespace

void add_eval(CLI::App& app, Action& action) {
  auto run = std::make_shared<std::string>();
  auto* command = app.add_subcommand("eval", "Loss, perplexity and accuracy of a trained run on its held-out data");
  command->add_option("RUN", *run, "The run folder")->required();
  command->callback([run, &action] { action = [run] { return evaluate_run(*run); }; });
}

}  // namespace onestep::train::commands
