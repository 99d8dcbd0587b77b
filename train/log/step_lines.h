#pragma once
// Files of a run with one JSON object a line, each with the `step` it is about, in ascending order.
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace onestep::train {

/// Cuts a file, if there is one, off after the last line of a step before `first_step`, and half a line at its end. Throws
/// IoError naming a line before them that is none of ours; nothing is cut then.
void cut_step_lines(const std::string& path, int64_t first_step);

/// Hands over the lines; half a line at the end, which a run that was killed may have left, is left out. Throws IoError naming
/// a line that is none of ours.
void for_each_step_line(const std::string& path, const std::function<void(nlohmann::json line)>& use);

}  // namespace onestep::train
