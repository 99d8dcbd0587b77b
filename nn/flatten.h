#pragma once
#include "autograd/ops_shape.h"
#include "nn/module.h"

namespace onestep::nn {

/// Dims start_dim to end_dim become one (torch.nn.Flatten): by default all but that of the examples.
class Flatten : public Layer {
 public:
  explicit Flatten(int64_t start_dim = 1, int64_t end_dim = -1) : start_dim_(start_dim), end_dim_(end_dim) {}
  Tensor forward(const Tensor& x) const override { return flatten(x, start_dim_, end_dim_); }
  std::string name() const override { return "Flatten"; }
  std::string extra_repr() const override {
    return "start_dim=" + std::to_string(start_dim_) + ", end_dim=" + std::to_string(end_dim_);
  }

 private:
  int64_t start_dim_, end_dim_;
};

/// Dim `dim` becomes dims of the given sizes, one of which may be -1 (torch.nn.Unflatten).
class Unflatten : public Layer {
 public:
  Unflatten(int64_t dim, const Shape& unflattened_size) : dim_(dim), sizes_(unflattened_size) {}
  /// Throws ShapeError where the sizes do not multiply to that of the dim.
  Tensor forward(const Tensor& x) const override;
  std::string name() const override { return "Unflatten"; }
  std::string extra_repr() const override {
    return "dim=" + std::to_string(dim_) + ", unflattened_size=" + python_repr(sizes_);
  }

 private:
  int64_t dim_;
  Shape sizes_;
};

}  // namespace onestep::nn
