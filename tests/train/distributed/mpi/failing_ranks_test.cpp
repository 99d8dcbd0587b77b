// A rank that fails in the middle of a run, or hangs where MPI starts or ends, ends the job of all with one sentence.
#include <doctest/doctest.h>

#include <functional>

#include "tests/cli/ranks.h"
#include "tests/support.h"

using namespace onestep::testing;

namespace {

/// Trains on two ranks, the second of which is started with `second` in front; when there is a checkpoint, `harm` happens.
ProcessResult harmed_run(const RankRuns& runs, const Arguments& second, const std::function<void()>& harm) {
  const Arguments command = set(runs.start("run"), {"train.steps=1000000", "train.checkpoint_every=5"});
  const Process job = start_mpirun({ranks(1, command), ranks(1, second + command)});
  while (!fs::exists(runs.path("run/checkpoints/step-5")) && !has_ended(job.pid()))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  harm();
  return job.wait();
}

/// The sentence of rank 1, nothing else of ours, and a checkpoint with which the run continues as if nothing had happened.
void check_ended_by_rank_1(const RankRuns& runs, const ProcessResult& result, const std::string& sentence) {
  CHECK_MESSAGE(result.status == 2, result.err);
  CHECK_MESSAGE(contains(result.err, "onestep: rank 1: " + sentence), result.err);
  CHECK_MESSAGE(result.err.find("onestep: ") == result.err.rfind("onestep: "), result.err);
  const size_t end = metrics_lines(runs.path("run")).size() + 10;
  const Arguments steps{"train.steps=" + std::to_string(end)};
  run_alone(set(runs.resume("run"), steps));
  run_alone(set(runs.start("whole"), steps));
  check_same_checkpoint(runs.path("whole"), runs.path("run"), end);
}

/// Trains with so long a timeout as the machine needs to come to the end; `second` is in front of the second rank.
void check_given_up(const RankRuns& runs, const Arguments& second, bool at_end) {
  for (int timeout = 2;; timeout *= 2) {
    const Arguments command = set(runs.start("run"), {"train.steps=20", "distributed.timeout=" + std::to_string(timeout)});
    const ProcessResult result = mpirun({ranks(1, command), ranks(1, second + command)});
    CHECK(result.status != 0);
    if (at_end && !fs::exists(runs.path("run/checkpoints/step-20")) && timeout < 60) continue;
    CHECK_MESSAGE(contains(result.err, "onestep: distributed: the other ranks do not start or end (does one hang? "),
                  result.err);
    break;
  }
}

}  // namespace

TEST_CASE("distributed: a rank whose data is cut short in the middle of a run is named and ends the job") {
  if (skips()) return;
  const RankRuns runs;
  std::ofstream(runs.path("text")) << std::string(20000, 'a') << std::string(20000, 'b');
  std::ofstream(runs.path("config.json")) << R"({"model": {"d_model": 8, "context_length": 4},
      "data": {"kind": "text", "tokenizer": "byte", "path": ")"
                                          << runs.path("text").string() << R"("},
      "train": {"grad_accumulation": 2, "batch_size": 2}})";
  const fs::path cache = runs.path("cache");
  const ProcessResult result = harmed_run(runs, {"env", "ONESTEP_CACHE=" + cache.string()}, [&] {
    for (const auto& file : fs::directory_iterator(cache)) fs::resize_file(file, 100);
  });
  check_ended_by_rank_1(runs, result, cache.string());
  CHECK(contains(result.err, ": has been cut short while in use"));
}

TEST_CASE("distributed: a rank that hangs before it starts is given up") {
  if (skips() || skips_without_ci()) return;
  const RankRuns runs;
  check_given_up(runs, {"sh", "-c", R"(kill -STOP $$; exec "$@")", "sh"}, /*at_end=*/false);
  CHECK(!fs::exists(runs.path("run")));
}

#ifdef ONESTEP_FAILING_RANK  // a sanitizer's library wants to be the first one

namespace {

/// In front of a rank that fails as the preloaded library says.
Arguments preloaded(const std::string& variable) { return {"env", "LD_PRELOAD=" ONESTEP_FAILING_RANK, variable}; }

}  // namespace

TEST_CASE("distributed: a rank without memory left in the middle of a run is named and ends the job") {
  if (skips()) return;
  const RankRuns runs;
  const fs::path now = runs.path("now");
  const ProcessResult result = harmed_run(runs, preloaded("FAIL_WHEN=" + now.string()), [&] { std::ofstream(now) << "now"; });
  check_ended_by_rank_1(runs, result, "out of memory (try a smaller model, batch or context)");
}

TEST_CASE("distributed: a rank that hangs at the end is given up when all is saved") {
  if (skips() || skips_without_ci()) return;
  const RankRuns runs;
  check_given_up(runs, preloaded("STOP_AT_END=1"), /*at_end=*/true);
  run_alone(set(runs.start("alone"), {"train.steps=20"}));
  check_same_checkpoint(runs.path("alone"), runs.path("run"), 20);
}

#endif
