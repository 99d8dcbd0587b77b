// GPT-2 weights from outside: import, fine-tuning, export.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "autograd/ops.h"
#include "tests/cli/stopped_run.h"
#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"
#include "train/checkpoint/safetensors.h"

using onestep::testing::contains;
using onestep::testing::metrics;
using onestep::testing::ProcessResult;
using onestep::testing::read;
using onestep::testing::run_onestep;
using onestep::testing::run_process;
using onestep::testing::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

const std::string kGpt2 = ONESTEP_SOURCE_DIR "/tests/goldens/hf_gpt2";

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
  CHECK(contains(eval.err, ": /data/kind: none: there is nothing to evaluate on (give --data FILE)\n"));
  for (const char* command : {"report", "export-csv"})
    CHECK(run_onestep({command, run.string()}).err ==
          "onestep: " + run.string() + ": is a run without metrics (it was imported, or stopped before its first step)\n");
}

TEST_CASE("cli: a Llama in several bfloat16 files is imported, continues a prompt, is trained further and exported") {
  const TemporaryFolder folder;
  const std::string golden = ONESTEP_SOURCE_DIR "/tests/goldens/hf_decoders/llama3";
  const fs::path run = folder.path() / "run", tuned = folder.path() / "tuned", out = folder.path() / "out";
  CHECK(run_onestep({"import", golden, "--out", run.string()}).status == 0);
  const ProcessResult text =
      run_onestep({"generate", run.string(), "--prompt-ids", "1,2,3", "--tokens", "70", "--temperature", "0"});
  CHECK(text.status == 0);  // beyond the context of 64
  const ProcessResult trained =
      run_onestep({"train", (run / "config.json").string(), "--quiet", "--out", tuned.string(), "--set", "data.kind=task",
                   "--set", "data.task=copy", "--set", "data.length=4", "--set", "train.steps=2", "--set",
                   "model.context_length=16", "--set", "train.init_from=" + run.string()});
  CHECK_MESSAGE(trained.status == 0, trained.err);
  for (const std::string dtype : {"float32", "bf16", "f16"})
    CHECK(run_onestep({"export", tuned.string(), (out / dtype).string(), "--dtype", dtype}).status == 0);
  CHECK(fs::file_size(out / "bf16/model.safetensors") < fs::file_size(out / "float32/model.safetensors") * 3 / 4);
  const nlohmann::json config = nlohmann::json::parse(read(out / "f16/config.json"));
  CHECK(config["dtype"] == "float16");
  CHECK(config["model_type"] == "llama");
  CHECK(config["max_position_embeddings"] == 16);
  CHECK(config["rope_scaling"]["rope_type"] == "llama3");
  CHECK(run_onestep({"import", (out / "bf16").string(), "--out", (folder.path() / "again").string()}).status == 0);
  CHECK(contains(run_onestep({"export", tuned.string(), out.string(), "--dtype", "int8"}).err, "--dtype"));
}

TEST_CASE(
    "cli: a text ends at the end-of-text tokens of an imported model, which its exports and what is trained from it keep") {
  using Ids = std::vector<int64_t>;
  const TemporaryFolder folder;
  const fs::path model = folder.path() / "model", run = folder.path() / "run", out = folder.path() / "out";
  fs::copy(ONESTEP_SOURCE_DIR "/tests/goldens/hf_decoders/llama3", model);
  const nlohmann::json golden = nlohmann::json::parse(read(model / "logits.json"));
  const Ids greedy = golden["greedy"].get<Ids>(), prompt = golden["prompt"].get<Ids>();
  const auto first = [&](int64_t id) { return std::find(greedy.begin(), greedy.end(), id) - greedy.begin(); };
  const int64_t end = greedy[4];
  std::string given;
  for (const int64_t id : prompt) given += (given.empty() ? "" : ",") + std::to_string(id);
  const auto generated = [&](const fs::path& of, const std::vector<std::string>& more = {}) {
    std::vector<std::string> line = {"generate", of.string(), "--prompt-ids", given,           "--tokens", "40",
                                     "--quiet",  "--format",  "json",         "--temperature", "0"};
    line.insert(line.end(), more.begin(), more.end());
    return nlohmann::json::parse(run_onestep(line).out);
  };
  nlohmann::json config = nlohmann::json::parse(read(model / "config.json"));
  const auto imported = [&](const nlohmann::json& eos, const nlohmann::json& generation) {
    config["eos_token_id"] = eos;
    std::ofstream(model / "config.json") << config;
    fs::remove(model / "generation_config.json");
    if (!generation.is_null()) std::ofstream(model / "generation_config.json") << generation;
    fs::remove_all(run);
    return run_onestep({"import", model.string(), "--out", run.string(), "--quiet"});
  };

  REQUIRE(imported(nullptr, nullptr).status == 0);
  CHECK(generated(run)["ids"].get<Ids>() == greedy);
  REQUIRE(imported(end, nullptr).status == 0);
  const Ids ended(greedy.begin(), greedy.begin() + first(end) + 1);
  CHECK(generated(run)["ids"].get<Ids>() == ended);
  CHECK(generated(run)["finish_reason"] == "stop");
  CHECK(generated(run, {"--ignore-eos"})["ids"].get<Ids>() == greedy);
  CHECK(generated(run, {"--stop-ids", std::to_string(greedy[0])})["ids"].get<Ids>() == Ids{greedy[0]});
  REQUIRE(imported(end, {{"eos_token_id", {1000, greedy[2], end}}}).status == 0);  // which goes before; the model has no 1000
  const auto stops = std::min(first(greedy[2]), first(end)) + 1;
  CHECK(generated(run)["ids"].get<Ids>() == Ids(greedy.begin(), greedy.begin() + stops));

  REQUIRE(run_onestep({"export", run.string(), out.string(), "--quiet"}).status == 0);
  CHECK(nlohmann::json::parse(read(out / "config.json"))["eos_token_id"].get<Ids>() == Ids{greedy[2], end});
  nlohmann::json task = nlohmann::json::parse(read(run / "config.json"));
  task["model"].erase("eos_token_ids");
  task["data"] = {{"kind", "task"}, {"task", "copy"}, {"length", 4}};
  task["train"] = {{"steps", 1}, {"init_from", run.string()}};
  std::ofstream(folder.path() / "task.json") << task;
  const ProcessResult trained =
      run_onestep({"train", (folder.path() / "task.json").string(), "--quiet", "--out", (folder.path() / "task").string()});
  REQUIRE_MESSAGE(trained.status == 0, trained.err);
  CHECK(nlohmann::json::parse(read(folder.path() / "task/config.json"))["model"]["eos_token_ids"].get<Ids>() ==
        Ids{greedy[2], end});

  for (const nlohmann::json& wrong : {nlohmann::json("2"), nlohmann::json(1.5), nlohmann::json({1, "2"})}) {
    CHECK(contains(imported(wrong, nullptr).err, (model / "config.json").string() + ": /eos_token_id: must be "));
    CHECK(contains(imported(1, {{"eos_token_id", wrong}}).err,
                   (model / "generation_config.json").string() + ": /eos_token_id: must be "));
  }
}

TEST_CASE("cli: a tokenizer.json goes with an imported model into its run, its prompts and its export") {
  const TemporaryFolder folder;
  const fs::path model = folder.path() / "model", run = folder.path() / "run", out = folder.path() / "out";
  const std::string tokenizer = ONESTEP_SOURCE_DIR "/tests/goldens/hf_tokenizers/llama2/tokenizer.json";
  fs::copy(ONESTEP_SOURCE_DIR "/tests/goldens/hf_decoders/llama2", model);
  fs::copy(tokenizer, model / "tokenizer.json");
  CHECK(contains(run_onestep({"import", model.string(), "--out", run.string()}).err, " tokens, its model only 48\n"));
  CHECK_FALSE(fs::exists(run));
  const std::string config =
      R"({"seed": 5, "model": {"kind": "gpt", "num_layers": 1, "d_model": 8, "num_heads": 2, "rope": true, "context_length": 8,
    "norm": "rms_norm", "activation": "swiglu", "bias": false}, "train": {"steps": 1}, "data": {"kind": "text", "tokenizer": "bpe",
    "val_fraction": 0, "text": "the journey of a thousand miles begins with one step, and every step is the next token, and the next token is one",
    "tokenizer_path": ")" +
      fs::path(tokenizer).parent_path().string() + "\"}}";
  std::ofstream(folder.path() / "c.json") << config;
  const ProcessResult trained = run_onestep({"train", (folder.path() / "c.json").string(), "--out", run.string(), "--quiet"});
  CHECK_MESSAGE(trained.status == 0, trained.err);
  const auto same_tokenizer = [&](const fs::path& file) { return read(file) == read(tokenizer); };
  CHECK(same_tokenizer(run / "tokenizer.json"));
  const std::vector<std::string> generate{"generate",      run.string(), "--tokens", "3",
                                          "--temperature", "0",          "--prompt", "one step"};
  const ProcessResult text = run_onestep(generate);
  CHECK_MESSAGE(text.out.starts_with("one step"), text.out, text.err);
  CHECK_FALSE(contains(text.out, "<s>one"));
  CHECK(contains(run_onestep({"export", run.string(), out.string()}).out, "tokenizer    bpe, in tokenizer.json\n"));
  CHECK(same_tokenizer(out / "tokenizer.json"));
  CHECK(run_onestep({"import", out.string(), "--out", (folder.path() / "back").string()}).status == 0);
  CHECK(same_tokenizer(folder.path() / "back/tokenizer.json"));
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
  CHECK(huge.err.starts_with("onestep: " + bad.string() + "/model.safetensors: tensor \"transformer.wte.weight\": "));
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
    CHECK(contains(other.err, "onestep: " + run.string() + "/checkpoints/step-0: cannot be started from: --set model." + key));
    CHECK(contains(other.err, ": /model/" + key.substr(0, key.find('=')) + ": "));
  }
  CHECK_FALSE(contains(start_from_run("model.dropout=0.3").err, "/model/"));
  const ProcessResult small =
      run_onestep({"train", (run / "config.json").string(), "--out", (folder.path() / "x").string(), "--set", "data.kind=task",
                   "--set", "data.task=copy", "--set", "data.vocab_size=62"});
  CHECK(small.status == 2);
  CHECK(contains(small.err, ": /model/vocab_size: must be at least 62, the vocabulary of the data: got 61"));
}

TEST_CASE("cli: an imported run has the whole name of its folder") {
  const TemporaryFolder folder;
  fs::create_directory(folder.path() / "exp");
  fs::copy(kGpt2, folder.path() / "exp/gpt2-v1.5");
  CHECK(run_onestep({"import", "exp/gpt2-v1.5/", "--quiet"}, {.directory = folder.path()}).status == 0);
  CHECK(fs::exists(folder.path() / "runs/gpt2-v1.5/checkpoints/step-0"));
  CHECK(run_onestep({"import", ".", "--quiet"}, {.directory = folder.path() / "exp/gpt2-v1.5"}).status == 0);
  CHECK(fs::exists(folder.path() / "exp/gpt2-v1.5/runs/gpt2-v1.5/checkpoints/step-0"));
}

TEST_CASE("cli: what a new run is made of is never moved by it") {
  const TemporaryFolder folder;
  const fs::path gpt2 = folder.path() / "runs/gpt2", run = folder.path() / "runs/run";
  fs::create_directory(folder.path() / "runs");
  fs::copy(kGpt2, gpt2);
  const auto refused = [&](const std::vector<std::string>& command, const std::string& source, const std::string& out) {
    const ProcessResult result = run_onestep(command, {.directory = folder.path()});
    CHECK(result.status == 2);
    CHECK(result.err.starts_with("onestep: " + source + ": "));
    CHECK(contains(result.err, out + " (name another folder with --out)"));
  };
  refused({"import", gpt2.string(), "--out", gpt2.string()}, gpt2.string(), gpt2.string());
  refused({"import", "runs/gpt2"}, "runs/gpt2", "runs/gpt2");  // its default
  CHECK(read(gpt2 / "model.safetensors") == read(kGpt2 + "/model.safetensors"));
  CHECK(run_onestep({"import", gpt2.string(), "--out", run.string()}).status == 0);
  refused({"train", (run / "config.json").string(), "--quiet", "--set", "data.kind=text", "--set",
           "data.text=abcabcabcabcabcabcabcabcabcabc", "--set", "data.val_fraction=0", "--set", "model.context_length=24",
           "--set", "train.init_from=" + run.string(), "--out", run.string()},
          run.string(), run.string());
  CHECK(fs::exists(run / "checkpoints/step-0"));
}

TEST_CASE("cli: an export replaces an earlier one, whole or not at all, and nothing else") {
  const TemporaryFolder folder;
  const auto path = [&](const char* name) { return (folder.path() / name).string(); };
  const std::string run = path("run"), out = path("out"), model = "/model.safetensors";
  REQUIRE(run_onestep({"import", kGpt2, "--out", run}).status == 0);
  const auto refused = [&](const std::string& into, const std::string& file) {
    const std::string before = read(file);
    const ProcessResult result = run_onestep({"export", run, into});
    CHECK(result.status == 2);
    CHECK(result.out == "");
    CHECK(result.err ==
          "onestep: " + file + ": is not that of a GPT-2 or Llama, and an export would replace it (name another folder)\n");
    CHECK(read(file) == before);
  };
  refused(run, run + "/config.json");
  refused(run + "/checkpoints/step-0", run + "/checkpoints/step-0" + model);
  fs::create_directory(path("other"));
  std::ofstream(path("other/config.json")) << R"({"model_type": "llama"})";
  refused(path("other"), path("other/config.json"));

  REQUIRE(run_onestep({"export", run, out}).status == 0);
  std::ofstream(out + "/README.md") << "mine";
  const std::string before = read(out + model), config = read(out + "/config.json");
  fs::create_directory(path("larger"));
  REQUIRE(run_onestep({"train", path("run/config.json"), "--quiet", "--out", path("larger"), "--set", "model.vocab_size=300",
                       "--set", "data.kind=task", "--set", "data.task=copy", "--set", "train.steps=1"})
              .status == 0);
  const auto full_disk = [&](const std::string& into) {
    return run_process(
        {"sh", "-c", R"sh(ulimit -f 32; exec "$0" export "$1" "$2")sh", ONESTEP_BINARY_DIR "/onestep", path("larger"), into});
  };
  const ProcessResult full = full_disk(out);
  CHECK(full.status == 2);
  CHECK(full.out == "");
  CHECK(full_disk(path("fresh")).status == 2);
  CHECK_FALSE(fs::exists(path("fresh")));
  CHECK(contains(full.err, "/model.safetensors: cannot be written: the file would be larger than the system allows"));
  CHECK(read(out + model) == before);
  CHECK(read(out + "/config.json") == config);
  CHECK(std::distance(fs::directory_iterator(out), fs::directory_iterator()) == 3);
  CHECK(run_onestep({"export", path("larger"), out}).status == 0);
  CHECK(nlohmann::json::parse(read(out + "/config.json"))["vocab_size"] == 300);
  CHECK(read(out + "/README.md") == "mine");
  CHECK(std::distance(fs::directory_iterator(out), fs::directory_iterator()) == 3);
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

TEST_CASE("cli: a run's byte-pair encoding goes with it into a run that trains it further, and into an export") {
  const TemporaryFolder folder;
  const auto path = [&](const char* name) { return (folder.path() / name).string(); };
  const std::string bpe = ONESTEP_SOURCE_DIR "/tests/goldens/bpe", text = ONESTEP_SOURCE_DIR "/README.md";
  const auto train = [&](const std::string& out, std::vector<std::string> sets) {
    std::vector<std::string> command{"train", ONESTEP_SOURCE_DIR "/configs/text.json", "--quiet", "--out", out};
    sets.insert(sets.end(), {"data.path=" + text, "train.steps=2", "model.kind=gpt", "model.num_layers=1", "model.d_model=8",
                             "model.num_heads=2", "schedule.kind=constant", "schedule.warmup_steps=0"});
    for (const std::string& set : sets) command.insert(command.end(), {"--set", set});
    return run_onestep(command);
  };
  const auto same_tokenizer = [&](const char* file) {
    return fs::exists(folder.path() / file) && read(folder.path() / file) == read(folder.path() / "first/tokenizer.json");
  };
  CHECK(train(path("first"), {"data.tokenizer=bpe", "data.tokenizer_path=" + bpe}).status == 0);

  CHECK(train(path("second"), {"train.init_from=" + path("first"), "data.tokenizer=null"}).status == 0);
  CHECK(same_tokenizer("second/tokenizer.json"));
  CHECK(run_onestep({"train", "--resume", path("second"), "--set", "train.steps=3"}).status == 0);
  const ProcessResult other = train(path("x"), {"train.init_from=" + path("first"), "data.tokenizer=byte"});
  CHECK(other.status == 2);
  CHECK(other.err == "onestep: --set data.tokenizer=byte: /data/tokenizer: must be bpe, that of " + path("first") +
                         ": got byte (leave it out)\n");

  // The text is read with the run's own vocabulary: a path to another one is refused, not passed over.
  REQUIRE(run_onestep({"tokenizer", "train", text, "--vocab-size", "300", "--quiet", "--out", path("small")}).status == 0);
  for (const char* name : {"small", "none"}) {
    const std::string set = "data.tokenizer_path=" + path(name), reason = ", with which the text is read: " + path(name);
    const ProcessResult start = train(path("x"), {"train.init_from=" + path("first"), "data.tokenizer=bpe", set});
    CHECK(start.status == 2);
    CHECK(contains(start.err,
                   "onestep: --set " + set + ": /data/tokenizer_path: must have the tokenizer of " + path("first") + reason));
    const ProcessResult resumed = run_onestep({"train", "--resume", path("second"), "--set", set});
    CHECK(resumed.status == 2);
    CHECK(contains(resumed.err, "onestep: --set " + set + ": /data/tokenizer_path: "));
    CHECK(contains(resumed.err, path("second") + reason));
    CHECK_FALSE(contains(read(folder.path() / "second/config.json"), path(name)));
  }
  CHECK(train(path("x"), {"train.init_from=" + path("first"), "data.tokenizer=bpe", "data.tokenizer_path=" + bpe}).status == 0);
  CHECK(run_onestep({"train", "--resume", path("second"), "--set", "data.tokenizer_path=" + bpe}).status == 0);

  CHECK(train(path("third"), {"data.tokenizer=bpe", "data.tokenizer_path=" + path("first")}).status == 0);
  CHECK(same_tokenizer("third/tokenizer.json"));
  CHECK(train(path("bytes"), {"data.tokenizer=byte"}).status == 0);
  const ProcessResult bytes = train(path("x"), {"data.tokenizer=bpe", "data.tokenizer_path=" + path("bytes")});
  CHECK(bytes.status == 2);
  CHECK(
      contains(bytes.err, ": /data/tokenizer_path: must have a tokenizer of kind bpe: " + path("bytes") + " has one of kind"));

  const ProcessResult exported = run_onestep({"export", path("second"), path("out")});
  CHECK(exported.status == 0);
  CHECK(contains(exported.out, "tokenizer    bpe, in vocab.json and merges.txt\n"));
  CHECK(run_onestep({"import", path("out"), "--out", path("back")}).status == 0);
  CHECK(same_tokenizer("back/tokenizer.json"));
  const ProcessResult none = run_onestep({"export", path("bytes"), path("out2")});
  CHECK(contains(none.out, "tokenizer    byte: not written (GPT-2's files are for bpe)\n"));
  CHECK_FALSE(fs::exists(folder.path() / "out2/vocab.json"));
  REQUIRE(run_onestep({"export", path("bytes"), path("out")}).status == 0);  // over an export with another tokenizer
  CHECK(run_onestep({"import", path("out"), "--out", path("bytes-back")}).status == 0);
  CHECK_FALSE(fs::exists(folder.path() / "bytes-back/tokenizer.json"));
}
