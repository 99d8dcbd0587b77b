// `onestep sweep` and `onestep compare` from outside.
#include <doctest/doctest.h>

#include <sstream>

#include "tests/cli/stopped_run.h"

using onestep::testing::check_same_checkpoint;
using onestep::testing::contains;
using onestep::testing::Process;
using onestep::testing::ProcessResult;
using onestep::testing::read;
using onestep::testing::run_onestep;
using onestep::testing::TemporaryFolder;

namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

const std::string kSentence = ONESTEP_SOURCE_DIR "/configs/sentence.json";

Strings sweep(const fs::path& out, const Strings& more) {
  Strings command = {"sweep", kSentence, "--out", out.string(), "--set", "train.batch_size=2"};
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

/// The first column of a table.
Strings names_in(const std::string& table) {
  std::istringstream lines(table);
  Strings names;
  for (std::string line; std::getline(lines, line);) names.push_back(line.substr(0, line.find("  ")));
  return names;
}

}  // namespace

TEST_CASE("cli: a sweep trains every combination and compares them") {
  const TemporaryFolder folder;
  const fs::path out = folder.path() / "sweep", alone = folder.path() / "alone";
  const Strings grid = {"--grid", "optimizer.lr=1e-5,0.01", "--grid", "model.num_heads=1,2", "--set", "train.steps=30"};
  const ProcessResult result = run_onestep(sweep(out, grid));
  CHECK(result.status == 0);
  CHECK(contains(result.err, "run 4 of 4: " + (out / "lr=0.01,num_heads=2").string() + "\n"));
  const Strings names = names_in(result.out);
  REQUIRE(names.size() == 6);
  CHECK(names[0] == "run");
  for (const size_t i : {1u, 2u}) CHECK(names[i].starts_with("lr=0.01,"));  // the best come first
  for (const size_t i : {3u, 4u}) CHECK(names[i].starts_with("lr=1e-5,"));
  CHECK(contains(result.out, "\nreport  " + (out / "report.html").string() + "\n"));
  for (const char* name : {"lr=1e-5,num_heads=1", "lr=0.01,num_heads=2"})
    CHECK(contains(read(out / "report.html"), std::string(R"("name":")") + name + '"'));
  REQUIRE(run_onestep({"train", kSentence, "--quiet", "--out", alone.string(), "--set", "train.batch_size=2", "--set",
                       "optimizer.lr=0.01", "--set", "model.num_heads=2", "--set", "train.steps=30"})
              .status == 0);
  check_same_checkpoint(out / "lr=0.01,num_heads=2", alone, 30);

  // The same command again trains nothing, and a wider grid only what is new.
  const ProcessResult again = run_onestep(sweep(out, grid));
  CHECK(again.out == result.out);
  CHECK_FALSE(contains(again.err, "step 1/30"));
  Strings wider = grid;
  wider[1] += ",0.02";
  const ProcessResult more = run_onestep(sweep(out, wider));
  CHECK(names_in(more.out).size() == 8);
  size_t trained = 0;
  for (size_t at = 0; (at = more.err.find("\nstep 1/30", at)) != std::string::npos; ++at) ++trained;
  CHECK(trained == 2);
  Strings longer = grid;
  longer[5] = "train.steps=40";
  REQUIRE(run_onestep(sweep(out, longer)).status == 0);
  REQUIRE(run_onestep({"train", "--resume", alone.string(), "--quiet", "--set", "train.steps=40"}).status == 0);
  check_same_checkpoint(out / "lr=0.01,num_heads=2", alone, 40);
  Strings other = longer;
  other.insert(other.end(), {"--set", "seed=5"});
  const ProcessResult refused = run_onestep(sweep(out, other));
  CHECK(refused.status == 2);
  CHECK(contains(refused.err, "onestep: --set seed=5: /seed: cannot change when a run continues"));
}

TEST_CASE("cli: a sweep that is stopped continues with the same command") {
  const TemporaryFolder folder;
  const fs::path stopped = folder.path() / "stopped", whole = folder.path() / "whole";
  const Strings grid = {"--grid", "seed=1,2", "--quiet", "--set", "train.steps=3000"};
  Strings command = sweep(stopped, grid);
  command.insert(command.begin(), onestep::testing::kProgram);
  const Process running(command);
  while (onestep::testing::metrics_lines(stopped / "seed=1").size() < 5 && !onestep::testing::has_ended(running.pid()))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ::kill(running.pid(), SIGINT);
  const ProcessResult interrupted = running.wait();
  CHECK(interrupted.status == 130);
  CHECK(interrupted.out == "");
  CHECK(contains(interrupted.err, "onestep: stopped in run 1 of 2: the same command continues\n"));
  CHECK(run_onestep(sweep(stopped, grid)).status == 0);
  CHECK(run_onestep(sweep(whole, grid)).status == 0);
  for (const char* name : {"seed=1", "seed=2"}) check_same_checkpoint(stopped / name, whole / name, 3000);
}

TEST_CASE("cli: a run of a sweep that diverges is a line of its table") {
  const TemporaryFolder folder;
  const ProcessResult some =
      run_onestep(sweep(folder.path() / "some", {"--grid", "optimizer.lr=1e30,0.01", "--set", "train.steps=5", "--quiet"}));
  CHECK(some.status == 0);
  CHECK(some.err.starts_with("onestep: " + (folder.path() / "some/lr=1e30").string() + ": train: diverged "));
  const Strings names = names_in(some.out);
  REQUIRE(names.size() == 4);
  CHECK(names[2] == "lr=1e30");
  CHECK(contains(some.out, "  diverged  "));
  const auto lost = folder.path() / "some/lr=1e30";
  const auto before = fs::last_write_time(lost / "metrics.jsonl");
  const auto again = [&](const char* steps) {
    return run_onestep(sweep(folder.path() / "some",
                             {"--grid", "optimizer.lr=1e30,0.01", "--set", std::string("train.steps=") + steps, "--quiet"}));
  };
  const ProcessResult same = again("5");
  CHECK(same.status == 0);
  CHECK(same.err.starts_with("onestep: " + lost.string() + ": is not trained again: train: diverged at step 1: "));
  CHECK(same.out == some.out);
  CHECK(fs::last_write_time(lost / "metrics.jsonl") == before);
  CHECK(again("6").err.starts_with("onestep: " + lost.string() + ": train: diverged "));  // another run
  CHECK(run_onestep(sweep(folder.path() / "all", {"--grid", "optimizer.lr=1e30", "--set", "train.steps=5"})).status == 1);
}

TEST_CASE("cli: a sweep that cannot be is refused before anything is trained") {
  const TemporaryFolder folder;
  const fs::path out = folder.path() / "sweep";
  const auto refused = [&](const Strings& more) {
    const ProcessResult result = run_onestep(sweep(out, more));
    CHECK(result.status == 2);
    CHECK(result.out == "");
    CHECK_FALSE(fs::exists(out));
    return result.err;
  };
  CHECK(refused({}) == "onestep: --grid is required (see onestep sweep --help)\n");
  CHECK(refused({"--grid", "optimizer.lr=1,x"}).starts_with("onestep: --grid optimizer.lr=x: /optimizer/lr: "));
  CHECK(refused({"--grid", "optimizer.lr=0.1", "--grid", "model.num_heads=1,3"})
            .starts_with("onestep: --grid model.num_heads=3: "));
  CHECK(refused({"--grid", "lr=1"}).starts_with("onestep: --grid lr=1: unknown key lr"));
  const std::string missing = (folder.path() / "missing").string();
  const std::string there = ONESTEP_SOURCE_DIR "/README.md";
  CHECK(refused({"--grid", "data.path=" + there + "," + missing, "--set", "data.kind=text", "--set", "data.text=null"}) ==
        "onestep: " + missing + ": cannot be opened: no such file\n");
  CHECK(contains(refused({"--grid", "train.init_from=" + missing, "--set", "seed=1"}), missing + ": holds no checkpoint"));
  REQUIRE(run_onestep({"train", kSentence, "--quiet", "--out", out.string(), "--set", "train.steps=1"}).status == 0);
  const ProcessResult result = run_onestep(sweep(out, {"--grid", "seed=1"}));
  CHECK(result.status == 2);
  CHECK(result.err == "onestep: " + out.string() + ": is a run, not a folder of runs (name another with --out)\n");
}

TEST_CASE("cli: compare shows runs side by side") {
  const TemporaryFolder folder;
  const std::string a = folder.path() / "a", b = folder.path() / "b";
  REQUIRE(run_onestep({"train", kSentence, "--quiet", "--out", a, "--set", "train.steps=9"}).status == 0);
  REQUIRE(run_onestep({"train", kSentence, "--quiet", "--out", b, "--set", "train.steps=9", "--set", "seed=7"}).status == 0);
  const ProcessResult result = run_onestep({"compare", a, b});
  CHECK(result.status == 0);
  const Strings heads = names_in(result.out);
  CHECK(std::find(heads.begin(), heads.end(), "seed") != heads.end());
  CHECK(std::find(heads.begin(), heads.end(), "train.steps") == heads.end());
  CHECK(contains(result.out, a + "  " + b + "\n"));
  CHECK(run_onestep({"compare", a}).err == "onestep: compare: needs at least two runs: got 1\n");
  CHECK(run_onestep({"compare", a, folder.path().string()}).status == 2);
}
