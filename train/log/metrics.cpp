#include "train/log/metrics.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/format.h"
#include "base/open_file.h"
#include "base/write_file.h"
#include "train/log/metrics_reader.h"

namespace onestep::train {
namespace {

/// The shortest decimal that reads back to the same float32; null where JSON has no number.
nlohmann::ordered_json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  const auto narrow = static_cast<float>(value);
  if (static_cast<double>(narrow) != value) return value;
  char text[32];
  const char* const end = std::to_chars(text, text + sizeof text, narrow).ptr;
  double shortest = 0;
  std::from_chars(text, end, shortest);
  return shortest;
}

/// Cuts the file off after the last line of a step before `first_step`, which then has its newline.
std::string cut_off(const std::string& path, int64_t first_step) {
  if (!std::filesystem::exists(path)) return path;
  const MetricsEnd end = metrics_before(path, first_step);
  std::error_code error;
  std::filesystem::resize_file(path, end.bytes, error);
  ONESTEP_CHECK(IoError, !error, path, ": cannot be cut off: ", error_reason(error.value()));
  if (!end.has_newline) OutputFile(path, OutputFile::Mode::append).write("\n");
  return path;
}

}  // namespace

std::string loss_text(double loss) {
  if (loss == 0 || std::abs(loss) >= 1e-3 || !std::isfinite(loss)) return grouped(loss, 4);
  std::ostringstream out;
  out << std::scientific << std::setprecision(2) << loss;
  return out.str();
}

MetricsFile::MetricsFile(const std::string& path, int64_t first_step)
    : out_(std::make_unique<OutputFile>(cut_off(path, first_step), OutputFile::Mode::append)) {}

MetricsFile::~MetricsFile() = default;

std::string metrics_line(const StepMetrics& m) {
  nlohmann::ordered_json line{{"step", m.step},
                              {"loss", number(m.loss)},
                              {"lr", number(m.lr)},
                              {"grad_norm", number(m.grad_norm)},
                              {"tokens_per_second", number(std::round(m.tokens_per_second))},
                              {"seconds", number(std::round(m.seconds * 1e4) / 1e4)}};
  if (m.val_loss) line["val_loss"] = number(*m.val_loss);
  if (m.val_accuracy) line["val_accuracy"] = number(*m.val_accuracy);
  if (m.val_f1) line["val_f1"] = number(*m.val_f1);
  return line.dump();
}

void MetricsFile::write(const StepMetrics& metrics) { out_->write(metrics_line(metrics) + '\n'); }

void MetricsFile::sync() { out_->sync(); }

}  // namespace onestep::train
