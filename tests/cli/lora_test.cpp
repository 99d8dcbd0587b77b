// Fine-tuning by adapters, from outside.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"

using onestep::testing::contains;
using onestep::testing::ProcessResult;
using onestep::testing::read;
using onestep::testing::run_onestep;
using onestep::testing::TemporaryFolder;
using onestep::testing::write;
namespace fs = std::filesystem;

namespace {

const std::string kGpt2 = ONESTEP_SOURCE_DIR "/tests/goldens/hf_gpt2";

/// Trains the imported model `base` by adapters.
ProcessResult train_adapters(const fs::path& base, const fs::path& run, const std::string& steps,
                             const std::vector<std::string>& sets = {}) {
  std::vector<std::string> arguments{"train", (base / "config.json").string(), "--quiet", "--out", run.string()};
  std::vector<std::string> all{"train.init_from=" + base.string(),
                               "data.kind=task",
                               "data.task=copy",
                               "data.length=4",
                               "model.lora.rank=2",
                               "optimizer.lr=0.01",
                               "train.steps=" + steps};
  all.insert(all.end(), sets.begin(), sets.end());
  for (const std::string& set : all) arguments.insert(arguments.end(), {"--set", set});
  return run_onestep(arguments);
}

}  // namespace

TEST_CASE("cli: adapters are trained on an imported model, which the run then needs no more") {
  const TemporaryFolder folder;
  const fs::path base = folder.path() / "base", whole = folder.path() / "whole", run = folder.path() / "run";
  REQUIRE(run_onestep({"import", kGpt2, "--out", base.string()}).status == 0);
  const fs::path weights = base / "checkpoints/step-0/model.safetensors";
  REQUIRE_MESSAGE(train_adapters(base, whole, "6").status == 0, "");
  CHECK(fs::equivalent(whole / "frozen.safetensors", weights));  // no second copy
  REQUIRE(train_adapters(base, run, "4").status == 0);
  CHECK(fs::file_size(run / "checkpoints/step-4/model.safetensors") < fs::file_size(weights) / 4);
  fs::remove_all(base);
  CHECK(run_onestep({"train", "--resume", run.string(), "--quiet", "--set", "train.steps=6"}).status == 0);
  for (const char* const file : {"model.safetensors", "optimizer.safetensors"})
    CHECK(read(run / "checkpoints/step-6" / file) == read(whole / "checkpoints/step-6" / file));
  const std::vector<std::string> generate{"generate", run.string(), "--prompt-ids", "1,2", "--tokens", "5"};
  CHECK(run_onestep(generate).status == 0);
  CHECK(contains(run_onestep({"eval", run.string()}).out, "loss "));
  CHECK(contains(read(run / "summary.json"), " of "));  // trained of all

  const fs::path next = folder.path() / "next";
  CHECK(train_adapters(run, next, "1", {"model.lora.rank=3"}).status == 0);  // from the merged model
  CHECK_FALSE(fs::equivalent(next / "frozen.safetensors", run / "frozen.safetensors"));

  std::string changed = read(run / "frozen.safetensors");
  changed.back() ^= 1;
  write(run / "frozen.safetensors", changed);
  const std::string damaged = (run / "frozen.safetensors").string() + ": is damaged: ";
  for (const std::vector<std::string>& command : {generate, {"train", "--resume", run.string(), "--set", "train.steps=7"}}) {
    const ProcessResult refused = run_onestep(command);
    CHECK(refused.status == 2);
    CHECK(contains(refused.err, damaged));
  }
  fs::remove(run / "frozen.safetensors");
  CHECK(contains(run_onestep(generate).err, (run / "frozen.safetensors").string()));
}

TEST_CASE("cli: adapters are exported alone and imported again onto their base") {
  const TemporaryFolder folder;
  const fs::path base = folder.path() / "base", run = folder.path() / "run", out = folder.path() / "out";
  REQUIRE(run_onestep({"import", kGpt2, "--out", base.string()}).status == 0);
  REQUIRE(train_adapters(base, run, "3").status == 0);
  const ProcessResult exported = run_onestep({"export", run.string(), out.string(), "--adapter"});
  CHECK_MESSAGE(exported.status == 0, exported.err);
  CHECK_FALSE(fs::exists(out / "model.safetensors"));
  const fs::path again = folder.path() / "again", same = folder.path() / "same";
  const ProcessResult imported = run_onestep({"import", out.string(), "--base", base.string(), "--out", again.string()});
  CHECK_MESSAGE(imported.status == 0, imported.err);
  CHECK(fs::equivalent(again / "frozen.safetensors", base / "checkpoints/step-0/model.safetensors"));
  CHECK(run_onestep({"export", again.string(), same.string(), "--adapter"}).status == 0);
  for (const char* const file : {"adapter_config.json", "adapter_model.safetensors"})
    CHECK(read(out / file) == read(same / file));
  const auto ids = [](const fs::path& of) {
    return nlohmann::json::parse(run_onestep({"generate", of.string(), "--prompt-ids", "1,2,3", "--tokens", "8",
                                              "--temperature", "0", "--format", "json"})
                                     .out)["ids"];
  };
  CHECK(ids(run) == ids(again));
  CHECK(ids(run) != ids(base));
  const ProcessResult plain = run_onestep({"export", base.string(), (folder.path() / "none").string(), "--adapter"});
  CHECK(plain.status == 2);
  CHECK(contains(plain.err, ": has no model.lora: there are no adapters"));
  const ProcessResult gguf = run_onestep({"export", run.string(), (folder.path() / "a.gguf").string(), "--adapter"});
  CHECK(gguf.status == 2);
}

TEST_CASE("cli: adapters and frozen parameters refuse what is not there") {
  const TemporaryFolder folder;
  const fs::path base = folder.path() / "base", run = folder.path() / "run";
  REQUIRE(run_onestep({"import", kGpt2, "--out", base.string()}).status == 0);
  const auto refused = [&](const std::string& set) {
    const ProcessResult result = train_adapters(base, run, "1", {set});
    CHECK(result.status == 2);
    CHECK_FALSE(fs::exists(run));
    return result.err;
  };
  const std::string target = refused(R"(model.lora.targets=["q_proj"])");
  CHECK(contains(target, ": /model/lora/targets/0: "));
  CHECK(contains(target, ": q_proj"));
  const std::string frozen = refused(R"(train.freeze=["*.lora_C.*"])");
  CHECK(contains(frozen, ": /train/freeze/0: "));
  CHECK(contains(frozen, ": *.lora_C.*"));
  CHECK(contains(refused(R"(train.freeze=["*lora*"])"), ": /train/freeze: leaves nothing to train"));
  CHECK(contains(refused("model.lora.rank=0"), ": /model/lora/rank: "));
}
