#include "train/models/trainable.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/format.h"
#include "base/glob.h"
#include "base/suggest.h"
#include "train/models/adapters.h"

namespace onestep::train {
namespace {

/// ` (did you mean transformer.wte.weight?)`: the name nearest to the pattern, or some as an example.
std::string hint(const std::string& pattern, const std::vector<std::string>& names) {
  std::string letters = pattern;
  std::erase(letters, '*');
  const std::string meant = nearest(letters, names);
  return did_you_mean(meant,
                      " (the first is " + names.front() + ", the last " + names.back() + "; `*` stands for any characters)");
}

}  // namespace

std::set<std::string> frozen_parameters(const Config& config) {
  adapters(config.model, config.origin);  // says where a target names nothing
  std::vector<std::string> names;
  for (const DecoderParameter& parameter : model_parameters(config.model, 1, num_classes(config)))
    names.push_back(parameter.name());
  std::set<std::string> frozen;
  for (const std::string& name : names)
    if (config.model.lora.rank > 0 && !is_new_parameter(name)) frozen.insert(name);
  const std::vector<std::string>& patterns = config.train.freeze;
  for (size_t i = 0; i < patterns.size(); ++i) {
    bool found = false;
    for (const std::string& name : names) {
      if (!matches_glob(patterns[i], name)) continue;
      found = true;
      frozen.insert(name);
    }
    ONESTEP_CHECK(ConfigError, found, config.origin.at("/train/freeze/" + std::to_string(i)),
                  ": no parameter has that name: ", patterns[i], hint(patterns[i], names));
  }
  ONESTEP_CHECK(ConfigError, frozen.size() < names.size(), config.origin.at("/train/freeze"),
                ": leaves nothing to train: ", join(patterns, ", "), " is all of the model");
  return frozen;
}

void freeze_parameters(nn::Module& model, const Config& config) {
  const std::set<std::string> frozen = frozen_parameters(config);
  for (auto& [name, parameter] : model.named_parameters())
    if (frozen.contains(name)) Tensor(parameter).requires_grad_(false);
}

}  // namespace onestep::train
