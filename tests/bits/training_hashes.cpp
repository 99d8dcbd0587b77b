#include "tests/bits/training_hashes.h"

#include "autograd/ops.h"
#include "base/hash.h"
#include "tests/goldens.h"
#include "tests/paths.h"
#include "train/trainer.h"

namespace onestep::testing {
namespace {

void add(Hasher& hasher, const nn::NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors) {
    hasher.update(name.data(), name.size());
    const Tensor values = contiguous(tensor.detach());
    dispatch(values.dtype(),
             [&]<class T>() { hasher.update(values.data<T>(), static_cast<size_t>(values.numel()) * sizeof(T)); });
  }
}

std::string hash_of(train::Trainer& trainer) {
  const train::TrainerState state = trainer.state();
  Hasher hasher;
  add(hasher, state.model);
  add(hasher, state.optimizer);
  hasher.update(state.generator.data(), state.generator.size());
  return hasher.hex();
}

}  // namespace

nlohmann::json training_hashes(const std::string& config, std::span<const int64_t> steps) {
  train::Trainer trainer(train::load_config(ONESTEP_SOURCE_DIR "/tests/configs/" + config + ".json"));
  nlohmann::json hashes;
  for (const int64_t step : steps) {
    while (trainer.steps_done() < step) trainer.step();
    hashes[std::to_string(step)] = hash_of(trainer);
  }
  return hashes;
}

std::string differing_hashes(int64_t steps) {
  std::string lines;
  for (const std::string config : kBitConfigs) {
    const std::string step = std::to_string(steps), got = training_hashes(config, {&steps, 1})[step];
    const std::string want = golden("training_hashes.json")["hashes"][config][step];
    if (got != want) lines += config + " after " + step + " steps: " + got + ", not " + want + "\n";
  }
  return lines;
}

}  // namespace onestep::testing
