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
  int64_t step = 0;                                         ///< Updates of the model that were done.
  std::vector<std::string> tokens = {};                     ///< T of them, as people read them.
  std::vector<std::pair<std::string, Tensor>> layers = {};  ///< Name and weights [H, T, T]: row = query, column = key.
};

/// A sample of what the model writes, and where it looks in it.
struct Glance {
  std::vector<std::string> pieces = {};  ///< Of the text, a token each.
  int64_t given = 0;                     ///< How many of them the model was given.
  Tensor weights = {};                   ///< Mean over heads and layers for the first T of them, [T, T]; may be undefined.
};

/// What the model wrote by a step.
struct WrittenSample {
  int64_t step = 0;
  std::string prompt = {}, continuation = {};
};

/// What the page says about one run.
struct ReportRun {
  std::string name = {};
  std::vector<std::pair<std::string, std::string>> facts = {};  ///< Figures for the head of the page, in order.
  std::string metrics = {};                                     ///< The steps of metrics.jsonl as one JSON list.
  nn::NamedTensors parameters = {};
  std::string config = {};      ///< The text of config.json.
  Config settings = {};         ///< What it says.
  int64_t tokens_per_step = 0;  ///< Input tokens; 0: unknown.
  std::optional<Glance> glance = {};
  std::vector<AttentionMaps> attention = {};  ///< At one step or several, in order.
  std::vector<Sample> samples = {};
  std::vector<std::string> labels = {};     ///< Of a classifier,
  std::vector<int64_t> confusion = {};      ///< and its Evaluation::confusion on them.
  std::vector<WrittenSample> written = {};  ///< Of samples.jsonl, spread over the run.
  std::string histograms = "[]";            ///< Lines of histograms.jsonl, spread over the run, as one JSON list.
  std::string evaluated_on = {};            ///< evaluates_on(its config.data)
};

/// Reads a run folder with this config, its metrics, samples.jsonl and histograms.jsonl; parameters, the attention on one
/// sample of what it is evaluated on and continuations of such samples are those of `trainer`, left out where it is null.
/// Throws IoError.
ReportRun read_report_run(const std::filesystem::path& run, const Config& config, Trainer* trainer);

/// The maps of `model` for the beginning of the sample that read_report_run shows.
AttentionMaps sample_maps(const Trainer& trainer, LanguageModel& model, int64_t step);

/// The weights of every attention layer of a model that reads these ids, in evaluation mode: name and [H, T, T], row = query,
/// column = key. Throws ShapeError for more ids than its context.
std::vector<std::pair<std::string, Tensor>> attention_weights(LanguageModel& model, const std::vector<int64_t>& ids);

/// The page for one run or several.
std::string report_html(const std::vector<ReportRun>& runs);

/// Throws ConfigError where `path` is a file that is neither empty nor such a page, and should not be replaced by one.
void check_report_file(const std::filesystem::path& path);

}  // namespace onestep::train
