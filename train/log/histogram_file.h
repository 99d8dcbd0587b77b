#pragma once
// histograms.jsonl: how the elements of a run's parameters and their gradients were distributed while it trained.
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/write_file.h"

namespace onestep::train {

/// How many of some numbers are in each of equal parts of the range from the lowest to the highest; a bound belongs to the part
/// above it, the highest number to the last part.
struct Histogram {
  double low = 0, high = 0;
  std::vector<int64_t> counts = {};
};

/// The histogram of at least one number, all of them finite, in `bins` parts; in one part where all are the same.
Histogram histogram(std::span<const double> values, int64_t bins);

/// The histograms of one parameter.
struct ParameterHistograms {
  std::string name;
  Histogram weights;
  std::optional<Histogram> gradients = {};  ///< None of a parameter without a gradient.
};

/// One JSON object a step in a file. Throws IoError.
class HistogramFile {
 public:
  /// Goes on after the lines of the steps before `first_step`; later ones, of a run that was killed, and half a line at the end
  /// are cut off. A line before them that is none of ours is refused.
  HistogramFile(const std::string& path, int64_t first_step);
  void write(int64_t step, const std::vector<ParameterHistograms>& parameters);

 private:
  OutputFile out_;
};

/// Hands over the lines of such a file, of the form that `write` gives them. Throws IoError naming the file for another.
void for_each_histograms(const std::string& path, const std::function<void(nlohmann::json line)>& use);

}  // namespace onestep::train
