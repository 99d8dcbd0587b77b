#include "autograd/tensor.h"

#include <cstring>
#include <utility>

#include "autograd/kernels/parallel.h"
#include "autograd/memory.h"
#include "autograd/node.h"
#include "autograd/ops/common.h"

namespace onestep {
namespace {
thread_local bool recording = true;

/// The node of a leaf, which is counted in its storage while it lives.
class Leaf : public Node {
 public:
  explicit Leaf(const Tensor& leaf) : Node("leaf", leaf), storage_(leaf.impl().storage) { ++leaf.impl().storage->leaves; }
  ~Leaf() { leave(); }
  Leaf(const Leaf&) = delete;
  Leaf& operator=(const Leaf&) = delete;
  void leave() {
    if (const auto storage = storage_.lock()) --storage->leaves;
    storage_.reset();
  }

 private:
  std::weak_ptr<Storage> storage_;  // a graph does not keep the values of a leaf
};

}  // namespace

bool grad_enabled() { return recording; }
NoGradGuard::NoGradGuard() : previous_(std::exchange(recording, false)) {}
NoGradGuard::~NoGradGuard() { recording = previous_; }

Storage::Storage(int64_t size, bool zeroed)
    : data(static_cast<std::byte*>(memory::allocate(static_cast<size_t>(size)))), bytes(size) {
  if (zeroed)
    kernels::parallel_for(size, /*cost=*/0.1, [this](int64_t begin, int64_t end) {
      std::memset(data + begin, 0, static_cast<size_t>(end - begin));
    });
}
Storage::~Storage() { memory::deallocate(data, static_cast<size_t>(bytes)); }

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
  const Impl& i = impl();
  if ((i.knows_history() && !i.unrecorded_view) || !grad_enabled()) return;
  detail::check_history(op, *this);
  fail<GradError>(op, ": a view of shape ", shape(),
                  " that was taken under NoGradGuard of a tensor that requires grad cannot be changed in place while recording "
                  "(wrap the change in NoGradGuard, too, or take the view outside it)");
}

int64_t Tensor::element_offset(const Shape& index) const {
  ONESTEP_CHECK(ShapeError, index.rank() == dim(), "at: index ", index, " for a tensor of shape ", shape());
  int64_t place = 0;
  for (int i = 0; i < dim(); ++i) {
    const int64_t size = shape()[i];
    ONESTEP_CHECK(ShapeError, -size <= index[i] && index[i] < size, "at: index ", index, " is out of range for shape ",
                  shape());
    place += (index[i] < 0 ? index[i] + size : index[i]) * strides()[i];
  }
  return place;
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  const NoGradGuard no_grad;
  const Tensor rows = onestep::contiguous(*this);
  return dispatch(dtype(), [&]<class U>() {
    const U* first = rows.data<U>();
    std::vector<T> values(static_cast<size_t>(numel()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(first[i]);
    return values;
  });
}
template std::vector<float> Tensor::to_vector<float>() const;
template std::vector<double> Tensor::to_vector<double>() const;
template std::vector<int64_t> Tensor::to_vector<int64_t>() const;
template std::vector<bool> Tensor::to_vector<bool>() const;

// ---- graph

Tensor& Tensor::requires_grad_(bool on) {
  if (on) detail::check_history("requires_grad_", *this);
  if (on == requires_grad()) return *this;
  ONESTEP_CHECK(DTypeError, !on || is_floating(), "requires_grad_: only floating tensors collect gradients: got ", dtype());
  ONESTEP_CHECK(GradError, on || is_leaf(), "requires_grad_: the result of ", on ? "" : impl().node->name,
                " cannot stop requiring grad (use detach())");
  if (on) {
    detail::set_node(*this, std::allocate_shared<Leaf>(memory::Allocator<Leaf>(), *this));
  } else {
    static_cast<Leaf&>(*impl().node).leave();
    impl().node = nullptr;
  }
  return *this;
}

bool Tensor::is_leaf() const { return !requires_grad() || impl().node->is_leaf(); }

Tensor Tensor::grad() const {
  if (!requires_grad()) return {};
  ONESTEP_CHECK(GradError, is_leaf() || impl().node->retains_grad, "grad: the result of ", impl().node->name,
                " collects no gradient (call retain_grad() on it before backward)");
  detail::check_history("grad", *this);
  return impl().node->grad;
}

void Tensor::set_grad(const Tensor& grad) {
  ONESTEP_CHECK(GradError, requires_grad(), "set_grad: a tensor of shape ", shape(), " that does not require grad");
  ONESTEP_CHECK(ShapeError, !grad.defined() || grad.shape() == shape(), "set_grad: gradient of shape ",
                grad.defined() ? grad.shape() : Shape(), " for a tensor of shape ", shape());
  ONESTEP_CHECK(DTypeError, !grad.defined() || grad.dtype() == dtype(), "set_grad: gradient of another dtype than ", dtype());
  impl().node->grad = grad.defined() ? grad.detach() : grad;
}

void Tensor::zero_grad() {
  if (requires_grad()) impl().node->grad = Tensor();
}

Tensor& Tensor::retain_grad() {
  detail::check_history("retain_grad", *this);
  ONESTEP_CHECK(GradError, requires_grad(), "retain_grad: a tensor of shape ", shape(), " that does not require grad");
  impl().node->retains_grad = true;
  return *this;
}

Tensor Tensor::values() const {
  const Impl& i = impl();
  return ops::view_of(*this, i.shape, i.strides, i.offset);
}

Tensor Tensor::detach() const {
  const Impl& i = impl();
  Tensor detached(i.storage, i.dtype, i.shape, i.strides, i.offset);
  detached.impl().own_history = std::allocate_shared<uint32_t>(memory::Allocator<uint32_t>(), 0);
  detached.impl().history = 0;
  return detached;
}

}  // namespace onestep
