#pragma once
#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

#include "nn/module_list.h"

namespace onestep::nn {

/// A layer that can be part of another module: one that is made in place, or has a name and is not const.
template <class L>
concept LayerHandle = std::derived_from<std::remove_cvref_t<L>, Layer> && !std::is_const_v<std::remove_reference_t<L>>;

/// Layers applied one after another, named 0, 1, 2, ... (torch.nn.Sequential): `Sequential net(first, relu, last)`. Layers that
/// are made in place are written in braces, `Sequential net{Linear(4, 8), ReLU(), Linear(8, 2)}`: C++ does not define the order
/// in which arguments in parentheses are evaluated, and so which layer draws its initial values first.
class Sequential : public Layer {
 public:
  Sequential() = default;
  /// The layers given, which go on sharing their parameters with those that have a name. (One Sequential alone is copied.)
  template <LayerHandle... L>
  requires(sizeof...(L) > 1 || (sizeof...(L) == 1 && (!std::same_as<std::remove_cvref_t<L>, Sequential> &&
                                                      ...))) explicit Sequential(L&&... layers) {
    (append(std::make_shared<std::remove_cvref_t<L>>(std::forward<L>(layers))), ...);
  }
  /// Builds an L from the arguments at the end and returns it.
  template <class L, class... A>
  L& emplace_back(A&&... arguments) {
    return layers_.template emplace_back<L>(std::forward<A>(arguments)...);
  }
  void append(std::shared_ptr<Layer> layer) { layers_.append(std::move(layer)); }

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
