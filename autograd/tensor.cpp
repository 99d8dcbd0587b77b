#include "autograd/tensor.h"

#include <atomic>
#include <cstring>
#include <utility>

#include "autograd/kernels/parallel.h"
#include "autograd/memory.h"
#include "autograd/node.h"

namespace onestep {

Storage::Storage(int64_t size, bool zeroed)
    : data(static_cast<std::byte*>(memory::allocate(static_cast<uint64_t>(size)))), bytes(size) {
  if (zeroed)
    kernels::parallel_for(size, /*cost=*/0.1, [this](int64_t begin, int64_t end) {
      std::memset(data + begin, 0, static_cast<size_t>(end - begin));
    });
}
Storage::Storage(void* memory, int64_t size, std::shared_ptr<void> whose)
    : data(static_cast<std::byte*>(memory)), bytes(size), owner(std::move(whose)) {}
Storage::~Storage() {
  if (!owner) memory::deallocate(data, static_cast<size_t>(bytes));
}

Tensor::Tensor(std::shared_ptr<Storage> storage, DType dtype, const Shape& shape, const Shape& strides, int64_t offset)
    : impl_(std::allocate_shared<Impl>(memory::Allocator<Impl>(), std::move(storage), dtype, shape, strides, offset)) {}

Tensor empty(const Shape& shape, DType dtype) {
  check_sizes("empty", shape);
  auto storage = std::allocate_shared<Storage>(memory::Allocator<Storage>(), shape.numel() * size_of(dtype), false);
  return Tensor(std::move(storage), dtype, shape, contiguous_strides(shape), 0);
}

void Tensor::begin_write(const char* op) {
  ONESTEP_CHECK(GradError, !(requires_grad() && grad_enabled()), op, ": a tensor of shape ", shape(),
                " that requires grad cannot be written to while recording (wrap the write in NoGradGuard)");
  check_writable(op);
  ++impl().storage->version;
}

void Tensor::check_writable(const char* op) const {
  for (int i = 0; i < dim(); ++i)
    ONESTEP_CHECK(ShapeError, strides()[i] != 0 || shape()[i] < 2 || numel() == 0, op, ": an expanded tensor of shape ",
                  shape(), " cannot be written to: its elements share memory (clone it first)");
  ONESTEP_CHECK(GradError, !is_inference() || inference_enabled(), op, ": a tensor of shape ", shape(),
                " that was made within an InferenceGuard cannot be written to outside of one (clone it first)");
  const bool unrecorded = is_view() && impl().view_kind == ViewKind::unrecorded && grad_enabled();
  ONESTEP_CHECK(GradError, !unrecorded || !base().requires_grad(), op, ": a view of shape ", shape(),
                " that was taken under NoGradGuard of a tensor that requires grad cannot be changed in place while recording "
                "(wrap the change in NoGradGuard, too, or take the view outside it)");
}

// ---- graph

void Tensor::set_data(const Tensor& values) {
  const bool same = values.shape() == shape() && values.dtype() == dtype();
  ONESTEP_CHECK(GradError, same || is_leaf(), "set_data: the result of ", is_leaf() ? "" : node()->name, " has shape ", shape(),
                " and dtype ", dtype(), ": got ", values.shape(), " and ", values.dtype());
  ONESTEP_CHECK(DTypeError, !requires_grad() || values.is_floating(), "set_data: a leaf that requires grad needs a floating ",
                "dtype: got ", values.dtype());
  Impl& own = impl();
  Node* const recorded = node().get();  // a view's follows its base for the last time
  own.base = nullptr;
  own.view_kind = ViewKind::ordinary;
  if (!same)
    for (Node* const leaf : {recorded, own.stopped.get()})
      if (leaf) {
        leaf->shape = values.shape();
        leaf->dtype = values.dtype();
      }
  const Impl& other = values.impl();
  own.storage = other.storage;
  own.shape = other.shape;
  own.strides = other.strides;
  own.offset = other.offset;
  own.dtype = other.dtype;
}

namespace {

std::shared_ptr<Node> new_leaf(const Tensor& x) { return std::allocate_shared<Node>(memory::Allocator<Node>(), "leaf", x); }

}  // namespace

Tensor& Tensor::requires_grad_(bool on) {
  if (on == requires_grad()) return *this;
  ONESTEP_CHECK(DTypeError, !on || is_floating(), "requires_grad_: only floating tensors collect gradients: got ", dtype());
  ONESTEP_CHECK(GradError, on || is_leaf(), "requires_grad_: the result of ", on ? "" : node()->name,
                " cannot stop requiring grad (use detach())");
  ONESTEP_CHECK(GradError, !on || !is_inference() || inference_enabled(),
                "requires_grad_: a tensor that was made within an InferenceGuard (clone it outside)");
  std::shared_ptr<Node> next = std::exchange(impl().stopped, on ? nullptr : node());
  if (on && !next) next = new_leaf(*this);
  (on ? next : impl().stopped)->stopped = !on;
  detail::set_node(*this, on ? std::move(next) : nullptr);
  return *this;
}

bool Tensor::is_leaf() const {
  const std::shared_ptr<Node>& n = node();
  return !n || n->is_leaf();
}

Tensor Tensor::grad() const {
  const std::shared_ptr<Node>& n = node();
  const bool collects = n && (n->is_leaf() || n->retains_grad);
  if (!collects && impl().stopped) return impl().stopped->grad;
  if (!n) return {};
  ONESTEP_CHECK(GradError, collects || n->grad.defined(), "grad: the result of ", n->name,
                " collects no gradient (call retain_grad() on it before backward)");
  return n->grad;
}

void Tensor::set_grad(const Tensor& grad) {
  if (!grad.defined()) return zero_grad();
  ONESTEP_CHECK(ShapeError, grad.shape() == shape(), "set_grad: gradient of shape ", grad.shape(), " for a tensor of shape ",
                shape());
  ONESTEP_CHECK(DTypeError, grad.dtype() == dtype(), "set_grad: gradient of another dtype than ", dtype());
  if (!node() && !impl().stopped) {
    impl().stopped = new_leaf(*this);
    impl().stopped->stopped = true;
  }
  (node() ? node() : impl().stopped)->grad = grad;
}

void Tensor::zero_grad() {
  for (const std::shared_ptr<Node>& n : {impl().node, impl().stopped})  // also of a view that has lost its place in the graph
    if (n) n->grad = Tensor();
}

Tensor& Tensor::retain_grad() {
  ONESTEP_CHECK(GradError, node() != nullptr, "retain_grad: a tensor of shape ", shape(), " that does not require grad");
  if (!is_leaf()) node()->retains_grad = true;
  return *this;
}

bool Tensor::retains_grad() const { return node() && !node()->is_leaf() && node()->retains_grad; }

Tensor Tensor::base() const { return impl().base ? Tensor(impl().base) : Tensor(); }

// A view whose base has no handle but the view's own is alone, too.
bool Tensor::is_last() const {
  const Impl& i = impl();
  const bool alone = i.base ? i.base.use_count() == 1 && i.storage.use_count() == 2 : i.storage.use_count() == 1;
  return alone && impl_.use_count() == 1 && !i.storage->owner;
}

// ---- hooks

namespace {

std::atomic<uint64_t> next_hook{1};

Node::Extras& extras_of(const char* op, const Tensor& x) {
  ONESTEP_CHECK(GradError, x.node() != nullptr, op, ": a tensor of shape ", x.shape(), " that does not require grad");
  Node& node = *x.node();
  if (!node.extras) node.extras = std::make_unique<Node::Extras>();
  return *node.extras;
}

}  // namespace

HookHandle Tensor::register_hook(std::function<Tensor(const Tensor&)> hook) {
  const uint64_t id = next_hook++;
  extras_of("register_hook", *this).hooks.emplace_back(id, std::move(hook));
  return {node(), id};
}

HookHandle Tensor::register_post_accumulate_grad_hook(std::function<void(const Tensor&)> hook) {
  const uint64_t id = next_hook++;
  Node::Extras& extras = extras_of("register_post_accumulate_grad_hook", *this);
  ONESTEP_CHECK(GradError, is_leaf(), "register_post_accumulate_grad_hook: the result of ", node()->name,
                " is no leaf (use register_hook)");
  // Without a reference to the leaf, which holds its node and so the hook.
  extras.post_hooks.emplace_back(id, [hook = std::move(hook), leaf = std::weak_ptr<Impl>(impl_)] {
    if (std::shared_ptr<Impl> alive = leaf.lock()) hook(Tensor(std::move(alive)));
  });
  return {node(), id};
}

void HookHandle::remove() {
  const std::shared_ptr<Node> node = node_.lock();
  if (!node || !node->extras) return;
  const auto is_this = [this](const auto& hook) { return hook.first == id_; };
  std::erase_if(node->extras->hooks, is_this);
  std::erase_if(node->extras->post_hooks, is_this);
}

}  // namespace onestep
