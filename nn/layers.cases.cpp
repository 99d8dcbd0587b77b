// Module cases of nn/.
#include "nn/activation.h"
#include "nn/dropout.h"
#include "nn/embedding.h"
#include "nn/feed_forward.h"
#include "nn/layer_norm.h"
#include "nn/linear.h"
#include "nn/module_case.h"
#include "nn/rms_norm.h"

namespace onestep::nn {
namespace {

/// Draws x from the standard normal.
auto normal(const Shape& shape) {
  return [shape](Generator& generator) { return randn(shape, generator); };
}

/// Builds an M from arguments that need no generator.
template <class M, class... A>
auto make(A... arguments) {
  return [=](Generator&) -> std::unique_ptr<Layer> { return std::make_unique<M>(arguments...); };
}

std::unique_ptr<Layer> make_sequential(Generator& generator) {
  auto layers = std::make_unique<Sequential>();
  layers->emplace_back<Linear>(4, 6, true, generator);
  layers->emplace_back<Tanh>();
  layers->emplace_back<LayerNorm>(6);
  layers->emplace_back<Linear>(6, 2, false, generator);
  return layers;
}

auto linear_case(bool bias) {
  return [bias](Generator& g) -> std::unique_ptr<Layer> { return std::make_unique<Linear>(4, 3, bias, g); };
}

// Without padding_idx, whose row has gradient 0 although the result depends on it.
std::unique_ptr<Layer> make_embedding(Generator& g) { return std::make_unique<Embedding>(7, 3, g); }

auto feed_forward_case(const char* activation) {
  return [activation](Generator& g) -> std::unique_ptr<Layer> { return std::make_unique<FeedForward>(3, 4, activation, g); };
}

auto swiglu_case(bool bias) {
  return [bias](Generator& g) -> std::unique_ptr<Layer> { return std::make_unique<SwiGLU>(3, 5, bias, g); };
}

Tensor indices(Generator& generator) { return randint(0, 7, {2, 5}, generator); }

std::unique_ptr<Layer> make_dropout(Generator& generator) { return std::make_unique<Dropout>(0.4, generator); }

std::unique_ptr<Layer> make_evaluated_dropout(Generator& generator) {
  auto dropout = std::make_unique<Dropout>(0.4, generator);
  dropout->eval();
  return dropout;
}

const RegisterModuleCases registered([] {
  return ModuleCases{
      {"Linear", "", linear_case(true), normal({2, 5, 4})},
      {"Linear", "without bias", linear_case(false), normal({5, 4})},
      {"Embedding", "", make_embedding, indices},
      {"LayerNorm", "", make<LayerNorm>(Shape{4}), normal({3, 4})},
      {"LayerNorm", "two dims without bias", make<LayerNorm>(Shape{3, 4}, 1e-3, true, false), normal({2, 3, 4})},
      {"LayerNorm", "without parameters", make<LayerNorm>(Shape{4}, 1e-5, false), normal({3, 4})},
      {"RMSNorm", "", make<RMSNorm>(Shape{4}), normal({3, 4})},
      {"RMSNorm", "two dims", make<RMSNorm>(Shape{3, 4}, 1e-3), normal({2, 3, 4})},
      {"RMSNorm", "without parameters", make<RMSNorm>(Shape{4}, 1e-5, false), normal({3, 4})},
      {"Dropout", "", make_dropout, normal({4, 6})},
      {"Dropout", "in evaluation", make_evaluated_dropout, normal({4, 6})},
      {"ReLU", "", make<ReLU>(), normal({3, 5})},
      {"GELU", "", make<GELU>(), normal({3, 5})},
      {"GELU", "tanh", make<GELU>(GeluApproximation::tanh), normal({3, 5})},
      {"SiLU", "", make<SiLU>(), normal({3, 5})},
      {"Tanh", "", make<Tanh>(), normal({3, 5})},
      {"Sigmoid", "", make<Sigmoid>(), normal({3, 5})},
      {"Sequential", "", make_sequential, normal({3, 4})},
      {"Sequential", "empty", make<Sequential>(), normal({3, 4})},
      {"FeedForward", "", feed_forward_case("gelu"), normal({2, 2, 3})},
      {"FeedForward", "relu", feed_forward_case("relu"), normal({4, 3})},
      {"SwiGLU", "", swiglu_case(false), normal({2, 2, 3})},
      {"SwiGLU", "bias", swiglu_case(true), normal({4, 3})},
  };
});

}  // namespace
}  // namespace onestep::nn
