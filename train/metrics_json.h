#pragma once
// Reading metrics.jsonl back. Only sources of train/ include this; the JSON library is no part of the public headers.
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace onestep::train {

/// RUN/metrics.jsonl: one object a logged step, every value a number or null; half a line at the end is left out. Throws
/// IoError naming file, line and key.
std::vector<nlohmann::json> read_metrics(const std::string& run);

}  // namespace onestep::train
