#pragma once
// The figures of a training step, and metrics.jsonl, which keeps them.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace onestep {
class OutputFile;
}

namespace onestep::train {

/// One training step as it is logged.
struct StepMetrics {
  int64_t step = 0;
  double loss = 0;  ///< Before this step's update, the mean over micro-batches.
  double lr = 0;
  double grad_norm = 0;  ///< Before clipping.
  double tokens_per_second = 0;
  int64_t tokens = 0;  ///< Input tokens that the step saw.
  double seconds = 0;  ///< Since training began.
  std::optional<double> val_loss = {}, val_accuracy = {};
  std::optional<double> val_f1 = {};  ///< Of a classifier: Evaluation::macro_f1.
};

/// One JSON object a step in a file; float32 values keep the digits that read back to the same bits. Throws IoError.
class MetricsFile {
 public:
  /// Goes on after the lines of the steps before `first_step`; later ones (of a run that was killed) and half a line at the end
  /// are cut off. A line before them that is none of ours is refused.
  MetricsFile(const std::string& path, int64_t first_step);
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

  void write(const StepMetrics& metrics);
  /// Waits until the lines are on the disk.
  void sync();

 private:
  std::unique_ptr<OutputFile> out_;
};

/// The step's line in metrics.jsonl: one JSON object, float32 values with the digits that read back to the same bits.
std::string metrics_line(const StepMetrics& metrics);

/// `2.3026`, `3.21e-05`: a loss for people. One that is not 0 never looks like 0.
std::string loss_text(double loss);

}  // namespace onestep::train
