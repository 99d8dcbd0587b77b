#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "nn/module.h"
#include "train/config/config.h"

namespace onestep::web {

/// While it lives, what the given heads of a model find counts as zero: their rows of the projection behind them, or their own
/// projection of values where there is none, are zero. The parameters are what they were afterwards.
class Ablation {
 public:
  /// `heads` is a list of [layer, head]. Throws ConfigError for one that there is none of.
  Ablation(nn::Module& model, const train::ModelConfig& config, const nlohmann::json& heads);
  ~Ablation();
  Ablation(const Ablation&) = delete;
  Ablation& operator=(const Ablation&) = delete;

 private:
  std::vector<std::pair<Tensor, Tensor>> saved_;  // parts of parameters, and what was there
};

}  // namespace onestep::web
