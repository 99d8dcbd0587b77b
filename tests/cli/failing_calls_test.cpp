// Every call with which a run changes files fails once, or is its last: what is left is always an old or a new checkpoint.
#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>

#include "tests/cli/stopped_run.h"

using namespace onestep::testing;

#ifdef ONESTEP_FAILING_IO  // a sanitizer's library wants to be the first one

namespace {

/// A tiny run of which every call that changes a file can be made to fail.
class FailingRun {
 public:
  FailingRun() {
    std::ofstream(folder_.path() / "config.json")
        << R"({"model": {"attention": "simplified", "d_model": 2, "context_length": 2}, "optimizer": {"kind": "sgd"},
               "data": {"kind": "tokens", "tokens": [0, 1, 0, 1], "vocab_size": 2},
               "train": {"steps": 1, "eval_every": 1, "keep_checkpoints": 1}})";
    REQUIRE(run_onestep(train(whole_, 1)).status == 0);
    fs::copy(whole_, start_, fs::copy_options::recursive);
    REQUIRE(run_onestep(resume(whole_)).status == 0);
  }

  /// Has each call of a start, or of a resumed run with its second checkpoint, meet with `error` once (or every `stride`th
  /// call), and checks that what is left can be trained to the end that it has without the error.
  void check_every_call(const std::string& error, bool resumed, int stride = 1) const {
    int calls = 1, ignored = 0;
    for (;; calls += stride) {
      CAPTURE(error);
      CAPTURE(calls);
      fs::remove_all(run_);
      fs::remove_all(run_.string() + ".previous");
      fs::remove(mark_);
      if (resumed) fs::copy(start_, run_, fs::copy_options::recursive);
      const ProcessResult failed = fail_at(calls, error, resumed ? resume(run_) : train(run_, 2));
      if (!fs::exists(mark_)) break;
      check_outcome(failed, error);
      ignored += failed.status == 0 && failed.err.empty();
      const bool begun = fs::exists(run_ / "config.json");
      CHECK(run_onestep(resumed || begun ? resume(run_) : train(run_, 2)).status == 0);
      check_same_checkpoint(whole_, run_, 2);
      CHECK(metrics(whole_) == metrics(run_));
    }
    CHECK(calls > 40);
    if (error == "5" || error == "28")
      CHECK(ignored < calls / stride / 3);  // closing what was read, deleting what is not needed
  }

  /// Has each of the first calls of a start meet with `error` where there is an earlier run: it is never lost.
  void check_earlier_run(const std::string& error) const {
    const fs::path previous = run_.string() + ".previous";
    int moved = 0;
    for (int call = 1; call <= 24; ++call) {
      CAPTURE(call);
      for (const fs::path& earlier : {run_, previous, mark_}) fs::remove_all(earlier);
      fs::copy(whole_, run_, fs::copy_options::recursive);
      fail_at(call, error, train(run_, 1));
      REQUIRE(fs::exists(mark_));
      const bool is_moved = fs::exists(previous / "checkpoints/step-2");
      moved += is_moved;
      check_same_checkpoint(whole_, is_moved ? previous : run_, 2);
    }
    CHECK((moved > 0 && moved < 24));
  }

 private:
  /// Runs the command, of which the call with this number fails.
  ProcessResult fail_at(int call, const std::string& error, const std::vector<std::string>& command) const {
    return run_onestep(command, {.environment = {{"LD_PRELOAD", ONESTEP_FAILING_IO},
                                                 {"FAIL_UNDER", run_.filename().string()},
                                                 {"FAIL_MARK", mark_.string()},
                                                 {"FAIL_AT", std::to_string(call)},
                                                 {"FAIL_ERROR", error}}});
  }
  void check_outcome(const ProcessResult& result, const std::string& error) const {
    if (error == "kill" || error == "torn") CHECK(result.status == 128 + SIGKILL);
    if (error == "short") CHECK(result.status == 0);
    if (error != "5" && error != "28") return;
    CHECK((result.status == 0 || result.status == 2));
    if (result.status == 0 && result.err.empty()) return;
    CHECK(result.err.starts_with(result.status == 0 ? "onestep: report: not written: " : "onestep: "));
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
    CHECK(contains(result.err, error == "28" ? "the disk is full" : "Input/output error"));
    if (fs::exists(run_ / "checkpoints"))
      for (const auto& entry : fs::directory_iterator(run_ / "checkpoints")) CHECK(entry.path().filename().string()[0] != '.');
  }
  std::vector<std::string> train(const fs::path& run, int steps) const {
    return {"train", (folder_.path() / "config.json").string(), "--quiet", "--out", run.string(),
            "--set", "train.steps=" + std::to_string(steps)};
  }
  static std::vector<std::string> resume(const fs::path& run) {
    return {"train", "--resume", run.string(), "--quiet", "--set", "train.steps=2"};
  }

  TemporaryFolder folder_;
  const fs::path mark_ = folder_.path() / "mark", start_ = folder_.path() / "start", whole_ = folder_.path() / "whole",
                 run_ = folder_.path() / "failing-run";
};

}  // namespace

TEST_CASE("failing calls: any that writes may meet with a full disk or be the last in half a write") {
  const FailingRun run;
  run.check_every_call("28", /*resumed=*/true, /*stride=*/2);
  run.check_every_call("torn", /*resumed=*/true, /*stride=*/3);
  run.check_every_call("torn", /*resumed=*/false, /*stride=*/4);
}

TEST_CASE("failing calls: a start that cannot move the earlier run does not lose it") { FailingRun().check_earlier_run("5"); }

TEST_CASE("failing calls: an import that cannot write leaves nothing") {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "failing-run", mark = folder.path() / "mark";
  const std::string model = ONESTEP_SOURCE_DIR "/tests/goldens/hf_gpt2";
  int call = 1, refused = 0;
  for (;; ++call) {
    CAPTURE(call);
    fs::remove_all(run);
    fs::remove(mark);
    const ProcessResult result =
        run_onestep({"import", model, "--out", run.string(), "--quiet"}, {.environment = {{"LD_PRELOAD", ONESTEP_FAILING_IO},
                                                                                          {"FAIL_UNDER", "failing-run"},
                                                                                          {"FAIL_MARK", mark.string()},
                                                                                          {"FAIL_AT", std::to_string(call)},
                                                                                          {"FAIL_ERROR", "28"}}});
    if (!fs::exists(mark)) break;
    if (result.status == 0) continue;  // closing what was read
    ++refused;
    CHECK(result.status == 2);
    CHECK(contains(result.err, run.string()));
    CHECK(result.err.ends_with(": the disk is full\n"));
    CHECK((!fs::exists(run) || fs::is_empty(run)));  // a folder that cannot be opened
  }
  CHECK(refused > 10);
}

TEST_CASE("nightly: every call that writes fails with EIO or ENOSPC or writes half or is the last in a run's start and later") {
  const FailingRun run;
  for (const bool resumed : {false, true})
    for (const char* error : {"5", "28", "short", "kill", "torn"}) run.check_every_call(error, resumed);
}

#endif

TEST_CASE("failing calls: a disk that is full gives one sentence and keeps the older checkpoint") {
  const TemporaryFolder folder;
  const fs::path disk = folder.path() / "disk", saved = folder.path() / "saved", whole = folder.path() / "whole";
  fs::create_directory(disk);
  std::ofstream(folder.path() / "config.json") << "{" + kModel + ", " + kText + R"(, "train": {"log_every": 100}})";
  const std::string config = (folder.path() / "config.json").string();
  const auto inside = [&](const std::string& script) {  // a disk of its own, which nobody else sees
    return run_process({"unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
                        "mount -t tmpfs -o size=512k tmpfs \"$1\" && { " + script + "; }", "sh", disk.string(), kProgram,
                        config, saved.string()});
  };
  if (inside("true").status != 0) {
    MESSAGE("skipped: this machine does not let unshare mount a disk of its own");
    return;
  }
  const ProcessResult result = inside(R"sh(
    "$2" train "$3" --quiet --out "$1/run" --set train.steps=5 >"$4.first" || exit 1
    head -c 12288 /dev/zero >"$1/room"
    cat /dev/zero >"$1/filler" 2>/dev/null
    "$2" train --resume "$1/run" --quiet --set train.steps=10
    echo "status $?, left $(ls -A "$1/run/checkpoints")"
    rm "$1/room"  # of which config.json needs a part
    "$2" train --resume "$1/run" --quiet --set train.steps=10
    echo "status $?, left $(ls -A "$1/run/checkpoints")"
    "$2" eval "$1/run" --quiet >/dev/null || exit 1
    rm "$1/filler"
    "$2" train --resume "$1/run" --quiet --set train.steps=10 >"$4.second" && cp -r "$1/run" "$4")sh");
  CHECK(result.status == 0);
  CHECK(result.out == "status 2, left step-5\nstatus 2, left step-5\n");
  CAPTURE(result.err);
  CHECK(result.err.starts_with("onestep: " + (disk / "run/.config.json.tmp").string() + ": "));
  CHECK(contains(result.err, ": the disk is full\nonestep: " + (disk / "run/checkpoints/.step-10.tmp/").string()));
  CHECK(result.err.ends_with(": the disk is full (no checkpoint at step 10; those before it are kept)\n"));
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 2);
  REQUIRE(run_onestep({"train", config, "--quiet", "--out", whole.string(), "--set", "train.steps=10"}).status == 0);
  check_same_checkpoint(whole, saved, 10);
}
