#pragma once
// Activations as modules; what they compute is documented in autograd/ops.h.
#include <memory>
#include <string_view>

#include "nn/module.h"

namespace onestep::nn {

class ReLU : public Layer {
 public:
  Tensor forward(const Tensor& x) const override { return relu(x); }
  std::string name() const override { return "ReLU"; }
};

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

class SiLU : public Layer {
 public:
  Tensor forward(const Tensor& x) const override { return silu(x); }
  std::string name() const override { return "SiLU"; }
};

class Tanh : public Layer {
 public:
  Tensor forward(const Tensor& x) const override { return tanh(x); }
  std::string name() const override { return "Tanh"; }
};

class Sigmoid : public Layer {
 public:
  Tensor forward(const Tensor& x) const override { return sigmoid(x); }
  std::string name() const override { return "Sigmoid"; }
};

/// The activation called `relu`, `gelu`, `gelu_tanh`, `silu`, `tanh` or `sigmoid`; throws ConfigError for any other name.
std::unique_ptr<Layer> make_activation(std::string_view name);

}  // namespace onestep::nn
