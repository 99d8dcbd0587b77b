#include "train/runs/sweep.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>
#include <set>

#include "base/format.h"
#include "base/read_file.h"
#include "base/utf8.h"
#include "base/write_file.h"
#include "cli/commands/commands.h"
#include "cli/commands/stop_signals.h"
#include "train/run_folder.h"
#include "train/runs/run.h"
#include "train/runs/run_report.h"
#include "train/runs/run_summary.h"

namespace onestep::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string config, out;
  std::vector<std::string> sets, grids;
  bool quiet = false;
};

constexpr int64_t kMaxNote = 1 << 16;
constexpr double kWorst = std::numeric_limits<double>::max();

/// Where a run that diverged says so, with its reason: the same run would diverge again.
fs::path divergence_note(const fs::path& run) { return run / "diverged.txt"; }

/// Whether the run of this config has diverged before.
bool has_diverged(const SweepRun& planned, const fs::path& folder) {
  return fs::exists(divergence_note(folder)) && is_run(folder) && changes(folder, planned.config).empty();
}

/// Trains one run to its end, or as much of it as is left; false if a signal stopped it.
bool train_one(const SweepRun& planned, const fs::path& folder, bool quiet) {
  const auto alone = std::make_shared<Communicator>();
  const bool begun = is_run(folder);
  ActiveRun run = begun ? resume_run(folder, changes(folder, planned.config), alone, quiet)
                        : start_run(planned.config, folder, alone, quiet);
  fs::remove(divergence_note(folder));
  if (!run.done.empty()) return true;
  const Outcome outcome = train_run(run, {.stopped = stop_signalled, .quiet = quiet});
  write_page(run);
  return !outcome.interrupted;
}

/// A line a run, the best first.
std::string table(const std::vector<SweepAxis>& axes, const std::vector<SweepRun>& runs, const fs::path& folder,
                  const std::set<std::string>& diverged) {
  struct Line {
    double loss;
    std::vector<std::string> cells;
  };
  std::vector<Line> lines;
  for (const SweepRun& run : runs) {
    const bool lost = diverged.contains(run.name);
    const RunSummary summary = summarize_run(folder / run.name);
    const auto best = lost ? std::nullopt : summary.best();
    Line line{best ? best->second : kWorst, {run.name}};
    line.cells.insert(line.cells.end(), run.values.begin(), run.values.end());
    line.cells.insert(line.cells.end(), {lost   ? "diverged"
                                         : best ? loss_text(best->second)
                                                : "-",
                                         best ? grouped_count(best->first) : "-",
                                         summary.loss.empty() ? "-" : loss_text(summary.loss.back().second),
                                         summary.val_accuracy && !lost ? grouped(100 * *summary.val_accuracy, 2) + " %" : "-",
                                         grouped_count(summary.steps), grouped(summary.seconds, 1)});
    lines.push_back(std::move(line));
  }
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.loss < b.loss; });
  std::vector<std::vector<std::string>> rows = {{"run"}};
  for (const SweepAxis& axis : axes) rows[0].push_back(axis.key);
  rows[0].insert(rows[0].end(), {"best val loss", "at step", "train loss", "val accuracy", "steps", "seconds"});
  for (Line& line : lines) rows.push_back(std::move(line.cells));
  return text_table(rows);
}

int run_sweep(const Options& options) {
  std::vector<SweepAxis> axes;
  std::transform(options.grids.begin(), options.grids.end(), std::back_inserter(axes), parse_axis);
  const std::vector<SweepRun> runs = sweep_runs(options.config, options.sets, axes);  // all of them, before any is trained
  const fs::path folder =
      options.out.empty() ? fs::path(default_run_folder(options.config).string() + ".sweep") : run_path(options.out);
  ONESTEP_CHECK(ConfigError, !is_run(folder), folder.string(), ": is a run, not a folder of runs (name another with --out)");
  check_report_file(folder / "report.html");
  for (const SweepRun& run : runs)
    if (!is_run(folder / run.name)) check_sources(run.config);
  const auto on_pipe = std::signal(SIGPIPE, SIG_IGN);  // where nobody reads the progress any more the runs continue without it
  catch_stop_signals(options.quiet);
  std::set<std::string> diverged;
  for (size_t i = 0; i < runs.size(); ++i) {
    const fs::path place = folder / runs[i].name;
    if (!options.quiet) std::cerr << "run " << i + 1 << " of " << runs.size() << ": " << place.string() << '\n';
    try {
      if (has_diverged(runs[i], place)) {
        std::cerr << "onestep: " << place.string()
                  << ": is not trained again: " << escaped(read_file(divergence_note(place).string(), kMaxNote)) << '\n';
        diverged.insert(runs[i].name);
        continue;
      }
      if (train_one(runs[i], place, options.quiet)) continue;
      std::cerr << "onestep: stopped in run " << i + 1 << " of " << runs.size() << ": the same command continues\n";
      return kInterrupted;
    } catch (const DivergedError& error) {
      std::cerr << "onestep: " << place.string() << ": " << error.what() << '\n';
      write_file(divergence_note(place), error.what());
      diverged.insert(runs[i].name);
    }
  }
  std::signal(SIGPIPE, on_pipe);
  std::vector<ReportRun> pages;
  for (const SweepRun& run : runs) {
    const fs::path place = folder / run.name;
    pages.push_back(diverged.contains(run.name) ? read_report_run(place, run.config, nullptr) : report_run(place));
  }
  write_file(folder / "report.html", report_html(pages));
  std::cout << table(axes, runs, folder, diverged) << "report  " << (folder / "report.html").string() << '\n';
  return diverged.size() == runs.size() ? kDiverged : 0;
}

}  // namespace

void add_sweep(Command& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("sweep", "Train a run for every combination of values, and compare them");
  command->add_option("CONFIG", options->config, "The config file")->required();
  command->add_repeatable_option("--grid", options->grids, "A key and its values: --grid optimizer.lr=1e-3,3e-3")
      ->type_name("KEY=VALUE")
      ->required();
  command->add_set_option(options->sets, "train.steps=100");
  command->add_option("--out", options->out, "The folder of the runs (default: runs/<config name>.sweep)")->type_name("FOLDER");
  command->add_flag("--quiet", options->quiet, "No progress on stderr");
  command->footer(
      "The runs are trained one after the other, each in a folder of its own, and in the end compared in a table, the best "
      "first, and on a\npage. A run that diverges is a line of the table, and not trained again. The same command again goes "
      "on where it was "
      "stopped: it trains what is missing,\nand further where --set train.steps is larger now.");
  command->callback([options, &action] { action = [options] { return run_sweep(*options); }; });
}

}  // namespace onestep::cli
