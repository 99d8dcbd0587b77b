#include "train/log/histogram_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "train/log/step_lines.h"

namespace onestep::train {
namespace {

using nlohmann::json;

nlohmann::ordered_json histogram_json(const Histogram& h) { return {{"low", h.low}, {"high", h.high}, {"counts", h.counts}}; }

bool is_histogram(const json& h) {
  if (!h.is_object() || !h.contains("low") || !h.contains("high") || !h.contains("counts")) return false;
  const auto is_number = [](const json& each) { return each.is_number(); };
  return h["low"].is_number() && h["high"].is_number() && h["counts"].is_array() &&
         std::all_of(h["counts"].begin(), h["counts"].end(), is_number);
}

bool is_parameter(const json& p) {
  if (!p.is_object() || !p.contains("name") || !p["name"].is_string() || !p.contains("weights")) return false;
  return is_histogram(p["weights"]) && p.contains("gradients") && (p["gradients"].is_null() || is_histogram(p["gradients"]));
}

}  // namespace

Histogram histogram(std::span<const double> values, int64_t bins) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  Histogram all{.low = *low, .high = *high};
  if (all.low == all.high) return {.low = all.low, .high = all.high, .counts = {std::ssize(values)}};
  all.counts.resize(static_cast<size_t>(bins));
  for (const double value : values) {
    const auto part = static_cast<int64_t>((value - all.low) / (all.high - all.low) * static_cast<double>(bins));
    ++all.counts[static_cast<size_t>(std::clamp<int64_t>(part, 0, bins - 1))];
  }
  return all;
}

HistogramFile::HistogramFile(const std::string& path, int64_t first_step)
    : out_((cut_step_lines(path, first_step), path), OutputFile::Mode::append) {}

void HistogramFile::write(int64_t step, const std::vector<ParameterHistograms>& parameters) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& [name, weights, gradients] : parameters) {
    nlohmann::ordered_json one{{"name", name}, {"weights", histogram_json(weights)}, {"gradients", nullptr}};
    if (gradients) one["gradients"] = histogram_json(*gradients);
    list.push_back(std::move(one));
  }
  out_.write(nlohmann::ordered_json{{"step", step}, {"parameters", std::move(list)}}.dump() + '\n');
}

void for_each_histograms(const std::string& path, const std::function<void(json line)>& use) {
  for_each_step_line(path, [&](json line) {
    const bool ours = line.contains("parameters") && line["parameters"].is_array() &&
                      std::all_of(line["parameters"].begin(), line["parameters"].end(), is_parameter);
    ONESTEP_CHECK(IoError, ours, path, ": the line of step ", line["step"].get<int64_t>(),
                  ": /parameters: must be a list of parameters with their histograms");
    use(std::move(line));
  });
}

}  // namespace onestep::train
