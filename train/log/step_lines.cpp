#include "train/log/step_lines.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/json_reader.h"
#include "base/open_file.h"
#include "train/log/line_reader.h"

namespace onestep::train {
namespace {

nlohmann::json parse_step_line(const std::string& line, const std::string& place) {
  nlohmann::json parsed = parse_json<IoError>(line, place);
  const bool ours = parsed.is_object() && parsed.contains("step") && parsed["step"].is_number_unsigned();
  ONESTEP_CHECK(IoError, ours, place, ": must be an object with the number of a step: got ", brief(parsed),
                " (repair or move the file to continue)");
  return parsed;
}

}  // namespace

void cut_step_lines(const std::string& path, int64_t first_step) {
  if (!std::filesystem::exists(path)) return;
  uint64_t kept = 0;
  LineReader lines(path);
  for (std::string line; lines.next(line) && lines.is_whole(); kept = lines.bytes())
    if (parse_step_line(line, lines.place())["step"].get<int64_t>() >= first_step) break;
  std::error_code error;
  std::filesystem::resize_file(path, kept, error);
  ONESTEP_CHECK(IoError, !error, path, ": cannot be cut off: ", error_reason(error.value()));
}

void for_each_step_line(const std::string& path, const std::function<void(nlohmann::json line)>& use) {
  LineReader lines(path);
  for (std::string line; lines.next(line) && lines.is_whole();) use(parse_step_line(line, lines.place()));
}

}  // namespace onestep::train
