#include "autograd/node.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <utility>

#include "autograd/anomaly.h"
#include "autograd/ops.h"
#include "autograd/profiler.h"

namespace onestep {
namespace {
std::atomic<uint64_t> next_sequence{1};
std::atomic<int64_t> alive_count{0};
}  // namespace

Node::Node(const char* op_name, const Tensor& output)
    : sequence(next_sequence++), dtype(output.dtype()), shape(output.shape()), name(op_name) {
  ++alive_count;
}

// Frees a chain of any length without recursion: nodes that only this one holds are taken apart on a work list.
Node::~Node() {
  --alive_count;
  if (inputs.empty()) return;
  std::vector<std::shared_ptr<Node>> work(std::move_iterator(inputs.begin()), std::move_iterator(inputs.end()));
  while (!work.empty()) {
    const std::shared_ptr<Node> node = std::move(work.back());
    work.pop_back();
    if (node.use_count() != 1) continue;
    std::move(node->inputs.begin(), node->inputs.end(), std::back_inserter(work));
    node->inputs.clear();
  }
}

int64_t Node::alive() { return alive_count; }

Tensor* Backward::arrived(size_t i) const {
  Tensor& sum = node_.inputs[i]->pending;
  const bool takes = sum.defined() && sum.is_unique() && sum.is_contiguous() && sum.dtype() == grad_.dtype();
  return takes && !AnomalyGuard::active() ? &sum : nullptr;  // a guard looks at what a rule returns
}

const Tensor& Backward::saved(size_t i) const {
  ONESTEP_CHECK(GradError, !node_.released, node_.name,
                ": backward ran through this graph before and freed what it saved (pass retain_graph=true the first time)");
  const Node::Saved& save = node_.saved[i];
  if (!save.tensor.defined()) return save.tensor;  // an optional input that was not given
  ONESTEP_CHECK(GradError, save.tensor.version() == save.version, node_.name,
                ": a tensor needed for its gradient was changed in place: shape ", save.tensor.shape(), ", version ",
                save.tensor.version(), ", saved at ", save.version,
                " (clone it before the change, or use the op without trailing _)");
  return save.tensor;
}

namespace detail {

bool should_record(TensorList inputs) {
  return grad_enabled() &&
         std::any_of(inputs.begin(), inputs.end(), [](const Tensor& t) { return t.defined() && t.requires_grad(); });
}

namespace {
void profile(const char* name, const Tensor& out, TensorList inputs) {
  Profiler* const profiler = Profiler::active();
  if (!profiler) return;
  double bytes = bytes_of(out);
  for (const Tensor& input : inputs) bytes += bytes_of(input);
  profiler->mark(name, bytes);
}

}  // namespace

void enter(const char* name, const Tensor& out, TensorList inputs) {
  if (!grad_enabled()) return;  // an op within a backward rule belongs to it
  profile(name, out, inputs);
  for (const Tensor& input : inputs)
    if (input.defined()) check_history(name, input);
}

void refuse_history(const char* name, const Tensor& input) {
  fail<GradError>(name, ": its input of shape ", input.shape(),
                  " shares memory with a tensor that was changed in place since (use that tensor or a view of it taken after "
                  "the change, or the op without trailing _)");
}

void connect(Node& node, const Tensor& out, TensorList inputs, TensorList saved) {
  node.inputs.reserve(inputs.size());
  for (const Tensor& input : inputs) {
    node.inputs.emplace_back(input.defined() ? input.impl().node : nullptr);
  }
  node.saved.reserve(saved.size());
  for (const Tensor& tensor : saved)
    node.saved.emplace_back(tensor.defined() ? Node::Saved{tensor.values(), tensor.version()} : Node::Saved{});
  if (AnomalyGuard* guard = AnomalyGuard::active()) guard->check_result(node, out);
}

void set_node(Tensor& tensor, std::shared_ptr<Node> node) {
  tensor.impl().node = std::move(node);
  tensor.impl().history = tensor.impl().history_now();
}

}  // namespace detail

Tensor& assign_in_place(const char* name, Tensor& self, const Tensor& result) {
  self.check_writable(name);
  const bool recorded = grad_enabled() && (self.requires_grad() || result.requires_grad());
  ONESTEP_CHECK(GradError, !recorded || !self.requires_grad() || !self.is_leaf(), name,
                ": a leaf that requires grad cannot be changed in place while recording (wrap the change in NoGradGuard)");
  ONESTEP_CHECK(GradError, !recorded || self.impl().storage->leaves == 0, name,
                ": a view of a leaf that requires grad cannot be changed in place while recording (wrap the change in "
                "NoGradGuard, or clone the leaf first)");
  ONESTEP_CHECK(ShapeError, result.shape() == self.shape(), name, ": result of shape ", result.shape(),
                " does not fit the tensor of shape ", self.shape());
  ONESTEP_CHECK(DTypeError, result.dtype() == self.dtype(), name, ": result of dtype ", result.dtype(),
                " does not fit the tensor of dtype ", self.dtype());
  {
    const NoGradGuard no_grad;
    copy_(self, result);
  }
  if (recorded) {
    if (self.requires_grad() && self.impl().node->retains_grad) {  // it is asked of the tensor, not of the op that made it
      Node &before = *self.impl().node, &now = *result.impl().node;
      now.retains_grad = std::exchange(before.retains_grad, false);
      now.grad = std::exchange(before.grad, Tensor());
    }
    ++self.impl().history_now();
    detail::set_node(self, result.impl().node);
  }
  return self;
}

}  // namespace onestep
