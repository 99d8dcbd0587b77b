// GPT-2 weights from outside: import, fine-tuning, export.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/paths.h"
#include "tests/process.h"
#include "train/safetensors.h"

using onestep::testing::ProcessResult;
using onestep::testing::run_onestep;
using onestep::testing::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

const std::string kGpt2 = ONESTEP_SOURCE_DIR "/tests/goldens/hf_gpt2";

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// The metrics of a fine-tuning run.
std::vector<nlohmann::json> metrics(const fs::path& run) {
  std::vector<nlohmann::json> lines;
  std::ifstream in(run / "metrics.jsonl");
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

}  // namespace

TEST_CASE("cli: a GPT-2 is imported and exported to the same bytes") {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run", out = folder.path() / "out";
  const ProcessResult imported = run_onestep({"import", kGpt2, "--out", run.string()});
  CHECK(imported.status == 0);
  CHECK(contains(imported.out, "2 layers, 16 wide, 7,9"));
  const ProcessResult exported = run_onestep({"export", run.string(), out.string()});
  CHECK(exported.status == 0);
  CHECK(read(out / "model.safetensors") == read(kGpt2 + "/model.safetensors"));
  CHECK(nlohmann::json::parse(read(out / "config.json"))["n_embd"] == 16);
  const ProcessResult eval = run_onestep({"eval", run.string()});
  CHECK(eval.status == 2);
  CHECK(contains(eval.err, ": /data/kind: none: there is nothing to train or evaluate on"));
}

TEST_CASE("cli: an imported GPT-2 generates with a cache as without") {
  const TemporaryFolder folder;
  const std::string run = (folder.path() / "run").string();
  CHECK(run_onestep({"import", kGpt2, "--out", run}).status == 0);
  const std::vector<std::string> generate{"generate",      run, "--prompt-ids", "1,2,3", "--tokens", "40",
                                          "--temperature", "0", "--format",     "json"};
  std::vector<std::string> plain = generate;
  plain.emplace_back("--no-cache");
  const ProcessResult cached = run_onestep(generate);
  CHECK(cached.status == 0);
  CHECK(nlohmann::json::parse(cached.out)["ids"].size() == 40);
  CHECK(run_onestep(plain).out == cached.out);
}

TEST_CASE("cli: an imported GPT-2 is trained further from its own weights") {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run", tuned = folder.path() / "tuned";
  CHECK(run_onestep({"import", kGpt2, "--out", run.string()}).status == 0);
  std::vector<std::string> train{"train", (run / "config.json").string(), "--quiet", "--out", tuned.string()};
  const ProcessResult refused = run_onestep(train);
  CHECK(refused.status == 2);
  CHECK(contains(refused.err, ": /data/kind: none: there is nothing to train on"));
  CHECK_FALSE(fs::exists(tuned));
  train.insert(train.end(), {"--set", "data.kind=text", "--set", "data.text=abcabcabcabcabcabcabcabcabcabc", "--set",
                             "data.val_fraction=0", "--set", "train.steps=30", "--set", "optimizer.lr=0.01"});
  CHECK(run_onestep(train).status == 0);
  const double random_start = metrics(tuned).front()["loss"];
  train.insert(train.end(), {"--set", "train.init_from=" + run.string()});
  CHECK(run_onestep(train).status == 0);
  const double start = metrics(tuned).front()["loss"], end = metrics(tuned).back()["loss"];
  CHECK(std::abs(random_start - std::log(61.0)) < 0.1);  // GPT-2's own initial weights predict next to nothing
  CHECK(std::abs(start - random_start) > 0.1);           // the imported ones are large
  CHECK(end < 0.5);
  CHECK(run_onestep({"eval", tuned.string()}).status == 0);
  CHECK(run_onestep({"export", tuned.string(), (folder.path() / "out").string()}).status == 0);
}

TEST_CASE("cli: import and init_from refuse what does not fit with one sentence") {
  const TemporaryFolder folder;
  const fs::path bad = folder.path() / "bad", run = folder.path() / "run";
  fs::create_directory(bad);
  CHECK(contains(run_onestep({"import", (folder.path() / "none").string()}).err, "none: is not a folder (needs one with "));
  std::ofstream(bad / "config.json") << R"({"model_type": "gpt2", "n_layer": 1000, "n_embd": 65536, "n_head": 1,
                                            "n_positions": 1048576, "vocab_size": 16777216})";
  fs::copy(kGpt2 + "/model.safetensors", bad / "model.safetensors");
  const ProcessResult huge = run_onestep({"import", bad.string(), "--out", run.string()});
  CHECK(huge.status == 2);
  CHECK(huge.err == "onestep: " + bad.string() +
                        "/model.safetensors: tensor \"transformer.wte.weight\": must be [16777216,65536] as config.json says: "
                        "is [61,16]\n");
  CHECK_FALSE(fs::exists(run));
  CHECK(run_onestep({"import", kGpt2, "--out", run.string()}).status == 0);
  const auto start_from_run = [&](const std::string& key) {
    return run_onestep({"train", (run / "config.json").string(), "--out", (folder.path() / "x").string(), "--set",
                        "data.kind=task", "--set", "data.task=copy", "--set", key, "--set", "train.init_from=" + run.string(),
                        "--set", "train.steps=1"});
  };
  for (const std::string key : {"d_model=32", "num_heads=8", "activation=relu"}) {  // the last two with the same shapes
    const ProcessResult other = start_from_run("model." + key);
    CHECK(other.status == 2);
    CHECK(contains(other.err, "onestep: " + run.string() + "/checkpoints/step-0: cannot be started from: --set model." + key +
                                  ": /model/" + key.substr(0, key.find('=')) + ": is "));
    CHECK(contains(other.err, ", the checkpoint was trained with "));
  }
  CHECK_FALSE(contains(start_from_run("model.dropout=0.3").err, "/model/"));
  const ProcessResult small =
      run_onestep({"train", (run / "config.json").string(), "--out", (folder.path() / "x").string(), "--set", "data.kind=task",
                   "--set", "data.task=copy", "--set", "data.vocab_size=62"});
  CHECK(small.status == 2);
  CHECK(contains(small.err, ": /model/vocab_size: must be at least 62, the vocabulary of the data: got 61"));
}

TEST_CASE("cli: a run without progress stops early and keeps its best checkpoint") {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  // A learning rate of 0: no evaluation is better than the first.
  const ProcessResult result =
      run_onestep({"train", ONESTEP_SOURCE_DIR "/configs/sentence.json", "--out", run.string(), "--set", "optimizer.lr=0",
                   "--set", "train.eval_every=2", "--set", "train.early_stop_patience=3", "--set", "train.steps=100"});
  CHECK(result.status == 0);
  CHECK(contains(result.out, "steps        8 in "));
  CHECK(contains(result.out, "stopped      early: no better val loss in 3 evaluations"));
  CHECK(fs::exists(run / "checkpoints/step-2"));
  CHECK(fs::exists(run / "checkpoints/step-8"));
  const ProcessResult again = run_onestep({"train", "--resume", run.string()});
  CHECK(again.status == 0);
  CHECK(contains(again.err, ": was stopped early after 8 steps (train further with --set train.early_stop_patience=0)"));
  CHECK(run_onestep(
            {"train", "--resume", run.string(), "--quiet", "--set", "train.early_stop_patience=0", "--set", "train.steps=12"})
            .status == 0);
  CHECK(fs::exists(run / "checkpoints/step-12"));
}
