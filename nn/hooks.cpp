#include "nn/hooks.h"

#include <atomic>

#include "autograd/node.h"
#include "nn/module.h"

namespace onestep::nn {
namespace {

std::atomic<uint64_t> next_hook{1};

template <class F, class... A>
void call(const LayerHooks::List<F>& hooks, Tensor& value, const A&... before) {
  for (const auto& hook : LayerHooks::List<F>(hooks))  // a copy: a hook may remove itself
    if (Tensor replaced = hook.second(before..., value); replaced.defined()) value = std::move(replaced);
}

/// x under a node of its own, at which the gradient of this use of x alone arrives.
Tensor use_of(const Tensor& x) {
  return record("layer input", x.values(), {x}, {}, [](const onestep::Backward& b) -> Grads { return {b.grad()}; });
}

template <class F>
LayerHookHandle add(std::shared_ptr<LayerHooks>& hooks, LayerHooks::List<F> LayerHooks::*list, F hook) {
  if (!hooks) hooks = std::make_shared<LayerHooks>();
  const uint64_t id = next_hook++;
  ((*hooks).*list).emplace_back(id, std::move(hook));
  return {hooks, id};
}

}  // namespace

Tensor LayerHooks::run(const Layer& layer, const Tensor& input, const std::function<Tensor(const Tensor&)>& pass) const {
  Tensor x = input;
  call(forward_pre, x, layer);
  const bool watched = !backward.empty() && x.requires_grad() && grad_enabled();
  if (watched) x = use_of(x);
  Tensor y = pass(x);
  for (const auto& hook : List<Forward>(forward))
    if (Tensor replaced = hook.second(layer, x, y); replaced.defined()) y = std::move(replaced);
  if (!y.requires_grad() || !grad_enabled() || (backward_pre.empty() && backward.empty())) return y;

  y = use_of(y);
  const auto grad_output = std::make_shared<Tensor>();
  y.register_hook([this, &layer, watched, grad_output](const Tensor& grad) {
    *grad_output = grad;
    call(backward_pre, *grad_output, layer);
    if (!watched)  // the input needs no gradient
      for (const auto& hook : List<Backward>(backward)) hook.second(layer, Tensor(), *grad_output);
    return *grad_output;
  });
  if (watched)
    x.register_hook([this, &layer, grad_output](const Tensor& grad) {
      Tensor grad_input = grad;
      for (const auto& hook : List<Backward>(backward))
        if (Tensor replaced = hook.second(layer, grad_input, *grad_output); replaced.defined())
          grad_input = std::move(replaced);
      *grad_output = Tensor();
      return grad_input;
    });
  return y;
}

void LayerHookHandle::remove() {
  const std::shared_ptr<LayerHooks> hooks = hooks_.lock();
  if (!hooks) return;
  const auto is_this = [this](const auto& hook) { return hook.first == id_; };
  std::erase_if(hooks->forward_pre, is_this);
  std::erase_if(hooks->forward, is_this);
  std::erase_if(hooks->backward_pre, is_this);
  std::erase_if(hooks->backward, is_this);
}

LayerHookHandle Layer::register_forward_pre_hook(LayerHooks::ForwardPre hook) {
  return add(state_->hooks, &LayerHooks::forward_pre, std::move(hook));
}
LayerHookHandle Layer::register_forward_hook(LayerHooks::Forward hook) {
  return add(state_->hooks, &LayerHooks::forward, std::move(hook));
}
LayerHookHandle Layer::register_full_backward_pre_hook(LayerHooks::BackwardPre hook) {
  return add(state_->hooks, &LayerHooks::backward_pre, std::move(hook));
}
LayerHookHandle Layer::register_full_backward_hook(LayerHooks::Backward hook) {
  return add(state_->hooks, &LayerHooks::backward, std::move(hook));
}

}  // namespace onestep::nn
