// Module cases of nn/.
#include "autograd/operators.h"
#include "nn/activation.h"
#include "nn/batch_norm.h"
#include "nn/convolution.h"
#include "nn/dropout.h"
#include "nn/embedding.h"
#include "nn/feed_forward.h"
#include "nn/flatten.h"
#include "nn/fold.h"
#include "nn/layer_norm.h"
#include "nn/linear.h"
#include "nn/module_case.h"
#include "nn/padding.h"
#include "nn/pooling.h"
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

/// The same of arguments before the generator.
template <class M, class... A>
auto draw(A... arguments) {
  return [=](Generator& g) -> std::unique_ptr<Layer> { return std::make_unique<M>(arguments..., g); };
}

std::unique_ptr<Layer> make_evaluated_batch_norm(Generator&) {
  auto norm = std::make_unique<BatchNorm2d>(2);
  norm->eval();
  return norm;
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
      {"ReLU6", "", make<ReLU6>(), normal({3, 5})},
      {"GELU", "", make<GELU>(), normal({3, 5})},
      {"GELU", "tanh", make<GELU>(GeluApproximation::tanh), normal({3, 5})},
      {"SiLU", "", make<SiLU>(), normal({3, 5})},
      {"Tanh", "", make<Tanh>(), normal({3, 5})},
      {"Sigmoid", "", make<Sigmoid>(), normal({3, 5})},
      {"LeakyReLU", "", make<LeakyReLU>(0.2), normal({3, 5})},
      {"ELU", "", make<ELU>(0.5), normal({3, 5})},
      {"SELU", "", make<SELU>(), normal({3, 5})},
      {"CELU", "", make<CELU>(), normal({3, 5})},
      {"Softplus", "", make<Softplus>(2.0), normal({3, 5})},
      {"Softsign", "", make<Softsign>(), normal({3, 5})},
      {"Tanhshrink", "", make<Tanhshrink>(), normal({3, 5})},
      {"Hardtanh", "", make<Hardtanh>(-0.5), normal({3, 5})},
      {"Hardsigmoid", "", make<Hardsigmoid>(), normal({3, 5})},
      {"Hardswish", "", make<Hardswish>(), normal({3, 5})},
      {"Mish", "", make<Mish>(), normal({3, 5})},
      {"LogSigmoid", "", make<LogSigmoid>(), normal({3, 5})},
      {"Threshold", "", make<Threshold>(0.1, 20), normal({3, 5})},
      {"Hardshrink", "", make<Hardshrink>(), normal({3, 5})},
      {"Softshrink", "", make<Softshrink>(0.3), normal({3, 5})},
      {"GLU", "", make<GLU>(), normal({3, 4})},
      {"Softmax", "", make<Softmax>(0), normal({3, 5})},
      {"Softmin", "", make<Softmin>(-1), normal({3, 5})},
      {"LogSoftmax", "", make<LogSoftmax>(1), normal({3, 5})},
      {"PReLU", "", make<PReLU>(5), normal({3, 5})},
      {"Conv1d", "", draw<Conv1d>(2, 3, 3, 2, 1, 1, 1, true, PadMode::constant), normal({2, 2, 5})},
      {"Conv2d", "", draw<Conv2d>(2, 3, 3, 2, 1, 1, 1, true, PadMode::constant), normal({2, 2, 4, 5})},
      {"Conv2d", "groups without bias", draw<Conv2d>(2, 2, 2, 1, "same", 1, 2, false, PadMode::constant), normal({2, 2, 3, 3})},
      {"Conv2d", "reflected", draw<Conv2d>(2, 2, 3, 1, 1, 1, 1, true, PadMode::reflect), normal({2, 2, 3, 4})},
      {"Unfold", "", make<Unfold>(2, 1, 1, 2), normal({2, 2, 4, 3})},
      {"Fold", "", make<Fold>(Shape{3, 4}, 2), normal({2, 8, 6})},
      {"ConvTranspose1d", "", draw<ConvTranspose1d>(2, 3, 3, 2, 1, 1, 1, true, 1), normal({2, 2, 4})},
      {"ConvTranspose2d", "", draw<ConvTranspose2d>(2, 2, 2, 2, 0, 0, 2, true, 1), normal({1, 2, 3, 3})},
      {"BatchNorm1d", "", make<BatchNorm1d>(3), normal({4, 3})},
      {"BatchNorm2d", "", make<BatchNorm2d>(2), normal({2, 2, 3, 2})},
      {"BatchNorm2d", "in evaluation", make_evaluated_batch_norm, normal({2, 2, 3, 2})},
      {"BatchNorm3d", "", make<BatchNorm3d>(2), normal({2, 2, 2, 1, 2})},
      {"GroupNorm", "", make<GroupNorm>(2, 4), normal({2, 4, 3})},
      {"InstanceNorm2d", "", make<InstanceNorm2d>(2, 1e-5, 0.1, true), normal({2, 2, 3, 2})},
      {"MaxPool1d", "", make<MaxPool1d>(2), normal({2, 2, 6})},
      {"MaxPool2d", "", make<MaxPool2d>(3, 2, 1), normal({1, 2, 5, 6})},
      {"AvgPool1d", "", make<AvgPool1d>(2), normal({2, 2, 6})},
      {"AvgPool2d", "", make<AvgPool2d>(3, 2, 1, true, false), normal({1, 2, 5, 6})},
      {"AdaptiveAvgPool1d", "", make<AdaptiveAvgPool1d>(3), normal({2, 7})},
      {"AdaptiveAvgPool2d", "", make<AdaptiveAvgPool2d>(1), normal({2, 2, 3, 3})},
      {"AdaptiveMaxPool1d", "", make<AdaptiveMaxPool1d>(3), normal({2, 7})},
      {"AdaptiveMaxPool2d", "", make<AdaptiveMaxPool2d>(2), normal({2, 5, 5})},
      {"Flatten", "", make<Flatten>(), normal({2, 2, 3})},
      {"Unflatten", "", make<Unflatten>(1, Shape{2, 2}), normal({3, 4})},
      {"ZeroPad2d", "", make<ZeroPad2d>(1), normal({1, 2, 3})},
      {"ConstantPad1d", "", make<ConstantPad1d>(1, 2.0), normal({2, 3})},
      {"ConstantPad2d", "", make<ConstantPad2d>(1, 2.0), normal({1, 2, 3})},
      {"ReflectionPad1d", "", make<ReflectionPad1d>(1), normal({2, 3})},
      {"ReflectionPad2d", "", make<ReflectionPad2d>(1), normal({1, 3, 3})},
      {"ReplicationPad1d", "", make<ReplicationPad1d>(2), normal({2, 3})},
      {"ReplicationPad2d", "", make<ReplicationPad2d>(2), normal({1, 2, 3})},
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
