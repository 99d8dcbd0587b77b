// Runs side by side: what is read of a folder, and what is printed of several.
#include "train/runs/run_summary.h"

#include <doctest/doctest.h>

#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"
#include "train/config/config_differences.h"
#include "train/run_folder.h"

using namespace onestep;
using namespace onestep::train;

namespace {

using Strings = std::vector<std::string>;

/// A run of configs/sentence.json with these metrics.
RunSummary made(const std::filesystem::path& run, const Strings& sets, const std::string& metrics) {
  { const RunLock lock = create_run(run, load_config(ONESTEP_SOURCE_DIR "/configs/sentence.json", sets), nullptr); }
  testing::write(run / "metrics.jsonl", metrics);
  return summarize_run(run);
}

}  // namespace

TEST_CASE("run summary: a folder is read, and runs are compared") {
  const testing::TemporaryFolder folder;
  const std::vector<RunSummary> runs = {
      made(folder.path() / "a", {}, R"({"step":0,"loss":2.0,"seconds":0.5}
{"step":1,"loss":1.5,"val_loss":1.25,"val_accuracy":0.5,"seconds":1.25}
{"step":2,"loss":1.0,"seconds":2}
{"step":3,"loss":0.5,"val_loss":1.75,"val_accuracy":0.75,"seconds":1234.5}
)"),
      made(folder.path() / "b", {"optimizer.lr=0.5", "model.attention=self_v1"}, R"({"step":0,"loss":3.0,"seconds":0.5}
{"step":1,"loss":null,"seconds":1}
)"),
  };
  CHECK(runs[0].loss == Curve{{1, 2.0}, {2, 1.5}, {3, 1.0}, {4, 0.5}});
  CHECK(runs[0].val_loss == Curve{{2, 1.25}, {4, 1.75}});
  CHECK(runs[0].best() == std::pair<int64_t, double>{2, 1.25});
  CHECK(runs[0].val_accuracy == 0.75);
  CHECK(runs[0].steps == 4);
  CHECK_FALSE(runs[1].best().has_value());
  CHECK(config_differences({runs[0].config, runs[1].config}) ==
        std::vector<Strings>{{"model.attention", R"("multi_head")", R"("self_v1")"},
                             {"model.num_heads", "2", "-"},
                             {"model.dropout", "0.0", "-"},
                             {"model.qkv_bias", "false", "-"},
                             {"optimizer.lr", "0.01", "0.5"}});
  CHECK(comparison(runs) == R"(                             a          b

model.attention   "multi_head"  "self_v1"
model.num_heads              2          -
model.dropout              0.0          -
model.qkv_bias           false          -
optimizer.lr              0.01        0.5

steps                        4          2
train loss              0.5000     3.0000
val loss                1.7500          -
best val loss           1.2500          -
at step                      2          -
val accuracy           75.00 %          -
seconds                1,234.5        1.0

train loss, step
1                       2.0000     3.0000
2                       1.5000          -
3                       1.0000          -
4                       0.5000          -

val loss, step
2                       1.2500          -
4                       1.7500          -
)");
  CHECK(config_differences({runs[0].config, runs[0].config}).empty());
}

TEST_CASE("config differences: keys of adapters do not apply to a model without them") {
  const auto with = [](const std::string& model) {
    return parse_config(
        R"({"data": {"kind": "task", "task": "copy"}, "model": {"kind": "gpt", "context_length": 15)" + model + "}}",
        "run.json");
  };
  CHECK(config_differences({with(""), with(R"(, "lora": {"rank": 4})")}) ==
        std::vector<std::vector<std::string>>{{"model.lora.rank", "0", "4"},
                                              {"model.lora.alpha", "-", "4.0"},
                                              {"model.lora.dropout", "-", "0.0"},
                                              {"model.lora.targets", "-", R"(["c_attn"])"}});
}

TEST_CASE("run summary: long curves are shown at ten steps, training losses as means") {
  const testing::TemporaryFolder folder;
  std::string metrics;
  for (int step = 0; step < 1000; ++step)
    metrics += "{\"step\":" + std::to_string(step) + ",\"loss\":" + std::to_string(step / 100) + "}\n";
  const RunSummary run = made(folder.path() / "run", {}, metrics);
  const std::string text = comparison({run, run});
  const size_t at = text.find("train loss, step\n");
  REQUIRE(at != std::string::npos);
  std::string wanted = "train loss, step\n";
  for (int i = 1; i <= 10; ++i) {
    std::string head = i == 10 ? "1,000" : std::to_string(i * 100), value = i == 1 ? "0.0000" : std::to_string(i - 1) + ".0000";
    wanted += head + std::string(16 - head.size(), ' ') + "  " + value + "  " + value + "\n";
  }
  CHECK(text.substr(at) == wanted);
}
