#include "autograd/node.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <utility>

#include "autograd/anomaly.h"
#include "autograd/creation.h"
#include "autograd/profiler.h"
#include "autograd/recompute.h"
#include "autograd/tensor.h"

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
  const bool takes = sum.defined() && sum.is_last() && sum.is_contiguous() && sum.dtype() == grad_.dtype();
  return takes && !recording() && !AnomalyGuard::active() ? &sum : nullptr;  // a guard looks at what a rule returns
}

const Tensor& Backward::saved(size_t i) const {
  ONESTEP_CHECK(GradError, !node_.released, node_.name,
                ": backward ran through this graph before and freed what it saved (pass retain_graph=true the first time)");
  if (node_.extras && node_.extras->recompute) {
    const auto recompute = node_.extras->recompute;  // a copy: it takes itself away
    recompute();
  }
  const Node::Saved& save = node_.saved[i];
  if (!save.tensor.defined()) return save.tensor;  // an optional input that was not given
  ONESTEP_CHECK(GradError, save.tensor.version() == save.version, node_.name,
                ": a tensor needed for its gradient was changed in place: shape ", save.tensor.shape(), ", version ",
                save.tensor.version(), ", saved at ", save.version,
                " (clone it before the change, or use the op without trailing _)");
  if (!self_ || save.place == Node::kConstant) return save.tensor;
  if (placed_.empty())
    for (size_t k = 0; k < node_.saved.size(); ++k) placed_.emplace_back();
  if (!placed_[i].defined()) {
    placed_[i] = save.tensor.values();
    detail::set_node(placed_[i], save.place == Node::kOutput ? self_ : node_.inputs[static_cast<size_t>(save.place)]);
  }
  return placed_[i];
}

Tensor Backward::reused(size_t i) const {
  const Tensor& tensor = saved(i);
  const bool may = last_ && !recording() && tensor.is_last() && tensor.is_contiguous();
  return may ? tensor : empty(tensor.shape(), tensor.dtype());
}

Tensor Backward::input(size_t i, const Tensor& values) const {
  if (!self_) return values;
  Tensor placed = values.values();
  detail::set_node(placed, node_.inputs[i]);
  return placed;
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
  if (grad_enabled()) profile(name, out, inputs);  // an op within a backward rule belongs to it
}

namespace {

/// What `node` keeps of `tensor`, and where that is in the graph.
Node::Saved saved(const Node& node, const Tensor& tensor, const Tensor& out, TensorList inputs) {
  if (!tensor.defined()) return {};
  ONESTEP_CHECK(GradError, !tensor.is_inference(), node.name, ": a tensor of shape ", tensor.shape(),
                " that was made within an InferenceGuard cannot be saved for a gradient (clone it outside)");
  int32_t place = &tensor.impl() == &out.impl() ? Node::kOutput : Node::kConstant;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (const Tensor& input = inputs.begin()[i]; input.defined() && &input.impl() == &tensor.impl())
      place = static_cast<int32_t>(i);
  return {tensor.values(), tensor.version(), place};
}

}  // namespace

void connect(Node& node, const Tensor& out, TensorList inputs, TensorList saved_tensors) {
  node.inputs.reserve(inputs.size());
  for (const Tensor& input : inputs) node.inputs.emplace_back(input.defined() ? input.node() : nullptr);
  for (const auto& input : node.inputs)  // a view may have found its node only now
    if (input && input->sequence > node.sequence) node.sequence = next_sequence++;
  node.saved.reserve(saved_tensors.size());
  for (const Tensor& tensor : saved_tensors) node.saved.emplace_back(saved(node, tensor, out, inputs));
  if (SavedTaker* taker = SavedTaker::active()) taker->take(node);
  if (AnomalyGuard* guard = AnomalyGuard::active()) guard->check_result(node, out);
}

void set_node(Tensor& tensor, std::shared_ptr<Node> node) {
  Tensor::Impl& impl = tensor.impl();
  impl.node = std::move(node);
  if (impl.base) impl.history = impl.base->history;
}

}  // namespace detail

}  // namespace onestep
