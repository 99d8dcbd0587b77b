#include "web/engine/run_methods.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "autograd/ops.h"
#include "base/json_reader.h"
#include "train/runs/run.h"
#include "train/samples.h"
#include "web/engine/arguments.h"
#include "web/engine/attention_maps.h"
#include "web/engine/handles.h"

namespace onestep::web {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

/// A run and its loop, which writes into its folder.
struct OpenRun {
  explicit OpenRun(train::ActiveRun opened, fs::path its_folder)
      : run(std::move(opened)), folder(std::move(its_folder)), loop(*run.trainer, folder, run.state) {}

  train::Trainer& trainer() { return *run.trainer; }

  train::ActiveRun run;
  fs::path folder;
  train::RunLoop loop;
};

Handles<OpenRun>& runs() {
  static Handles<OpenRun> all;
  return all;
}

OpenRun& run_of(const json& arguments) { return runs().at(integer(arguments, "run")); }

/// The config under "config": an object, or the text of a file, of which messages then name line and column.
train::Config config_of(const json& arguments) {
  const auto found = arguments.find("config");
  ONESTEP_CHECK(ConfigError, found != arguments.end(), "arguments: /config: is missing");
  return train::parse_config(found->is_string() ? found->get<std::string>() : found->dump(), "config");
}

json config_json(const train::Config& config) { return parse_json<ConfigError>(resolved_json(config), "config"); }

json check_config(const json& arguments) { return config_json(config_of(arguments)); }

/// What a page says of a run.
json describe(int64_t number) {
  OpenRun& open = runs().at(number);
  train::Trainer& trainer = open.trainer();
  return {{"run", number},
          {"folder", open.folder.string()},
          {"config", config_json(trainer.config())},
          {"data", trainer.data().describe()},
          {"parameters", trainer.model().num_parameters()},
          {"tokens_per_step", trainer.tokens_per_step()},
          {"step", trainer.steps_done()},
          {"done", open.loop.done()}};
}

json run_new(const json& arguments) {
  const fs::path folder = text_argument(arguments, "folder");
  train::ActiveRun started = train::start_run(config_of(arguments), folder, std::make_shared<train::Communicator>(), true);
  return describe(runs().make(std::move(started), folder));
}

json run_open(const json& arguments) {
  const fs::path folder = text_argument(arguments, "folder");
  std::vector<std::string> sets;
  if (arguments.contains("steps")) sets.push_back("train.steps=" + std::to_string(integer(arguments, "steps")));
  train::ActiveRun resumed = train::resume_run(folder, sets, std::make_shared<train::Communicator>(), true);
  return describe(runs().make(std::move(resumed), folder));
}

json run_step(const json& arguments) {
  OpenRun& open = run_of(arguments);
  json steps = json::array();
  for (int64_t left = integer(arguments, "steps", 1); left > 0 && !open.loop.done(); --left)
    steps.push_back(parse_json<IoError>(metrics_line(open.loop.step()), "metrics"));
  return steps;
}

json run_evaluate(const json& arguments) {
  const train::Evaluation found = run_of(arguments).trainer().evaluate();
  return {{"loss", found.loss}, {"accuracy", found.accuracy}, {"tokens", found.tokens}};
}

/// The maps of one sample of what the run is evaluated on, the same every time.
json run_attention(const json& arguments) {
  train::Trainer& trainer = run_of(arguments).trainer();
  Generator generator = trainer.evaluation_generator();
  const train::Batch batch = trainer.data().eval_batch(1, generator);
  const int64_t tokens = std::min(batch.length, integer(arguments, "tokens", 32));
  const std::vector<int64_t> ids(batch.inputs.begin(), batch.inputs.begin() + static_cast<std::ptrdiff_t>(tokens));
  json names = json::array();
  for (const int64_t id : ids) names.push_back(trainer.data().token_name(id));
  return {{"tokens", names}, {"weights", attention_maps(trainer.model(), ids)}};
}

json run_samples(const json& arguments) {
  json samples = json::array();
  for (const train::Sample& sample : write_samples(run_of(arguments).trainer(), integer(arguments, "count", 1)))
    samples.push_back({{"prompt", sample.prompt}, {"continuation", sample.continuation}});
  return samples;
}

/// The norm of each parameter's gradient of the last step, after clipping.
json run_gradients(const json& arguments) {
  json norms = json::array();
  for (const auto& [name, parameter] : run_of(arguments).trainer().model().named_parameters()) {
    const Tensor gradient = parameter.grad();
    if (!gradient.defined()) continue;
    norms.push_back({{"name", name}, {"norm", std::sqrt(sum(square(gradient.to(DType::float64))).item())}});
  }
  return norms;
}

/// Checkpoints of the former rate would be refused beside the new config, by name or as the best one: they go.
json run_set_learning_rate(const json& arguments) {
  OpenRun& open = run_of(arguments);
  const double former = open.trainer().config().optimizer.lr;
  open.trainer().set_learning_rate(number(arguments, "lr"));
  if (open.trainer().config().optimizer.lr != former) open.loop.forget_checkpoints();
  write_run_config(open.folder, open.trainer().config(), open.trainer().data().tokenizer());
  return config_json(open.trainer().config());
}

/// A checkpoint of where the run is. One of this step that is there would be set aside as damaged: it goes.
json run_save(const json& arguments) {
  OpenRun& open = run_of(arguments);
  fs::remove_all(open.folder / "checkpoints" / ("step-" + std::to_string(open.trainer().steps_done())));
  open.loop.save();
  return {{"folder", open.folder.string()}, {"step", open.trainer().steps_done()}};
}

json run_close(const json& arguments) {
  runs().close(integer(arguments, "run"));
  return nullptr;
}

}  // namespace

std::vector<Method> run_methods() {
  return {{"check_config", check_config}, {"run_new", run_new},
          {"run_open", run_open},         {"run_step", run_step},
          {"run_evaluate", run_evaluate}, {"run_attention", run_attention},
          {"run_samples", run_samples},   {"run_gradients", run_gradients},
          {"run_save", run_save},         {"run_set_learning_rate", run_set_learning_rate},
          {"run_close", run_close}};
}

}  // namespace onestep::web
