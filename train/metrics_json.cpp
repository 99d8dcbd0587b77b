#include "train/metrics_json.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <system_error>

#include "autograd/error.h"
#include "train/files.h"
#include "train/json_reader.h"

namespace onestep::train {

namespace {

/// What a power cut left of the last line, without its end: the resumed run cuts it off.
bool is_half_a_line(std::string_view line) {
  constexpr std::string_view kBegin = R"({"step":)";
  return line.starts_with(kBegin) || kBegin.starts_with(line);
}

}  // namespace

std::vector<nlohmann::json> read_metrics(const std::string& run) {
  constexpr int64_t kMaxBytes = int64_t{1} << 30;
  const std::string path = (std::filesystem::path(run) / "metrics.jsonl").string();
  std::error_code error;
  check<IoError>(std::filesystem::exists(path, error) || error, run, ": is not the folder of a run (it has no metrics.jsonl)");
  std::istringstream lines(read_file(path, kMaxBytes));
  std::vector<nlohmann::json> rows;
  for (std::string line; std::getline(lines, line);) {
    if (lines.eof() && is_half_a_line(line)) break;
    const std::string place = path + ": line " + std::to_string(rows.size() + 1);
    rows.push_back(parse_json<IoError>(line, place));
    check<IoError>(rows.back().is_object(), place, ": must be an object: got ", brief(rows.back()));
    for (const auto& [key, value] : rows.back().items())
      check<IoError>(value.is_number() || value.is_null(), place, ": ", json_pointer("", key), ": must be a number: got ",
                     brief(value));
  }
  return rows;
}

}  // namespace onestep::train
