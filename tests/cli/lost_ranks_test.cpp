// A rank that is killed, hangs or is asked to stop ends the job of all, and the run goes on from its last checkpoint to the
// bit.
#include <doctest/doctest.h>
#include <signal.h>

#include <chrono>
#include <fstream>
#include <random>
#include <thread>

#include "tests/cli/ranks.h"

using namespace onestep::testing;

namespace {

/// A run of two ranks, one of which gets a signal.
class LostRank {
 public:
  explicit LostRank(int timeout) : timeout_("distributed.timeout=" + std::to_string(timeout)) {}

  /// Waits until the run has logged so many lines more, and `later`; the rank gets the signal at whatever point it is at.
  ProcessResult signal_rank(int rank, int signal, size_t lines, std::chrono::microseconds later = {}) const {
    const bool resume = fs::exists(path() / "config.json");
    const Arguments command =
        set(resume ? runs_.resume("run") : runs_.start("run"), {"train.steps=1000000", "train.checkpoint_every=9", timeout_});
    // Each rank leaves its process id.
    Arguments noted{"sh", "-c",
                    "echo $$ > " + pid_file("$OMPI_COMM_WORLD_RANK") + R"(.new
                     mv )" +
                        pid_file("$OMPI_COMM_WORLD_RANK") + ".new " + pid_file("$OMPI_COMM_WORLD_RANK") + R"( && exec "$@")",
                    "sh"};
    noted.insert(noted.end(), command.begin(), command.end());
    for (const char* r : {"0", "1"}) fs::remove(pid_file(r));
    const size_t wanted = logged() + lines;
    const Process job = start_mpirun({ranks(2, noted)});
    while (!fs::exists(pid_file("0")) || !fs::exists(pid_file("1")) || (lines > 0 && logged() < wanted))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(later);
    ::kill(std::stoi(read(pid_file(std::to_string(rank)))), signal);
    return job.wait();
  }

  /// Some steps further, on one process, all is as if nothing had happened.
  void check_goes_on() const {
    const Arguments steps{"train.steps=" + std::to_string(logged() + 20), timeout_};
    run_alone(set(runs_.resume("run"), steps));
    run_alone(set(runs_.start("whole"), steps));
    check_same_checkpoint(runs_.path("whole"), path(), logged());
    CHECK(metrics(runs_.path("whole")) == metrics(path()));
  }

  fs::path path() const { return runs_.path("run"); }
  size_t logged() const { return metrics_lines(path()).size(); }

 private:
  std::string pid_file(const std::string& rank) const { return runs_.path("pid-" + rank).string(); }

  std::string timeout_;
  RankRuns runs_;
};

}  // namespace

TEST_CASE("distributed: ranks killed and hanging at twenty random points end the job and the last checkpoint is whole") {
  if (skips()) return;
  const LostRank run(1);
  std::mt19937 random(1);
  for (int i = 0; i < 20; ++i) {
    const bool hang = i % 4 == 3;
    const int rank = static_cast<int>(random() % 2);
    const std::string name = "rank " + std::to_string(rank);
    CAPTURE(i);
    CAPTURE(name);
    const ProcessResult result =
        run.signal_rank(rank, hang ? SIGSTOP : SIGKILL, hang + random() % 12, std::chrono::microseconds(random() % 20000));
    CHECK(result.status != 0);
    CHECK(result.status != 130);
    const bool named = contains(result.err, "distributed: no answer from " + name + " for 1 s");
    CHECK_MESSAGE((named || (!hang && contains(result.err, "Killed"))), result.err);  // what mpirun says
  }
  run.check_goes_on();
}

TEST_CASE("distributed: all ranks stop after the step when one is asked to") {
  if (skips()) return;
  const LostRank run(60);
  for (const int rank : {0, 1}) {
    const ProcessResult result = run.signal_rank(rank, SIGTERM, 3);
    CHECK_MESSAGE(result.status == 130, result.err);
    CHECK_MESSAGE(!contains(result.err, "onestep: "), result.err);
  }
  run.check_goes_on();
}
