// A run that is killed, interrupted or refused a write ends, once resumed, with the bits of one that never stopped.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <thread>

#include "tests/paths.h"
#include "tests/process.h"

using onestep::testing::Process;
using onestep::testing::ProcessResult;
using onestep::testing::run_onestep;
using onestep::testing::run_process;
using onestep::testing::TemporaryFolder;
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

const std::string kProgram = ONESTEP_BINARY_DIR "/onestep";

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::vector<std::string> metrics_lines(const fs::path& run) {
  std::vector<std::string> lines;
  std::ifstream in(run / "metrics.jsonl");
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// All of the metrics but the times.
std::vector<json> metrics(const fs::path& run) {
  std::vector<json> lines;
  for (const std::string& line : metrics_lines(run)) {
    lines.push_back(json::parse(line));
    lines.back().erase("seconds");
    lines.back().erase("tokens_per_second");
  }
  return lines;
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

  static void check_same_checkpoint(const fs::path& a, const fs::path& b, size_t step) {
    const std::string folder = "checkpoints/step-" + std::to_string(step);
    for (const char* name : {"model.safetensors", "optimizer.safetensors"}) {
      REQUIRE(fs::exists(a / folder / name));
      CHECK_MESSAGE(read(a / folder / name) == read(b / folder / name), name);
    }
    const json one = json::parse(read(a / folder / "state.json")), other = json::parse(read(b / folder / "state.json"));
    for (const char* key : {"step", "data", "generator", "best", "unfinished"}) CHECK_MESSAGE(one[key] == other[key], key);
  }

 private:
  static bool has_ended(pid_t pid) {
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT);
    return info.si_pid == pid;
  }
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

const std::string kText =
    R"("data": {"kind": "text", "text": "the quick brown fox jumps over the lazy dog and then goes home"})";
const std::string kModel = R"("model": {"d_model": 16, "num_heads": 2, "context_length": 5, "dropout": 0.2})";
const std::string kTrain = R"("train": {"batch_size": 4, "grad_accumulation": 2, "grad_clip": 0.5, "eval_every": 20,
    "eval_batches": 2, "checkpoint_every": 5})";

}  // namespace

TEST_CASE("resume: a run killed at twenty random points ends with the bits of one that was not") {
  const StoppedRun run("{" + kModel + ", " + kText + ", " + kTrain +
                       R"(, "schedule": {"kind": "cosine", "warmup_steps": 20, "decay_steps": 150}})");
  std::mt19937 random(1);
  for (int kills = 0; kills < 20; ++kills) {
    const ProcessResult result =
        run.stop_with(SIGKILL, run.lines() + random() % 11, std::chrono::microseconds(random() % 3000));
    CHECK(result.status == 128 + SIGKILL);
    CHECK(result.err == "");
  }
  run.check_ends_as_uninterrupted();
}

TEST_CASE("resume: SIGINT saves and exits 130 and the run goes on to the bit for models and data and optimizers of all kinds") {
  const std::string sgd = "{" + kModel + ", " + kText + ", " + kTrain + R"(, "optimizer": {"kind": "sgd", "momentum": 0.9}})";
  const std::string task =
      R"({"model": {"d_model": 8, "context_length": 7}, "data": {"kind": "task", "task": "sort", "vocab_size": 6, "length": 4},
          "optimizer": {"kind": "rmsprop"}, "schedule": {"kind": "linear", "decay_steps": 90}})";
  const std::string gpt =
      R"({"model": {"kind": "gpt", "num_layers": 2, "d_model": 8, "num_heads": 2, "context_length": 6, "dropout": 0.1}, )" +
      kText + ", " + kTrain + "}";
  for (const std::string& config : {sgd, task, gpt}) {
    CAPTURE(config);
    const StoppedRun run(config);
    for (const size_t lines : {3u, 9u}) {
      const ProcessResult result = run.stop_with(SIGINT, lines);
      CHECK(result.status == 130);
      CHECK(result.err == "");
    }
    run.check_ends_as_uninterrupted();
  }
}

TEST_CASE("resume: an evaluation cut short is left to the resumed run") {
  const StoppedRun run("{" + kModel + ", " + kText + R"(, "train": {"eval_every": 1, "eval_batches": 1000000}})");
  CHECK(run.stop_with(SIGINT, 0).status == 130);
  CHECK(run.lines() == 0);
  const json state = json::parse(read(run.path() / "checkpoints/step-1/state.json"));
  CHECK(state["unfinished"]["step"] == 0);
  CHECK(state["best"].is_null());
  run.check_ends_as_uninterrupted({"train.eval_batches=2"});
}

TEST_CASE("resume: what may not change is refused by name and so are two processes in one folder") {
  const StoppedRun run("{" + kModel + ", " + kText + ", " + kTrain + "}");
  CHECK(run.stop_with(SIGINT, 2).status == 130);
  const std::string path = run.path().string();
  const auto refusal = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"train", "--resume", path});
    const ProcessResult result = run_onestep(arguments);
    CHECK(result.status == 2);
    CHECK(result.out == "");
    return result.err;
  };
  CHECK(refusal({"--set", "model.dropout=0.3"}) ==
        "onestep: --set model.dropout=0.3: /model/dropout: cannot change when a run goes on: it was started with 0.2, got 0.3 "
        "(give the run another folder to start anew)\n");
  CHECK(contains(refusal({"--set", "train.steps=1"}), "--set train.steps=1: /train/steps: must be at least "));
  CHECK(contains(refusal({"--out", "elsewhere"}), "--resume"));
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  REQUIRE(::flock(folder, LOCK_EX | LOCK_NB) == 0);
  CHECK(refusal({}) == "onestep: " + path + ": another process is training this run\n");
  ::close(folder);
  CHECK(run_onestep({"train", "--resume", ""}).err == "onestep: the name of the run folder is empty\n");
  CHECK(run_onestep({"eval", ""}).err == "onestep: the name of the run folder is empty\n");
  CHECK(contains(run_onestep({"train"}).err, "onestep: train: needs a CONFIG, or --resume RUN"));
}

TEST_CASE("resume: a damaged checkpoint is passed over aloud and kept aside") {
  const StoppedRun run("{" + kModel + ", " + kText + ", " + kTrain + "}");
  CHECK(run.stop_with(SIGINT, 20).status == 130);
  const fs::path parent = run.path() / "checkpoints";
  std::vector<std::pair<int64_t, fs::path>> all;
  for (const auto& entry : fs::directory_iterator(parent))
    all.emplace_back(std::stoll(entry.path().filename().string().substr(5)), entry.path());
  std::sort(all.begin(), all.end());
  const fs::path newest = all.back().second, older = all[all.size() - 2].second;
  fs::remove(newest / "model.safetensors");
  const std::string reason = "onestep: " + (newest / "model.safetensors").string() + ": cannot be opened: no such file (";
  const ProcessResult eval = run_onestep({"eval", run.path().string()});
  CHECK(eval.status == 0);
  CHECK(contains(eval.err, reason));
  CHECK(contains(eval.out, older.string() + "\n"));
  CHECK(run_onestep({"eval", run.path().string(), "--checkpoint", newest.filename()}).status == 2);
  CHECK(run_onestep({"eval", run.path().string(), "--checkpoint", "best"}).status == 0);
  const ProcessResult resumed = run_onestep(
      {"train", "--resume", run.path().string(), "--quiet", "--set", "train.steps=" + std::to_string(all.back().first + 9)});
  CHECK(resumed.status == 0);
  CHECK(resumed.err == reason + "kept as " + newest.filename().string() + ".damaged)\nresuming from " + older.string() + "\n");
  CHECK(fs::exists(newest.string() + ".damaged/optimizer.safetensors"));
}

#ifdef ONESTEP_FAILING_IO  // a sanitizer's library wants to be the first one

TEST_CASE("resume: every call that writes may fail or be the last and no checkpoint is lost") {
  const TemporaryFolder folder;
  const fs::path start = folder.path() / "start", whole = folder.path() / "whole", run = folder.path() / "failing-run";
  std::ofstream(folder.path() / "config.json")
      << R"({"model": {"attention": "simplified", "d_model": 2, "context_length": 2}, "optimizer": {"kind": "sgd"},
             "data": {"kind": "tokens", "tokens": [0, 1, 0, 1], "vocab_size": 2}, "train": {"steps": 1, "eval_every": 1, "keep_checkpoints": 1}})";
  const std::string config = (folder.path() / "config.json").string(), two = "train.steps=2";
  REQUIRE(run_onestep({"train", config, "--quiet", "--out", start.string()}).status == 0);
  REQUIRE(run_onestep({"train", config, "--quiet", "--out", whole.string(), "--set", two}).status == 0);
  const std::vector<std::string> resume{"train", "--resume", run.string(), "--quiet", "--set", two};
  for (const std::string error : {"5", "28", "kill"}) {  // EIO, ENOSPC
    int calls = 0;
    for (bool reached = true; reached; ++calls) {
      CAPTURE(error);
      CAPTURE(calls);
      fs::remove_all(run);
      fs::copy(start, run, fs::copy_options::recursive);
      const ProcessResult failed = run_onestep(resume, {.environment = {{"LD_PRELOAD", ONESTEP_FAILING_IO},
                                                                        {"FAIL_UNDER", run.filename().string()},
                                                                        {"FAIL_AT", std::to_string(calls + 1)},
                                                                        {"FAIL_ERROR", error}}});
      reached = failed.status != 0;
      if (reached) CHECK(failed.status == (error == "kill" ? 128 + SIGKILL : 2));
      if (reached && error != "kill") {
        CHECK(failed.err.starts_with("onestep: "));
        CHECK(std::count(failed.err.begin(), failed.err.end(), '\n') == 1);
        CHECK(contains(failed.err, error == "28" ? "the disk is full" : "Input/output error"));
        for (const auto& entry : fs::directory_iterator(run / "checkpoints")) CHECK(entry.path().filename().string()[0] != '.');
      }
      CHECK(run_onestep(resume).status == 0);
      StoppedRun::check_same_checkpoint(whole, run, 2);
      CHECK(metrics(whole) == metrics(run));
    }
    CHECK(calls > 30);
  }
}

#endif
