// A trained model as a page looks into it.

#include "web/engine/model_methods.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "autograd/ops.h"
#include "tests/process.h"
#include "train/runs/run.h"
#include "train/runs/trained_run.h"

namespace {

using nlohmann::json;
using onestep::testing::TemporaryFolder;
using onestep::web::call;
namespace train = onestep::train;

json result_of(std::string_view method, const json& arguments) {
  json result = json::parse(call(method, arguments.dump()));
  REQUIRE_MESSAGE(!(result.is_object() && result.contains("error")), result.dump());
  return result;
}

/// Trains a few steps on a text with this model section and opens the result.
json trained(const TemporaryFolder& temporary, const char* model) {
  json config = json::parse(R"({"data": {"kind": "text", "text": "", "tokenizer": "char"},
                                "train": {"steps": 3, "batch_size": 4, "eval_batches": 1}})");
  for (int i = 0; i < 10; ++i)
    config["data"]["text"] = config["data"]["text"].get<std::string>() + "the cat sat on the mat. the dog sat on the log. ";
  config["model"] = json::parse(model);
  const auto folder = temporary.path() / "run";
  train::ActiveRun run =
      train::start_run(train::parse_config(config.dump(), "test"), folder, std::make_shared<train::Communicator>(), true);
  train::train_run(run, {});
  return {{"model", result_of("model_open", {{"folder", folder.string()}})["model"]}, {"text", "the c"}, {"count", 1000}};
}

constexpr const char* kGpt = R"({"kind": "gpt", "d_model": 16, "num_heads": 2, "num_layers": 2, "context_length": 8})";

}  // namespace

TEST_CASE("web: a model's probabilities are those of its logits and its maps those of every head") {
  const TemporaryFolder temporary;
  const json model = trained(temporary, kGpt);
  const json found = result_of("model_next", model);
  CHECK(found["tokens"] == json::parse(R"(["t", "h", "e", " ", "c"])"));
  double sum = 0, last = 1;
  for (const json& token : found["next"]) {
    const auto probability = token["probability"].get<double>();
    CHECK(probability <= last);
    sum += last = probability;
  }
  CHECK(sum == doctest::Approx(1).epsilon(1e-5));
  const json maps = result_of("model_attention", model)["weights"];
  REQUIRE(maps.size() == 2);
  for (const json& layer : maps) {
    REQUIRE(layer.size() == 2);
    for (const json& head : layer)
      for (size_t query = 0; query < 5; ++query) {
        const auto row = head[query].get<std::vector<double>>();
        CHECK(std::accumulate(row.begin(), row.end(), 0.0) == doctest::Approx(1).epsilon(1e-5));
        CHECK(std::all_of(row.begin() + static_cast<std::ptrdiff_t>(query) + 1, row.end(), [](double w) { return w == 0; }));
      }
  }
  json one = model;
  one["layer"] = 1;
  one["head"] = 0;
  CHECK(result_of("model_attention", one)["weights"] == maps[1][0]);
  one["head"] = 2;
  CHECK(call("model_attention", one.dump()).find("head must be from 0 to 1: got 2") != std::string::npos);
}

TEST_CASE("web: an ablated head adds nothing and the model is as it was afterwards") {
  for (const char* const section :
       {kGpt, R"({"kind": "attention", "attention": "multi_head", "d_model": 16, "num_heads": 2, "context_length": 8})",
        R"({"kind": "attention", "attention": "multi_head_wrapper", "d_model": 16, "num_heads": 2, "context_length": 8})",
        R"({"kind": "attention", "attention": "causal", "d_model": 16, "context_length": 8})"}) {
    CAPTURE(section);
    const TemporaryFolder temporary;
    json model = trained(temporary, section);
    const json whole = result_of("model_next", model)["next"];
    model["ablate"] = json::parse("[[0, 0]]");
    CHECK(result_of("model_next", model)["next"] != whole);
    model["ablate"] = json::parse("[[0, 0], [0, 0]]");  // twice is once
    result_of("model_next", model);
    model["ablate"] = json::array();
    CHECK(result_of("model_next", model)["next"] == whole);
    model["ablate"] = json::parse("[[5, 0]]");
    CHECK(call("model_next", model.dump()).find("there is no head 0 in a layer 5") != std::string::npos);
    model["ablate"] = 3;
    CHECK(call("model_next", model.dump()).find("must be a list of [layer, head]") != std::string::npos);
  }
}

TEST_CASE("web: a model writes what the program generates") {
  const TemporaryFolder temporary;
  json model = trained(temporary, kGpt);
  model["tokens"] = 12;
  model["seed"] = 3;
  const json made = result_of("model_generate", model);
  CHECK(made["ids"].size() == 12);
  CHECK(made["text"].get<std::string>().size() == 12);
  CHECK(result_of("model_generate", model) == made);
  model["temperature"] = -1;
  CHECK(call("model_generate", model.dump()).find("temperature") != std::string::npos);
  CHECK(result_of("folder_kind", {{"folder", (temporary.path() / "run").string()}}) == "run");
  result_of("model_close", model);
}

TEST_CASE("web: a model of a task takes its symbols, and its text ends at an end-of-text token") {
  const TemporaryFolder temporary;
  const json config = json::parse(R"({"seed": 2,
    "model": {"kind": "gpt", "num_layers": 1, "num_heads": 1, "d_model": 8, "context_length": 11, "eos_token_ids": [0, 1, 2]},
    "data": {"kind": "task", "task": "copy", "vocab_size": 6, "length": 4},
    "train": {"steps": 2, "batch_size": 2, "eval_batches": 1}})");
  const auto folder = temporary.path() / "run";
  train::ActiveRun run =
      train::start_run(train::parse_config(config.dump(), "test"), folder, std::make_shared<train::Communicator>(), true);
  train::train_run(run, {});
  const json open = result_of("model_open", {{"folder", folder.string()}});
  CHECK(open["tokenizer"] == "word");
  CHECK(open["example"].get<std::string>().size() == 7);  // four letters
  CHECK(open["answer"] == 4);
  json model = {{"model", open["model"]}, {"text", open["example"]}, {"tokens", 200}, {"seed", 1}};
  CHECK(result_of("model_next", model)["tokens"].size() == 4);
  const json made = result_of("model_generate", model);
  const std::vector<int64_t> ids = made["ids"].get<std::vector<int64_t>>();
  REQUIRE(ids.size() < 200);
  CHECK(made["stopped"] == true);
  CHECK(ids.back() < 3);
  std::string wanted;
  for (size_t i = 0; i + 1 < ids.size(); ++i) {
    CHECK(ids[i] >= 3);
    wanted += {' ', static_cast<char>('a' + ids[i])};
  }
  CHECK(made["text"] == wanted);
  model["text"] = "0, 1";
  CHECK(call("model_next", model.dump()).find("ConfigError") != std::string::npos);
  result_of("model_close", model);
}
