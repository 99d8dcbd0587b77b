// Training from outside: what a user sees of `train`, `eval`, `inspect` and `schema`.
#include <doctest/doctest.h>
#include <signal.h>

#include <chrono>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <thread>

#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/safetensors.h"

using onestep::testing::contains;
using onestep::testing::Process;
using onestep::testing::ProcessResult;
using onestep::testing::read;
using onestep::testing::run_onestep;
using onestep::testing::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

std::vector<nlohmann::json> timed_metrics(const fs::path& run) {
  std::vector<nlohmann::json> lines;
  std::ifstream in(run / "metrics.jsonl");
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

const std::string kNextTokenConfig = ONESTEP_SOURCE_DIR "/configs/next_token.json";
const std::string kSentence = ONESTEP_SOURCE_DIR "/configs/sentence.json";

}  // namespace

TEST_CASE("cli: the toy task is learnt to at least 99 percent held-out accuracy and the run folder says so") {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  const ProcessResult result = run_onestep({"train", kNextTokenConfig, "--out", run.string(), "--set", "train.steps=150"});
  CHECK(result.status == 0);
  for (const char* part : {"steps        150 in ", "train loss ", "val accuracy ", " tokens/s\n", "peak memory ", " MiB\n"})
    CHECK(contains(result.out, part));
  CHECK(contains(result.out, "run folder   " + run.string() + "\n"));
  CHECK(contains(result.err, "step 1/150"));
  CHECK(contains(result.err, "val_accuracy"));
  const auto lines = timed_metrics(run);
  REQUIRE(lines.size() >= 15);
  CHECK(lines.back()["step"] == 149);
  CHECK(lines.back()["val_accuracy"].get<double>() >= 0.99);
  for (const char* key : {"loss", "lr", "grad_norm", "tokens_per_second", "seconds"}) CHECK(lines[0].contains(key));
  CHECK(nlohmann::json::parse(read(run / "config.json"))["train"]["steps"] == 150);
  CHECK(fs::exists(run / "checkpoints/step-150/model.safetensors"));

  const ProcessResult eval = run_onestep({"eval", run.string()});
  CHECK(eval.status == 0);
  CHECK(contains(eval.out, "accuracy     100.00 % of 8,192 predictions on held-out sequences"));
  const ProcessResult inspect = run_onestep({"inspect", (run / "checkpoints/step-150/model.safetensors").string()});
  CHECK(inspect.status == 0);
  CHECK(contains(inspect.out, "att.W_query.weight"));
}

TEST_CASE("cli: the first step and multiples of log_every and evaluations are logged") {
  const TemporaryFolder folder;
  const std::string run = (folder.path() / "run").string();
  REQUIRE(run_onestep({"train", kSentence, "--quiet", "--out", run, "--set", "train.steps=25", "--set", "train.eval_every=7"})
              .status == 0);
  std::vector<int64_t> logged;
  for (const auto& line : timed_metrics(run)) logged.push_back(line["step"].get<int64_t>() + 1);
  CHECK(logged == std::vector<int64_t>{1, 7, 10, 14, 20, 21, 25});
}

TEST_CASE("cli: a run cut short within its warm-up trains and says so") {
  const TemporaryFolder folder;
  const ProcessResult result =
      run_onestep({"train", kNextTokenConfig, "--out", (folder.path() / "run").string(), "--set", "train.steps=5"});
  CHECK(result.status == 0);
  CHECK(contains(result.err,
                 "\nall 5 steps are warm-up (schedule.warmup_steps = 50): the learning rate rises to 0.000294 of "
                 "optimizer.lr = 0.003\n"));
}

TEST_CASE("cli: a run that ends far before its schedule says so before it trains") {
  const TemporaryFolder folder;
  const auto said = [&](const std::string& steps) {
    return run_onestep({"train", kSentence, "--out", (folder.path() / "run").string(), "--set", "schedule.kind=cosine", "--set",
                        "schedule.decay_steps=1000", "--set", "train.steps=" + steps})
        .err;
  };
  const std::string sentence =
      "\nthe run ends at step 20, far before its schedule (schedule.decay_steps = 1,000): the last learning rate is 0.00999, "
      "not "
      "schedule.min_lr = 0.0\n";
  const std::string err = said("20");
  CHECK(contains(err, sentence));
  CHECK(err.find(sentence) < err.find("step 1/20"));
  CHECK_FALSE(contains(said("901"), "schedule"));
}

TEST_CASE("cli: a run says where the other order of products of bfloat16 is faster") {
  const TemporaryFolder folder;
  const auto said = [&](const std::string& precision) {
    return run_onestep({"train", kSentence, "--out", (folder.path() / "run").string(), "--set", "train.steps=1", "--set",
                        "train.precision=" + precision},
                       {.environment = {{"ONESTEP_ISA", "generic"}}})
        .err;
  };
  CHECK(contains(said("bf16_amx"), "\nAMX is not used here: without it train.precision = bf16 is faster than bf16_amx\n"));
  CHECK_FALSE(contains(said("bf16"), "AMX"));
}

TEST_CASE("cli: a run with train.sample_every shows what the model writes and keeps it") {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  const auto sampled = [&](std::vector<std::string> command) {
    command.insert(command.end(), {"--set", "train.sample_every=10", "--set", "train.steps=25"});
    const ProcessResult result = run_onestep(command);
    CHECK(result.status == 0);
    return result;
  };
  const ProcessResult first = sampled({"train", kSentence, "--out", run.string()});
  std::vector<int64_t> steps;
  std::istringstream lines(read(run / "samples.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const auto sample = nlohmann::json::parse(line);
    steps.push_back(sample["step"].get<int64_t>() + 1);
    const std::string text = sample["prompt"].get<std::string>() + sample["continuation"].get<std::string>();
    CHECK(text.starts_with("Your journey"));
    CHECK(contains(first.err, "\nstep " + std::to_string(steps.back()) + "/25  writes:\n    " + text + "\n"));
  }
  CHECK(steps == std::vector<int64_t>{10, 20, 25});
  CHECK(sampled({"train", kSentence, "--out", (folder.path() / "quiet").string(), "--quiet"}).err == "");
  CHECK(read(folder.path() / "quiet/samples.jsonl") == read(run / "samples.jsonl"));
  const std::string model = "checkpoints/step-25/model.safetensors";
  REQUIRE(run_onestep({"train", kSentence, "--out", (folder.path() / "without").string(), "--quiet", "--set", "train.steps=25"})
              .status == 0);
  CHECK(read(folder.path() / "without" / model) == read(run / model));
  CHECK_FALSE(fs::exists(folder.path() / "without/samples.jsonl"));
}

TEST_CASE("cli: a run with train.histogram_every keeps how its parameters and gradients are distributed") {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  const auto trained = [&](const std::string& name, const std::string& every) {
    const ProcessResult result = run_onestep({"train", kSentence, "--out", (folder.path() / name).string(), "--quiet", "--set",
                                              "train.steps=25", "--set", "train.histogram_every=" + every});
    REQUIRE(result.status == 0);
  };
  trained("run", "10");
  trained("without", "0");
  const std::string model = "checkpoints/step-25/model.safetensors";
  CHECK(read(folder.path() / "without" / model) == read(run / model));
  CHECK_FALSE(fs::exists(folder.path() / "without/histograms.jsonl"));
  std::vector<int64_t> steps;
  std::istringstream lines(read(run / "histograms.jsonl"));
  nlohmann::json last;
  for (std::string line; std::getline(lines, line); steps.push_back(last["step"].get<int64_t>() + 1))
    last = nlohmann::json::parse(line);
  CHECK(steps == std::vector<int64_t>{10, 20, 25});
  const auto saved = onestep::train::load_checkpoint(run / "checkpoints/step-25").trainer.model;
  const std::map<std::string, onestep::Tensor> state(saved.begin(), saved.end());
  CHECK(last["parameters"].size() == 9);  // of the state all but the mask
  for (const nlohmann::json& one : last["parameters"]) {
    const onestep::Tensor& parameter = state.at(one["name"].get<std::string>());
    CHECK(one["weights"]["low"].get<double>() == parameter.min().item());
    CHECK(one["weights"]["high"].get<double>() == parameter.max().item());
    for (const char* kind : {"weights", "gradients"}) {
      const auto counts = one[kind]["counts"].get<std::vector<int64_t>>();
      CHECK(std::accumulate(counts.begin(), counts.end(), int64_t{0}) == parameter.numel());
    }
  }
}

TEST_CASE("cli: a quiet run prints nothing but its results, and the same config gives the same bits on one or three threads") {
  const TemporaryFolder folder;
  std::vector<std::string> models;
  for (const char* threads : {"1", "3"}) {
    const fs::path run = folder.path() / threads;
    const ProcessResult result = run_onestep({"train", kNextTokenConfig, "--out", run.string(), "--quiet", "--threads", threads,
                                              "--set", "train.steps=50", "--set", "model.dropout=0.1"});
    CHECK(result.status == 0);
    CHECK(result.err == "");
    models.push_back(read(run / "checkpoints/step-50/model.safetensors"));
  }
  CHECK(models[0].size() > 90'000);
  CHECK(models[0] == models[1]);
}

TEST_CASE("cli: SIGINT finishes the step and saves it, with exit status 130") {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  const Process training({ONESTEP_BINARY_DIR "/onestep", "train", kNextTokenConfig, "--out", run.string(), "--set",
                          "train.steps=1000000", "--set", "train.log_every=1"});
  while (timed_metrics(run).size() < 3) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ::kill(training.pid(), SIGINT);
  const ProcessResult result = training.wait();
  CHECK(result.status == 130);
  CHECK(contains(result.err, "\nonestep: finishing the step and saving (a second signal ends the run at once, unsaved)\n"));
  CHECK(contains(result.out, "run folder "));
  CHECK(contains(result.out, " of 1,000,000 steps, and saved: continue with train --resume " + run.string() + "\n"));
  const auto steps = timed_metrics(run).back()["step"].get<int64_t>() + 1;
  const fs::path checkpoint = run / "checkpoints" / ("step-" + std::to_string(steps));
  CHECK(onestep::train::read_safetensors((checkpoint / "model.safetensors").string()).tensors.size() >= 9);
}

TEST_CASE("cli: a diverging run ends with status 1 and says what to do") {
  const TemporaryFolder folder;
  const ProcessResult result = run_onestep({"train", kNextTokenConfig, "--out", (folder.path() / "run").string(), "--quiet",
                                            "--set", R"(optimizer={"kind": "sgd", "lr": 1e30})"});
  CHECK(result.status == 1);
  CHECK(contains(result.err, "onestep: train: diverged "));
  CHECK(contains(result.err, "optimizer.lr"));
  CHECK(contains(result.err, "train.grad_clip"));
}

TEST_CASE("cli: an update that leaves no finite model is divergence, and nothing of the earlier run is lost") {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run", previous = folder.path() / "run.previous";
  const std::vector<std::string> good{"train", kSentence, "--out", run.string() + "/", "--quiet", "--set", "train.steps=1"};
  CHECK(run_onestep(good).status == 0);
  const std::string model = read(run / "checkpoints/step-1/model.safetensors");
  std::vector<std::string> bad = good;
  bad.insert(bad.end(), {"--set", "optimizer.lr=1e30"});
  const ProcessResult result = run_onestep(bad);
  CHECK(result.status == 1);
  CHECK(contains(result.err, "onestep: train: diverged at step 0: validation loss nan"));
  CHECK(read(previous / "checkpoints/step-1/model.safetensors") == model);
  CHECK_FALSE(fs::exists(run / "checkpoints"));
}

TEST_CASE("cli: earlier runs of a name are all kept under numbers and where the last one went is said") {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "runs/sentence";
  const auto train = [&](const std::string& lr) {
    return run_onestep({"train", kSentence, "--quiet", "--set", "train.steps=1", "--set", "optimizer.lr=" + lr},
                       {.directory = folder.path()});
  };
  std::vector<std::string> models;
  for (const std::string lr : {"0.01", "1e30", "0.02", "0.03"}) {
    const ProcessResult result = train(lr);
    const bool diverges = lr == "1e30";
    CHECK(result.status == (diverges ? 1 : 0));
    const std::string n = models.size() < 2 ? "" : '.' + std::to_string(models.size());
    if (!models.empty())
      CHECK(result.err.starts_with("onestep: runs/sentence: the earlier run of this name is now runs/sentence.previous" + n +
                                   "\n"));
    models.push_back(diverges ? "" : read(run / "checkpoints/step-1/model.safetensors"));
  }
  CHECK(read(run.string() + ".previous/checkpoints/step-1/model.safetensors") == models[0]);
  CHECK(nlohmann::json::parse(read(run.string() + ".previous.2/config.json"))["optimizer"]["lr"] == 1e30);  // came to nothing
  CHECK(read(run.string() + ".previous.3/checkpoints/step-1/model.safetensors") == models[2]);
  CHECK(read(run / "checkpoints/step-1/model.safetensors") == models[3]);
  CHECK(std::distance(fs::directory_iterator(folder.path() / "runs"), fs::directory_iterator()) ==
        4);  // nothing hidden is left

  fs::remove_all(run.string() + ".previous");
  fs::create_symlink("gone", run.string() + ".previous");  // any name that is taken is passed over
  std::ofstream(run.string() + ".previous.4") << "mine";
  CHECK(train("0.04").status == 0);
  CHECK(read(run.string() + ".previous.5/checkpoints/step-1/model.safetensors") == models[3]);
  CHECK(read(run.string() + ".previous.4") == "mine");
}

TEST_CASE("cli: a start that would move the config or text or tokenizer that it reads is refused") {
  const TemporaryFolder folder;
  const std::string run = (folder.path() / "run").string(), previous = run + ".previous", text = run + "/text.txt",
                    bpe = ONESTEP_SOURCE_DIR "/tests/goldens/bpe";
  const auto start = [&](const std::string& config, const std::vector<std::string>& sets) {
    std::vector<std::string> command{"train", config, "--out", run, "--quiet", "--set", "train.steps=1"};
    for (const std::string& set : sets) command.insert(command.end(), {"--set", set});
    return run_onestep(command);
  };
  REQUIRE(start(kSentence, {}).status == 0);
  fs::copy(kSentence, run + "/mine.json");
  fs::copy(bpe, run + "/bpe");
  std::ofstream(text) << "some words to be read, more than a window of them";
  const auto refused = [&](const std::string& source, const std::string& config, const std::vector<std::string>& sets) {
    const ProcessResult result = start(config, sets);
    CHECK(result.status == 2);
    CHECK(result.err ==
          "onestep: " + source + ": would be moved away for the new run " + run + " (name another folder with --out)\n");
  };
  refused(run + "/mine.json", run + "/mine.json", {});
  refused(run, kSentence, {"train.init_from=" + run});
  refused(text, kSentence, {"data.text=null", "data.path=" + text});
  refused(text, kSentence, {"data.text=null", R"(data.paths=[")" + kSentence + R"(", ")" + run + R"(/*.txt"])"});
  refused(run + "/bpe", kSentence, {"data.tokenizer=bpe", "data.tokenizer_path=" + run + "/bpe"});
  CHECK(fs::exists(text));
  CHECK(start(run + "/config.json", {"seed=2"}).status == 0);  // the new run writes it again
  CHECK(nlohmann::json::parse(read(run + "/config.json"))["seed"] == 2);
  CHECK(start(previous + "/config.json", {"train.init_from=" + previous}).status == 0);  // earlier runs stay where they are
}

TEST_CASE("cli: a folder that is not a run is never touched") {
  const TemporaryFolder folder;
  const fs::path mine = folder.path() / "mine";
  fs::create_directories(mine / "checkpoints");
  std::ofstream(mine / "checkpoints/notes.txt") << "keep";
  const ProcessResult result = run_onestep({"train", kSentence, "--out", mine.string(), "--set", "train.steps=1"});
  CHECK(result.status == 2);
  CHECK(result.err ==
        "onestep: " + mine.string() + ": is there already and not the folder of a run (name another with --out)\n");
  CHECK(read(mine / "checkpoints/notes.txt") == "keep");
}

TEST_CASE("cli: another program's config.json, or the user's own, makes no run of a folder") {
  const TemporaryFolder folder;
  const fs::path mine = folder.path() / "mine", run = folder.path() / "run";
  fs::create_directory(mine);
  std::ofstream(mine / "thesis.txt") << "keep";
  const std::vector<std::string> train{"train", kSentence, "--quiet", "--set", "train.steps=1", "--out"};
  const auto train_into = [&](const fs::path& out) {
    std::vector<std::string> command = train;
    command.push_back(out.string());
    return run_onestep(command);
  };
  REQUIRE(train_into(run).status == 0);
  for (const std::string& config : {std::string(R"({"model_type":"gpt2"})"), read(kSentence), read(run / "config.json")}) {
    CAPTURE(config);
    std::ofstream(mine / "config.json") << config;
    for (int start = 0; start < 2; ++start) {
      const ProcessResult result = train_into(mine);
      CHECK(result.status == 2);
      CHECK(result.err.starts_with("onestep: " + mine.string() + ": "));
    }
    CHECK(read(mine / "config.json") == config);
    CHECK(read(mine / "thesis.txt") == "keep");
  }
  fs::remove(mine / "thesis.txt");
  CHECK(train_into(mine).status == 0);  // all that a start killed early leaves
  CHECK(train_into(run).status == 0);
  fs::remove(run / "config.json");
  CHECK(train_into(run).status == 2);
}

TEST_CASE("cli: a wrong number of threads in the environment is refused") {
  const auto refusal = [](const std::string& threads) {
    const ProcessResult result = run_onestep({"schema"}, {.environment = {{"OMP_NUM_THREADS", threads}}});
    CHECK(result.status == 2);
    return result.err;
  };
  CHECK(refusal("2x") == "onestep: OMP_NUM_THREADS: the number of threads must be from 1 to 1024: got 2x\n");
  for (const char* threads : {"99999999", "0", "-2", "two", ""})
    CHECK(refusal(threads).starts_with("onestep: OMP_NUM_THREADS: "));
  CHECK(run_onestep({"version"}, {.environment = {{"OMP_NUM_THREADS", "2,1"}}}).status == 0);
}

TEST_CASE("cli: what is no run, config or checkpoint is refused with its name") {
  const TemporaryFolder folder;
  const std::string path = folder.path().string();
  const ProcessResult eval = run_onestep({"eval", path});
  CHECK(eval.status == 2);
  CHECK(eval.err == "onestep: " + path + ": is not the folder of a run (it has no config.json)\n");
  const ProcessResult missing = run_onestep({"train", path + "/none.json"});
  CHECK(missing.status == 2);
  CHECK(contains(missing.err, path + "/none.json"));
  CHECK(run_onestep({"inspect", path + "/none.safetensors"}).status == 2);
}

TEST_CASE("cli: inspect tells what a run holds") {
  const TemporaryFolder folder;
  const std::string run = (folder.path() / "run").string();
  REQUIRE(run_onestep({"train", kSentence, "--quiet", "--out", run, "--set", "train.steps=30", "--set", "train.eval_every=20"})
              .status == 0);
  const ProcessResult result = run_onestep({"inspect", run + "/"});
  CHECK(result.status == 0);
  CHECK(result.err == "");
  CHECK(result.out.starts_with("run          " + run + "\ntrained      30 of 30 steps in "));
  CHECK(contains(result.out, " after step 30\ntokenizer    word, vocabulary 6\ncheckpoints  step-20, step-30\n\n{\n"));
  CHECK(contains(result.out, read(fs::path(run) / "config.json")));
  const ProcessResult tensors = run_onestep({"inspect", run + "/checkpoints/step-30/model.safetensors"});
  CHECK(contains(result.out, tensors.out.substr(tensors.out.find("tok_emb.weight"))));
  CHECK(run_onestep({"inspect", run, "--set", "seed=1"})
            .err.starts_with("onestep: inspect: --set changes values of a config file"));
  fs::remove_all(fs::path(run) / "checkpoints");
  CHECK(contains(run_onestep({"inspect", run}).out, "\ncheckpoints  none\n"));
  CHECK(run_onestep({"inspect", folder.path().string()}).err.starts_with("onestep: " + folder.path().string() + ": "));
}

TEST_CASE("cli: schema prints configs/schema.json and inspect a config's values and model") {
  CHECK(run_onestep({"schema"}).out == read(ONESTEP_SOURCE_DIR "/configs/schema.json"));
  const ProcessResult inspect = run_onestep({"inspect", kNextTokenConfig});
  CHECK(inspect.status == 0);
  for (const char* part : {"\"grad_accumulation\": 1", "(att): MultiHeadAttention(", "tok_emb.weight", "tensors, "})
    CHECK(contains(inspect.out, part));
}
