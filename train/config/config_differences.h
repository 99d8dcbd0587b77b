#pragma once
// Where configs differ.
#include <string>
#include <vector>

#include "train/config/config.h"

namespace onestep::train {

/// The keys whose values are not the same in all configs: key and its value in each as JSON, `-` where it does not apply.
std::vector<std::vector<std::string>> config_differences(const std::vector<Config>& configs);

}  // namespace onestep::train
