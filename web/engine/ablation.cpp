#include "web/engine/ablation.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "autograd/ops.h"
#include "base/error.h"
#include "base/json_reader.h"

namespace onestep::web {
namespace {

using nlohmann::json;

/// The parts of parameters that carry the result of a head.
std::vector<Tensor> parts_of(const std::map<std::string, Tensor>& parameters, const train::ModelConfig& config, int64_t layer,
                             int64_t head) {
  const std::string attention =
      config.kind == train::ModelKind::gpt ? "transformer.h." + std::to_string(layer) + ".attn." : "att.";
  for (const char* const name : {"c_proj.weight", "out_proj.weight"}) {
    const auto found = parameters.find(attention + name);
    if (found == parameters.end()) continue;
    const int64_t width = found->second.size(1) / config.num_heads;
    return {narrow(found->second, 1, head * width, width)};
  }
  std::vector<Tensor> parts;
  const std::string own =
      config.attention == train::AttentionKind::multi_head_wrapper ? "heads." + std::to_string(head) + '.' : "";
  for (const char* const name : {"W_value", "W_value.weight", "W_value.bias"}) {
    const auto found = parameters.find(attention + own + name);
    if (found != parameters.end()) parts.push_back(found->second);
  }
  ONESTEP_CHECK(ConfigError, !parts.empty(), "ablate: attention of type ", name_of(config.attention),
                " has no weights behind its heads");
  return parts;
}

}  // namespace

Ablation::Ablation(nn::Module& model, const train::ModelConfig& config, const json& heads) {
  const NoGradGuard no_grad;
  std::map<std::string, Tensor> parameters;
  for (const auto& [name, parameter] : model.named_parameters()) parameters.emplace(name, parameter);
  const int64_t layers = config.kind == train::ModelKind::gpt ? config.num_layers : 1;
  ONESTEP_CHECK(ConfigError, heads.is_array(), "ablate: must be a list of [layer, head]: got ", brief(heads));
  std::vector<Tensor> parts;
  for (const json& place : heads) {
    const bool pair = place.is_array() && place.size() == 2 && place[0].is_number_integer() && place[1].is_number_integer();
    ONESTEP_CHECK(ConfigError, pair, "ablate: must be a list of [layer, head]: got ", brief(heads));
    const auto layer = place[0].get<int64_t>(), head = place[1].get<int64_t>();
    ONESTEP_CHECK(ConfigError, layer >= 0 && layer < layers && head >= 0 && head < config.num_heads,
                  "ablate: there is no head ", head, " in a layer ", layer, ": the model has ", layers, " x ",
                  config.num_heads);
    for (const Tensor& part : parts_of(parameters, config, layer, head)) parts.push_back(part);
  }
  for (const Tensor& part : parts) {
    saved_.emplace_back(part, part.clone());
    zero_(part);
  }
}

Ablation::~Ablation() {
  const NoGradGuard no_grad;
  std::for_each(saved_.rbegin(), saved_.rend(), [](const auto& saved) { copy_(saved.first, saved.second); });
}

}  // namespace onestep::web
