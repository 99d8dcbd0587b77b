#include <iostream>
#include <memory>

#include "autograd/dot.h"
#include "cli/commands/commands.h"
#include "train/trainer.h"

namespace onestep::cli {
namespace {

struct Options {
  std::string config;
  std::vector<std::string> sets;
};

int draw_graph(const Options& options) {
  Trainer trainer(load_config(options.config, options.sets));
  std::cout << to_dot(trainer.next_loss(), trainer.model().named_parameters());
  return 0;
}

}  // namespace

void add_graph(Command& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("graph", "The recorded graph of a config's loss, for Graphviz");
  command->add_option("CONFIG", options->config, "The config file")->required();
  command->add_set_option(options->sets, "model.attention=causal");
  command->footer("A picture: onestep graph CONFIG | dot -Tsvg > graph.svg (dot comes with Graphviz).");
  command->callback([options, &action] { action = [options] { return draw_graph(*options); }; });
}

}  // namespace onestep::cli
