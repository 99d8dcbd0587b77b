// Convolutions, pooling and normalisations as modules against PyTorch: tests/goldens/image_modules.py.
#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "autograd/ops.h"
#include "nn/activation.h"
#include "nn/batch_norm.h"
#include "nn/convolution.h"
#include "nn/flatten.h"
#include "nn/fold.h"
#include "nn/padding.h"
#include "nn/pooling.h"
#include "tests/goldens.h"
#include "tests/nn/check.h"

namespace onestep {
namespace {

using namespace nn;
using testing::check_close;
using testing::check_same;
using Build = std::function<std::unique_ptr<Layer>(Generator&)>;

template <class M, class... A>
Build make(A... arguments) {
  return [=](Generator&) -> std::unique_ptr<Layer> { return std::make_unique<M>(arguments...); };
}

/// A module that draws: the generator comes last.
template <class M, class... A>
Build draw(A... arguments) {
  return [=](Generator& g) -> std::unique_ptr<Layer> { return std::make_unique<M>(arguments..., g); };
}

const std::map<std::string, Build>& builders() {
  static const std::map<std::string, Build> all = {
      {"Conv1d", draw<Conv1d>(2, 3, 3, 1, 0, 1, 1, true, PadMode::constant)},
      {"Conv1d same", draw<Conv1d>(2, 2, 4, 1, "same", 1, 1, false, PadMode::constant)},
      {"Conv2d", draw<Conv2d>(2, 3, 3, 2, 1, 1, 1, true, PadMode::constant)},
      {"Conv2d groups", draw<Conv2d>(2, 4, Shape{2, 3}, 1, Shape{0, 2}, Shape{1, 2}, 2, false, PadMode::constant)},
      {"Conv1d circular", draw<Conv1d>(2, 3, 3, 1, 2, 1, 1, true, PadMode::circular)},
      {"Conv1d replicate same", draw<Conv1d>(2, 2, 4, 1, "same", 2, 1, false, PadMode::replicate)},
      {"Conv2d reflect", draw<Conv2d>(2, 3, 3, 2, Shape{1, 2}, 1, 1, true, PadMode::reflect)},
      {"ConvTranspose1d", draw<ConvTranspose1d>(2, 3, 3, 2, 0, 0, 1, true, 1)},
      {"ConvTranspose2d", draw<ConvTranspose2d>(2, 4, 3, 2, 1, 1, 2, true, 1)},
      {"BatchNorm1d", make<BatchNorm1d>(2)},
      {"BatchNorm1d signals", make<BatchNorm1d>(2, 1e-3, 0.3, false)},
      {"BatchNorm2d", make<BatchNorm2d>(2)},
      {"BatchNorm2d cumulative", make<BatchNorm2d>(2, 1e-5, std::optional<double>())},
      {"BatchNorm2d without statistics", make<BatchNorm2d>(2, 1e-5, 0.1, true, false)},
      {"GroupNorm", make<GroupNorm>(1, 2)},
      {"InstanceNorm2d", make<InstanceNorm2d>(2)},
      {"InstanceNorm2d statistics", make<InstanceNorm2d>(2, 1e-5, 0.1, true, true)},
      {"MaxPool1d", make<MaxPool1d>(3, 2, 1)},
      {"MaxPool2d", make<MaxPool2d>(2)},
      {"AvgPool1d", make<AvgPool1d>(2)},
      {"AvgPool2d", make<AvgPool2d>(Shape{2, 3}, 1, Shape{1, 1})},
      {"AdaptiveAvgPool1d", make<AdaptiveAvgPool1d>(3)},
      {"AdaptiveAvgPool2d", make<AdaptiveAvgPool2d>(Shape{3, -1})},
      {"AdaptiveMaxPool1d", make<AdaptiveMaxPool1d>(3)},
      {"AdaptiveMaxPool2d", make<AdaptiveMaxPool2d>(2)},
      {"Unfold", make<Unfold>(2, 1, 1, 2)},
      {"Unfold dims", make<Unfold>(Shape{2, 3}, 1, 0, 1)},
      {"Fold", make<Fold>(Shape{3, 4}, 2)},
      {"Hardshrink", make<Hardshrink>()},
      {"Softshrink", make<Softshrink>(0.25)},
      {"Flatten", make<Flatten>()},
      {"Unflatten", make<Unflatten>(1, Shape{2, -1})},
      {"ZeroPad2d", make<ZeroPad2d>(1)},
      {"ConstantPad1d", make<ConstantPad1d>(Shape{2, 0}, 3.5)},
      {"ConstantPad2d", make<ConstantPad2d>(Shape{1, -2, 0, 1}, 0.5)},
      {"ReflectionPad1d", make<ReflectionPad1d>(2)},
      {"ReflectionPad2d", make<ReflectionPad2d>(Shape{1, 2, 0, 3})},
      {"ReplicationPad1d", make<ReplicationPad1d>(2)},
      {"ReplicationPad2d", make<ReplicationPad2d>(Shape{1, 2, 0, 3})},
  };
  return all;
}

TEST_CASE("image modules: as in PyTorch") {
  const auto& runs = testing::golden("image_modules.json").at("runs");
  CHECK(runs.size() == builders().size());
  for (const auto& [title, wanted] : runs.items()) {
    const std::string& name = title;  // clang 14 captures no binding
    CAPTURE(name);
    Generator generator(7);
    Tensor x = randn(Shape(wanted.at("shape").get<std::vector<int64_t>>()), generator).requires_grad_();
    const std::unique_ptr<Layer> module = builders().at(name)(generator);
    CHECK(module->repr() == wanted.at("repr"));
    std::vector<std::string> keys;
    for (const auto& [key, _] : module->state_dict()) keys.push_back(key);
    CHECK(keys == wanted.at("keys"));

    const Tensor y = (*module)(x);
    check_close(y, wanted.at("y"));
    sum(y * y * linspace(0, 1, y.numel()).reshape(y.shape())).backward();
    check_close(x.grad(), wanted.at("x_grad"));
    for (const auto& [key, parameter] : module->named_parameters()) {
      const std::string& label = key;
      CAPTURE(label);
      check_same(parameter, wanted.at("parameters").at(key));
      check_close(parameter.grad(), wanted.at("grads").at(key));
    }
    if (!wanted.contains("buffers")) continue;
    (*module)(2.0 * x.detach() + 1.0);
    for (const auto& [key, buffer] : module->named_buffers()) check_close(buffer, wanted.at("buffers").at(key));
    module->eval();
    check_close((*module)(x), wanted.at("y_eval"));
  }
}

TEST_CASE("image modules: what does not fit is refused") {
  CHECK_THROWS_AS(conv2d(zeros({1, 4, 4}), zeros({2, 1, 2, 2}), {}, 1, "full"), Error);
  CHECK(testing::refusal<ShapeError>([] { Conv2d(3, 4, 3, 1, 0, 1, 2); }) ==
        "Conv2d: channels must be positive multiples of groups: in_channels=3, out_channels=4, groups=2");
  CHECK(testing::refusal<ShapeError>([] { Conv1d(2, 4, {3, 3}); }) == "Conv1d: kernel_size [3, 3] needs one number or 1");
  CHECK(testing::refusal<ShapeError>([] { BatchNorm2d(3)(zeros(2, 3)); }) ==
        "BatchNorm2d: needs 4 dims with 3 channels: got [2, 3]");
  CHECK(testing::refusal<ShapeError>([] { BatchNorm1d(3)(zeros(2, 4)); }).starts_with("BatchNorm1d: needs 2 or 3 dims "));
  CHECK(testing::refusal<ShapeError>([] { GroupNorm(2, 3); }) == "GroupNorm: num_groups=2 does not divide num_channels=3");
  CHECK(testing::refusal<ShapeError>([] { ZeroPad2d({1, 2, 3}); }) == "ZeroPad2d: padding [1, 2, 3] needs one number or 4");
  CHECK(testing::refusal<ShapeError>([] {
          Unflatten(1, {2, -1})(zeros(2, 3));
        }) == "Unflatten: sizes [2, -1] do not fit dim 1 of [2, 3]");
}

TEST_CASE("image modules: evaluation leaves the running statistics alone") {
  BatchNorm2d norm(2);
  norm.eval();
  norm(ones({1, 2, 1, 1}));
  CHECK(norm.num_batches_tracked.item<int64_t>() == 0);
  CHECK(equal(norm.running_mean, zeros(2)));
}

}  // namespace
}  // namespace onestep
