#pragma once
// Reading metrics.jsonl back. Only sources of train/ include this; the JSON library is no part of the public headers.
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace onestep::train {

/// Hands over RUN/metrics.jsonl row by row, however long it is: one object a logged step, every value a number or null; half a
/// line at the end is left out. Throws IoError naming file, line and key, also for a line above 1 MiB.
void for_each_metrics(const std::string& run, const std::function<void(nlohmann::json row)>& use);

}  // namespace onestep::train
