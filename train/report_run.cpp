#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "attention/weights_recorder.h"
#include "autograd/ops.h"
#include "train/files.h"
#include "train/json_reader.h"
#include "train/metrics.h"
#include "train/metrics_json.h"
#include "train/report.h"
#include "train/utf8.h"

namespace onestep::train {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;
using Facts = std::vector<std::pair<std::string, std::string>>;

constexpr size_t kMaxRows = 5000;      // steps drawn
constexpr int64_t kMaxMapTokens = 48;  // tokens of an attention map
constexpr int64_t kSamples = 2;
constexpr int64_t kMaxConfigBytes = 1 << 20;

/// At most about kMaxRows rows: every n-th, and all with a validation loss.
json thinned(const std::vector<json>& rows) {
  const size_t every = rows.size() / kMaxRows + 1;
  json kept = json::array();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i % every == 0 || i + 1 == rows.size() || rows[i].contains("val_loss")) kept.push_back(rows[i]);
  }
  return kept;
}

std::vector<double> column(const std::vector<json>& rows, const char* key) {
  std::vector<double> values;
  for (const json& row : rows) {
    const auto found = row.find(key);
    if (found != row.end() && found->is_number()) values.push_back(found->get<double>());
  }
  return values;
}

/// What metrics.jsonl says of the run as a whole, of which so many steps are known to be done; `evaluation` is what its
/// val_loss is called.
Facts metric_facts(const std::vector<json>& rows, int64_t steps_done, const std::string& evaluation) {
  Facts facts;
  const auto last = [&](const std::string& name, const char* key, double factor, int digits, const std::string& unit) {
    const std::vector<double> values = column(rows, key);
    if (!values.empty()) facts.emplace_back(name, grouped(factor * values.back(), digits) + unit);
  };
  if (const auto steps = column(rows, "step"); !steps.empty())
    facts.emplace_back("steps", grouped(std::max(steps.back() + 1, static_cast<double>(steps_done))));
  last("training loss", "loss", 1, 4, "");
  last(evaluation + " loss", "val_loss", 1, 4, "");
  if (const auto losses = column(rows, "val_loss"); !losses.empty())
    facts.emplace_back("best " + evaluation + " loss", grouped(*std::min_element(losses.begin(), losses.end()), 4));
  last(evaluation + " accuracy", "val_accuracy", 100, 2, " %");
  last("time", "seconds", 1, 1, " s");
  if (auto speeds = column(rows, "tokens_per_second"); !speeds.empty()) {
    std::nth_element(speeds.begin(), speeds.begin() + static_cast<std::ptrdiff_t>(speeds.size() / 2), speeds.end());
    facts.emplace_back("median speed", grouped(speeds[speeds.size() / 2]) + " tokens/s");
  }
  return facts;
}

/// What summary.json adds, if the run got that far.
void add_summary(const fs::path& run, Facts& facts) {
  const std::string path = (run / "summary.json").string();
  if (!fs::exists(path)) return;
  const json summary = read_json<IoError>(path, kMaxConfigBytes);
  check<IoError>(summary.is_object(), path, ": must be an object: got ", brief(summary));
  for (const auto& [key, value] : summary.items()) {
    check<IoError>(value.is_string(), path, ": ", json_pointer("", key), ": must be a string: got ", brief(value));
    facts.emplace_back(key, value.get<std::string>());
  }
}

/// The tokens as people read them: text where there is a tokenizer, else the ids.
std::vector<std::string> token_names(const std::vector<int64_t>& ids, const Tokenizer* tokenizer) {
  std::vector<std::string> names;
  names.reserve(ids.size());
  for (const int64_t id : ids)
    names.push_back(tokenizer != nullptr ? printable(tokenizer->decode(std::vector{id})) : std::to_string(id));
  return names;
}

/// The weights of every attention layer for the beginning of one sample.
AttentionMaps attention_maps(Trainer& trainer) {
  Generator generator = trainer.evaluation_generator();
  const Batch batch = trainer.data().eval_batch(1, generator);
  const auto tokens = static_cast<std::ptrdiff_t>(std::min(batch.length, kMaxMapTokens));
  const std::vector<int64_t> ids(batch.inputs.begin(), batch.inputs.begin() + tokens);
  const NoGradGuard no_grad;
  const EvaluationMode mode(trainer.model());
  const attention::WeightsRecorder recorder;
  trainer.model().forward(from_values(ids, {1, static_cast<int64_t>(tokens)}));
  AttentionMaps maps{token_names(ids, trainer.data().tokenizer()), {}};
  for (const Tensor& weights : recorder.weights())  // [1, T, T] or [1, H, T, T]
    maps.layers.emplace_back("layer " + std::to_string(maps.layers.size()),
                             weights.reshape({-1, weights.size(-2), weights.size(-1)}));
  return maps;
}

}  // namespace

ReportRun read_report_run(const fs::path& run, Trainer* trainer) {
  ReportRun report{.name = run.filename().string()};
  const std::vector<json> rows = read_metrics(run.string());
  if (trainer != nullptr) report.evaluated_on = trainer->data().evaluates_on();
  report.facts = metric_facts(rows, trainer != nullptr ? trainer->steps_done() : 0,
                              report.evaluated_on.starts_with("training") ? "evaluation" : "validation");
  add_summary(run, report.facts);
  report.metrics = thinned(rows).dump();
  report.config = read_file((run / "config.json").string(), kMaxConfigBytes);
  if (trainer != nullptr) {
    report.parameters = trainer->model().named_parameters();
    report.attention = attention_maps(*trainer);
    try {
      report.samples = write_samples(*trainer, kSamples);
    } catch (const DivergedError&) {  // what else there is to see is shown all the same
    }
  }
  return report;
}

}  // namespace onestep::train
