// A run whose folder is renamed while it trains continues in it, and never touches the run that takes its name.
#include <doctest/doctest.h>
#include <signal.h>

#include "tests/cli/stopped_run.h"

using namespace onestep::testing;

namespace {

/// Waits until a run has made a checkpoint, or has ended.
void wait_for_checkpoint(const fs::path& run, const Process& training) {
  std::error_code none;
  while (!fs::exists(run / "checkpoints/step-10", none) && !has_ended(training.pid()))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

ProcessResult interrupt(const Process& training) {
  ::kill(training.pid(), SIGINT);
  return training.wait();
}

/// The newest checkpoint, and how many there are.
std::pair<int64_t, int> checkpoints(const fs::path& run) {
  std::pair<int64_t, int> found;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints")) {
    const std::string name = entry.path().filename();
    REQUIRE(name.starts_with("step-"));
    found = {std::max<int64_t>(found.first, std::stoll(name.substr(5))), found.second + 1};
  }
  return found;
}

}  // namespace

TEST_CASE("renamed run: it continues in its folder and the run that takes its name has all its own") {
  const TemporaryFolder folder;
  const fs::path config = folder.path() / "config.json", run = folder.path() / "run", renamed = folder.path() / "renamed";
  std::ofstream(config) << "{" << kModel << ", " << kText
                        << R"(, "train": {"steps": 1000000, "batch_size": 4, "checkpoint_every": 5, "keep_checkpoints": 1}})";
  const auto train = [&](const std::string& seed) {
    return Process({kProgram, "train", "--quiet", config, "--out", run, "--set", "seed=" + seed});
  };
  const Process first = train("1");
  wait_for_checkpoint(run, first);
  fs::rename(run, renamed);
  const Process second = train("2");
  wait_for_checkpoint(run, second);
  const size_t before = metrics_lines(renamed).size();
  while (metrics_lines(renamed).size() < before + 20 && !has_ended(first.pid()))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));

  const ProcessResult one = interrupt(first), other = interrupt(second);
  CHECK(one.status == 130);
  CHECK(one.err == "");
  CHECK(contains(one.out, "run folder   " + fs::canonical(renamed).string() + '\n'));
  CHECK(other.status == 130);
  CHECK(other.err == "");
  CHECK(contains(other.out, "run folder   " + run.string() + '\n'));
  for (const fs::path& path : {renamed, run}) {
    CAPTURE(path);
    CHECK(json::parse(read(path / "config.json"))["seed"] == (path == run ? 2 : 1));
    const auto steps = static_cast<int64_t>(metrics_lines(path).size());
    CHECK(checkpoints(path) == std::pair(steps, 1));  // its own last step, and nobody else's
    CHECK(fs::exists(path / "report.html"));
    CHECK(contains(read(path / "report.html"), path.filename().string()));
    const ProcessResult resumed =
        run_onestep({"train", "--quiet", "--resume", path, "--set", "train.steps=" + std::to_string(steps + 5)});
    CHECK(resumed.status == 0);
    CHECK(resumed.err == "");
    CHECK(metrics(path).size() == static_cast<size_t>(steps) + 5);
  }
}

TEST_CASE("renamed run: an error names the folder as it is called now") {
  const TemporaryFolder folder;
  const fs::path config = folder.path() / "config.json", run = folder.path() / "run", renamed = folder.path() / "renamed";
  std::ofstream(config) << "{" << kModel << ", " << kText
                        << R"(, "train": {"steps": 1000000, "batch_size": 4, "checkpoint_every": 5}})";
  const Process training({kProgram, "train", "--quiet", config, "--out", run});
  wait_for_checkpoint(run, training);
  ::kill(training.pid(), SIGSTOP);  // it writes into its folder all the time
  fs::rename(run, renamed);
  fs::remove_all(renamed);
  ::kill(training.pid(), SIGCONT);
  const ProcessResult result = training.wait();
  CHECK(result.status == 2);
  CHECK(contains(result.err, (fs::canonical(folder.path()) / "renamed").string()));
  CHECK(!contains(result.err, "/proc/"));
  CHECK(!fs::exists(run));
}
