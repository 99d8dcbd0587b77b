#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "train/models/language_model.h"

namespace onestep::web {

/// The attention weights of a model that reads these ids: [layer][head][query][key], or those of one layer, or of one head of
/// it: [query][key]. Throws ConfigError for a layer or head that there is none of, ShapeError for more ids than the context
/// has.
nlohmann::json attention_maps(train::LanguageModel& model, const std::vector<int64_t>& ids, std::optional<int64_t> layer = {},
                              std::optional<int64_t> head = {});

}  // namespace onestep::web
