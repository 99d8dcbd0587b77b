#include "train/report/report.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "autograd/tensor.h"
#include "base/read_file.h"

namespace onestep::train {

// report_page/page.html, style.css and page.js, in the source that CMake makes of page.cpp.in.
extern const char* const kReportPage;
extern const char* const kReportStyle;
extern const char* const kReportScript;

namespace {

using nlohmann::ordered_json;

/// [H, T, T] as nested lists, to three digits.
ordered_json heads_json(const Tensor& weights) {
  const int64_t heads = weights.size(0), tokens = weights.size(1);
  const std::vector<double> values = weights.to_vector<double>();
  ordered_json all = ordered_json::array();
  for (int64_t h = 0, i = 0; h < heads; ++h) {
    ordered_json head = ordered_json::array();
    for (int64_t t = 0; t < tokens; ++t) {
      ordered_json row = ordered_json::array();
      for (int64_t s = 0; s < tokens; ++s) row.push_back(std::round(values[static_cast<size_t>(i++)] * 1e3) / 1e3);
      head.push_back(std::move(row));
    }
    all.push_back(std::move(head));
  }
  return all;
}

ordered_json run_json(const ReportRun& run) {
  ordered_json parameters = ordered_json::array(), samples = ordered_json::array(), attention = nullptr;
  for (const auto& [name, tensor] : run.parameters) {
    std::vector<int64_t> shape(tensor.shape().begin(), tensor.shape().end());
    parameters.push_back({{"name", name}, {"shape", shape}, {"count", tensor.numel()}});
  }
  for (const auto& [prompt, continuation] : run.samples)
    samples.push_back({{"prompt", prompt}, {"continuation", continuation}});
  if (run.attention) {
    attention = {{"tokens", run.attention->tokens}, {"layers", ordered_json::array()}};
    for (const auto& [name, weights] : run.attention->layers)
      attention["layers"].push_back({{"name", name}, {"heads", heads_json(weights)}});
  }
  return {{"name", run.name},
          {"facts", run.facts},
          {"metrics", ordered_json::parse(run.metrics)},
          {"evaluated_on", run.evaluated_on},
          {"parameters", parameters},
          {"config", run.config},
          {"attention", attention},
          {"samples", samples},
          {"labels", run.labels},
          {"confusion", run.confusion}};
}

/// JSON that can stand in a script element: `<` could end it.
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
  for (const ReportRun& run : runs) data["runs"].push_back(run_json(run));
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
  ONESTEP_CHECK(ConfigError, head.empty() || head.find(R"(<meta name="generator" content="onestep">)") != std::string::npos,
                path.string(), ": is no report and would be lost (name another file with --out)");
}

}  // namespace onestep::train
