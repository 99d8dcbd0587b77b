// A run that is killed, interrupted or refused a write ends, once resumed, with the bits of one that never stopped.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <random>

#include "tests/cli/stopped_run.h"

using namespace onestep::testing;

namespace {

/// A run that saves every few steps, killed so many times at random moments of training and saving.
void check_kills(int kills) {
  const StoppedRun run("{" + kModel + ", " + kText + ", " + kTrain +
                       R"(, "schedule": {"kind": "cosine", "warmup_steps": 20, "decay_steps": 150}})");
  std::mt19937 random(1);
  for (int kill = 0; kill < kills; ++kill) {
    const ProcessResult result =
        run.stop_with(SIGKILL, run.lines() + random() % 11, std::chrono::microseconds(random() % 3000));
    CHECK(result.status == 128 + SIGKILL);
    CHECK(result.err == "");
  }
  run.check_ends_as_uninterrupted();
}

}  // namespace

TEST_CASE("resume: a run killed at eight random points ends with the bits of one that was not") { check_kills(8); }

TEST_CASE("nightly: a run killed at 250 random points ends with the bits of one that was not") { check_kills(250); }

TEST_CASE(
    "resume: SIGINT saves and exits 130 and the run resumes bit for bit for models and data and optimizers of all kinds") {
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

TEST_CASE("resume: a terminal that is closed saves the run like SIGTERM, unless it was started with nohup") {
  const StoppedRun run("{" + kModel + ", " + kText + ", " + kTrain + "}");
  for (const int signal : {SIGTERM, SIGHUP}) CHECK(run.stop_with(signal, run.lines() + 3).status == 130);
  run.check_ends_as_uninterrupted();

  const TemporaryFolder folder;
  const fs::path other = folder.path() / "run";
  std::ofstream(folder.path() / "config.json") << "{" + kModel + ", " + kText + ", " + kTrain + "}";
  const Process training({"sh", "-c", R"(trap '' HUP; exec "$0" "$@")", kProgram, "train",
                          (folder.path() / "config.json").string(), "--quiet", "--out", other.string(), "--set",
                          "train.steps=1000000"});
  const auto wait_for = [&](size_t lines) {
    while (metrics_lines(other).size() < lines && !has_ended(training.pid()))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  wait_for(3);
  ::kill(training.pid(), SIGHUP);
  wait_for(metrics_lines(other).size() + 20);
  CHECK_FALSE(has_ended(training.pid()));
  ::kill(training.pid(), SIGINT);
  CHECK(training.wait().status == 130);
}

TEST_CASE("resume: a run whose progress nobody reads any more continues and saves") {
  const TemporaryFolder folder;
  const std::string config = (folder.path() / "config.json").string(), run = (folder.path() / "run").string();
  std::ofstream(config) << "{" + kModel + ", " + kText + R"(, "train": {"steps": 60, "eval_every": 1, "eval_batches": 1}})";
  const ProcessResult result = run_process({"sh", "-c", R"("$0" train "$1" --out "$2" 2>&1 | head -2)", kProgram, config, run});
  CHECK(result.err == "");
  CHECK(std::count(result.out.begin(), result.out.end(), '\n') == 2);
  CHECK(metrics_lines(run).size() == 60);
  CHECK(fs::exists(run + "/checkpoints/step-60"));
  CHECK(fs::exists(run + "/report.html"));
}

TEST_CASE("resume: messages of a run with closed descriptors do not get into its files") {
  const TemporaryFolder folder;
  const fs::path config = folder.path() / "config.json", run = folder.path() / "run";
  std::ofstream(config) << "{" + kModel + ", " + kText + R"(, "train": {"steps": 1000000}})";
  const Process training({"sh", "-c", R"(exec "$0" train "$1" --out "$2" <&- >&- 2>&-)", kProgram, config, run});
  while (metrics_lines(run).size() < 10 && !has_ended(training.pid()))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (const char* descriptor : {"0", "1", "2"}) {
    std::error_code none;
    const fs::path file = fs::read_symlink("/proc/" + std::to_string(training.pid()) + "/fd/" + descriptor, none);
    CHECK((none || file == "/dev/null"));
  }
  ::kill(training.pid(), SIGINT);
  CHECK(training.wait().status == 130);
  const size_t steps = metrics(run).size();  // each line is JSON
  const ProcessResult resumed =
      run_process({kProgram, "train", "--quiet", "--resume", run, "--set", "train.steps=" + std::to_string(steps + 5)});
  CHECK(resumed.err == "");
  CHECK(resumed.status == 0);
  CHECK(metrics(run).size() == steps + 5);
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
  CHECK(refusal({"--set", "model.dropout=0.3"}).starts_with("onestep: --set model.dropout=0.3: /model/dropout: "));
  CHECK(contains(refusal({"--set", "train.steps=1"}), "--set train.steps=1: /train/steps: "));
  CHECK(contains(refusal({"--out", "elsewhere"}), "--resume"));
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  REQUIRE(::flock(folder, LOCK_EX | LOCK_NB) == 0);
  CHECK(refusal({}) == "onestep: " + path + ": another process is training this run\n");
  ::close(folder);
  CHECK(run_onestep({"train", "--resume", ""}).err ==
        "onestep: --resume: must be the name of a RUN: got an empty one (see onestep train --help)\n");
  CHECK(run_onestep({"eval", ""}).err == "onestep: the name of the run folder is empty\n");
  CHECK(contains(run_onestep({"train"}).err, "onestep: train: needs a CONFIG, or --resume RUN"));
}

TEST_CASE("resume: a config that was edited by hand is refused by key and a text may move") {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run", text = folder.path() / "a.txt", moved = folder.path() / "b.txt";
  std::ofstream(text) << "the quick brown fox jumps over the lazy dog and then goes home";
  std::ofstream(folder.path() / "c.txt") << "the quick brown fox jumps over the lazy dog and then runs home";
  std::ofstream(folder.path() / "config.json")
      << "{" + kModel + R"(, "data": {"kind": "text", "path": ")" + text.string() + R"("}, "train": {"steps": 2}})";
  const ProcessOptions cache{.environment = {{"ONESTEP_CACHE", (folder.path() / "cache").string()}}};
  REQUIRE(run_onestep({"train", (folder.path() / "config.json").string(), "--quiet", "--out", run.string()}, cache).status ==
          0);
  const std::string config = (run / "config.json").string(), good = read(config);
  const auto with = [&](const std::string& from, const std::string& to, std::vector<std::string> command) {
    std::string edited = good;
    REQUIRE(contains(edited, from));
    std::ofstream(config) << edited.replace(edited.find(from), from.size(), to);
    const ProcessResult result = run_onestep(command, cache);
    std::ofstream(config) << good;
    return result;
  };
  const std::vector<std::string> resume{"train", "--resume", run.string(), "--quiet", "--set", "train.steps=4"};
  const ProcessResult seed = with("\"seed\": 123", "\"seed\": 124", resume);
  CHECK(seed.status == 2);
  CHECK(seed.err.starts_with("onestep: " + (run / "checkpoints/step-2").string() + ": cannot be resumed: " + config +
                             ": /seed: "));
  const ProcessResult heads = with("\"num_heads\": 2", "\"num_heads\": 4", {"eval", run.string()});
  CHECK(heads.status == 2);
  CHECK(heads.err.starts_with("onestep: " + config + ": /model/num_heads: "));
  const ProcessResult split = with("\"val_fraction\": 0.1", "\"val_fraction\": 0.2", {"eval", run.string()});
  CHECK(split.status == 2);
  CHECK(split.err.starts_with("onestep: " + config + ": /data/val_fraction: "));
  const ProcessResult other = with("a.txt", "c.txt", {"eval", run.string(), "--quiet"});
  CHECK(other.status == 2);
  CHECK(other.err.starts_with("onestep: " + (run / "checkpoints/step-2").string() + ": cannot be evaluated: the data "));
  const ProcessResult report = with("a.txt", "c.txt", {"report", run.string()});
  CHECK(report.status == 0);
  CHECK(report.err.starts_with("onestep: report: without "));
  CHECK(contains(report.err, ": the data "));
  CHECK(with("a.txt", "c.txt", {"eval", run.string(), "--data", text.string()}).status == 0);
  fs::rename(text, moved);
  const ProcessResult gone = run_onestep(resume, cache);
  CHECK(gone.status == 2);
  CHECK(gone.err.starts_with("onestep: " + text.string() + ": "));
  CHECK(contains(with("a.txt", "c.txt", resume).err, ": cannot be resumed: the data "));
  CHECK(with("a.txt", "b.txt", resume).status == 0);
  std::vector<std::string> given = resume;
  given.insert(given.end(), {"--set", "data.path=" + moved.string()});
  CHECK(run_onestep(given, cache).status == 0);
}

TEST_CASE("resume: a run without a checkpoint starts again from the parameters and the tokenizer that it started from") {
  const TemporaryFolder folder;
  const auto path = [&](const char* name) { return (folder.path() / name).string(); };
  std::ofstream(path("config.json")) << "{" + kModel + ", " + kText + R"(, "train": {"steps": 3}})";
  const auto train = [&](const char* name, const std::string& text, const std::string& init_from) {
    return run_onestep({"train", path("config.json"), "--quiet", "--out", path(name), "--set", "data.text=" + text, "--set",
                        "train.init_from=" + init_from});
  };
  REQUIRE(train("base", "the quick brown fox jumps over the lazy dog and then goes home", "null").status == 0);
  REQUIRE(train("tuned", "the lazy dog goes over the fox and then the dog jumps", path("base")).status == 0);
  fs::copy(path("tuned"), path("killed"), fs::copy_options::recursive);
  fs::remove_all(path("killed/checkpoints"));
  fs::remove(path("killed/tokenizer.json"));
  const ProcessResult resumed = run_onestep({"train", "--resume", path("killed")});
  CHECK(resumed.status == 0);
  CHECK(contains(resumed.err, path("killed") +
                                  ": holds no checkpoint yet: starting from the first step\nwith the parameters of " +
                                  path("base/checkpoints/step-3") + "\n"));
  check_same_checkpoint(path("tuned"), path("killed"), 3);
  CHECK(metrics(path("tuned")) == metrics(path("killed")));
  CHECK(read(path("tuned/tokenizer.json")) == read(path("killed/tokenizer.json")));

  fs::remove_all(path("killed/checkpoints"));
  fs::remove_all(path("base"));
  const ProcessResult gone = run_onestep({"train", "--resume", path("killed"), "--quiet"});
  CHECK(gone.status == 2);
  CHECK(gone.err == "onestep: " + path("killed") +
                        ": holds no checkpoint yet and cannot start again from train.init_from: " + path("base") +
                        ": holds no checkpoint (train it first: onestep train CONFIG --out " + path("base") + ")\n");
}

TEST_CASE("resume: added steps after the end of the schedule come with a warning that they run at min_lr") {
  const TemporaryFolder folder;
  const std::string config = (folder.path() / "config.json").string(), run = (folder.path() / "run").string();
  std::ofstream(config) << "{" + kModel + ", " + kText +
                               R"(, "train": {"steps": 4}, "schedule": {"kind": "cosine", "min_lr": 1e-5}})";
  REQUIRE(run_onestep({"train", config, "--quiet", "--out", run}).status == 0);
  const auto go_on = [&](const std::string& steps) {
    return run_onestep({"train", "--resume", run, "--set", "train.steps=" + steps}).err;
  };
  CHECK_FALSE(contains(go_on("4"), "schedule"));
  CHECK(contains(go_on("6"),
                 "\nthe schedule ends at step 4 (schedule.decay_steps): the steps after it run at the learning rate "
                 "0.00001 (schedule.min_lr)\n"));
  CHECK(metrics(run)[5]["lr"] == 1e-5);
}

TEST_CASE("resume: samples and histograms continue from the checkpoint") {
  const TemporaryFolder folder;
  const std::string config = (folder.path() / "config.json").string(), run = (folder.path() / "run").string(),
                    whole = (folder.path() / "whole").string();
  std::ofstream(config) << "{" + kModel + ", " + kText + R"(, "train": {"steps": 8, "sample_every": 4, "histogram_every": 4}})";
  REQUIRE(run_onestep({"train", config, "--quiet", "--out", run}).status == 0);
  std::ofstream(run + "/samples.jsonl", std::ios::app)
      << R"({"step":11,"prompt":"","continuation":"of a process that was killed"})" << '\n';
  std::ofstream(run + "/histograms.jsonl", std::ios::app) << R"({"step":11,"parameters":[]})" << '\n';
  REQUIRE(run_onestep({"train", "--resume", run, "--quiet", "--set", "train.steps=16"}).status == 0);
  REQUIRE(run_onestep({"train", config, "--quiet", "--out", whole, "--set", "train.steps=16"}).status == 0);
  CHECK(read(run + "/samples.jsonl") == read(whole + "/samples.jsonl"));
  CHECK(contains(read(run + "/samples.jsonl"), "{\"step\":15,"));
  CHECK(read(run + "/histograms.jsonl") == read(whole + "/histograms.jsonl"));
  CHECK(contains(read(run + "/histograms.jsonl"), "{\"step\":15,"));
}

TEST_CASE("resume: the evaluation at the end of a run of fewer steps does not count for early stopping") {
  const TemporaryFolder folder;
  const std::string config = (folder.path() / "config.json").string();
  std::ofstream(config) << "{" + kModel + ", " + kText + R"(, "optimizer": {"lr": 0.02},
    "train": {"steps": 300, "eval_every": 10, "eval_batches": 4, "early_stop_patience": 3}})";
  const fs::path whole = folder.path() / "whole", longer = folder.path() / "longer";
  const ProcessResult uninterrupted = run_onestep({"train", config, "--quiet", "--out", whole.string()});
  REQUIRE(contains(uninterrupted.out, "stopped      early"));
  const size_t steps = metrics_lines(whole).size();
  REQUIRE((steps > 20 && steps < 300));
  REQUIRE(run_onestep({"train", config, "--quiet", "--out", longer.string(), "--set", "train.steps=3"}).status == 0);
  const json first = json::parse(read(longer / "checkpoints/step-3/state.json"));
  CHECK(first["best"]["step"] == 3);
  CHECK(first["best_due"].is_null());
  const auto go_on = [&](size_t to) {
    return run_onestep({"train", "--resume", longer.string(), "--quiet", "--set", "train.steps=" + std::to_string(to)});
  };
  CHECK(go_on(steps - 4).status == 0);
  CHECK(contains(go_on(300).out, "stopped      early"));
  CHECK(metrics_lines(longer).size() == steps);
  const std::string last = "checkpoints/step-" + std::to_string(steps) + "/model.safetensors";
  CHECK(read(longer / last) == read(whole / last));
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
  const std::string reason = "onestep: " + (newest / "model.safetensors").string() + ": ";
  const ProcessResult eval = run_onestep({"eval", run.path().string()});
  CHECK(eval.status == 0);
  CHECK(contains(eval.err, reason));
  CHECK(contains(eval.out, older.string() + "\n"));
  CHECK(run_onestep({"eval", run.path().string(), "--checkpoint", newest.filename()}).status == 2);
  CHECK(run_onestep({"eval", run.path().string(), "--checkpoint", "best"}).status == 0);
  const ProcessResult resumed = run_onestep(
      {"train", "--resume", run.path().string(), "--quiet", "--set", "train.steps=" + std::to_string(all.back().first + 9)});
  CHECK(resumed.status == 0);
  CHECK(resumed.err.starts_with(reason));
  CHECK(resumed.err.ends_with(" (kept as " + newest.filename().string() + ".damaged)\nresuming from " + older.string() + "\n"));
  CHECK(std::count(resumed.err.begin(), resumed.err.end(), '\n') == 2);
  CHECK(fs::exists(newest.string() + ".damaged/optimizer.safetensors"));
}
