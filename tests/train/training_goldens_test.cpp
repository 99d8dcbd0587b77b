// Whole training runs against PyTorch 2.13.0's (tests/goldens/reference.json: training), through configs.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/goldens.h"
#include "train/trainer.h"

using namespace onestep;
using namespace onestep::train;
using nlohmann::json;
using onestep::testing::fnv1a;
using onestep::testing::golden;
using onestep::testing::number;
using onestep::testing::numbers;

namespace {

Config config_of(const json& run, const std::string& dtype) {
  const json& c = run["config"];
  const json config = {
      {"seed", c["seed"]},
      {"model",
       {{"attention", "multi_head"},
        {"d_model", c["width"]},
        {"num_heads", c["heads"]},
        {"context_length", c["context"]},
        {"dropout", c["dropout"]},
        {"qkv_bias", c["qkv_bias"]}}},
      {"data",
       {{"kind", "tokens"}, {"tokens", run["tokens"]}, {"vocab_size", c["vocab"]}, {"window_starts", run["window_starts"]}}},
      {"optimizer", {{"kind", "adamw"}, {"lr", c["lr"]}}},
      {"train", {{"steps", run["steps"]}, {"dtype", dtype}}}};
  return parse_config(config.dump(), run["id"]);
}

void check_close(double actual, const json& expected, double rtol, double atol = 0) {
  CHECK(std::abs(actual - number(expected)) <= atol + rtol * std::abs(number(expected)));
}

void check_values(const Tensor& actual, const json& expected, double rtol, double atol) {
  const auto values = actual.to_vector<double>(), wanted = numbers<double>(expected);
  REQUIRE(values.size() == wanted.size());
  for (size_t i = 0; i < values.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(values[i] - wanted[i]) <= atol + rtol * std::abs(wanted[i]));
  }
}

void check_initial_parameters(const json& run, const nn::NamedTensors& parameters) {
  REQUIRE(parameters.size() == run["parameters"].size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const json& expected = run["parameters"][i];
    CHECK(parameters[i].first == expected["name"]);
    CHECK(fnv1a(parameters[i].second.to_vector<float>()) == expected["fnv"]);
  }
}

/// Logits and gradients before the first update.
void check_start(const json& run, Trainer& trainer, const std::string& precision, double rtol, double atol) {
  const json& inputs = run["inputs"];
  const Shape shape{static_cast<int64_t>(inputs.size()), static_cast<int64_t>(inputs[0].size())};
  trainer.model().eval();
  const Tensor logits = trainer.model().forward(from_values(numbers<int64_t>(inputs), shape));
  trainer.model().train();
  const size_t listed = run[precision + "_logits0"]["values"].size();  // the longer runs list the first values only
  check_values(logits.flatten().slice(0, 0, static_cast<int64_t>(listed)), run[precision + "_logits0"]["values"], rtol, atol);
}

void check_run(const json& run, const std::string& precision, double rtol, double atol) {
  Trainer trainer(config_of(run, precision == "f32" ? "float32" : "float64"));
  check_initial_parameters(run, trainer.model().named_parameters());
  if (number(run["config"]["dropout"]) == 0) check_start(run, trainer, precision, rtol, atol);
  const json& losses = run[precision + "_losses"];
  // A row's float32 loss is log(1 + s) for s in steps of 2^-23. Once the loss is below 2^-23 / rows / 5e-6 (steps 40 to 49 of
  // small_lr_1e-2) one such step in one row is more than 5e-6 of the mean: PyTorch 2.13 itself differs by it between machines.
  const double rows = static_cast<double>(run["inputs"].size() * run["inputs"][0].size());
  const double row_step = precision == "f32" ? 0x1p-23 / rows : 0.0;
  const json& norms = run[precision + "_grad_norms"];
  for (size_t step = 0; step < losses.size(); ++step) {
    CAPTURE(step);
    const StepMetrics metrics = trainer.step();
    CHECK(std::abs(metrics.loss - number(losses[step])) <= std::max(rtol * number(losses[step]), 1.01 * row_step));
    if (step < norms.size()) check_close(metrics.grad_norm, norms[step], 4 * rtol);
  }
  check_close(trainer.evaluate().loss, run[precision + "_final_eval_loss"], rtol);
  if (precision == "f32")
    CHECK(trainer.generator().u64() == std::stoull(run["rng_next_u64_after_training_f32"].get<std::string>()));
  const std::string end = precision + "_parameters_end";
  if (run.contains(end))
    for (const auto& [name, tensor] : trainer.model().named_parameters()) check_values(tensor, run[end][name], 1e-4, 20 * atol);
}

}  // namespace

TEST_CASE("training in float32 follows PyTorch from the seed") {
  const json& runs = golden("reference.json")["training"];
  REQUIRE(runs.size() == 5);
  for (const json& run : runs) {
    CAPTURE(run["id"].get<std::string>());
    check_run(run, "f32", 5e-6, 1e-6);
  }
}

TEST_CASE("training in float64 follows PyTorch from the widened parameters") {
  for (const json& run : golden("reference.json")["training"]) {
    CAPTURE(run["id"].get<std::string>());
    if (run.contains("f64_losses")) check_run(run, "f64", 1e-12, 1e-13);
  }
}
