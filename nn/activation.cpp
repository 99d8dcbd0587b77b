#include "nn/activation.h"

namespace onestep::nn {

std::unique_ptr<Layer> make_activation(std::string_view name) {
  if (name == "relu") return std::make_unique<ReLU>();
  if (name == "gelu") return std::make_unique<GELU>();
  if (name == "gelu_tanh") return std::make_unique<GELU>(GeluApproximation::tanh);
  if (name == "silu") return std::make_unique<SiLU>();
  if (name == "tanh") return std::make_unique<Tanh>();
  if (name == "sigmoid") return std::make_unique<Sigmoid>();
  fail<ConfigError>("make_activation: unknown activation: \"", name, "\" (relu, gelu, gelu_tanh, silu, tanh or sigmoid)");
}

}  // namespace onestep::nn
