#pragma once
// The page that shows a run, or several beside each other: one HTML file that needs nothing else.
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "train/samples.h"
#include "train/trainer.h"

namespace onestep::train {

/// Attention weights of one text, query by key.
struct AttentionMaps {
  std::vector<std::string> tokens = {};                     ///< T of them, as people read them.
  std::vector<std::pair<std::string, Tensor>> layers = {};  ///< Name and weights [H, T, T]: row = query, column = key.
};

/// What the page tells of one run.
struct ReportRun {
  std::string name = {};
  std::vector<std::pair<std::string, std::string>> facts = {};  ///< Figures for the head of the page, in order.
  std::string metrics = {};                                     ///< The steps of metrics.jsonl as one JSON list.
  nn::NamedTensors parameters = {};
  std::string config = {};  ///< The text of config.json.
  std::optional<AttentionMaps> attention = {};
  std::vector<Sample> samples = {};
  std::vector<std::string> labels = {};  ///< Of a classifier,
  std::vector<int64_t> confusion = {};   ///< and its Evaluation::confusion on them.
  std::string evaluated_on = {};         ///< evaluates_on(its config.data)
};

/// Reads a run folder with this config, and its metrics; parameters, the attention on one sample of what it is evaluated on and
/// continuations of such samples are those of `trainer`, left out where it is null. Throws IoError.
ReportRun read_report_run(const std::filesystem::path& run, const Config& config, Trainer* trainer);

/// The weights of every attention layer of a model that reads these ids, in evaluation mode: name and [H, T, T], row = query,
/// column = key. Throws ShapeError for more ids than its context.
std::vector<std::pair<std::string, Tensor>> attention_weights(LanguageModel& model, const std::vector<int64_t>& ids);

/// The page for one run or several.
std::string report_html(const std::vector<ReportRun>& runs);

/// Throws ConfigError where `path` is a file that is neither empty nor such a page, and should not be replaced by one.
void check_report_file(const std::filesystem::path& path);

}  // namespace onestep::train
