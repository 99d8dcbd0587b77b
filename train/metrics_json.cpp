#include "train/metrics_json.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>

#include "autograd/error.h"
#include "train/files.h"
#include "train/json_reader.h"
#include "train/run_folder.h"

namespace onestep::train {

namespace {

constexpr size_t kMaxLine = size_t{1} << 20;

/// The lines of a file, of which a piece is in memory at a time.
class Lines {
 public:
  explicit Lines(const std::string& path) : path_(path), file_(path) {}

  /// Reads the next line; false after the last.
  bool next(std::string& line) {
    line.clear();
    ++number_;
    for (is_whole_ = false; !is_whole_ && refill();) {
      const size_t end = std::min(rest_.find('\n'), rest_.size());
      is_whole_ = end < rest_.size();
      line.append(rest_.substr(0, end));
      rest_.remove_prefix(is_whole_ ? end + 1 : end);
      if (line.size() > kMaxLine) fail<IoError>(place(), ": is longer than ", format_bytes(kMaxLine));
    }
    return is_whole_ || !line.empty();
  }
  /// Whether the line that was read last has its end.
  bool is_whole() const { return is_whole_; }
  /// `FILE: line 12`.
  std::string place() const { return path_ + ": line " + std::to_string(number_); }

 private:
  bool refill() {
    if (rest_.empty()) rest_ = {buffer_.data(), file_.read_some(buffer_.data(), buffer_.size())};
    return !rest_.empty();
  }

  std::string path_;
  InputFile file_;
  std::array<char, 1 << 16> buffer_;
  std::string_view rest_;  // of the buffer, still to be read
  int64_t number_ = 0;
  bool is_whole_ = false;
};

/// What a power cut left of the last line, without its end: the resumed run cuts it off.
bool is_half_a_line(std::string_view line) {
  constexpr std::string_view kBegin = R"({"step":)";
  return line.starts_with(kBegin) || kBegin.starts_with(line);
}

// The sentences are made only when they are needed: there may be millions of rows.
void check_row(const nlohmann::json& row, const Lines& lines) {
  if (!row.is_object()) fail<IoError>(lines.place(), ": must be an object: got ", brief(row));
  for (const auto& [key, value] : row.items()) {
    if (value.is_number() || value.is_null()) continue;
    fail<IoError>(lines.place(), ": ", json_pointer("", key), ": must be a number: got ", brief(value));
  }
}

}  // namespace

void for_each_metrics(const std::string& run, const std::function<void(nlohmann::json row)>& use) {
  const std::string path = (std::filesystem::path(run) / "metrics.jsonl").string();
  std::error_code error;
  const bool missing = !std::filesystem::exists(path, error) && !error;
  check<IoError>(!missing || !is_run(run), run,
                 ": is a run without metrics (it was imported, or stopped before its first step)");
  check<IoError>(!missing, run, ": is not the folder of a run (it has no metrics.jsonl)");
  Lines lines(path);
  for (std::string line; lines.next(line);) {
    if (!lines.is_whole() && is_half_a_line(line)) return;
    nlohmann::json row = parse_json<IoError>(line, lines.place());
    check_row(row, lines);
    use(std::move(row));
  }
}

}  // namespace onestep::train
