#pragma once
// The recorded graph: nodes, what a backward rule sees, and `record`, the one function through which an op enters the graph.
#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "autograd/list_view.h"
#include "autograd/memory.h"
#include "autograd/small_vector.h"
#include "autograd/tensor.h"

namespace onestep {

class Backward;
using Grads = SmallVector<Tensor, 3>;

/// What may be a backward rule: `Grads rule(const Backward&)` over a few plain values, without destructor. A rule that could
/// own a Tensor could keep its own output alive, a cycle that is never freed: tensors go into `saved`.
template <class F>
concept BackwardRule = std::is_trivially_destructible_v<F> && std::is_invocable_r_v<Grads, const F&, const Backward&>;

/// A leaf that collects a gradient, or the part of a recorded op (RecordedOp below) that does not depend on its rule. Edges
/// hold nodes, not tensors: the values of an intermediate result are freed as soon as nobody needs them.
class Node {
 public:
  struct Saved {
    Tensor tensor;  ///< Without a node, so that saving an output makes no cycle.
    uint32_t version = 0;
    int32_t place = kConstant;  ///< Where it is in the graph: which input it is, kOutput, or kConstant (nowhere).
  };
  static constexpr int32_t kOutput = -1, kConstant = -2;
  /// What few nodes have.
  struct Extras {
    std::vector<std::pair<uint64_t, std::function<Tensor(const Tensor&)>>> hooks;  ///< By the number of their handle.
    std::vector<std::pair<uint64_t, std::function<void()>>> post_hooks;  ///< Of a leaf, after its gradient was collected.
    std::function<void()> recompute;  ///< Brings back what the node saved (autograd/checkpoint.h).
  };

  Node(const char* name, const Tensor& output);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  bool is_leaf() const { return rule == nullptr; }
  /// How many nodes exist: a test that graphs are freed.
  static int64_t alive();

  // What finding the nodes of a pass reads comes first, in few cache lines: a long chain is larger than any cache.
  Grads (*rule)(const Node& self, const Backward& b) = nullptr;
  uint64_t visit = 0;  ///< The backward pass that last reached this node.
  uint64_t sequence;   ///< Creation order: every input has a smaller number than its op.
  Tensor pending;      ///< Gradient that arrived so far in the running backward pass.
  DType dtype;
  bool retains_grad = false;
  bool released = false;
  bool stopped = false;                          ///< That of a leaf that does not require grad: it collects nothing.
  bool moved = false;                            ///< That of a stopped leaf whose tensor is now the result of an op.
  SmallVector<std::shared_ptr<Node>, 3> inputs;  ///< Null where an input needs no gradient.
  Shape shape;                                   ///< Of the output, hence of the gradient.
  const char* name;
  SmallVector<Saved, 3> saved;
  Tensor grad;  ///< Collected gradient: of a leaf, or of an op after retain_grad().
  std::unique_ptr<Extras> extras;
};

/// A recorded op with its backward rule.
template <BackwardRule F>
class RecordedOp : public Node {
 public:
  RecordedOp(const char* op_name, const Tensor& output, F f) : Node(op_name, output), f_(f) {
    rule = [](const Node& self, const Backward& b) -> Grads { return static_cast<const RecordedOp&>(self).f_(b); };
  }

 private:
  F f_;
};

/// What a backward rule sees. In an ordinary backward pass ops are not recorded; in one with create_graph they are, and grad()
/// and saved() have their places in the graph, so that a rule made of ops can be differentiated itself. A rule that uses
/// kernels gives the same formula in ops where `recording()`.
class Backward {
 public:
  /// `self` and `wanted` as a pass has them: the node itself where the pass is recorded, and the nodes that need a gradient
  /// where not all do; `last` where it uses the graph up.
  Backward(const Node& node, const Tensor& grad, bool recording = false, std::shared_ptr<Node> self = {},
           const std::unordered_set<const Node*>* wanted = nullptr, bool last = false)
      : node_(node), grad_(grad), recording_(recording), last_(last), self_(std::move(self)), wanted_(wanted) {}
  /// Gradient of the loss with respect to the op's output, of the output's shape (any strides).
  const Tensor& grad() const { return grad_; }
  /// True in a pass with create_graph, and in one that is to have the same bits.
  bool recording() const { return recording_; }
  /// True if input `i` needs a gradient; the rule may return an undefined tensor for the others.
  bool needs(size_t i) const {
    const Node* const input = node_.inputs[i].get();
    return input != nullptr && (wanted_ == nullptr || wanted_->count(input) > 0);
  }
  /// The shape of input `i`; only for inputs that need a gradient.
  const Shape& input_shape(size_t i) const { return node_.inputs[i]->shape; }
  /// The dtype of input `i`, hence of its gradient; only for inputs that need one.
  DType input_dtype(size_t i) const { return node_.inputs[i]->dtype; }
  /// The gradient of input `i` so far, for a rule that adds to a part of it in place and then returns none; null where none
  /// came yet or others may see it.
  Tensor* arrived(size_t i) const;
  /// The saved tensor `i`; throws GradError if it was written to since, or if the graph was already used up. In a recorded pass
  /// an input or the output of the op has its place in the graph; all else is a constant.
  const Tensor& saved(size_t i) const;
  /// The saved tensor `i` if the rule may write a gradient over it, since it is the last to see it; else an empty tensor of its
  /// shape and dtype.
  Tensor reused(size_t i) const;
  /// `values`, from which input `i` was recomputed, in the place of that input.
  Tensor input(size_t i, const Tensor& values) const;

 private:
  const Node& node_;
  const Tensor& grad_;
  const bool recording_, last_;
  std::shared_ptr<Node> self_;  // null where nothing is recorded
  const std::unordered_set<const Node*>* wanted_;
  mutable SmallVector<Tensor, 3> placed_;  // of saved(), in a recorded pass
};

namespace detail {
bool should_record(TensorList inputs);
/// Charges the op's time where there is a profiler.
void enter(const char* name, const Tensor& out, TensorList inputs);
/// Ties a new node, whose result is `out`, to the graph: its edges and what it saves.
void connect(Node& node, const Tensor& out, TensorList inputs, TensorList saved);
void set_node(Tensor& tensor, std::shared_ptr<Node> node);
/// Makes `view`, which shows elements of x, a view of x or of what x is a view of.
Tensor mark_view(Tensor view, const Tensor& x, ViewKind kind);
}  // namespace detail

/// Enters an op into the graph and returns `out`. `out` was just computed from `inputs`; `saved` are the tensors that the rule
/// will ask for by position; `rule(Backward) -> Grads` returns one gradient an input, of the input's shape. Nothing is recorded
/// when no input requires grad or under NoGradGuard.
template <BackwardRule F>
Tensor record(const char* name, Tensor out, TensorList inputs, TensorList saved, F rule) {
  detail::enter(name, out, inputs);
  out.impl().base = nullptr;  // it may be another arrangement of a temporary
  if (!detail::should_record(inputs)) return out;
  auto node = std::allocate_shared<RecordedOp<F>>(memory::Allocator<RecordedOp<F>>(), name, out, rule);
  detail::connect(*node, out, inputs, saved);
  detail::set_node(out, std::move(node));
  return out;
}

/// As `record` for an op whose result shows elements of x. A write to either moves the history of both.
template <BackwardRule F>
Tensor record_view(const char* name, const Tensor& view, const Tensor& x, F rule, ViewKind kind = ViewKind::ordinary) {
  return detail::mark_view(record(name, view, {x}, {}, rule), x, kind);
}

/// Makes an in-place op of an out-of-place one: `self` takes over the values of `result` and its place in the graph; its base
/// and the other views of that base follow. Throws GradError on a leaf that requires grad, a view of one, and a view that must
/// not be written to, all while recording; ShapeError/DTypeError if `result` does not fit `self`.
Tensor& assign_in_place(const char* name, Tensor& self, const Tensor& result);

}  // namespace onestep
