#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "attention/weights_recorder.h"
#include "autograd/creation.h"
#include "autograd/ops.h"
#include "autograd/tensor.h"
#include "base/format.h"
#include "base/json_reader.h"
#include "base/read_file.h"
#include "base/utf8.h"
#include "nn/module.h"
#include "train/log/histogram_file.h"
#include "train/log/metrics.h"
#include "train/log/metrics_reader.h"
#include "train/log/step_lines.h"
#include "train/report/report.h"
#include "train/run_folder.h"

namespace onestep::train {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;
using Facts = std::vector<std::pair<std::string, std::string>>;

constexpr size_t kMaxRows = 5000;      // steps drawn, and evaluations
constexpr int64_t kMaxMapTokens = 48;  // tokens of an attention map
constexpr int64_t kSamples = 2;
constexpr size_t kMaxWritten = 100;    // lines of samples.jsonl,
constexpr size_t kMaxHistograms = 40;  // and of histograms.jsonl

/// At most kMost (an even number) of any number of values, with their places: every n-th, n doubling when there are too many.
template <class T, size_t kMost = kMaxRows>
class Thinned {
 public:
  void add(int64_t place, const T& value) {
    if (count_++ % every_ != 0) return;
    if (kept_.size() == kMost) {  // this value is one of every 2 n-th, too
      for (size_t i = 1; 2 * i < kMost; ++i) kept_[i] = std::move(kept_[2 * i]);
      kept_.resize(kMost / 2);
      every_ *= 2;
    }
    kept_.emplace_back(place, value);
  }
  const std::vector<std::pair<int64_t, T>>& kept() const { return kept_; }

 private:
  std::vector<std::pair<int64_t, T>> kept_;
  int64_t count_ = 0, every_ = 1;
};

/// What the page shows of metrics.jsonl, gathered row by row.
class MetricsDigest {
 public:
  void add(json row) {
    for (const char* key : {"step", "loss", "val_loss", "val_accuracy", "val_f1", "seconds"})
      if (const auto value = number_of(row, key)) last_[key] = *value;
    if (const auto loss = number_of(row, "val_loss")) best_ = std::min(best_, *loss);
    if (const auto speed = number_of(row, "tokens_per_second")) speeds_.add(rows_, *speed);
    drawn_.add(rows_, row);
    if (row.contains("val_loss")) evaluations_.add(rows_, row);
    last_row_ = std::move(row);
    ++rows_;
  }

  /// Steps spread over the run, evaluations likewise, and the last one.
  json drawn() const {
    std::map<int64_t, json> by_place(drawn_.kept().begin(), drawn_.kept().end());
    by_place.insert(evaluations_.kept().begin(), evaluations_.kept().end());
    if (last_row_) by_place[rows_ - 1] = *last_row_;
    json list = json::array();
    for (auto& [_, row] : by_place) list.push_back(std::move(row));
    return list;
  }

  /// Of the run as a whole, of which so many steps are known to be done; `evaluation` is what its val_loss is called.
  Facts facts(int64_t steps_done, const std::string& evaluation) const {
    Facts facts;
    const auto last = [&](const std::string& name, const char* key, const auto& text) {
      if (const auto found = last_.find(key); found != last_.end()) facts.emplace_back(name, text(found->second));
    };
    last("steps", "step", [&](double step) { return grouped(std::max(step + 1, static_cast<double>(steps_done))); });
    last("last training loss", "loss", loss_text);
    last(evaluation + " loss", "val_loss", loss_text);
    if (last_.contains("val_loss")) facts.emplace_back("best " + evaluation + " loss", loss_text(best_));
    last(evaluation + " accuracy", "val_accuracy", [](double share) { return grouped(100 * share, 2) + " %"; });
    last(evaluation + " macro F1", "val_f1", [](double f1) { return grouped(f1, 4); });
    last("time", "seconds", [](double seconds) { return grouped(seconds, 1) + " s"; });
    if (auto speeds = speeds_.kept(); !speeds.empty()) {
      const auto middle = speeds.begin() + static_cast<std::ptrdiff_t>(speeds.size() / 2);
      std::nth_element(speeds.begin(), middle, speeds.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
      facts.emplace_back("median speed", grouped(middle->second) + " tokens/s");
    }
    return facts;
  }

 private:
  int64_t rows_ = 0;
  std::map<std::string, double> last_;  // by key
  double best_ = std::numeric_limits<double>::infinity();
  Thinned<double> speeds_;
  Thinned<json> drawn_, evaluations_;
  std::optional<json> last_row_;
};

/// What summary.json adds, if the run got that far.
void add_summary(const fs::path& run, Facts& facts) {
  const std::string path = (run / "summary.json").string();
  if (!fs::exists(path)) return;
  const json summary = read_json<IoError>(path, kMaxJsonBytes);
  ONESTEP_CHECK(IoError, summary.is_object(), path, ": must be an object: got ", brief(summary));
  for (const auto& [key, value] : summary.items()) {
    ONESTEP_CHECK(IoError, value.is_string(), path, ": ", json_pointer("", key), ": must be a string: got ", brief(value));
    facts.emplace_back(key, value.get<std::string>());
  }
}

/// Input tokens of a step, of a run whose data is not loaded: all but a task's sequences are as long as the context.
int64_t tokens_per_step(const Config& config) {
  if (config.data.kind == DataKind::task || config.data.kind == DataKind::none) return 0;
  return config.train.grad_accumulation * config.train.batch_size * config.model.context_length;
}

/// The sample with the mean weights of its beginning.
Glance glance_at(LanguageModel& model, const Sample& sample) {
  Glance glance{.pieces = sample.pieces, .given = sample.given};
  const auto count = std::min<int64_t>({std::ssize(sample.ids), model.context_length(), kMaxMapTokens});
  const auto layers = attention_weights(model, {sample.ids.begin(), sample.ids.begin() + static_cast<std::ptrdiff_t>(count)});
  Tensor all;
  for (const auto& [_, weights] : layers) {
    const Tensor heads = mean(weights, {0});
    all = all.defined() ? all + heads : heads;
  }
  if (all.defined()) glance.weights = all / static_cast<double>(layers.size());
  return glance;
}

/// Lines of samples.jsonl, if there is one, spread over the run.
std::vector<WrittenSample> read_written(const fs::path& run) {
  const std::string path = (run / "samples.jsonl").string();
  if (!fs::exists(path)) return {};
  Thinned<WrittenSample, kMaxWritten> lines;
  int64_t place = 0;
  for_each_step_line(path, [&](const json& line) {
    const auto text = [&](const char* key) {
      const auto found = line.find(key);
      return found != line.end() && found->is_string() ? found->get<std::string>() : std::string();
    };
    lines.add(place++, {line["step"].get<int64_t>(), text("prompt"), text("continuation")});
  });
  std::vector<WrittenSample> all;
  for (const auto& [_, sample] : lines.kept()) all.push_back(sample);
  return all;
}

/// Lines of histograms.jsonl, if there is one, spread over the run.
std::string read_histograms(const fs::path& run) {
  const std::string path = (run / "histograms.jsonl").string();
  if (!fs::exists(path)) return "[]";
  Thinned<json, kMaxHistograms> lines;
  int64_t place = 0;
  for_each_histograms(path, [&](const json& line) { lines.add(place++, line); });
  json all = json::array();
  for (const auto& [_, line] : lines.kept()) all.push_back(line);
  return all.dump();
}

}  // namespace

AttentionMaps sample_maps(const Trainer& trainer, LanguageModel& model, int64_t step) {
  Generator generator = trainer.evaluation_generator();
  const Batch batch = trainer.data().eval_batch(1, generator);
  const auto tokens =
      static_cast<std::ptrdiff_t>(std::min(batch.sequences.empty() ? batch.length : batch.sequences[0], kMaxMapTokens));
  const std::vector<int64_t> ids(batch.inputs.begin(), batch.inputs.begin() + tokens);
  AttentionMaps maps{.step = step, .layers = attention_weights(model, ids)};
  for (const int64_t id : ids) maps.tokens.push_back(trainer.data().token_name(id));
  return maps;
}

std::vector<std::pair<std::string, Tensor>> attention_weights(LanguageModel& model, const std::vector<int64_t>& ids) {
  const NoGradGuard no_grad;
  const nn::EvaluationMode mode(model);
  const attention::WeightsRecorder recorder;
  model.forward(from_values(ids, {1, static_cast<int64_t>(ids.size())}));
  std::vector<std::pair<std::string, Tensor>> layers;
  for (const Tensor& weights : recorder.weights())  // [1, T, T] or [1, H, T, T]
    layers.emplace_back("layer " + std::to_string(layers.size()), weights.reshape({-1, weights.size(-2), weights.size(-1)}));
  return layers;
}

ReportRun read_report_run(const fs::path& run, const Config& config, Trainer* trainer) {
  ReportRun report{.name = run.filename().string(), .evaluated_on = evaluates_on(config.data)};
  MetricsDigest metrics;
  for_each_metrics(metrics_path(run), [&](json row) { metrics.add(std::move(row)); });
  report.facts = metrics.facts(trainer != nullptr ? trainer->steps_done() : 0,
                               report.evaluated_on.starts_with("training") ? "evaluation" : "validation");
  add_summary(run, report.facts);
  report.metrics = metrics.drawn().dump();
  report.config = read_file((run / "config.json").string(), kMaxJsonBytes);
  report.settings = config;
  report.tokens_per_step = trainer != nullptr ? trainer->tokens_per_step() : tokens_per_step(config);
  report.written = read_written(run);
  report.histograms = read_histograms(run);
  if (trainer != nullptr) {
    report.parameters = trainer->model().named_parameters();
    report.attention = {sample_maps(*trainer, trainer->model(), trainer->steps_done())};
    if (const auto& labels = trainer->data().labels(); !labels.empty()) {
      const TrainConfig& plan = config.train;
      report.labels = labels;
      report.confusion = trainer->evaluation() ? trainer->evaluation()->confusion  // else of this process alone
                                               : evaluate(trainer->model(), trainer->data(), plan.eval_batches, plan.batch_size,
                                                          trainer->evaluation_generator())
                                                     .confusion;
    }
    try {
      report.samples = write_samples(*trainer, kSamples);
      report.glance = glance_at(trainer->model(), report.samples[0]);
    } catch (const DivergedError&) {  // what else there is to see is shown all the same
    }
  }
  return report;
}

}  // namespace onestep::train
