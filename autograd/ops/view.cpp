// Views and writes through them, as in PyTorch. A view knows its base. A recorded write to the base gives it a new node; a
// recorded write to a view gives the base the node `copy_slices` (the base as it was, with the written elements in their
// places). Either counts up the history of the base, and a view whose count is older looks up its node again, as elements of
// the base.
#include <algorithm>
#include <set>
#include <vector>

#include "autograd/creation.h"
#include "autograd/memory.h"
#include "autograd/ops/common.h"
#include "autograd/ops/write_expanded.h"
#include "autograd/ops_index.h"
#include "autograd/ops_pointwise.h"
#include "autograd/ops_shape.h"

namespace onestep {
namespace {

/// Where the elements of a tensor lie in its storage.
struct Layout {
  explicit Layout(const Tensor& x) : shape(x.shape()), strides(x.strides()), offset(x.offset()) {}
  Shape shape, strides;
  int64_t offset;

  /// One past the last element.
  int64_t end() const {
    int64_t last = offset;
    for (int i = 0; i < shape.rank(); ++i) last += (shape[i] - 1) * strides[i];
    return shape.numel() == 0 ? offset : last + 1;
  }
  /// True where expand has repeated elements.
  bool is_expanded() const {
    for (int i = 0; i < shape.rank(); ++i)
      if (strides[i] == 0 && shape[i] > 1) return shape.numel() > 0;
    return false;
  }
  /// False only where no two elements share memory.
  bool may_overlap() const {
    std::multiset<std::pair<int64_t, int64_t>> dims;  // stride and size
    for (int i = 0; i < shape.rank(); ++i)
      if (shape[i] > 1) dims.emplace(strides[i], shape[i]);
    int64_t last = 0;
    for (const auto& [stride, size] : dims) {
      if (stride <= last) return true;
      last += stride * (size - 1);
    }
    return false;
  }
};

/// A buffer that stands for the part of a storage where a base and its view lie.
struct Span {
  Span(const Layout& a, const Layout& b) : first(std::min(a.offset, b.offset)), size(std::max(a.end(), b.end()) - first) {}
  Tensor of(const Tensor& buffer, const Layout& layout) const {
    return as_strided(buffer, layout.shape, layout.strides, layout.offset - first);
  }
  int64_t first, size;
};

/// The places of a layout's elements in a buffer, in row-major order: int64 [N]
Tensor places(const Layout& layout, const Span& span) {
  const Tensor all = arange(span.size);
  return reshape(span.of(all, layout), {layout.shape.numel()});
}

/// A buffer of zeros with `values` added at the places of `layout`.
Tensor spread(const Tensor& values, const Layout& layout, const Span& span) {
  const Tensor buffer = zeros({span.size}, values.dtype());
  if (layout.may_overlap())
    index_put_(buffer, {places(layout, span)}, reshape(values, {values.numel()}), /*accumulate=*/true);
  else
    copy_(span.of(buffer, layout), values);
  return buffer;
}

/// The rule of a view with any strides: the gradients of its elements at the base's elements that they are.
struct FromView {
  Layout base, view;

  Grads operator()(const Backward& b) const {
    const Span span(base, view);
    Tensor grad = span.of(spread(b.grad(), view, span), base);
    if (base.may_overlap()) grad = div(grad, span.of(spread(ones_like(grad), base, span), base));
    return {grad};
  }
};

/// The rule of a write to a view: what was written gets the gradient of its places, the base as it was that of the others. As
/// in PyTorch it serves one pass unless the graph is retained, although nothing is saved, and no expanded tensor.
struct FromWrite {
  Layout base, view;

  Grads operator()(const Backward& b) const {
    b.saved(0);
    ONESTEP_CHECK(GradError, !base.is_expanded() && !(b.needs(0) && view.is_expanded()), "copy_slices: no gradient of shape ",
                  base.shape, " passes a write to an expanded tensor: its elements share memory (clone it first)");
    const Span span(base, view);
    Tensor before, written;
    if (b.needs(1)) written = clone(span.of(spread(b.grad(), base, span), view));
    if (b.needs(0)) {
      const Tensor buffer = spread(b.grad(), base, span);
      fill_(span.of(buffer, view), 0);
      before = span.of(buffer, base);
    }
    return {before, written};
  }
};

/// Gives a tensor its node after an in-place op. retain_grad() is asked of the tensor, not of the op that made it.
void move_node(Tensor::Impl& impl, const std::shared_ptr<Node>& now) {
  if (impl.node && now && impl.node->retains_grad) {
    now->retains_grad = std::exchange(impl.node->retains_grad, false);
    now->grad = std::exchange(impl.node->grad, Tensor());
  }
  impl.node = now;
}

const char* ambiguous(ViewKind kind) {
  if (kind == ViewKind::of_custom_op) return " that a custom op returned";
  return kind == ViewKind::unrecorded ? " that was taken under NoGradGuard" : " that is one of several from one op";
}

void check_in_place(const char* name, const Tensor& self) {
  if (self.is_view()) {
    const ViewKind kind = self.impl().view_kind;
    ONESTEP_CHECK(GradError, kind == ViewKind::ordinary, name, ": a view of shape ", self.shape(), ambiguous(kind),
                  " cannot be changed in place while recording (",
                  kind == ViewKind::unrecorded ? "take the view where it is changed" : "clone it first", ")");
    const Tensor base = self.base();  // does not require grad where another view of it is the leaf
    const bool of_leaf = base.requires_grad() ? base.is_leaf() : self.requires_grad() && !self.is_leaf();
    ONESTEP_CHECK(GradError, !of_leaf, name,
                  ": a view of a leaf that requires grad cannot be changed in place while recording (wrap the change in "
                  "NoGradGuard, or clone the leaf first)");
  }
  ONESTEP_CHECK(GradError, !self.requires_grad() || !self.is_leaf(), name,
                ": a leaf that requires grad cannot be changed in place while recording (wrap the change in NoGradGuard)");
}

}  // namespace

Tensor detail::mark_view(Tensor view, const Tensor& x, ViewKind kind) {
  Tensor::Impl& impl = view.impl();
  impl.base = x.is_view() ? x.impl().base : x.impl_;
  impl.history = impl.base->history;
  const ViewKind own = grad_enabled() ? kind : ViewKind::unrecorded;
  const ViewKind before = x.is_view() ? x.impl().view_kind : ViewKind::ordinary;
  impl.view_kind = before == ViewKind::ordinary || own == ViewKind::unrecorded ? own : before;
  return view;
}

void Tensor::follow_base() const {
  Impl& view = *impl_;
  const Tensor whole = base();
  if (!whole.requires_grad()) return;
  ONESTEP_CHECK(GradError, view.view_kind == ViewKind::ordinary || view.history == view.base->history, "a view of shape ",
                shape(), ambiguous(view.view_kind),
                " has lost its place in the graph: its base was changed in place while recording (take the view after the "
                "change)");
  view.history = view.base->history;
  const EnableGradGuard recorded;
  const Tensor now = record("as_strided", values(), {whole}, {}, FromView{Layout(whole), Layout(*this)});
  move_node(view, now.impl().node);
}

Tensor as_strided(const Tensor& x, const Shape& shape, const Shape& strides, std::optional<int64_t> offset) {
  check_sizes("as_strided", shape);
  ONESTEP_CHECK(ShapeError, shape.rank() == strides.rank(), "as_strided: shape ", shape, " and strides ", strides,
                " differ in length");
  for (const int64_t stride : strides)
    ONESTEP_CHECK(ShapeError, stride >= 0, "as_strided: strides cannot be negative: got ", strides);
  const Tensor view = ops::view_of(x, shape, strides, offset.value_or(x.offset()));
  const Layout layout(view);
  int64_t last = layout.offset, step = 0;
  bool inside = layout.offset >= 0;
  for (int i = 0; shape.numel() > 0 && i < shape.rank(); ++i)
    inside = inside && !__builtin_mul_overflow(shape[i] - 1, strides[i], &step) && !__builtin_add_overflow(last, step, &last);
  const int64_t elements = x.impl().storage->bytes / size_of(x.dtype());
  ONESTEP_CHECK(ShapeError, inside && (shape.numel() == 0 || last < elements), "as_strided: shape ", shape, ", strides ",
                strides, " and offset ", layout.offset, " reach beyond a storage of ", elements, " elements");
  return record_view("as_strided", view, x, FromView{Layout(x), layout});
}

Tensor& assign_in_place(const char* name, Tensor& self, const Tensor& result) {
  self.check_writable(name);
  return ops::write_recorded(name, self, result, [&] { copy_(self, result); });
}

Tensor& ops::write_recorded(const char* name, Tensor& self, const Tensor& result, const std::function<void()>& write) {
  const bool recorded = grad_enabled() && (self.requires_grad() || result.requires_grad());
  if (recorded) check_in_place(name, self);
  ONESTEP_CHECK(ShapeError, result.shape() == self.shape(), name, ": result of shape ", result.shape(),
                " does not fit the tensor of shape ", self.shape());
  ONESTEP_CHECK(DTypeError, result.dtype() == self.dtype(), name, ": result of dtype ", result.dtype(),
                " does not fit the tensor of dtype ", self.dtype());
  {
    const NoGradGuard no_grad;
    write();
  }
  if (!recorded) return self;
  Tensor base = self.is_view() ? self.base() : self;
  std::shared_ptr<Node> node = result.node();
  if (self.is_view())
    node = record("copy_slices", base.values(), {base, result}, {Tensor()}, FromWrite{Layout(base), Layout(self)}).impl().node;
  move_node(base.impl(), node);
  if (base.impl().stopped) base.impl().stopped->moved = true;
  ++base.impl().history;
  if (self.is_view() && self.impl().node && self.impl().node->retains_grad) self.node();  // the gradient of what it is now
  return self;
}

}  // namespace onestep
