#pragma once
// Ops of a user's own: a forward and a backward function of tensors, as torch.autograd.Function.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "autograd/node.h"

namespace onestep::autograd {

/// What the forward function of a custom op leaves for its backward function. One per call; it lives as long as the graph, so a
/// class derived from it may hold whatever the backward function needs, but no output of the op, nor a tensor computed from its
/// inputs: those go into save_for_backward.
class Context {
 public:
  Context() = default;
  virtual ~Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // ---- for the forward function
  /// Keeps inputs and outputs for the backward function: version-checked on use, freed when the graph is used up.
  void save_for_backward(std::vector<Tensor> tensors) { to_save_ = std::move(tensors); }
  /// These outputs have no gradient.
  void mark_non_differentiable(std::vector<Tensor> outputs) { not_differentiable_ = std::move(outputs); }
  /// These inputs were written to; they are outputs, too.
  void mark_dirty(std::vector<Tensor> inputs) { dirty_ = std::move(inputs); }
  /// Whether outputs without a gradient get zeros (the default) or an undefined tensor.
  void set_materialize_grads(bool on) { materialize_ = on; }

  // ---- for the backward function
  /// What save_for_backward kept; in a pass with create_graph, inputs and outputs in their places in the graph.
  std::vector<Tensor> saved_tensors() const;
  /// Whether input `i` needs a gradient.
  bool needs_input_grad(size_t i) const;

 private:
  friend class CustomOp;
  friend class CustomNode;
  std::vector<Tensor> to_save_, not_differentiable_, dirty_;
  bool materialize_ = true;
  const Backward* pass_ = nullptr;                // while the backward function runs
  std::vector<std::weak_ptr<Node>> saved_nodes_;  // of saved outputs
};

/// The two functions of a custom op. `forward` computes the outputs, unrecorded; `backward` gets one gradient an output and
/// returns one an input (undefined where there is none), and is recorded in a pass with create_graph.
class CustomOp {
 public:
  using Tensors = std::vector<Tensor>;
  virtual ~CustomOp() = default;
  virtual Tensors forward(Context& context, const Tensors& inputs) = 0;
  virtual Tensors backward(Context& context, const Tensors& grad_outputs) = 0;

  /// Runs the op and enters it into the graph under `name`. The op and its context live as long as the graph. An output that
  /// is an input, or a view of one, and is not marked dirty cannot be changed in place while recording (GradError).
  /// A gradient is converted to its input's dtype and summed to its shape; throws GradError in the backward pass where the
  /// number of gradients is wrong or one does not broadcast from its input's shape.
  static Tensors apply(const std::string& name, const std::shared_ptr<CustomOp>& op, const std::shared_ptr<Context>& context,
                       const Tensors& inputs);
};

/// A custom op as a struct with two static functions (torch::autograd::Function in C++):
///   struct Square : autograd::Function<Square> {
///     static std::vector<Tensor> forward(Context& c, const std::vector<Tensor>& in);
///     static std::vector<Tensor> backward(Context& c, const std::vector<Tensor>& grads);
///   };
///   Tensor y = Square::apply({x})[0];
template <class F, class C = Context>
class Function {
 public:
  static std::vector<Tensor> apply(const std::vector<Tensor>& inputs) {
    struct Op : CustomOp {
      Tensors forward(autograd::Context& c, const Tensors& in) override { return F::forward(static_cast<C&>(c), in); }
      Tensors backward(autograd::Context& c, const Tensors& g) override { return F::backward(static_cast<C&>(c), g); }
    };
    return CustomOp::apply("Function", std::make_shared<Op>(), std::make_shared<C>(), inputs);
  }
};

}  // namespace onestep::autograd
