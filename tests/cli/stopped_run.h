#pragma once
// Runs that are stopped, and what remains of them compared with one that never was.
#include <doctest/doctest.h>
#include <signal.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"

namespace onestep::testing {

namespace fs = std::filesystem;
using nlohmann::json;

inline const std::string kProgram = ONESTEP_BINARY_DIR "/onestep";

inline std::vector<std::string> metrics_lines(const fs::path& run) {
  std::vector<std::string> lines;
  std::ifstream in(run / "metrics.jsonl");
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// All of the metrics but the times.
inline std::vector<json> metrics(const fs::path& run) {
  std::vector<json> lines;
  for (const std::string& line : metrics_lines(run)) {
    lines.push_back(json::parse(line));
    lines.back().erase("seconds");
    lines.back().erase("tokens_per_second");
  }
  return lines;
}

/// Both runs have this checkpoint with the same bits in it.
inline void check_same_checkpoint(const fs::path& a, const fs::path& b, size_t step) {
  const std::string folder = "checkpoints/step-" + std::to_string(step);
  for (const char* name : {"model.safetensors", "optimizer.safetensors"}) {
    REQUIRE(fs::exists(a / folder / name));
    CHECK_MESSAGE(read(a / folder / name) == read(b / folder / name), name);
  }
  const json one = json::parse(read(a / folder / "state.json")), other = json::parse(read(b / folder / "state.json"));
  for (const char* key : {"step", "data", "generator", "best", "unfinished"}) CHECK_MESSAGE(one[key] == other[key], key);
}

/// Whether there is nothing left of this child but its status.
inline bool has_ended(pid_t pid) {
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT);
  return info.si_pid == pid;
}

/// A run that is stopped again and again, and in the end compared with one that never was.
class StoppedRun {
 public:
  explicit StoppedRun(const std::string& config) { std::ofstream(folder_.path() / "config.json") << config; }

  fs::path path() const { return folder_.path() / "run"; }
  size_t lines() const { return metrics_lines(path()).size(); }

  /// Starts the run, or resumes it, for a million steps, and stops it once it has logged `lines` lines.
  ProcessResult stop_with(int signal, size_t lines, std::chrono::microseconds later = {}) const {
    const bool resume = fs::exists(path() / "config.json");
    std::vector<std::string> command =
        resume ? train({"--resume", path().string()}) : train({config(), "--out", path().string()});
    const Process training(set(command, {"train.steps=1000000"}));
    while ((this->lines() < lines || !fs::exists(path() / "metrics.jsonl")) && !has_ended(training.pid()))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(later);
    ::kill(training.pid(), signal);
    return training.wait();
  }

  /// Some steps further both end with the same bits and the same metrics.
  void check_ends_as_uninterrupted(std::vector<std::string> sets = {}) const {
    const size_t steps = lines() + 25;
    sets.push_back("train.steps=" + std::to_string(steps));
    const ProcessResult resumed = run_process(set(train({"--resume", path().string()}), sets));
    CHECK(resumed.status == 0);
    CHECK(resumed.err == "");
    const fs::path whole = folder_.path() / "whole";
    CHECK(run_process(set(train({config(), "--out", whole.string()}), sets)).status == 0);
    check_same_checkpoint(whole, path(), steps);
    CHECK(metrics(whole).size() == steps);
    CHECK(metrics(whole) == metrics(path()));
  }

 private:
  static std::vector<std::string> train(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {kProgram, "train", "--quiet"});
    return arguments;
  }
  static std::vector<std::string> set(std::vector<std::string> command, const std::vector<std::string>& sets) {
    for (const std::string& one : sets) command.insert(command.end(), {"--set", one});
    return command;
  }
  std::string config() const { return (folder_.path() / "config.json").string(); }

  TemporaryFolder folder_;
};

/// Sections of a config: a text that is soon learned, a small model with dropout, and many checkpoints.
inline const std::string kText =
    R"("data": {"kind": "text", "text": "the quick brown fox jumps over the lazy dog and then goes home"})";
inline const std::string kModel = R"("model": {"d_model": 16, "num_heads": 2, "context_length": 5, "dropout": 0.2})";
inline const std::string kTrain = R"("train": {"batch_size": 4, "grad_accumulation": 2, "grad_clip": 0.5, "eval_every": 20,
    "eval_batches": 2, "checkpoint_every": 5})";

}  // namespace onestep::testing
