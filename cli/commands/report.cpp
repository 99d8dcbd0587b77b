#include "train/report/report.h"

#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "base/utf8.h"
#include "base/write_file.h"
#include "cli/commands/commands.h"
#include "cli/commands/trained_run.h"
#include "train/run_folder.h"

namespace onestep::cli {
namespace {

struct Options {
  std::vector<std::string> runs;
  std::string out;
};

/// What `load` returns; null, with a note on stderr of what the page goes without, where it cannot.
template <class Load>
auto load_or_say(const char* without, const Load& load) -> decltype(load()) {
  try {
    return load();
  } catch (const Error& error) {
    std::cerr << "onestep: report: without " << without << ": " << escaped(error.what()) << '\n';
    return {};
  }
}

/// Of a checkpoint without its data there are the parameters, and of a run without a checkpoint the curves.
ReportRun read_run(const std::filesystem::path& run) {
  const Config config = load_run_config(run);
  if (config.data.kind == DataKind::none) return read_report_run(run, config, nullptr);  // imported
  const auto found = load_or_say("parameters, attention maps and samples",
                                 [&] { return std::optional(choose_checkpoint(run, config, "last")); });
  if (!found) return read_report_run(run, config, nullptr);
  const auto trainer = load_or_say("attention maps and samples", [&] {
    auto loaded = std::make_unique<Trainer>(config, load_run_tokenizer(run));
    load_trained(*loaded, *found);
    return loaded;
  });
  ReportRun report = read_report_run(run, config, trainer.get());
  if (trainer) return report;
  const auto model = load_or_say("parameters", [&] {
    Generator generator(config.seed);
    return make_trained_model(config, trained_vocabulary(*found), *found, generator);
  });
  if (model) report.parameters = model->named_parameters();
  return report;
}

int write_report(const Options& options) {
  std::filesystem::path out = options.out;
  if (out.empty()) out = run_path(options.runs[0]) / "report.html";
  check_report_file(out);
  std::vector<ReportRun> runs;
  for (const std::string& name : options.runs) runs.push_back(read_run(run_path(name)));
  write_file(out, report_html(runs));
  std::cout << out.string() << '\n';
  return 0;
}

}  // namespace

void add_report(Command& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("report", "A page about a run or several, to open in a browser");
  command->add_option("RUN", options->runs, "The run folders")->required();
  command->add_option("--out", options->out, "The file to write (default: report.html in the first run)")->type_name("FILE");
  command->callback([options, &action] { action = [options] { return write_report(*options); }; });
}

}  // namespace onestep::cli
