#pragma once
// Functions that are called around a layer's forward and backward pass.
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "autograd/tensor.h"

namespace onestep::nn {

class Layer;

/// What a layer calls, each list in the order of registration, by the number of its handle. What a hook returns, if defined,
/// takes the place of what it was given.
struct LayerHooks {
  using ForwardPre = std::function<Tensor(const Layer&, const Tensor& input)>;
  using Forward = std::function<Tensor(const Layer&, const Tensor& input, const Tensor& output)>;
  using BackwardPre = std::function<Tensor(const Layer&, const Tensor& grad_output)>;
  using Backward = std::function<Tensor(const Layer&, const Tensor& grad_input, const Tensor& grad_output)>;
  template <class F>
  using List = std::vector<std::pair<uint64_t, F>>;

  List<ForwardPre> forward_pre;
  List<Forward> forward;
  List<BackwardPre> backward_pre;
  List<Backward> backward;

  /// Calls pass(input), the forward pass of `layer`, between its hooks.
  Tensor run(const Layer& layer, const Tensor& input, const std::function<Tensor(const Tensor&)>& pass) const;
};

/// Removes a hook of a layer again; may be dropped, which leaves the hook (torch.utils.hooks.RemovableHandle).
class LayerHookHandle {
 public:
  LayerHookHandle(std::weak_ptr<LayerHooks> hooks, uint64_t id) : hooks_(std::move(hooks)), id_(id) {}
  void remove();

 private:
  std::weak_ptr<LayerHooks> hooks_;
  uint64_t id_;
};

}  // namespace onestep::nn
