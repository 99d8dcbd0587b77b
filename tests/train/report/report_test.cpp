// The data of the report page and the page that is made of them; tests/cli/report_test.cpp opens it in a browser.
#include "train/report/report.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "autograd/ops.h"
#include "tests/process.h"
#include "tests/support.h"
#include "tests/train/memory_limit.h"

using namespace onestep;
using namespace onestep::testing;
using namespace onestep::train;
namespace fs = std::filesystem;

namespace {

constexpr const char* kRun = R"({"model": {"kind": "gpt", "num_layers": 2, "num_heads": 2, "d_model": 8, "context_length": 7,
    "dropout": 0.5}, "data": {"kind": "task", "task": "copy", "length": 4, "vocab_size": 6},
    "train": {"steps": 2, "batch_size": 3, "grad_accumulation": 2}})";

/// Every query's weights sum to 1, and none is on a later key.
void check_causal_weights(const Tensor& weights, int64_t heads, int64_t length) {
  REQUIRE(weights.shape() == Shape{heads, length, length});
  CHECK(allclose(sum(weights, -1), ones({heads, length}), 1e-5, 1e-6));
  CHECK(equal(triu(weights, 1), zeros({heads, length, length})));
}

/// What stands between the script's marks of the data.
std::string data_of(const std::string& page) {
  const size_t begin = page.find("{\"runs\":");
  return page.substr(begin, page.find("</script>", begin) - begin);
}

}  // namespace

TEST_CASE("report: a run without its trainer is what its folder holds") {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "mine";
  fs::create_directory(run);
  write(run / "config.json", kRun);
  write(run / "metrics.jsonl", R"({"step":0,"loss":2.5,"val_loss":2.25})"
                               "\n"
                               R"({"step":1,"loss":1.5})"
                               "\n");
  const Config config = parse_config(kRun, "run.json");
  const ReportRun report = read_report_run(run, config, nullptr);
  CHECK(report.name == "mine");
  CHECK(report.config == kRun);
  CHECK(report.settings.train.steps == 2);
  CHECK(report.tokens_per_step == 0);  // sequences of a task have lengths of their own
  CHECK(report.metrics == R"([{"loss":2.5,"step":0,"val_loss":2.25},{"loss":1.5,"step":1}])");
  CHECK(report.facts == decltype(report.facts){{"steps", "2"},
                                               {"last training loss", "1.5000"},
                                               {"validation loss", "2.2500"},
                                               {"best validation loss", "2.2500"}});
  CHECK((report.parameters.empty() && report.attention.empty() && report.samples.empty() && !report.glance));
  CHECK((report.written.empty() && report.histograms == "[]"));
  fs::remove(run / "config.json");
  CHECK_THROWS_AS(read_report_run(run, config, nullptr), IoError);
}

TEST_CASE("report: a trainer adds the parameters and attention maps and samples of its model") {
  const TemporaryFolder folder;
  write(folder.path() / "config.json", kRun);
  write(folder.path() / "metrics.jsonl", "");
  Trainer trainer(parse_config(kRun, "run.json"));
  trainer.step();
  const ReportRun report = read_report_run(folder.path(), trainer.config(), &trainer);
  CHECK(report.parameters.size() == trainer.model().named_parameters().size());
  CHECK(report.tokens_per_step == trainer.tokens_per_step());
  REQUIRE(report.attention.size() == 1);
  const AttentionMaps& maps = report.attention[0];
  CHECK(maps.step == 1);
  CHECK(maps.tokens.size() == 7);
  REQUIRE(maps.layers.size() == 2);
  for (const auto& [name, weights] : maps.layers) check_causal_weights(weights, 2, 7);
  CHECK(maps.layers[1].first == "layer 1");
  CHECK(!report.samples.empty());
  CHECK(report.glance.has_value());
  CHECK(sample_maps(trainer, trainer.model(), 5).tokens == maps.tokens);
  CHECK(sample_maps(trainer, trainer.model(), 5).step == 5);
}

TEST_CASE("report: attention weights are those of evaluation and of no more ids than the context takes") {
  Generator generator(3);
  const Config config = parse_config(kRun, "run.json");
  const auto model = make_language_model(config.model, 6, generator);
  model->train();
  const auto first = attention_weights(*model, {0, 1, 2, 3, 4}), again = attention_weights(*model, {0, 1, 2, 3, 4});
  REQUIRE(first.size() == 2);
  for (size_t i = 0; i < first.size(); ++i) {
    check_causal_weights(first[i].second, 2, 5);
    CHECK(equal(first[i].second, again[i].second));  // dropout would draw anew
    CHECK(!first[i].second.requires_grad());
  }
  CHECK(model->is_training());
  CHECK_THROWS_AS(attention_weights(*model, {0, 1, 2, 3, 4, 5, 0, 1}), ShapeError);
}

TEST_CASE("report: no text of a run ends the script that its data stand in") {
  const std::string page = report_html({{.name = "</script><b>", .metrics = "[]"}, {.name = "second", .metrics = "[]"}});
  CHECK(page.starts_with("<!doctype html>"));
  CHECK(!contains(page, "<b>"));
  const auto data = nlohmann::json::parse(data_of(page));
  REQUIRE(data["runs"].size() == 2);
  CHECK(data["runs"][0]["name"] == "</script><b>");
  CHECK(data["runs"][1]["name"] == "second");
  CHECK(data["runs"][0]["attention"].is_null());
  CHECK(data.contains("differences"));
}

TEST_CASE("report: a page may replace a page or an empty file and nothing else") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "page.html";
  CHECK_NOTHROW(check_report_file(file));  // is not there
  write(file, "");
  CHECK_NOTHROW(check_report_file(file));
  write(file, report_html({{.name = "run", .metrics = "[]"}}));
  CHECK_NOTHROW(check_report_file(file));
  write(file, "<!doctype html>\n<title>mine</title>\n");
  CHECK(refusal<IoError>([&] { check_report_file(file); }) ==
        file.string() + ": is no report and would be lost (name another file with --out)");
  CHECK_THROWS_AS(check_report_file(folder.path()), IoError);
}

TEST_CASE("report: a long run takes little memory and is shown by rows and evaluations spread over it") {
  if (skips_without_ci()) return;
  constexpr int kRows = 200'000;
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "config.json") << "{}";
  std::ofstream lines(folder.path() / "metrics.jsonl");
  for (int i = 0; i < kRows; ++i)
    lines << R"({"step":)" << i << R"(,"loss":2,"tokens_per_second":)" << i << R"(,"val_loss":)" << (i == 7 ? 1.5 : 2) << "}\n";
  lines.close();
  const ReportRun report = [&] {
    const MemoryLimit limit(uint64_t{32} << 20);
    return read_report_run(folder.path(), {}, nullptr);
  }();
  std::string facts;
  for (const auto& [name, value] : report.facts) facts += name + ": " + value + "; ";
  CHECK(facts ==
        "steps: 200,000; last training loss: 2.0000; validation loss: 2.0000; best validation loss: 1.5000; "
        "median speed: 99,968 tokens/s; ");
  const auto rows = nlohmann::json::parse(report.metrics);
  CHECK((rows.size() > 2500 && rows.size() <= 5001));
  CHECK(rows.front()["step"] == 0);
  CHECK(rows.back()["step"] == kRows - 1);
  for (size_t i = 1; i < rows.size(); ++i) REQUIRE(rows[i]["step"].get<int>() - rows[i - 1]["step"].get<int>() <= 64);
}
