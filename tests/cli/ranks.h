#pragma once
// Runs of several ranks under mpirun.
#include <doctest/doctest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/stopped_run.h"
#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"

namespace onestep::testing {

using Arguments = std::vector<std::string>;

/// Dropout, clipping, evaluation, and padding that leaves some windows hardly a target.
inline const std::string kConfig = R"({
  "seed": 5,
  "model": {"kind": "gpt", "d_model": 16, "num_heads": 4, "num_layers": 2, "context_length": 8, "dropout": 0.1},
  "data": {"kind": "tokens", "vocab_size": 17, "ignore_index": 3, "val_fraction": 0.3,
           "tokens": [7, 4, 1, 8, 9, 9, 5, 11, 15, 14, 9, 14, 0, 2, 13, 4, 6, 3, 3, 3, 3, 3, 3, 3, 3, 3, 8, 0, 3, 1, 12, 3, 5,
                      6, 16, 6, 11, 7, 3, 9, 7, 4, 1, 8, 9, 9, 5, 11, 15, 14, 9, 14, 0, 2, 13, 4, 6, 3, 0, 7, 8, 8, 4, 10]},
  "optimizer": {"kind": "adamw", "lr": 0.003},
  "train": {"steps": 200, "batch_size": 1, "grad_accumulation": 5, "grad_clip": 0.5, "eval_every": 50, "eval_batches": 5}
})";

/// A config in a folder, and runs of it.
class RankRuns {
 public:
  explicit RankRuns(const std::string& config = kConfig) { std::ofstream(folder_.path() / "config.json") << config; }

  fs::path path(const std::string& name) const { return folder_.path() / name; }
  Arguments start(const std::string& name) const {
    return {kProgram, "train", path("config.json").string(), "--quiet", "--out", path(name).string()};
  }
  Arguments resume(const std::string& name) const { return {kProgram, "train", "--resume", path(name).string(), "--quiet"}; }

 private:
  TemporaryFolder folder_;
};

inline Arguments set(Arguments command, const Arguments& sets) {
  for (const std::string& one : sets) command.insert(command.end(), {"--set", one});
  return command;
}

inline Arguments operator+(Arguments first, const Arguments& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

inline Arguments ranks(int count, const Arguments& command) { return Arguments{"-n", std::to_string(count)} + command; }

inline bool mpirun_is_open_mpi() {
  static const bool is = contains(run_process({"mpirun", "--version"}).out, "Open MPI");
  return is;
}

/// mpirun with one or several groups of ranks, as many as there are, wherever the tests run. Open MPI itself leaks.
inline Process start_mpirun(const std::vector<Arguments>& groups) {
  Arguments command{"mpirun", "--bind-to", "none"};
  if (mpirun_is_open_mpi()) command = command + Arguments{"--oversubscribe", "--allow-run-as-root"};
  for (size_t i = 0; i < groups.size(); ++i) {
    if (i > 0) command.push_back(":");
    command = command + groups[i];
  }
  return Process(command, {.environment = {{"ASAN_OPTIONS", "detect_leaks=0"}}});
}

inline ProcessResult mpirun(const std::vector<Arguments>& groups) { return start_mpirun(groups).wait(); }

/// Says why in one line where ranks cannot be tried.
inline bool skips() {
  const std::string version = run_onestep({"version"}).out;
  std::string reason;
  if (contains(version, "MPI: not built in"))
    reason = "the program was built without MPI";
  else if (run_process({"mpirun", "--version"}).status != 0)
    reason = "there is no mpirun";
  else if (mpirun_is_open_mpi() != contains(version, "Open MPI"))
    reason = "mpirun is that of another MPI";
  else if (mpirun({ranks(2, {"true"})}).status != 0)
    reason = "mpirun starts nothing here";
  if (!reason.empty()) MESSAGE("skipped: ", reason);
  return !reason.empty();
}

/// The most memory that each rank's tensors had in use, in MiB, as the summary at the end says.
inline std::vector<double> tensor_peaks(const ProcessResult& run) {
  const size_t begin = run.out.find(" MiB, tensors ");
  REQUIRE_MESSAGE(begin != std::string::npos, run.out);
  std::istringstream numbers(run.out.substr(begin + 14));
  std::vector<double> peaks;
  for (double peak = 0; numbers >> peak; numbers.ignore(1, ',')) peaks.push_back(peak);
  return peaks;
}

/// The ranks end with one sentence, said once.
inline void check_refused(const std::vector<Arguments>& groups, const std::string& sentence) {
  const ProcessResult result = mpirun(groups);
  CHECK(result.status == 2);
  CHECK(result.out == "");
  CHECK_MESSAGE(contains(result.err, "onestep: " + sentence), result.err);
  CHECK(result.err.find("onestep: ") == result.err.rfind("onestep: "));  // said once
}

/// What ends well.
inline ProcessResult ended_well(const ProcessResult& result) {
  REQUIRE_MESSAGE(result.status == 0, result.err);
  return result;
}
inline ProcessResult run_alone(const Arguments& command) { return ended_well(run_process(command)); }
inline ProcessResult run_ranks(const std::vector<Arguments>& groups) { return ended_well(mpirun(groups)); }

}  // namespace onestep::testing
