// A rank that is killed, hangs or is asked to stop ends the job of all, and the run continues from its last checkpoint to the
// bit.
#include <doctest/doctest.h>
#include <signal.h>

#include <chrono>
#include <fstream>
#include <optional>
#include <random>
#include <thread>

#include "tests/cli/ranks.h"
#include "tests/support.h"

using namespace onestep::testing;

namespace {

/// A run of two ranks, one of which gets a signal.
class LostRank {
 public:
  /// Waits until the run has logged so many lines more, and `later`; the rank gets the signal at whatever point it is at.
  /// Nothing if the run ended before, which it may where a rank gets no time to compute for `timeout` seconds.
  std::optional<ProcessResult> signal_rank(int rank, int signal, size_t lines, int timeout,
                                           std::chrono::microseconds later = {}) const {
    const bool resume = fs::exists(path() / "config.json");
    const Arguments command =
        set(resume ? runs_.resume("run") : runs_.start("run"),
            {"train.steps=1000000", "train.checkpoint_every=9", "distributed.timeout=" + std::to_string(timeout)});
    std::vector<Arguments> groups;
    for (int r = 0; r < 2; ++r) {  // each leaves its process id
      const std::string file = pid_file(r), note = "echo $$ >" + file + ".new; mv " + file + ".new " + file + R"(; exec "$@")";
      fs::remove(file);
      groups.push_back(ranks(1, Arguments{"sh", "-c", note, "sh"} + command));
    }
    const size_t wanted = logged() + lines;
    const Process job = start_mpirun(groups);
    const auto waits = [&] { return !fs::exists(pid_file(0)) || !fs::exists(pid_file(1)) || (lines > 0 && logged() < wanted); };
    while (waits() && !has_ended(job.pid())) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(later);
    const bool lost = !has_ended(job.pid());
    if (lost) {
      ::kill(std::stoi(read(pid_file(rank))), signal);
      end(job);
    }
    const ProcessResult result = job.wait();
    return lost ? std::optional(result) : std::nullopt;
  }

  /// Some steps further, on one process, all is as if nothing had happened.
  void check_goes_on() const {
    const Arguments steps{"train.steps=" + std::to_string(logged() + 20)};
    run_alone(set(runs_.resume("run"), steps));
    run_alone(set(runs_.start("whole"), steps));
    check_same_checkpoint(runs_.path("whole"), path(), logged());
    CHECK(metrics(runs_.path("whole")) == metrics(path()));
  }

  fs::path path() const { return runs_.path("run"); }
  size_t logged() const { return metrics_lines(path()).size(); }

 private:
  // Open MPI 4.1's mpirun may wait for ever on a lock of its own (in PMIx_server_finalize) when its ranks have gone.
  void end(const Process& job) const {
    const auto wait = [&](auto condition) {
      while (!has_ended(job.pid()) && condition()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    wait([&] { return is_running(std::stoi(read(pid_file(0)))) || is_running(std::stoi(read(pid_file(1)))); });
    int milliseconds = 0;
    wait([&] { return ++milliseconds < 30000; });
    if (!has_ended(job.pid())) ::kill(job.pid(), SIGKILL);
  }
  // Line by line: reading the status of a process that ends after it was opened fails, which getline takes as the end.
  static bool is_running(pid_t pid) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("State:")) return !line.starts_with("State:\tZ");
    return false;
  }

  std::string pid_file(int rank) const { return runs_.path("pid-" + std::to_string(rank)).string(); }

  RankRuns runs_;
};

/// Two ranks, one of which is killed, or every fourth time hangs, at so many random points.
void check_losses(int losses) {
  const LostRank run;
  std::mt19937 random(1);
  for (int i = 0; i < losses; ++i) {
    const bool hang = i % 4 == 3;
    const int rank = static_cast<int>(random() % 2);
    const std::string name = "rank " + std::to_string(rank);
    const size_t lines = hang + random() % 12;
    const std::chrono::microseconds later(random() % 20000);
    CAPTURE(i);
    CAPTURE(name);
    std::optional<ProcessResult> result;
    for (int timeout = hang ? 1 : 60; !result && timeout <= 60; timeout *= 4)
      result = run.signal_rank(rank, hang ? SIGSTOP : SIGKILL, lines, timeout, later);
    REQUIRE(result.has_value());
    CHECK(result->status != 0);
    CHECK(result->status != 130);
    if (hang) CHECK_MESSAGE(contains(result->err, "distributed: no answer from " + name + " for "), result->err);
  }
  run.check_goes_on();
}

}  // namespace

TEST_CASE("distributed: ranks killed and hanging at four random points end the job and the last checkpoint is whole") {
  if (!skips() && !skips_without_ci()) check_losses(4);
}

TEST_CASE("nightly: ranks killed and hanging at twenty random points end the job and the last checkpoint is whole") {
  if (!skips()) check_losses(20);
}

TEST_CASE("distributed: all ranks stop after the step when one is asked to") {
  if (skips()) return;
  const LostRank run;
  for (const int rank : {0, 1}) {
    const std::optional<ProcessResult> result = run.signal_rank(rank, SIGTERM, 3, 60);
    REQUIRE(result.has_value());
    CHECK_MESSAGE(result->status == 130, result->err);
    CHECK_MESSAGE(!contains(result->err, "onestep: "), result->err);
  }
  run.check_goes_on();
}
