#include <iostream>
#include <memory>

#include "cli/commands/commands.h"
#include "train/run_folder.h"
#include "train/runs/run_summary.h"

namespace onestep::cli {
namespace {

int compare(const std::vector<std::string>& names) {
  ONESTEP_CHECK(ConfigError, names.size() >= 2, "compare: needs at least two runs: got ", names.size());
  std::vector<RunSummary> runs;
  for (const std::string& name : names) {
    runs.push_back(summarize_run(run_path(name)));
    runs.back().name = name;
  }
  std::cout << comparison(runs);
  return 0;
}

}  // namespace

void add_compare(Command& app, Action& action) {
  auto runs = std::make_shared<std::vector<std::string>>();
  auto* command = app.add_subcommand("compare", "Runs side by side: where their configs differ, figures and losses");
  command->add_option("RUN", *runs, "The run folders, at least two")->required();
  command->footer("For a page with their curves: onestep report RUN RUN --out FILE");
  command->callback([runs, &action] { action = [runs] { return compare(*runs); }; });
}

}  // namespace onestep::cli
