#include "web/engine/attention_maps.h"

#include <nlohmann/json.hpp>

#include "autograd/ops.h"
#include "base/error.h"
#include "train/report/report.h"

namespace onestep::web {
namespace {

using nlohmann::json;

/// Nested lists of numbers.
json values(const Tensor& x) {
  if (x.dim() == 0) return x.item();
  json list = json::array();
  for (int64_t i = 0; i < x.size(0); ++i) list.push_back(values(select(x, 0, i)));
  return list;
}

void check_index(const char* what, int64_t index, int64_t count) {
  ONESTEP_CHECK(ConfigError, index >= 0 && index < count, "attention: ", what, " must be from 0 to ", count - 1, ": got ",
                index);
}

}  // namespace

json attention_maps(train::LanguageModel& model, const std::vector<int64_t>& ids, std::optional<int64_t> layer,
                    std::optional<int64_t> head) {
  const NoGradGuard no_grad;
  const auto layers = train::attention_weights(model, ids);
  if (layer) check_index("layer", *layer, std::ssize(layers));
  json all = json::array();
  for (const auto& [_, weights] : layers) {
    if (layer && static_cast<size_t>(*layer) != all.size()) {
      all.push_back(nullptr);
      continue;
    }
    if (head) check_index("head", *head, weights.size(0));
    all.push_back(values(head ? select(weights, 0, *head) : weights));
  }
  return layer ? all.at(static_cast<size_t>(*layer)) : all;
}

}  // namespace onestep::web
