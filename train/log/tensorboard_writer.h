#pragma once
// TensorBoard's event files: scalars and texts over the steps of a run.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace onestep {
class OutputFile;
}

namespace onestep::train {

/// Appends events to a file of its own that TensorBoard reads while it grows: TFRecord frames (length, masked CRC-32C, data,
/// masked CRC-32C) around Event messages of protocol buffers.
class EventFile {
 public:
  /// Makes `folder` and in it events.out.tfevents.SECONDS.onestep, SECONDS since 1970. With `first_step`, what earlier files of
  /// the folder tell of it and later ones is void. Throws IoError.
  EventFile(const std::string& folder, std::optional<int64_t> first_step);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  /// One number of a curve. Throws IoError.
  void scalar(std::string_view tag, int64_t step, double value);
  /// One text, shown as Markdown. Throws IoError.
  void text(std::string_view tag, int64_t step, std::string_view text);
  /// Any value: the bytes of a Summary.Value with its tag (tensorflow/core/framework/summary.proto). Throws IoError.
  void summary(int64_t step, const std::string& value);

 private:
  void write_event(const std::string& fields);

  std::unique_ptr<OutputFile> out_;
};

/// CRC-32C (Castagnoli; RFC 3720, appendix B.4) of the bytes.
uint32_t crc32c(std::string_view bytes);

}  // namespace onestep::train
