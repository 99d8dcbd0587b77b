#pragma once
// Reading metrics.jsonl back. Not a public header: it names the JSON library.
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace onestep::train {

/// Hands over a metrics.jsonl row by row, however long it is: one object a logged step, in their order, every value a number or
/// null; half a line at the end is left out. Throws IoError naming file, line and key, also for a line above 1 MiB.
void for_each_metrics(const std::string& path, const std::function<void(nlohmann::json row)>& use);

/// The number under `key`, if the row has one.
std::optional<double> number_of(const nlohmann::json& row, const char* key);

/// Where the lines of some steps end in a metrics.jsonl.
struct MetricsEnd {
  uint64_t bytes = 0;
  bool has_newline = true;  ///< Of the last of them.
};

/// Where the lines of the steps before `first_step` end. Throws IoError naming the file and the line for one that is not the
/// line of a step, or not in the order of the steps; half a line at the end is none.
MetricsEnd metrics_before(const std::string& path, int64_t first_step);

}  // namespace onestep::train
