#include "train/runs/run_summary.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "base/format.h"
#include "base/utf8.h"
#include "train/config/config_differences.h"
#include "train/log/metrics.h"
#include "train/log/metrics_reader.h"
#include "train/run_folder.h"

namespace onestep::train {
namespace {

constexpr const char* kNone = "-";
constexpr int64_t kRows = 10;

using Row = std::vector<std::string>;

std::string text_or_none(const std::optional<double>& value, const std::function<std::string(double)>& text) {
  return value ? text(*value) : kNone;
}

/// A row of what `cell` makes of each run.
Row row_of(const std::string& head, const std::vector<RunSummary>& runs,
           const std::function<std::string(const RunSummary&)>& cell) {
  Row row{head};
  std::transform(runs.begin(), runs.end(), std::back_inserter(row), cell);
  return row;
}

/// The mean of a curve over the updates after `from` up to `to`.
std::optional<double> mean_between(const Curve& curve, int64_t from, int64_t to) {
  double sum = 0;
  int64_t count = 0;
  for (const auto& [step, value] : curve)
    if (from < step && step <= to) sum += value, ++count;
  return count > 0 ? std::optional(sum / static_cast<double>(count)) : std::nullopt;
}

std::optional<double> value_at(const Curve& curve, int64_t step) {
  const auto found = std::lower_bound(curve.begin(), curve.end(), std::pair(step, -HUGE_VAL));
  return found != curve.end() && found->first == step ? std::optional(found->second) : std::nullopt;
}

/// Up to kRows of the steps, evenly spread, the last one among them.
std::vector<int64_t> spread(const std::set<int64_t>& steps) {
  const std::vector<int64_t> all(steps.begin(), steps.end());
  const int64_t count = std::ssize(all), rows = std::min(count, kRows);
  std::vector<int64_t> some;
  for (int64_t i = 1; i <= rows; ++i) some.push_back(all[static_cast<size_t>(i * count / rows - 1)]);
  return some;
}

std::set<int64_t> all_steps(const std::vector<RunSummary>& runs, Curve RunSummary::*curve) {
  std::set<int64_t> steps;
  for (const RunSummary& run : runs)
    for (const auto& [step, _] : run.*curve) steps.insert(step);
  return steps;
}

/// A heading and a row for each of some steps, where there are any.
std::vector<Row> losses(const std::string& heading, const std::vector<RunSummary>& runs, Curve RunSummary::*curve,
                        const std::function<std::optional<double>(const Curve&, int64_t before, int64_t step)>& value) {
  const std::vector<int64_t> steps = spread(all_steps(runs, curve));
  if (steps.empty()) return {};
  std::vector<Row> rows = {{heading}};
  int64_t before = 0;
  for (const int64_t step : steps) {
    rows.push_back(row_of(grouped_count(step), runs,
                          [&](const RunSummary& run) { return text_or_none(value(run.*curve, before, step), loss_text); }));
    before = step;
  }
  return rows;
}

std::vector<Row> figures(const std::vector<RunSummary>& runs) {
  const auto last = [](const Curve& curve) { return curve.empty() ? std::nullopt : std::optional(curve.back().second); };
  return {
      row_of("steps", runs, [](const RunSummary& run) { return grouped_count(run.steps); }),
      row_of("train loss", runs, [&](const RunSummary& run) { return text_or_none(last(run.loss), loss_text); }),
      row_of("val loss", runs, [&](const RunSummary& run) { return text_or_none(last(run.val_loss), loss_text); }),
      row_of("best val loss", runs,
             [](const RunSummary& run) { return run.best() ? loss_text(run.best()->second) : std::string(kNone); }),
      row_of("at step", runs,
             [](const RunSummary& run) { return run.best() ? grouped_count(run.best()->first) : std::string(kNone); }),
      row_of("val accuracy", runs,
             [](const RunSummary& run) {
               return text_or_none(run.val_accuracy, [](double share) { return grouped(100 * share, 2) + " %"; });
             }),
      row_of("seconds", runs, [](const RunSummary& run) { return grouped(run.seconds, 1); }),
  };
}

}  // namespace

std::optional<std::pair<int64_t, double>> RunSummary::best() const {
  if (val_loss.empty()) return std::nullopt;
  return *std::min_element(val_loss.begin(), val_loss.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
}

RunSummary summarize_run(const std::filesystem::path& run) {
  RunSummary summary{.name = run.filename().string(), .config = load_run_config(run)};
  for_each_metrics(metrics_path(run), [&](const nlohmann::json& row) {
    const auto step = number_of(row, "step");
    if (!step) return;
    summary.steps = static_cast<int64_t>(*step) + 1;
    summary.seconds = number_of(row, "seconds").value_or(summary.seconds);
    if (const auto loss = number_of(row, "loss")) summary.loss.emplace_back(summary.steps, *loss);
    if (const auto loss = number_of(row, "val_loss")) summary.val_loss.emplace_back(summary.steps, *loss);
    if (const auto accuracy = number_of(row, "val_accuracy")) summary.val_accuracy = accuracy;
  });
  return summary;
}

std::string comparison(const std::vector<RunSummary>& runs) {
  std::vector<Row> rows = {row_of("", runs, [](const RunSummary& run) { return printable(run.name); })};
  std::vector<Config> configs;
  std::transform(runs.begin(), runs.end(), std::back_inserter(configs), [](const RunSummary& run) { return run.config; });
  const auto at = [](const Curve& curve, int64_t, int64_t step) { return value_at(curve, step); };
  for (const std::vector<Row>& part :
       {config_differences(configs), figures(runs), losses("train loss, step", runs, &RunSummary::loss, mean_between),
        losses("val loss, step", runs, &RunSummary::val_loss, at)}) {
    if (part.empty()) continue;
    rows.emplace_back();
    rows.insert(rows.end(), part.begin(), part.end());
  }
  return text_table(rows);
}

}  // namespace onestep::train
