// Whole GPT training runs against PyTorch 2.13.0's (tests/goldens/gpt.json), from the seed and the text.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

#include "tests/goldens.h"
#include "tests/process.h"
#include "train/trainer.h"

using namespace onestep;
using namespace onestep::train;
using nlohmann::json;
using onestep::testing::fnv1a;
using onestep::testing::golden;
using onestep::testing::number;

namespace {

/// A text that stands for tinyshakespeare (gpt_windows.py): as long, of the same characters, with the parts that the runs read
/// where they belong.
std::string stand_in_text() {
  const json& windows = golden("gpt_windows.json");
  const auto alphabet = windows["alphabet"].get<std::string>();
  std::string text(windows["characters"].get<size_t>(), ' ');
  text.replace(text.size() - alphabet.size(), alphabet.size(), alphabet);
  for (const json& piece : windows["pieces"]) {
    const auto part = piece[1].get<std::string>();
    text.replace(piece[0].get<size_t>(), part.size(), part);
  }
  return text;
}

Config config_of(const json& run, const std::string& text_path) {
  const json& c = run["config"];
  json config = {
      {"seed", c["seed"]},
      {"model",
       {{"kind", "gpt"},
        {"num_layers", c["L"]},
        {"num_heads", c["h"]},
        {"d_model", c["d"]},
        {"context_length", c["T"]},
        {"bias", c["bias"]},
        {"dropout", c["dropout"]}}},
      {"data", {{"kind", "text"}, {"path", text_path}}},
      {"optimizer", {{"lr", c["lr"]}, {"weight_decay", c["wd"]}, {"betas", {0.9, c["beta2"]}}}},
      {"train", {{"steps", c["steps"]}, {"batch_size", c["B"]}, {"grad_clip", c["clip"]}, {"grad_accumulation", c["accum"]}}}};
  if (c.contains("schedule")) {
    const json& s = c["schedule"];
    config["schedule"] = {
        {"kind", "cosine"}, {"warmup_steps", s["warmup"]}, {"decay_steps", s["decay"]}, {"min_lr", s["min_lr"]}};
  }
  return parse_config(config.dump(), "gpt.json");
}

void check_initial_parameters(const json& expected, const nn::NamedTensors& parameters) {
  REQUIRE(parameters.size() == expected.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    CAPTURE(parameters[i].first);
    CHECK(parameters[i].first == expected[i]["name"]);
    CHECK(fnv1a(parameters[i].second.to_vector<float>()) == expected[i]["fnv"]);
  }
}

bool close(double actual, const json& expected, double tolerance = 1e-5) {
  return std::abs(actual - number(expected)) <= tolerance * std::abs(number(expected));
}

/// How far a gradient norm may be from the listed one: 1e-5 or, at the one step whose gradient is so steep that PyTorch itself
/// differs by more from one number of threads to another, as much as it does.
double norm_tolerance(size_t run, size_t step) {
  for (const json& spread : golden("gpt_windows.json")["norm_spread"])
    if (spread[0] == run && spread[1] == step) return std::max(1e-5, number(spread[2]));
  return 1e-5;
}

}  // namespace

TEST_CASE("gpt: training follows PyTorch from the seed and the text") {
  const testing::TemporaryFolder folder;
  const std::string path = (folder.path() / "text.txt").string();
  std::ofstream(path) << stand_in_text();
  const json& runs = golden("gpt.json")["runs"];
  REQUIRE(runs.size() == 2);
  for (size_t i = 0; i < runs.size(); ++i) {
    const json& run = runs[i];
    CAPTURE(i);
    Trainer trainer(config_of(run, path));
    check_initial_parameters(run["parameters"], trainer.model().named_parameters());
    REQUIRE(run["losses"].size() == run["config"]["steps"].get<size_t>());
    for (size_t step = 0; step < run["losses"].size(); ++step) {
      CAPTURE(step);
      const StepMetrics metrics = trainer.step();
      CHECK(close(metrics.loss, run["losses"][step]));
      CHECK(close(metrics.grad_norm, run["grad_norms"][step], norm_tolerance(i, step)));
    }
  }
}
