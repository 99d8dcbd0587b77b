#pragma once
#include <memory>

#include "nn/module_list.h"

namespace onestep::nn {

/// Layers applied one after another, named 0, 1, 2, ... (torch.nn.Sequential). It owns them. Layers are added by statements,
/// so the order in which they draw their initial values is the order of the lines.
class Sequential : public Layer {
 public:
  /// Builds an L from the arguments at the end and returns it.
  template <class L, class... A>
  L& emplace_back(A&&... arguments) {
    return layers_.template emplace_back<L>(std::forward<A>(arguments)...);
  }
  void append(std::unique_ptr<Layer> layer) { layers_.append(std::move(layer)); }

  int64_t size() const { return layers_.size(); }
  const Layer& operator[](int64_t i) const { return layers_[i]; }

  Tensor forward(const Tensor& x) const override {
    Tensor y = x;
    for (const Layer& layer : layers_) y = layer(y);
    return y;
  }
  std::string name() const override { return "Sequential"; }
  void visit(Visitor& visitor) override { layers_.visit(visitor); }

 private:
  ModuleList<Layer> layers_;
};

}  // namespace onestep::nn
