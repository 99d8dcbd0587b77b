#pragma once
// Activations as modules; what they compute is documented in autograd/ops.h.
#include <concepts>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>

#include "autograd/creation.h"
#include "autograd/ops_math.h"
#include "autograd/ops_nn.h"
#include "autograd/ops_pointwise.h"
#include "nn/literal.h"
#include "nn/module.h"

namespace onestep::nn {

/// A number that an activation takes after x, printed after its name, if it has one; with a default (a numerator, and a
/// denominator unless that is 1) or without.
template <Literal kName, int... kRatio>
struct Number {
  using Type = double;
  static constexpr bool kOptional = sizeof...(kRatio) > 0;
  static constexpr Type kDefault = [] {
    constexpr double ratio[] = {kRatio..., 1, 1};
    return ratio[0] / ratio[1];
  }();
  static std::string text(Type value) { return (sizeof(kName) > 1 ? kName.string() + "=" : "") + python_repr(value); }
};

/// A dim that an activation takes after x, with or without a default.
template <Literal kName, int... kDefaultDim>
struct Dim {
  using Type = int64_t;
  static constexpr bool kOptional = sizeof...(kDefaultDim) > 0;
  static constexpr Type kDefault = (0 + ... + kDefaultDim);
  static std::string text(Type value) { return kName.string() + "=" + std::to_string(value); }
};

/// kFunction(x, arguments...) as a module. Arguments that are left out have their defaults.
template <Literal kName, auto kFunction, class... P>
class Activation : public Layer {
 public:
  template <std::convertible_to<double>... A>
  requires(sizeof...(A) <= sizeof...(P) && sizeof...(A) >= (0 + ... + (P::kOptional ? 0 : 1))) explicit Activation(A... given)
      : arguments_(P::kDefault...) {
    [&]<size_t... I>(std::index_sequence<I...>) {
      ((std::get<I>(arguments_) = static_cast<std::tuple_element_t<I, decltype(arguments_)>>(given)), ...);
    }
    (std::index_sequence_for<A...>());
  }
  Tensor forward(const Tensor& x) const override {
    return std::apply([&x](auto... arguments) { return kFunction(x, arguments...); }, arguments_);
  }
  std::string name() const override { return kName.string(); }
  std::string extra_repr() const override {
    std::string text;
    std::apply([&text](auto... values) { ((text += (text.empty() ? "" : ", ") + P::text(values)), ...); }, arguments_);
    return text;
  }

 private:
  std::tuple<typename P::Type...> arguments_;
};

using ReLU = Activation<"ReLU", relu>;
using ReLU6 = Activation<"ReLU6", relu6>;
using SiLU = Activation<"SiLU", silu>;
using Tanh = Activation<"Tanh", tanh>;
using Sigmoid = Activation<"Sigmoid", sigmoid>;
using LeakyReLU = Activation<"LeakyReLU", leaky_relu, Number<"negative_slope", 1, 100>>;
using ELU = Activation<"ELU", elu, Number<"alpha", 1>>;
using SELU = Activation<"SELU", selu>;
using CELU = Activation<"CELU", celu, Number<"alpha", 1>>;
using Softplus = Activation<"Softplus", softplus, Number<"beta", 1>, Number<"threshold", 20>>;
using Softsign = Activation<"Softsign", softsign>;
using Tanhshrink = Activation<"Tanhshrink", tanhshrink>;
using Hardtanh = Activation<"Hardtanh", hardtanh, Number<"min_val", -1>, Number<"max_val", 1>>;
using Hardsigmoid = Activation<"Hardsigmoid", hardsigmoid>;
using Hardswish = Activation<"Hardswish", hardswish>;
using Mish = Activation<"Mish", mish>;
using LogSigmoid = Activation<"LogSigmoid", logsigmoid>;
using Threshold = Activation<"Threshold", threshold, Number<"threshold">, Number<"value">>;
using Hardshrink = Activation<"Hardshrink", hardshrink, Number<"", 1, 2>>;
using Softshrink = Activation<"Softshrink", softshrink, Number<"", 1, 2>>;
using GLU = Activation<"GLU", glu, Dim<"dim", -1>>;
using Softmax = Activation<"Softmax", static_cast<Tensor (*)(const Tensor&, int64_t)>(softmax), Dim<"dim">>;
using Softmin = Activation<"Softmin", softmin, Dim<"dim">>;
using LogSoftmax = Activation<"LogSoftmax", static_cast<Tensor (*)(const Tensor&, int64_t)>(log_softmax), Dim<"dim">>;

class GELU : public Layer {
 public:
  explicit GELU(GeluApproximation approximate = GeluApproximation::none) : approximate_(approximate) {}
  Tensor forward(const Tensor& x) const override { return gelu(x, approximate_); }
  std::string name() const override { return "GELU"; }
  std::string extra_repr() const override {
    return approximate_ == GeluApproximation::tanh ? "approximate='tanh'" : "approximate='none'";
  }

 private:
  GeluApproximation approximate_;
};

/// prelu with a learnt slope for all of x, or for each place of dim 1 (He et al. 2015; torch.nn.PReLU).
class PReLU : public Layer {
 public:
  explicit PReLU(int64_t num_parameters = 1, double init = 0.25) : weight(full({num_parameters}, init).requires_grad_()) {}
  Tensor forward(const Tensor& x) const override { return prelu(x, weight); }
  std::string name() const override { return "PReLU"; }
  std::string extra_repr() const override { return "num_parameters=" + std::to_string(weight.size(0)); }
  void visit(Visitor& visitor) override { visitor.parameter("weight", weight); }

  Tensor weight;  // [num_parameters]
};

/// The activation called `relu`, `gelu`, `gelu_tanh`, `silu`, `tanh` or `sigmoid`; throws ConfigError for any other name.
std::unique_ptr<Layer> make_activation(std::string_view name);

}  // namespace onestep::nn
