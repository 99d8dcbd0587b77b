// Runs of several ranks: the same bits for any number of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "tests/cli/ranks.h"
#include "tests/support.h"

using namespace onestep::testing;

TEST_CASE("distributed: one to four ranks end with the bits of a run without MPI") {
  if (skips()) return;
  const RankRuns runs;
  run_alone(runs.start("alone"));
  for (int count = 1; count <= 4; ++count) {
    CAPTURE(count);
    const std::string name = "ranks-" + std::to_string(count);
    run_ranks({ranks(count, runs.start(name))});
    check_same_checkpoint(runs.path("alone"), runs.path(name), 200);
    CHECK(metrics(runs.path("alone")) == metrics(runs.path(name)));
  }
}

TEST_CASE("distributed: parameters larger than a bucket are cut over the ranks") {
  if (skips()) return;
  const RankRuns runs;
  const Arguments large{"data.vocab_size=30000", "train.steps=5", "distributed.bucket_mb=1"};
  const ProcessResult alone = run_alone(set(runs.start("alone"), large));
  for (const int count : {2, 3}) {
    const std::string name = "ranks-" + std::to_string(count);
    const ProcessResult result = run_ranks({ranks(count, set(runs.start(name), large))});
    check_same_checkpoint(runs.path("alone"), runs.path(name), 5);
    if (count == 3)  // each with a third of the optimizer's state
      for (const double peak : tensor_peaks(result)) CHECK(peak < tensor_peaks(alone).front());
  }
}

TEST_CASE("distributed: optimizers without and with state and float64 have the same bits on three ranks") {
  if (skips()) return;
  for (const std::string optimizer : {R"({"kind": "sgd"})", R"({"kind": "sgd", "momentum": 0.9})", R"({"kind": "rmsprop"})",
                                      R"({"kind": "adam", "amsgrad": true})"}) {
    CAPTURE(optimizer);
    const RankRuns runs(
        R"({"model": {"d_model": 12, "context_length": 7}, "data": {"kind": "task", "task": "sort", "vocab_size": 6,
                    "length": 4}, "train": {"grad_accumulation": 4, "batch_size": 2, "steps": 20, "dtype": "float64"},
                    "optimizer": )" +
        optimizer + "}");
    run_alone(runs.start("alone"));
    run_ranks({ranks(3, runs.start("ranks"))});
    check_same_checkpoint(runs.path("alone"), runs.path("ranks"), 20);
  }
}

TEST_CASE("distributed: allreduce is the exact run for one rank and close to it and repeatable for more") {
  if (skips()) return;
  const RankRuns runs;
  const Arguments allreduce{"distributed.reduce=allreduce", "train.steps=30", "model.dropout=0.0"};
  run_alone(set(runs.start("alone"), {"train.steps=30", "model.dropout=0.0"}));
  run_ranks({ranks(1, set(runs.start("one"), allreduce))});
  check_same_checkpoint(runs.path("alone"), runs.path("one"), 30);
  for (const char* name : {"three", "again"}) run_ranks({ranks(3, set(runs.start(name), allreduce))});
  check_same_checkpoint(runs.path("three"), runs.path("again"), 30);
  const auto exact = metrics(runs.path("alone")), close = metrics(runs.path("three"));
  REQUIRE(exact.size() == close.size());
  for (size_t i = 0; i < exact.size(); ++i)
    CHECK(close[i]["loss"].get<double>() == doctest::Approx(exact[i]["loss"].get<double>()).epsilon(1e-4));
}

TEST_CASE("distributed: a run continues with another number of ranks to the bit") {
  if (skips()) return;
  const RankRuns runs;
  run_alone(runs.start("alone"));
  run_ranks({ranks(2, set(runs.start("ranks"), {"train.steps=40"}))});
  run_ranks({ranks(3, set(runs.resume("ranks"), {"train.steps=90"}))});
  run_alone(set(runs.resume("ranks"), {"train.steps=130"}));
  run_ranks({ranks(4, set(runs.resume("ranks"), {"train.steps=200"}))});
  check_same_checkpoint(runs.path("alone"), runs.path("ranks"), 200);
  const ProcessResult done = run_ranks({ranks(2, runs.resume("ranks"))});
  CHECK(contains(done.err, "all 200 steps are done"));
}

TEST_CASE("distributed: rank 0 alone writes") {
  if (skips()) return;
  const RankRuns runs;
  for (const char* name : {"root", "other"}) fs::create_directories(runs.path(name));
  const Arguments train{kProgram, "train", runs.path("config.json").string(), "--out", "run", "--set", "train.steps=20"};
  const auto in = [&](const char* name) { return Arguments{"-wdir", runs.path(name).string()} + ranks(1, train); };
  const ProcessResult result = run_ranks({in("root"), in("other")});
  CHECK(result.out.find("train loss") == result.out.rfind("train loss"));
  CHECK(contains(result.err, "2 ranks with "));
  if (std::getenv("OMP_NUM_THREADS") == nullptr)
    CHECK(contains(result.err, "with " + std::to_string(std::max(1u, std::thread::hardware_concurrency() / 2)) + " thread"));
  CHECK(contains(result.out, " bytes a step sent by rank 0\n"));
  CHECK(tensor_peaks(result).size() == 2);
  CHECK(fs::exists(runs.path("root") / "run/report.html"));
  CHECK(fs::is_empty(runs.path("other")));
}

TEST_CASE("distributed: ranks that differ are refused by what differs") {
  if (skips() || skips_without_ci()) return;
  const RankRuns runs;
  const std::string differ = "the ranks differ: rank 1 has another ";
  check_refused({ranks(1, runs.start("run")), ranks(1, set(runs.start("run"), {"optimizer.lr=1"}))},
                differ + "config than rank 0");

  const fs::path copy = runs.path("onestep");
  fs::copy_file(kProgram, copy);
  std::ofstream(copy, std::ios::app) << "another";
  Arguments other = runs.start("run");
  other[0] = copy.string();
  check_refused({ranks(1, runs.start("run")), ranks(1, other)}, differ + "program (version and file) than rank 0");

  const RankRuns texts(R"({"model": {"d_model": 4, "context_length": 2}, "train": {"grad_accumulation": 2},
                       "data": {"kind": "text", "path": "text", "tokenizer": "byte"}})");
  std::vector<Arguments> groups;
  for (const char* name : {"root", "other"}) {
    fs::create_directories(texts.path(name));
    std::ofstream(texts.path(name) / "text") << "the text of the " << name << ", long enough";
    groups.push_back(Arguments{"-wdir", texts.path(name).string()} + ranks(1, texts.start("run")));
  }
  check_refused(groups, differ + "data than rank 0");
  fs::remove(texts.path("other") / "text");
  check_refused(groups, "rank 1: ");
  for (const RankRuns* tried : {&runs, &texts}) CHECK(!fs::exists(tried->path("run")));
}

TEST_CASE("distributed: ranks in network namespaces of their own have the same bits") {
  if (skips_without_ci()) return;
  const ProcessResult result = run_process({ONESTEP_SOURCE_DIR "/tests/distributed/namespaces.sh", kProgram},
                                           {.environment = {{"ASAN_OPTIONS", "detect_leaks=0"}}});  // Open MPI itself leaks
  CHECK_MESSAGE(result.status == 0, result.out, result.err);
  if (contains(result.out, "skipped: "))
    MESSAGE(result.out);
  else
    CHECK_MESSAGE(contains(result.out, ": the bits of one process; "), result.out);
}

TEST_CASE("distributed: the page's table of machines is what its script prints") {
  const std::string page = read(ONESTEP_SOURCE_DIR "/docs/distributed.md"), script = "`bench/machines.sh ";
  const size_t begin = page.find(script) + script.size();
  REQUIRE(begin != std::string::npos + script.size());
  const std::string speed = page.substr(begin, page.find('`', begin) - begin);
  const ProcessResult result = run_process({ONESTEP_SOURCE_DIR "/bench/machines.sh", speed});
  CHECK(result.status == 0);
  CHECK(result.out.starts_with("| machines |"));
  CHECK(contains(page, result.out));
  for (const std::string wrong : {"", "abc", "0", "-5", "1e3", "0.0"})
    CHECK(run_process({ONESTEP_SOURCE_DIR "/bench/machines.sh", wrong}).err ==
          "machines.sh: TOKENS_A_SECOND: must be one number above 0, such as 1500: got \"" + wrong + "\"\n");
}

TEST_CASE("distributed: where the root cannot write all end and the last checkpoint is whole") {
  if (skips() || skips_without_ci()) return;
  const RankRuns runs;
  run_alone(set(runs.start("whole"), {"train.steps=40"}));
  run_ranks({ranks(2, set(runs.start("run"), {"train.steps=20"}))});
  // No file of the root may be larger than 8 blocks, which a checkpoint's are.
  const Arguments limited{"sh", "-c", "trap '' XFSZ; ulimit -f 8; exec \"$@\"", "sh"};
  const Arguments resume = set(runs.resume("run"), {"train.steps=40", "train.checkpoint_every=1"});
  const ProcessResult full = mpirun({ranks(1, limited + resume), ranks(1, resume)});
  CHECK(full.status == 2);
  CHECK_MESSAGE(contains(full.err, "would be larger"), full.err);
  CHECK(full.err.find("onestep: ") == full.err.rfind("onestep: "));
  run_ranks({ranks(3, set(runs.resume("run"), {"train.steps=40"}))});
  check_same_checkpoint(runs.path("whole"), runs.path("run"), 40);
}
