// Processes that become the ranks of one run: with MPI in the program, without it in the tests.
#include "train/distributed/mpi/ranks.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "tests/cli/ranks.h"

using namespace onestep::testing;

namespace {

/// A variable of the environment, until the end of the scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    value == nullptr ? ::unsetenv(name) : ::setenv(name, value, /*overwrite=*/1);
  }
  ~Variable() { before_ ? ::setenv(name_, before_->c_str(), /*overwrite=*/1) : ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

/// What run_ranks refuses where a launcher has set `name`; work must not begin.
std::string refused_launch(const char* name, const char* value) {
  const Variable open_mpi("OMPI_COMM_WORLD_SIZE", nullptr), pmi("PMI_SIZE", nullptr), launched(name, value);
  return refusal<onestep::ConfigError>([] {
    onestep::train::run_ranks([] { return 1.0; },
                              [](const std::shared_ptr<onestep::train::Communicator>&) -> int {
                                FAIL("work has begun");
                                return 0;
                              });
  });
}

}  // namespace

TEST_CASE("ranks: without MPI a process does its work alone and ends with its status") {
  const Variable open_mpi("OMPI_COMM_WORLD_SIZE", nullptr), pmi("PMI_SIZE", "1");  // one rank needs no MPI
  CHECK(onestep::train::mpi_version() == "not built in");
  const int status = onestep::train::run_ranks([] { return 1.0; },
                                               [](const std::shared_ptr<onestep::train::Communicator>& ranks) {
                                                 CHECK(ranks->rank() == 0);
                                                 CHECK(ranks->size() == 1);
                                                 CHECK(ranks->is_root());
                                                 return 7;
                                               });
  CHECK(status == 7);
}

TEST_CASE("ranks: without MPI one of several processes is refused") {
  CHECK(refused_launch("PMI_SIZE", "2") ==
        "started as one of 2 MPI ranks, but built without MPI (install an MPI such as libopenmpi-dev and build again)");
  CHECK(refused_launch("OMPI_COMM_WORLD_SIZE", "3").starts_with("started as one of 3 MPI ranks, "));
}

TEST_CASE("distributed: a number of threads that some ranks are told is theirs and the others share what is left") {
  if (skips()) return;
  const RankRuns runs;
  const std::string told = std::to_string(std::thread::hardware_concurrency() + 1);  // leaves the others one each
  const Arguments start = set({kProgram, "train", runs.path("config.json").string(), "--out", runs.path("run").string()},
                              {"train.steps=2", "distributed.timeout=20"}),
                  free = Arguments{"env", "-u", "OMP_NUM_THREADS"} + start;
  for (const Arguments& claims : {Arguments{"env", "OMP_NUM_THREADS=" + told} + start, free + Arguments{"--threads", told}}) {
    const ProcessResult first = mpirun({ranks(1, claims), ranks(1, free)}), last = mpirun({ranks(2, free), ranks(1, claims)});
    CHECK(first.status == 0);
    CHECK_MESSAGE(contains(first.err, "2 ranks with " + told + ", 1 threads share a step"), first.err);
    CHECK(last.status == 0);
    CHECK_MESSAGE(contains(last.err, "3 ranks with 1, 1, " + told + " threads share a step"), last.err);
  }
}

TEST_CASE("distributed: what is wrong for all ranks is said once") {
  if (skips()) return;
  const RankRuns runs;
  check_refused({ranks(3, set(runs.start("run"), {"train.grad_accumulation=2"}))},
                "--set train.grad_accumulation=2: /train/grad_accumulation: must be at least 3, the number of ranks");
  const ProcessResult diverged = mpirun({ranks(2, set(runs.start("run"), {"optimizer.kind=sgd", "optimizer.lr=1e30"}))});
  CHECK(diverged.status == 1);
  CHECK(contains(diverged.err, "onestep: train: diverged at step "));
  CHECK(diverged.err.find("diverged") == diverged.err.rfind("diverged"));
}

TEST_CASE("distributed: a launcher of another MPI or a program without MPI is refused") {
  const RankRuns runs;
  const std::string version = run_onestep({"version"}).out;
  const char *rank = "PMI_RANK", *size = "PMI_SIZE";
  if (!contains(version, "Open MPI")) rank = "OMPI_COMM_WORLD_RANK", size = "OMPI_COMM_WORLD_SIZE";
  const ProcessResult result = run_process(runs.start("run"), {.environment = {{rank, "1"}, {size, "2"}}});
  const bool built = !contains(version, "MPI: not built in");
  CHECK(result.status == 2);
  CHECK(result.err.starts_with(std::string("onestep: started as one of 2 MPI ranks, ") +
                               (built ? "of which " : "but built without MPI (install")));
  CHECK(!fs::exists(runs.path("run")));
}
