// A custom op is one node with an edge to every input, and one node an output: the engine's nodes have one output each. Those
// of the outputs put their gradients into the op's node, which runs after them, and give it an empty gradient so that it does.
// An output that shows an input's elements is a view of it that cannot be changed in place: the gradient of such a change would
// have to pass the op's own rule or go around it.
#include "autograd/function.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "autograd/creation.h"
#include "autograd/memory.h"
#include "autograd/node.h"
#include "autograd/ops_math.h"
#include "autograd/ops_shape.h"
#include "autograd/tensor.h"

namespace onestep::autograd {
namespace {

bool is_among(const Tensor& x, const std::vector<Tensor>& list) {
  return std::any_of(list.begin(), list.end(), [&](const Tensor& y) { return y.defined() && &y.impl() == &x.impl(); });
}

/// Whether `y` shows elements of one of `inputs`, or of what that is a view of.
bool shows_one_of(const Tensor& y, const std::vector<Tensor>& inputs) {
  const auto whole = [](const Tensor& x) { return x.is_view() ? x.impl().base.get() : &x.impl(); };
  return std::any_of(inputs.begin(), inputs.end(), [&](const Tensor& x) { return x.defined() && whole(x) == whole(y); });
}

/// A gradient of a user's in the dtype and shape of what it is for, converted and summed as in PyTorch, where that can be.
Tensor fitted(const Tensor& grad, const Node& input) {
  const int added = grad.dim() - input.shape.rank();
  Shape summed;
  for (int d = 0; d < grad.dim(); ++d) {
    const int64_t size = grad.shape()[d], wanted = d < added ? 1 : input.shape[d - added];
    if (size != wanted && wanted != 1) return grad;  // the engine says what is wrong
    if (d < added || size != wanted) summed.push_back(d);
  }
  return to(added >= 0 && summed.rank() > 0 ? reshape(sum(grad, summed), input.shape) : grad, input.dtype);
}

Tensor no_elements() { return empty(Shape{0}); }

}  // namespace

/// The node of a call.
class CustomNode : public Node {
 public:
  CustomNode(std::string op_name, std::shared_ptr<CustomOp> op, std::shared_ptr<Context> context,
             const std::vector<Tensor>& outputs)
      : Node("", no_elements()),
        op_(std::move(op)),
        context_(std::move(context)),
        name_(std::move(op_name)),
        grads_(outputs.size()) {
    name = name_.c_str();
    for (const Tensor& y : outputs) outputs_.emplace_back(y.shape(), y.dtype());
    rule = [](const Node& self, const Backward& b) { return static_cast<const CustomNode&>(self).run(b); };
  }
  void take(size_t output, const Tensor& arrived) const { grads_[output] = arrived; }

 private:
  /// Shows the context its pass while that runs, also where it throws or begins another one.
  struct Running {
    Running(Context& c, const Backward& b) : context(c), outer(std::exchange(c.pass_, &b)) {}
    ~Running() { context.pass_ = outer; }
    Context& context;
    const Backward* outer;
  };

  Grads run(const Backward& b) const {
    std::vector<Tensor> grads(grads_.size());
    grads.swap(grads_);
    for (size_t i = 0; context_->materialize_ && i < grads.size(); ++i)
      if (!grads[i].defined()) grads[i] = zeros(outputs_[i].first, outputs_[i].second);
    const Running running(*context_, b);
    const std::vector<Tensor> found = op_->backward(*context_, grads);
    Grads result(found.size());
    for (size_t i = 0; i < found.size(); ++i)
      result[i] = found[i].defined() && i < inputs.size() && inputs[i] ? fitted(found[i], *inputs[i]) : found[i];
    return result;
  }

  std::shared_ptr<CustomOp> op_;
  std::shared_ptr<Context> context_;
  std::string name_;
  mutable std::vector<Tensor> grads_;
  std::vector<std::pair<Shape, DType>> outputs_;
};

std::vector<Tensor> Context::saved_tensors() const {
  ONESTEP_CHECK(GradError, pass_ != nullptr, "saved_tensors: is for the backward function");
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < saved_nodes_.size(); ++i) {
    tensors.push_back(pass_->saved(i));
    std::shared_ptr<Node> node = saved_nodes_[i].lock();
    if (!node || !pass_->recording()) continue;
    tensors.back() = tensors.back().values();
    detail::set_node(tensors.back(), std::move(node));
  }
  return tensors;
}

bool Context::needs_input_grad(size_t i) const {
  ONESTEP_CHECK(GradError, pass_ != nullptr, "needs_input_grad: is for the backward function");
  return pass_->needs(i);
}

std::vector<Tensor> CustomOp::apply(const std::string& name, const std::shared_ptr<CustomOp>& op,
                                    const std::shared_ptr<Context>& context, const Tensors& inputs) {
  Tensors computed;
  {
    const NoGradGuard no_grad;
    computed = op->forward(*context, inputs);
  }
  const Tensors saved = std::move(context->to_save_), constant = std::move(context->not_differentiable_);
  const Tensors dirty = std::move(context->dirty_);
  const ListView<Tensor> list(inputs);
  Tensors outputs;  // an input that is handed on gets a handle of its own, so that its place in the graph stays
  for (const Tensor& y : computed) outputs.push_back(is_among(y, inputs) || y.is_view() ? y.values() : y);
  if (!detail::should_record(list)) {
    for (size_t i = 0; i < computed.size(); ++i)
      if (is_among(computed[i], dirty)) outputs[i] = computed[i];
    return outputs;
  }

  auto node = std::allocate_shared<CustomNode>(memory::Allocator<CustomNode>(), name, op, context, outputs);
  Tensor token = no_elements();
  detail::connect(*node, token, list, saved);
  detail::set_node(token, node);
  const CustomNode* const call = node.get();
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].is_floating() || is_among(computed[i], constant)) continue;
    outputs[i] = record(call->name, outputs[i], {token}, {}, [call, i](const Backward& b) -> Grads {
      call->take(i, b.grad());
      return {no_elements()};
    });
    if (!is_among(computed[i], dirty)) {
      const Tensor& y = computed[i];
      if (shows_one_of(y, inputs)) detail::mark_view(outputs[i], y.is_view() ? y.base() : y, ViewKind::of_custom_op);
      continue;
    }
    Tensor written = computed[i];
    outputs[i] = assign_in_place(call->name, written, outputs[i]);
  }
  for (const Tensor& tensor : saved) {
    std::weak_ptr<Node> place;
    for (size_t i = 0; i < outputs.size(); ++i)
      if (tensor.defined() && &tensor.impl() == &computed[i].impl() && !is_among(tensor, inputs)) place = outputs[i].node();
    context->saved_nodes_.push_back(std::move(place));
  }
  return outputs;
}

}  // namespace onestep::autograd
