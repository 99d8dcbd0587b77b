#include "train/metrics.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

#include "autograd/error.h"
#include "train/metrics_json.h"

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
  check<IoError>(!error, path, ": cannot be cut off: ", error_reason(error.value()));
  if (!end.has_newline) OutputFile(path, OutputFile::Mode::append).write("\n");
  return path;
}

}  // namespace

std::string duration(double seconds) {
  const auto s = static_cast<int64_t>(std::max(0.0, std::round(seconds)));
  std::ostringstream out;
  if (s >= 3600) out << s / 3600 << "h ";
  if (s >= 60) out << s % 3600 / 60 << "min ";
  out << s % 60 << 's';
  return out.str();
}

std::string grouped(double value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value;
  std::string text = out.str();
  const size_t point = std::min(text.find('.'), text.size());
  for (auto i = static_cast<std::ptrdiff_t>(point) - 3; i > (text[0] == '-' ? 1 : 0); i -= 3)
    text.insert(static_cast<size_t>(i), 1, ',');
  return text;
}

std::string loss_text(double loss) {
  if (loss == 0 || std::abs(loss) >= 1e-3 || !std::isfinite(loss)) return grouped(loss, 4);
  std::ostringstream out;
  out << std::scientific << std::setprecision(2) << loss;
  return out.str();
}

MetricsFile::MetricsFile(const std::string& path, int64_t first_step)
    : out_(cut_off(path, first_step), OutputFile::Mode::append) {}

void MetricsFile::write(const StepMetrics& m) {
  nlohmann::ordered_json line{{"step", m.step},
                              {"loss", number(m.loss)},
                              {"lr", number(m.lr)},
                              {"grad_norm", number(m.grad_norm)},
                              {"tokens_per_second", number(std::round(m.tokens_per_second))},
                              {"seconds", number(std::round(m.seconds * 1e4) / 1e4)}};
  if (m.val_loss) line["val_loss"] = number(*m.val_loss);
  if (m.val_accuracy) line["val_accuracy"] = number(*m.val_accuracy);
  out_.write(line.dump() + '\n');
}

}  // namespace onestep::train
