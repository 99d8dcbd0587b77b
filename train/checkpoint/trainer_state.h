#pragma once
// All that training changes.
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "nn/module.h"

namespace onestep::train {

/// All that training changes: with it a trainer of the same config continues as if it had never stopped, on any number of
/// ranks.
struct TrainerState {
  int64_t step = 0;                           ///< Updates done.
  int64_t sequences = 0;                      ///< Training sequences seen: how far the generator has drawn from the data.
  std::map<std::string, std::string> config;  ///< fixed_values() of the config.
  std::string data_hash;                      ///< Data::hash().
  std::string generator;                      ///< Generator::state().
  nn::NamedTensors model;                     ///< state_dict() of the model
  std::set<std::string> frozen;               ///< (of which training does not change these)
  nn::NamedTensors optimizer;                 ///< and of the optimizer.
};

}  // namespace onestep::train
