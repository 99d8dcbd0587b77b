#include "train/log/sample_file.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_reader.h"
#include "base/open_file.h"
#include "base/read_file.h"

namespace onestep::train {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 30;

int64_t step_of(const std::string& line, const std::string& place) {
  const nlohmann::json sample = parse_json<IoError>(line, place);
  const bool ours = sample.is_object() && sample.contains("step") && sample["step"].is_number_unsigned();
  ONESTEP_CHECK(IoError, ours, place, ": must be an object with the number of a step: got ", brief(sample),
                " (mend or move the file to go on)");
  return sample["step"].get<int64_t>();
}

/// Cuts the file off after the last sample of a step before `first_step`.
std::string cut_off(const std::string& path, int64_t first_step) {
  if (!std::filesystem::exists(path)) return path;
  const std::string text = read_file(path, kMostBytes);
  size_t kept = 0;
  int64_t number = 0;
  for (size_t end = 0; (end = text.find('\n', kept)) != std::string::npos; kept = end + 1) {
    const std::string place = path + ": line " + std::to_string(++number);
    if (step_of(text.substr(kept, end - kept), place) >= first_step) break;
  }
  std::error_code error;
  std::filesystem::resize_file(path, kept, error);
  ONESTEP_CHECK(IoError, !error, path, ": cannot be cut off: ", error_reason(error.value()));
  return path;
}

}  // namespace

SampleFile::SampleFile(const std::string& path, int64_t first_step)
    : out_(cut_off(path, first_step), OutputFile::Mode::append) {}

void SampleFile::write(int64_t step, const std::string& prompt, const std::string& continuation) {
  const nlohmann::ordered_json sample{{"step", step}, {"prompt", prompt}, {"continuation", continuation}};
  out_.write(sample.dump() + '\n');
}

}  // namespace onestep::train
