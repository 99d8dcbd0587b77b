#pragma once
// Gradients as soon as they are whole, while the backward pass continues.
#include <functional>

#include "autograd/node.h"

namespace onestep {

/// While it lives, a backward pass of this thread gives every leaf its gradient when the last op that uses the leaf has been
/// passed, not at its own end, and then calls `ready` with the leaf (not with one that is itself the root, which no op uses).
/// The gradients have the same bits (torch.Tensor.register_post_accumulate_grad_hook).
class GradHook {
 public:
  explicit GradHook(std::function<void(const Node& leaf)> ready);
  ~GradHook();
  GradHook(const GradHook&) = delete;
  GradHook& operator=(const GradHook&) = delete;

  /// The newest hook of this thread, or nullptr.
  static const GradHook* active();
  void ready(const Node& leaf) const { ready_(leaf); }

 private:
  std::function<void(const Node&)> ready_;
  const GradHook* outer_;
};

}  // namespace onestep
