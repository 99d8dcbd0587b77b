// What training needs is told before it starts: against what it then takes, and against limits of every kind.
#include "train/memory_need.h"

#include <doctest/doctest.h>

#include <fstream>
#include <limits>

#include "autograd/memory.h"
#include "autograd/ops.h"
#include "base/error.h"
#include "base/machine.h"
#include "tests/process.h"
#include "tests/support.h"
#include "tests/train/memory_limit.h"
#include "train/trainer.h"

using namespace onestep;
using namespace onestep::train;
using onestep::testing::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

Config config_of(const std::string& model, const std::string& train = "\"batch_size\": 4", const std::string& more = "") {
  return parse_config(R"({"data": {"kind": "task", "task": "copy", "length": 16, "vocab_size": 600}, "model": {)" + model +
                          R"(, "context_length": 32}, "train": {)" + train + "}" + more + "}",
                      "run.json");
}

const char* const kGpt = R"("kind": "gpt", "num_layers": 3, "d_model": 96, "num_heads": 4)";

std::vector<Config> configs() {
  std::vector<Config> all;
  for (const char* kind : {"simplified", "self_v1", "self_v2", "causal"})
    all.push_back(config_of(R"("d_model": 128, "attention": ")" + std::string(kind) + '"'));
  for (const char* kind : {"multi_head_wrapper", "multi_head", "einsum", "fused_qkv"})
    all.push_back(config_of(R"("d_model": 128, "num_heads": 4, "attention": ")" + std::string(kind) + '"'));
  for (const char* more :
       {"", R"(, "activation": "swiglu", "norm": "rms_norm", "bias": false)", R"(, "rope": true)",
        R"(, "num_kv_heads": 2, "tie_weights": false)", R"(, "head_dim": 40, "attention_bias": "qkv", "rope": true)",
        R"(, "qk_norm": true, "num_kv_heads": 2, "mlp_bias": "none")", R"(, "dropout": 0.1)", R"(, "vocab_size": 2000)"})
    all.push_back(config_of(kGpt + std::string(more)));
  all.push_back(config_of(kGpt, R"("batch_size": 16, "dtype": "float64")"));
  all.push_back(config_of(kGpt, R"("batch_size": 64)", R"(, "optimizer": {"kind": "sgd"})"));
  all.push_back(config_of(kGpt, R"("batch_size": 2)", R"(, "optimizer": {"kind": "adam", "amsgrad": true})"));
  all.push_back(config_of(kGpt, R"("batch_size": 32, "recompute": true)"));
  all.push_back(config_of(kGpt + std::string(R"(, "lora": {"rank": 4})")));
  all.push_back(config_of(kGpt + std::string(R"(, "rope": true, "lora": {"rank": 8, "dropout": 0.1, "targets": ["*_proj"]})")));
  all.push_back(config_of(kGpt, R"("batch_size": 1, "freeze": ["*.mlp.*", "*.w?e.*"])"));
  return all;
}

/// Checks the estimate for a run against what its first steps take.
void check_need(const Config& config) {
  const int64_t before = memory::stats().live_bytes;
  Trainer trainer(config);
  const MemoryNeed need = memory_need(trainer.config(), trainer.data().vocab_size(), trainer.data().length());
  CHECK(need.parameters == trainer.model().num_parameters());
  int64_t trained = 0;
  for (const Tensor& parameter : trainer.model().parameters()) trained += parameter.requires_grad() ? parameter.numel() : 0;
  CHECK(need.trained == trained);
  memory::reset_peak();
  trainer.step();
  trainer.step();
  const double ratio = need.total() / static_cast<double>(memory::stats().peak_bytes - before);
  CHECK(ratio > 0.67);
  CHECK(ratio < 1.34);
}

}  // namespace

TEST_CASE("memory need: parameters are counted and the peak of a step is met within a third") {
  for (const Config& config : configs()) {
    CAPTURE(resolved_json(config));
    check_need(config);
  }
}

TEST_CASE("memory need: that of fine-tuning is met within a third, too") {
  const onestep::testing::TemporaryFolder folder;
  const std::string csv = (folder.path() / "a.csv").string(), lines = (folder.path() / "a.jsonl").string();
  std::string texts = "text,label\n", dialogues;
  for (int i = 0; i < 40; ++i) {
    texts += std::string(60, static_cast<char>('a' + i % 26)) + (i % 2 == 0 ? ",x\n" : ",y\n");
    dialogues += R"({"prompt": ")" + std::string(15, static_cast<char>('a' + i % 26)) + R"(", "answer": "yes"})" + "\n";
  }
  onestep::testing::write(csv, texts);
  onestep::testing::write(lines, dialogues);
  for (const std::string& data : {R"("classification", "path": ")" + csv, R"("instructions", "path": ")" + lines}) {
    CAPTURE(data);
    check_need(parse_config("{\"data\": {\"tokenizer\": \"byte\", \"kind\": " + data + "\"}, \"model\": {" + kGpt +
                                R"(, "context_length": 64}, "train": {"batch_size": 8}})",
                            "run.json"));
  }
}

TEST_CASE("memory need: a step never holds two tensors of the size of its logits") {
  const Config config =
      config_of(R"("kind": "gpt", "num_layers": 1, "d_model": 16, "num_heads": 1, "vocab_size": 4000)", "\"batch_size\": 32");
  Trainer trainer(config);
  trainer.step();
  const double logits = 4.0 * 32 * static_cast<double>(trainer.data().length()) * 4000;
  const int64_t before = memory::stats().live_bytes;
  memory::reset_peak();
  trainer.step();
  CHECK(static_cast<double>(memory::stats().peak_bytes - before) < 1.7 * logits);
}

TEST_CASE("memory need: more than there is is refused with the numbers and nearly all of it is said") {
  const Config config = config_of(kGpt);
  const MemoryNeed need{.parameters = 1 << 20,
                        .mask_bytes = 4 << 20,
                        .parameter_bytes = 4 << 20,
                        .gradient_bytes = 4 << 20,
                        .optimizer_bytes = 8 << 20,
                        .activation_bytes = 80 << 20};
  const std::string sentence =
      "run.json: training needs about 100 MiB (parameters 4 MiB, gradients 4 MiB, optimizer 8 MiB, activations 80 MiB, masks 4 "
      "MiB), there are ";
  const std::string hint = " MiB left (a smaller model, batch_size or context_length needs less)";
  CHECK(check_memory(config, need, 200 << 20) == "");
  CHECK(check_memory(config, need, 105 << 20) == sentence + "105" + hint);
  CHECK(check_memory(config, need, 85 << 20) == sentence + "85" + hint);
  CHECK_THROWS_WITH_AS(check_memory(config, need, 70 << 20), (sentence + "70" + hint).c_str(), ConfigError);
  const Config huge = config_of(R"("kind": "gpt", "num_layers": 1000, "d_model": 65536, "num_heads": 4)");
  CHECK(memory_need(huge, 16777216, 32).total() > 1e14);
  CHECK_THROWS_AS(Trainer{huge}, ConfigError);
}

TEST_CASE("memory need: what is left follows the system and the control group and the limits of the process") {
  const TemporaryFolder folder;
  const fs::path& root = folder.path();
  const fs::path group = root / "sys/fs/cgroup/a/b", old = root / "sys/fs/cgroup/memory/c";
  const auto write = [](const fs::path& file, const std::string& text) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  };
  CHECK(available_memory(root) > int64_t{1} << 60);  // nothing is known
  write(root / "proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    3000 kB\nSwapFree:  1000 kB\n");
  CHECK(available_memory(root) == 4000 * 1024);
  write(root / "proc/self/cgroup", "0::/a/b\n");
  write(group / "memory.max", "max\n");
  write(group / "memory.current", "100\n");
  CHECK(available_memory(root) == 4000 * 1024);
  write(group / "memory.max", "2000000\n");
  write(group / "memory.current", "700000\n");
  CHECK(available_memory(root) == 1300000);
  write(group / "memory.stat", "anon 5\ninactive_file 200000\n");
  CHECK(available_memory(root) == 1500000);
  write(group.parent_path() / "memory.max", "1000000\n");
  write(group.parent_path() / "memory.current", "900000\n");
  CHECK(available_memory(root) == 100000);  // the group above
  write(root / "proc/self/cgroup", "5:cpu:/x\n4:memory:/c\n");
  write(old / "memory.limit_in_bytes", "800000\n");
  write(old / "memory.usage_in_bytes", "900000\n");
  CHECK(available_memory(root) == 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
  const testing::MemoryLimit limit(100 << 20);
  CHECK(available_memory() <= 100 << 20);
  CHECK(available_memory() > 90 << 20);
  CHECK_THROWS_WITH_AS(ones({200 << 20}), doctest::Contains("memory: the system has no block of "), Error);
#endif
}
