#include "train/log/metrics_reader.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/format.h"
#include "base/json_reader.h"
#include "train/log/line_reader.h"

namespace onestep::train {

namespace {

/// What a run that was killed left of the last line, without its end: the resumed run cuts it off.
bool is_half_a_line(std::string_view line) {
  constexpr std::string_view kBegin = R"({"step":)";
  return line.starts_with(kBegin) || kBegin.starts_with(line);
}

// The sentences are made only when they are needed: there may be millions of rows.
void check_row(const nlohmann::json& row, const LineReader& lines) {
  if (!row.is_object()) fail<IoError>(lines.place(), ": must be an object: got ", brief(row));
  for (const auto& [key, value] : row.items()) {
    if (value.is_number() || value.is_null()) continue;
    fail<IoError>(lines.place(), ": ", json_pointer("", key), ": must be a number: got ", brief(value));
  }
}

/// Other programs write whole numbers as 5.0, too.
int64_t step_of(const nlohmann::json& row, const LineReader& lines) {
  constexpr double kMost = 1e15;
  const auto found = row.find("step");
  const double step = found != row.end() && found->is_number() ? found->get<double>() : -1;
  if (step < 0 || step > kMost || step != std::floor(step))
    fail<IoError>(lines.place(), ": /step: must be the number of a step: got ", found == row.end() ? "none" : brief(*found));
  return static_cast<int64_t>(step);
}

/// Hands over the objects of all lines with their steps, which must rise; half a line at the end is left out, unless it lacks
/// the newline alone and that counts.
template <class Use>
void for_each_row(LineReader& lines, bool needs_newline, const Use& use) {
  int64_t previous = -1;
  for (std::string line; lines.next(line);) {
    const bool half = !lines.is_whole() && is_half_a_line(line);
    if (half && (needs_newline || !nlohmann::json::accept(line))) return;
    nlohmann::json row = parse_json<IoError>(line, lines.place());
    check_row(row, lines);
    const int64_t step = step_of(row, lines);
    if (step <= previous)
      fail<IoError>(lines.place(), ": /step: must be above ", previous, ", that of the line before: got ", step);
    previous = step;
    use(std::move(row), step);
  }
}

}  // namespace

MetricsEnd metrics_before(const std::string& path, int64_t first_step) {
  MetricsEnd end;
  LineReader lines(path);
  const auto add = [&](const nlohmann::json& /*row*/, int64_t step) {
    if (step < first_step) end = {lines.bytes(), lines.is_whole()};
  };
  try {
    // A line that lacks the newline alone: a killed run had not saved its step, another program may leave out the last one.
    for_each_row(lines, /*needs_newline=*/false, add);
  } catch (const IoError& error) {
    fail<IoError>(error.what(), " (repair or move the file to continue)");
  }
  return end;
}

void for_each_metrics(const std::string& path, const std::function<void(nlohmann::json row)>& use) {
  LineReader lines(path);
  for_each_row(lines, /*needs_newline=*/true, [&](nlohmann::json row, int64_t /*step*/) { use(std::move(row)); });
}

std::optional<double> number_of(const nlohmann::json& row, const char* key) {
  const auto found = row.find(key);
  return found != row.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

}  // namespace onestep::train
