#include "train/report.h"

#include <filesystem>
#include <iostream>
#include <memory>

#include "train/commands/commands.h"
#include "train/commands/trained_run.h"
#include "train/files.h"
#include "train/run_folder.h"
#include "train/utf8.h"

namespace onestep::train::commands {
namespace {

struct Options {
  std::vector<std::string> runs;
  std::string out;
};

/// The trained model with its data; null, with a note on stderr, where one of them is gone.
std::unique_ptr<Trainer> load_run(const std::filesystem::path& run, const Config& config) {
  if (config.data.kind == "none") return nullptr;  // imported
  try {
    auto trainer = std::make_unique<Trainer>(config, load_run_tokenizer(run));
    load_trained(*trainer, choose_checkpoint(run, config, "last"));
    return trainer;
  } catch (const Error& error) {
    std::cerr << "onestep: report: without parameters and attention: " << escaped(error.what()) << '\n';
    return nullptr;
  }
}

int write_report(const Options& options) {
  std::filesystem::path out = options.out;
  if (out.empty()) out = run_path(options.runs[0]) / "report.html";
  check_report_file(out);
  std::vector<ReportRun> runs;
  for (const std::string& name : options.runs) {
    const std::filesystem::path run = run_path(name);
    const std::unique_ptr<Trainer> trainer = load_run(run, load_run_config(run));
    runs.push_back(read_report_run(run, trainer.get()));
  }
  write_file(out, report_html(runs));
  std::cout << out.string() << '\n';
  return 0;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("report", "A page about a run or several, to open in a browser");
  command->add_option("RUN", options->runs, "The run folders")->required();
  command->add_option("--out", options->out, "The file to write (default: report.html in the first run)")->type_name("FILE");
  command->callback([options, &action] { action = [options] { return write_report(*options); }; });
}

}  // namespace onestep::train::commands
