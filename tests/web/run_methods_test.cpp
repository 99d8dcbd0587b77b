// Runs as a page drives them, step by step, against those that the program trains in one go.

#include "web/engine/run_methods.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/process.h"
#include "tests/support.h"
#include "train/checkpoint/checkpoint.h"
#include "train/runs/run.h"
#include "train/runs/trained_run.h"

namespace {

using nlohmann::json;
using onestep::testing::TemporaryFolder;
using onestep::web::call;
namespace fs = std::filesystem;
namespace train = onestep::train;

const json kRun = json::parse(R"({
  "seed": 7,
  "model": {"kind": "gpt", "d_model": 16, "num_heads": 2, "num_layers": 2, "context_length": 15, "dropout": 0.1},
  "data": {"kind": "task", "task": "copy", "vocab_size": 12, "length": 8},
  "optimizer": {"kind": "adamw", "lr": 0.003},
  "train": {"steps": 12, "batch_size": 4, "eval_every": 4, "eval_batches": 2}
})");

json result_of(std::string_view method, const json& arguments) {
  json result = json::parse(call(method, arguments.dump()));
  REQUIRE_MESSAGE(!(result.is_object() && result.contains("error")), result.dump());
  return result;
}

std::string refusal_of(std::string_view method, const json& arguments) {
  return json::parse(call(method, arguments.dump())).at("error").at("message");
}

json without_times(json lines) {
  for (json& line : lines) {
    line.erase("seconds");
    line.erase("tokens_per_second");
  }
  return lines;
}

/// What metrics.jsonl of a run of all 12 steps holds.
json all_steps(const fs::path& folder) {
  train::ActiveRun run =
      train::start_run(train::parse_config(kRun.dump(), "test"), folder, std::make_shared<train::Communicator>(), true);
  train::train_run(run, {});
  json lines = json::array();
  std::istringstream metrics(onestep::testing::read(folder / "metrics.jsonl"));
  for (std::string line; std::getline(metrics, line);) lines.push_back(json::parse(line));
  return without_times(lines);
}

}  // namespace

TEST_CASE("web: a run that is driven step by step is the run that the program trains") {
  const TemporaryFolder temporary;
  const json all = all_steps(temporary.path() / "program");
  const json run = {{"run", result_of("run_new", {{"config", kRun}, {"folder", (temporary.path() / "page").string()}})["run"]}};
  json stepped = json::array();
  for (const int steps : {1, 6, 20}) {
    json arguments = run;
    arguments["steps"] = steps;
    for (const json& line : result_of("run_step", arguments)) stepped.push_back(line);
    result_of("run_attention", run);
    result_of("run_samples", run);
    result_of("run_gradients", run);
    result_of("run_evaluate", run);
  }
  CHECK(without_times(stepped) == all);
  for (const char* const file : {"model.safetensors", "optimizer.safetensors"}) {
    const fs::path path = fs::path("checkpoints/step-12") / file;
    CHECK(onestep::testing::read(temporary.path() / "page" / path) ==
          onestep::testing::read(temporary.path() / "program" / path));
  }
  result_of("run_close", run);
  CHECK(refusal_of("run_step", run).starts_with("there is no object"));
}

TEST_CASE("web: a run that was saved is resumed by the program, with the learning rate that it had") {
  const TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "run";
  const json opened = result_of("run_new", {{"config", kRun}, {"folder", folder.string()}});
  const json run = {{"run", opened["run"]}, {"steps", 5}, {"lr", 0.001}};
  CHECK(opened["parameters"] > 1000);
  result_of("run_step", run);
  result_of("run_save", run);
  CHECK(result_of("run_set_learning_rate", run)["optimizer"]["lr"] == 0.001);
  CHECK(train::checkpoint_folders(folder).empty());  // step-4, the best, and step-5 were trained with the former one
  result_of("run_save", run);
  result_of("run_close", run);
  train::ActiveRun resumed = train::resume_run(folder, {}, std::make_shared<train::Communicator>(), true);
  CHECK(resumed.trainer->steps_done() == 5);
  CHECK(resumed.trainer->config().optimizer.lr == 0.001);
  CHECK(resumed.trainer->step().lr == 0.001);
  const train::Config config = train::load_run_config(folder);
  CHECK(train::choose_checkpoint(folder, config, "last").checkpoint.trainer.step == 5);
  CHECK_THROWS_WITH(train::choose_checkpoint(folder, config, "best"), doctest::Contains("nothing has been evaluated yet"));
}

TEST_CASE("web: what a run refuses is what the checker says") {
  const TemporaryFolder temporary;
  CHECK(refusal_of("check_config", {{"config", {{"model", {{"d_model", "x"}}}}}}).starts_with("config: /model/d_model: "));
  CHECK(refusal_of("check_config", {{"config", "{\n\"seed\": }"}}).starts_with("config:2:"));
  CHECK(refusal_of("check_config", json::object()) == "arguments: /config: is missing");
  CHECK(refusal_of("run_new", {{"config", kRun}}) == "arguments: /folder: is missing");
  CHECK(refusal_of("run_open", {{"folder", temporary.path().string()}}).starts_with(temporary.path().string() + ": "));
  CHECK(refusal_of("run_step", {{"run", "one"}}) == "arguments: /run: must be a whole number: got \"one\"");
  const json run = {{"run", result_of("run_new", {{"config", kRun}, {"folder", (temporary.path() / "run").string()}})["run"]},
                    {"lr", -1}};
  CHECK(refusal_of("run_set_learning_rate", run).find("/optimizer/lr") != std::string::npos);
  result_of("run_close", run);
}
