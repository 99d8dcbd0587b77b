#pragma once
// Which parameters of a model are trained.
#include <set>
#include <string>

#include "nn/module.h"
#include "train/config/config.h"

namespace onestep::train {

/// The names of the parameters that train.freeze names, and with model.lora of all but those of the adapters. Throws
/// ConfigError for a pattern that names none, and where nothing is left to train.
std::set<std::string> frozen_parameters(const Config& config);

/// Takes them out of the graph: they require no grad any more. Throws as frozen_parameters
/// does.
void freeze_parameters(nn::Module& model, const Config& config);

}  // namespace onestep::train
