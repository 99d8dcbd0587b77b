#include "train/report/report.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "autograd/ops.h"
#include "autograd/tensor.h"
#include "base/read_file.h"
#include "train/config/config_differences.h"

namespace onestep::train {

// page/page.html, style.css and the scripts, in the source that CMake makes of page.cpp.in.
extern const char* const kReportPage;
extern const char* const kReportStyle;
extern const char* const kReportScript;

namespace {

using nlohmann::ordered_json;

/// Nested lists of numbers, to three digits.
ordered_json rounded(const Tensor& weights) {
  if (weights.dim() == 0) return std::round(weights.item() * 1e3) / 1e3;
  ordered_json all = ordered_json::array();
  for (int64_t i = 0; i < weights.size(0); ++i) all.push_back(rounded(select(weights, 0, i)));
  return all;
}

ordered_json glance_json(const std::optional<Glance>& glance) {
  if (!glance) return nullptr;
  return {{"pieces", glance->pieces},
          {"given", glance->given},
          {"weights", glance->weights.defined() ? rounded(glance->weights) : ordered_json::array()}};
}

ordered_json maps_json(const std::vector<AttentionMaps>& steps) {
  if (steps.empty()) return nullptr;
  ordered_json all = ordered_json::array();
  for (const AttentionMaps& maps : steps) {
    ordered_json layers = ordered_json::array();
    for (const auto& [name, weights] : maps.layers) layers.push_back({{"name", name}, {"heads", rounded(weights)}});
    all.push_back({{"step", maps.step}, {"tokens", maps.tokens}, {"layers", std::move(layers)}});
  }
  return all;
}

ordered_json run_json(const ReportRun& run) {
  ordered_json parameters = ordered_json::array(), samples = ordered_json::array(), written = ordered_json::array();
  for (const auto& [name, tensor] : run.parameters) {
    std::vector<int64_t> shape(tensor.shape().begin(), tensor.shape().end());
    parameters.push_back({{"name", name}, {"shape", shape}, {"count", tensor.numel()}});
  }
  for (const Sample& sample : run.samples)
    samples.push_back({{"prompt", sample.prompt}, {"continuation", sample.continuation}});
  for (const auto& [step, prompt, continuation] : run.written)
    written.push_back({{"step", step}, {"prompt", prompt}, {"continuation", continuation}});
  return {{"name", run.name},
          {"facts", run.facts},
          {"tokens_per_step", run.tokens_per_step},
          {"metrics", ordered_json::parse(run.metrics)},
          {"evaluated_on", run.evaluated_on},
          {"parameters", parameters},
          {"config", run.config},
          {"glance", glance_json(run.glance)},
          {"attention", maps_json(run.attention)},
          {"samples", samples},
          {"written", written},
          {"histograms", ordered_json::parse(run.histograms)},
          {"labels", run.labels},
          {"confusion", run.confusion}};
}

/// JSON that can be in a script element: `<` could end it.
std::string embedded(const ordered_json& data) {
  const std::string text = data.dump(-1, ' ', /*ensure_ascii=*/true, ordered_json::error_handler_t::replace);
  std::string out;
  for (const char c : text) out += c == '<' ? "\\u003c" : std::string(1, c);
  return out;
}

void replace(std::string& page, const std::string& mark, const std::string& text) {
  page.replace(page.find(mark), mark.size(), text);
}

}  // namespace

std::string report_html(const std::vector<ReportRun>& runs) {
  ordered_json data{{"runs", ordered_json::array()}};
  std::vector<Config> configs;
  for (const ReportRun& run : runs) {
    data["runs"].push_back(run_json(run));
    configs.push_back(run.settings);
  }
  data["differences"] = config_differences(configs);
  std::string page = kReportPage;
  replace(page, "/*SCRIPT*/", kReportScript);  // from the end, so that no mark is looked for in what was put in
  replace(page, "/*DATA*/", embedded(data));
  replace(page, "/*STYLE*/", kReportStyle);
  return page;
}

void check_report_file(const std::filesystem::path& path) {
  if (std::error_code error; !std::filesystem::exists(path, error)) return;
  InputFile file(path.string());
  std::string head(512, '\0');
  head.resize(file.read_some(head.data(), head.size()));
  ONESTEP_CHECK(IoError, head.empty() || head.find(R"(<meta name="generator" content="onestep">)") != std::string::npos,
                path.string(), ": is no report and would be lost (name another file with --out)");
}

}  // namespace onestep::train
