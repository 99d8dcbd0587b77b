// The backward pass: one iteration over the reachable nodes, newest first.
#include <algorithm>
#include <atomic>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "autograd/anomaly.h"
#include "autograd/autocast.h"
#include "autograd/creation.h"
#include "autograd/grad.h"
#include "autograd/grad_hook.h"
#include "autograd/kernels/kernels.h"
#include "autograd/node.h"
#include "autograd/ops_math.h"
#include "autograd/ops_shape.h"
#include "autograd/profiler.h"
#include "autograd/tensor.h"

namespace onestep {
namespace {

std::atomic<uint64_t> pass_counter{0};
thread_local int passes_running = 0;  // a rule or a hook may begin another pass

/// What one backward pass knows.
struct Pass {
  bool retain_graph, create_graph;
  bool recordable = create_graph;  // whether rules give the formulas that create_graph records
  bool collects = true;            // into the grad() of leaves, else into `captured`
  const Node* root = nullptr;      // with which the pass begins, where it is the only one: it runs its hooks whatever was given
  std::vector<Node*> nodes;        // newest first, so that each comes before its inputs; then leaves
  std::unordered_map<const Node*, std::shared_ptr<Node>> owners = {};  // of the nodes, with create_graph
  std::unordered_map<const Node*, Tensor> captured = {};               // gradients of the inputs that were given
  std::unordered_set<const Node*> wanted = {};                         // nodes that need a gradient where inputs were given,
  bool all_wanted = true;                                              // unless all do, as where these are all leaves

  bool selective() const { return !all_wanted; }
  std::shared_ptr<Node> owner(const Node& node) const { return create_graph ? owners.at(&node) : nullptr; }
  /// Whether the rule of `node` has a gradient to give.
  bool runs(const Node& node) const {
    return !selective() ||
           std::any_of(node.inputs.begin(), node.inputs.end(), [&](const auto& i) { return wanted.count(i.get()) > 0; });
  }
};

/// Every node reachable from the roots: ops in descending creation order, then leaves.
std::vector<Node*> reachable(const std::vector<std::shared_ptr<Node>>& roots) {
  const uint64_t pass = ++pass_counter;
  std::vector<Node*> nodes, leaves;
  const auto reach = [&](const std::shared_ptr<Node>& node) {
    if (!node || node->visit == pass) return;
    node->visit = pass;
    (node->is_leaf() ? leaves : nodes).push_back(node.get());
  };
  for (const auto& root : roots) reach(root);
  for (size_t next = 0; next < nodes.size();) {  // more come while it runs
    const Node& node = *nodes[next++];
    for (const auto& input : node.inputs) reach(input);
  }
  const auto newest_first = [](const Node* a, const Node* b) { return a->sequence > b->sequence; };
  if (!std::is_sorted(nodes.begin(), nodes.end(), newest_first)) std::sort(nodes.begin(), nodes.end(), newest_first);
  nodes.insert(nodes.end(), leaves.begin(), leaves.end());
  return nodes;
}

/// Fills `wanted`, the inputs and what depends on them, unless that is all.
void find_wanted(Pass& pass) {
  const auto is_wanted = [&](const Node* node) { return !node->is_leaf() || pass.captured.contains(node); };
  pass.all_wanted = pass.captured.empty() || std::all_of(pass.nodes.begin(), pass.nodes.end(), is_wanted);
  for (size_t i = pass.all_wanted ? 0 : pass.nodes.size(); i-- > 0;) {  // inputs before what is computed from them
    const Node* const node = pass.nodes[i];
    if (pass.captured.contains(node) || pass.runs(*node)) pass.wanted.insert(node);
  }
}

/// sum += addend, in place when nobody else sees `sum` and the pass is not recorded. Straight to the kernel where it can: a
/// leaf that a long chain uses again and again would spend most of its time in add_'s checks.
void accumulate(Tensor& sum, Tensor addend) {
  if (!sum.defined())
    sum = std::move(addend);
  else if (grad_enabled() || !sum.is_last() || !sum.is_contiguous())
    sum = add(sum, addend);
  else if (addend.is_contiguous() && !is_narrow(sum.dtype()))
    dispatch_floating(sum.dtype(), "backward", [&]<class T>() {
      T* const to = sum.mutable_data<T>();
      kernels::add(to, 1, addend.data<T>(), 1, to, sum.numel());
    });
  else
    add_(sum, addend);
}

/// Whether a gradient can become the one that users see, which shares no memory with another and keeps none that is not its
/// own.
bool may_take(const Tensor& grad) {
  return grad.is_last() && grad.is_contiguous() && grad.impl().storage->bytes == grad.numel() * size_of(grad.dtype());
}

/// Adds into a collected gradient, that of a leaf in place.
void collect(Node& node, const Tensor& grad) {
  if (node.grad.defined() && (grad_enabled() || !node.is_leaf()))
    node.grad = add(node.grad, grad);
  else if (node.grad.defined())
    add_(node.grad, grad);
  else
    node.grad = node.is_leaf() && may_take(grad) ? grad : clone(grad);
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

void run_rule(Pass& pass, Node& node, const Tensor& grad) {
  Grads grads = node.rule(node, Backward(node, grad, pass.recordable, pass.owner(node),
                                         pass.selective() ? &pass.wanted : nullptr, /*last=*/!pass.retain_graph));
  profile(node, grad, grads);
  ONESTEP_CHECK(GradError, grads.size() == node.inputs.size(), node.name, ": its rule returned ", grads.size(),
                " gradients for ", node.inputs.size(), " inputs");
  for (size_t i = 0; i < grads.size(); ++i) {
    Node* const input = node.inputs[i].get();
    if (!input || !grads[i].defined() || (pass.selective() && !pass.wanted.contains(input))) continue;
    check_gradient(node, i, grads[i]);
    if (const GradientCheck check = gradient_check()) check(node, i, grads[i]);
    if (AnomalyGuard* guard = AnomalyGuard::active()) guard->check_gradient(node, i, grads[i]);
    accumulate(input->pending, std::move(grads[i]));
  }
  profile_mark("sums of gradients");
  if (!pass.retain_graph && !node.saved.empty()) {
    node.saved.clear();
    node.released = true;
  }
}

/// What the hooks of a tensor make of its gradient.
void run_hooks(const Node& node, Tensor& grad) {
  const auto hooks = node.extras->hooks;  // a copy: a hook may remove itself
  for (const auto& hook : hooks)
    if (Tensor replaced = hook.second(grad); replaced.defined()) {
      ONESTEP_CHECK(GradError, replaced.shape() == node.shape && replaced.dtype() == node.dtype, node.name,
                    ": a hook returned a gradient of shape ", replaced.shape(), " and dtype ", replaced.dtype(),
                    " for one of shape ", node.shape, " and dtype ", node.dtype);
      grad = std::move(replaced);
    }
}

/// Visits one node: collects the gradient that arrived, runs the op's rule.
void visit(Pass& pass, Node& node) {
  if (!node.pending.defined()) return;  // its op's rule had no gradient to give
  Tensor grad = std::move(node.pending);
  node.pending = Tensor();
  const bool aside = pass.selective() && !pass.wanted.contains(&node);  // a root that depends on none of the inputs
  if (aside && pass.root != &node) return;
  if (node.extras) run_hooks(node, grad);
  if (!pass.captured.empty())
    if (const auto place = pass.captured.find(&node); place != pass.captured.end()) place->second = grad;
  ONESTEP_CHECK(GradError, !node.moved || aside, "backward: a leaf of shape ", node.shape,
                " has become the result of an in-place op, after requires_grad_(false) (clone it before the op)");
  if (node.retains_grad || (node.is_leaf() && !node.stopped && pass.collects && !aside)) {
    collect(node, grad);
    if (node.extras && node.is_leaf())
      for (const auto& hook : std::vector(node.extras->post_hooks)) hook.second();
  }
  if (!node.is_leaf() && pass.runs(node)) run_rule(pass, node, grad);
}

/// For a GradHook: the leaves, which come last in a pass, visited as soon as no op is left that uses them.
class EarlyLeaves {
 public:
  explicit EarlyLeaves(Pass& pass) : pass_(pass) {
    if (!hook_) return;
    for (const Node* node : pass.nodes)
      for (const auto& input : node->inputs)
        if (input && input->is_leaf()) ++uses_[input.get()];
  }
  void passed(const Node& op) {
    if (!hook_) return;
    for (const auto& input : op.inputs) {
      if (!input || !input->is_leaf() || --uses_[input.get()] > 0 || !input->pending.defined()) continue;
      visit(pass_, *input);
      hook_->ready(*input);
    }
  }

 private:
  Pass& pass_;
  const GradHook* hook_ = GradHook::active();
  std::unordered_map<const Node*, int64_t> uses_;
};

/// Always inlined: GCC takes a function that only prefetches to do nothing, and removes the call.
[[gnu::always_inline]] inline void prefetch(const void* object, size_t bytes) {
  constexpr size_t kCacheLine = 64;
  for (size_t at = 0; at < bytes; at += kCacheLine) __builtin_prefetch(static_cast<const std::byte*>(object) + at);
}

/// In a pass over more nodes than caches hold, prefetches the next nodes and what their rules will read.
[[gnu::always_inline]] inline void prefetch_after(const std::vector<Node*>& nodes, size_t i) {
  constexpr size_t kMany = 4096;
  constexpr size_t kNode = 16, kSaved = 8;  // turns ahead
  if (nodes.size() < kMany) return;
  if (i + kNode < nodes.size()) prefetch(nodes[i + kNode], sizeof(Node));
  if (i + kSaved >= nodes.size()) return;
  for (const Node::Saved& saved : nodes[i + kSaved]->saved)
    if (saved.tensor.defined()) prefetch(&saved.tensor.impl(), sizeof(Tensor::Impl));
}

/// Saves the pending gradients that a surrounding pass has in the nodes of an inner one and restores them at its end, and drops
/// half-summed gradients when a rule throws. A pass that ends well has used up all of its own.
class PendingGuard {
 public:
  explicit PendingGuard(const std::vector<Node*>& nodes) : nodes_(nodes) {
    if (passes_running++ == 0) return;
    for (Node* node : nodes)
      if (node->pending.defined()) outer_.emplace_back(node, std::exchange(node->pending, Tensor()));
  }
  ~PendingGuard() {
    --passes_running;
    if (!ended)
      for (Node* node : nodes_) node->pending = Tensor();
    for (auto& [node, pending] : outer_) node->pending = std::move(pending);
  }
  PendingGuard(const PendingGuard&) = delete;
  PendingGuard& operator=(const PendingGuard&) = delete;
  bool ended = false;

 private:
  const std::vector<Node*>& nodes_;
  std::vector<std::pair<Node*, Tensor>> outer_;
};

/// The gradient with which a pass begins at `tensor`, in rows that the pass may keep.
Tensor seed_of(const char* op, const Tensor& tensor, const Tensor& gradient, bool create_graph) {
  ONESTEP_CHECK(GradError, tensor.requires_grad(), op, ": a tensor of shape ", tensor.shape(),
                " that does not require grad (call requires_grad_() on a leaf it is computed from, outside NoGradGuard)");
  ONESTEP_CHECK(GradError, gradient.defined() || tensor.numel() == 1, op, ": a tensor of shape ", tensor.shape(),
                " needs a gradient of that shape (or reduce it to one element first, e.g. with sum())");
  if (!gradient.defined()) return ones(tensor.shape(), tensor.dtype());
  ONESTEP_CHECK(ShapeError, gradient.shape() == tensor.shape(), op, ": gradient of shape ", gradient.shape(),
                " for a tensor of shape ", tensor.shape());
  return to(create_graph ? gradient : gradient.values(), tensor.dtype());
}

/// Runs the pass from the roots, each with its gradient in `seeds`.
void run(Pass& pass, const std::vector<std::shared_ptr<Node>>& roots, std::vector<Tensor> seeds) {
  pass.nodes = reachable(roots);
  if (pass.create_graph) {
    for (const auto& root : roots) pass.owners.emplace(root.get(), root);
    for (const Node* node : pass.nodes)
      for (const auto& input : node->inputs)
        if (input) pass.owners.emplace(input.get(), input);
  }
  find_wanted(pass);
  if (roots.size() == 1) pass.root = roots[0].get();
  PendingGuard guard(pass.nodes);
  const GradGuard mode(pass.create_graph);
  const AutocastGuard full_precision(false);  // dtypes are those of the forward pass
  for (size_t i = 0; i < roots.size(); ++i) accumulate(roots[i]->pending, std::move(seeds[i]));
  EarlyLeaves leaves(pass);
  for (size_t i = 0; i < pass.nodes.size(); ++i) {
    prefetch_after(pass.nodes, i);
    visit(pass, *pass.nodes[i]);
    leaves.passed(*pass.nodes[i]);
  }
  guard.ended = true;
}

/// The pass with which `tensors` begin; `captured` are the nodes of inputs, where some were given.
void run_from(const char* op, Pass& pass, const ListView<Tensor>& tensors, const ListView<Tensor>& gradients) {
  ONESTEP_CHECK(GradError, gradients.size() == 0 || gradients.size() == tensors.size(), op, ": ", gradients.size(),
                " gradients for ", tensors.size(), " tensors");
  std::vector<std::shared_ptr<Node>> roots;
  std::vector<Tensor> seeds;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors.begin()[i];
    Tensor seed = seed_of(op, tensor, gradients.size() ? gradients.begin()[i] : Tensor(), pass.create_graph);
    if (!tensor.node()) continue;  // a view taken under NoGradGuard: there is no way back
    roots.push_back(tensor.node());
    seeds.push_back(std::move(seed));
  }
  run(pass, roots, std::move(seeds));
}

}  // namespace

void autograd::backward(const ListView<Tensor>& tensors, const ListView<Tensor>& grad_tensors, std::optional<bool> retain_graph,
                        bool create_graph, const ListView<Tensor>& inputs) {
  Pass pass{.retain_graph = retain_graph.value_or(create_graph), .create_graph = create_graph, .nodes = {}};
  for (const Tensor& tensor : tensors) tensor.node();  // refuses a view that has lost its place before an input is changed
  for (const Tensor& input : inputs) {
    ONESTEP_CHECK(GradError, input.node() != nullptr, "backward: an input of shape ", input.shape(), " does not require grad");
    if (!input.is_leaf()) input.node()->retains_grad = true;
    pass.captured.emplace(input.node().get(), Tensor());
  }
  run_from("backward", pass, tensors, grad_tensors);
}

std::vector<Tensor> autograd::grad(const ListView<Tensor>& outputs, const ListView<Tensor>& inputs,
                                   const ListView<Tensor>& grad_outputs, const GradOptions& options) {
  Pass pass{.retain_graph = options.retain_graph.value_or(options.create_graph),
            .create_graph = options.create_graph,
            .recordable = options.create_graph || options.recordable,
            .collects = false,
            .nodes = {}};
  ONESTEP_CHECK(GradError, inputs.size() > 0, "grad: needs at least one input");
  for (const Tensor& input : inputs) {
    ONESTEP_CHECK(GradError, input.node() != nullptr, "grad: an input of shape ", input.shape(), " does not require grad");
    pass.captured.emplace(input.node().get(), Tensor());
  }
  run_from("grad", pass, outputs, grad_outputs);
  std::vector<Tensor> grads;
  for (const Tensor& input : inputs) {
    Tensor grad = pass.captured.at(input.node().get());
    ONESTEP_CHECK(GradError, grad.defined() || options.allow_unused || options.materialize_grads, "grad: an input of shape ",
                  input.shape(), " has no influence on the outputs (set allow_unused to get an undefined gradient)");
    if (!grad.defined() && options.materialize_grads) grad = zeros_like(input.values());
    grads.push_back(std::move(grad));
  }
  return grads;
}

void Tensor::backward(const Tensor& gradient, std::optional<bool> retain_graph, bool create_graph,
                      const ListView<Tensor>& inputs) const {
  autograd::backward({*this}, {gradient}, retain_graph, create_graph, inputs);
}

}  // namespace onestep
