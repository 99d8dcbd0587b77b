// The backward pass: one iteration over the reachable nodes, newest first.
#include <algorithm>
#include <atomic>
#include <unordered_map>
#include <vector>

#include "autograd/anomaly.h"
#include "autograd/grad_hook.h"
#include "autograd/kernels/kernels.h"
#include "autograd/node.h"
#include "autograd/ops.h"
#include "autograd/profiler.h"

namespace onestep {
namespace {

std::atomic<uint64_t> pass_counter{0};

/// Every node reachable from `root`: ops in descending creation order, so that each comes before its inputs, then leaves.
std::vector<Node*> reachable(Node* root) {
  const uint64_t pass = ++pass_counter;
  std::vector<Node*> nodes, leaves;
  (root->is_leaf() ? leaves : nodes).push_back(root);
  root->visit = pass;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const auto& input : nodes[i]->inputs) {
      if (!input || input->visit == pass) continue;
      input->visit = pass;
      (input->is_leaf() ? leaves : nodes).push_back(input.get());
    }
  }
  const auto newest_first = [](const Node* a, const Node* b) { return a->sequence > b->sequence; };
  if (!std::is_sorted(nodes.begin(), nodes.end(), newest_first)) std::sort(nodes.begin(), nodes.end(), newest_first);
  nodes.insert(nodes.end(), leaves.begin(), leaves.end());
  return nodes;
}

/// sum += addend, in place when nobody else sees `sum`. Straight to the kernel where it can: a leaf that a long chain uses
/// again and again would spend most of its time in add_'s checks.
void accumulate(Tensor& sum, Tensor addend) {
  if (!sum.defined())
    sum = std::move(addend);
  else if (sum.is_unique() && sum.is_contiguous() && addend.is_contiguous())
    dispatch_floating(sum.dtype(), "backward", [&]<class T>() {
      T* const to = sum.mutable_data<T>();
      kernels::add(to, 1, addend.data<T>(), 1, to, sum.numel());
    });
  else if (sum.is_unique() && sum.is_contiguous())
    add_(sum, addend);
  else
    sum = add(sum, addend);
}

/// Adds into a collected gradient. The tensor that users see never shares memory with another gradient.
void collect(Node& node, const Tensor& grad, bool may_take) {
  if (node.grad.defined())
    add_(node.grad, grad);
  else
    node.grad = may_take && grad.is_contiguous() ? grad : clone(grad);
}

void check_gradient(const Node& node, size_t i, const Tensor& grad) {
  const Node& input = *node.inputs[i];
  ONESTEP_CHECK(GradError, grad.shape() == input.shape, node.name, ": its rule returned gradient ", i, " of shape ",
                grad.shape(), " for an input of shape ", input.shape);
  ONESTEP_CHECK(GradError, grad.dtype() == input.dtype, node.name, ": its rule returned gradient ", i, " of dtype ",
                grad.dtype(), " for an input of dtype ", input.dtype);
}

void profile(const Node& node, const Tensor& grad, const Grads& grads) {
  Profiler* const profiler = Profiler::active();
  if (!profiler) return;
  double bytes = bytes_of(grad);
  for (const Node::Saved& saved : node.saved) bytes += bytes_of(saved.tensor);
  for (const Tensor& g : grads) bytes += bytes_of(g);
  profiler->mark(std::string(node.name) + " backward", bytes);
}

void run_rule(Node& node, const Tensor& grad, bool retain_graph) {
  Grads grads = node.rule(node, Backward(node, grad));
  profile(node, grad, grads);
  ONESTEP_CHECK(GradError, grads.size() == node.inputs.size(), node.name, ": its rule returned ", grads.size(),
                " gradients for ", node.inputs.size(), " inputs");
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!node.inputs[i] || !grads[i].defined()) continue;
    check_gradient(node, i, grads[i]);
    if (AnomalyGuard* guard = AnomalyGuard::active()) guard->check_gradient(node, i, grads[i]);
    accumulate(node.inputs[i]->pending, std::move(grads[i]));
  }
  profile_mark("sums of gradients");
  if (!retain_graph && !node.saved.empty()) {
    node.saved.clear();
    node.released = true;
  }
}

/// Visits one node: collects the gradient that arrived, runs the op's rule.
void visit(Node& node, bool retain_graph) {
  if (!node.pending.defined()) return;  // its op's rule had no gradient to give
  const Tensor grad = std::move(node.pending);
  node.pending = Tensor();
  if (node.is_leaf() || node.retains_grad) collect(node, grad, node.is_leaf() && grad.is_unique());
  if (!node.is_leaf()) run_rule(node, grad, retain_graph);
}

/// For a GradHook: the leaves, which come last in a pass, visited as soon as no op is left that uses them.
class EarlyLeaves {
 public:
  explicit EarlyLeaves(const std::vector<Node*>& nodes) {
    if (!hook_) return;
    for (const Node* node : nodes)
      for (const auto& input : node->inputs)
        if (input && input->is_leaf()) ++uses_[input.get()];
  }
  void passed(const Node& op) {
    if (!hook_) return;
    for (const auto& input : op.inputs) {
      if (!input || !input->is_leaf() || --uses_[input.get()] > 0 || !input->pending.defined()) continue;
      visit(*input, /*retain_graph=*/false);
      hook_->ready(*input);
    }
  }

 private:
  const GradHook* hook_ = GradHook::active();
  std::unordered_map<const Node*, int64_t> uses_;
};

/// In place always: to GCC a call that only prefetches does nothing, and it leaves it out.
[[gnu::always_inline]] inline void prefetch(const void* object, size_t bytes) {
  constexpr size_t kCacheLine = 64;
  for (size_t at = 0; at < bytes; at += kCacheLine) __builtin_prefetch(static_cast<const std::byte*>(object) + at);
}

/// In a pass over more nodes than caches hold, asks for those whose turn comes soon and for what their rules will read.
[[gnu::always_inline]] inline void prefetch_after(const std::vector<Node*>& nodes, size_t i) {
  constexpr size_t kMany = 4096;
  constexpr size_t kNode = 16, kSaved = 8;  // turns ahead
  if (nodes.size() < kMany) return;
  if (i + kNode < nodes.size()) prefetch(nodes[i + kNode], sizeof(Node));
  if (i + kSaved >= nodes.size()) return;
  for (const Node::Saved& saved : nodes[i + kSaved]->saved)
    if (saved.tensor.defined()) prefetch(&saved.tensor.impl(), sizeof(Tensor::Impl));
}

/// Leaves no half-summed gradient behind when a rule throws. A pass that ends well has taken them all.
struct PendingGuard {
  const std::vector<Node*>& nodes;
  bool ended = false;
  ~PendingGuard() {
    if (ended) return;
    for (Node* node : nodes) node->pending = Tensor();
  }
};

}  // namespace

void Tensor::backward(const Tensor& gradient, bool retain_graph) const {
  ONESTEP_CHECK(GradError, requires_grad(), "backward: a tensor of shape ", shape(),
                " that does not require grad (call requires_grad_() on a leaf it is computed from, outside NoGradGuard)");
  detail::check_history("backward", *this);
  ONESTEP_CHECK(GradError, gradient.defined() || numel() == 1, "backward: a tensor of shape ", shape(),
                " needs a gradient of that shape (or reduce it to one element first, e.g. with sum())");
  const NoGradGuard no_grad;
  const Tensor seed = gradient.defined() ? gradient.values() : ones(shape(), dtype());
  ONESTEP_CHECK(ShapeError, seed.shape() == shape(), "backward: gradient of shape ", seed.shape(), " for a tensor of shape ",
                shape());
  ONESTEP_CHECK(DTypeError, seed.dtype() == dtype(), "backward: gradient of dtype ", seed.dtype(), " for a tensor of dtype ",
                dtype());

  const std::vector<Node*> nodes = reachable(impl().node.get());
  PendingGuard guard{nodes};
  nodes.front()->pending = seed;
  EarlyLeaves leaves(nodes);
  for (size_t i = 0; i < nodes.size(); ++i) {
    prefetch_after(nodes, i);
    visit(*nodes[i], retain_graph);
    leaves.passed(*nodes[i]);
  }
  guard.ended = true;
}

}  // namespace onestep
