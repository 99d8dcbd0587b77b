#include <filesystem>
#include <iostream>
#include <memory>

#include "base/write_file.h"
#include "cli/commands/commands.h"
#include "train/run_folder.h"
#include "train/runs/run_report.h"

namespace onestep::cli {
namespace {

struct Options {
  std::vector<std::string> runs;
  std::string out;
};

int write_report(const Options& options) {
  std::filesystem::path out = options.out;
  if (out.empty()) out = run_path(options.runs[0]) / "report.html";
  check_report_file(out);
  std::vector<ReportRun> runs;
  for (const std::string& name : options.runs) runs.push_back(report_run(run_path(name)));
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
