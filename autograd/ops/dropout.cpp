// Dropout: a mask drawn in memory order, and one multiplication.
#include <span>
#include <utility>

#include "autograd/kernels/parallel.h"
#include "autograd/ops/common.h"
#include "autograd/ops_nn.h"
#include "autograd/ops_shape.h"
#include "autograd/random/random_fill.h"

namespace onestep {
namespace {

/// The dims of x from slowest to fastest in memory. PyTorch draws the mask in this order, whatever the shape says; like its
/// TensorIterator, a repeated dim (stride 0) keeps its place, and of two equal strides the larger size counts as slower.
Shape memory_order(const Tensor& x) {
  Shape order;
  for (int i = 0; i < x.dim(); ++i) order.push_back(i);
  if (x.is_contiguous()) return order;
  for (int i = x.dim() - 2; i >= 0; --i) {
    for (int here = i, next = i + 1; next < x.dim(); ++next) {
      const auto a = static_cast<int>(order[here]), b = static_cast<int>(order[next]);
      const int64_t stride_a = x.strides()[a], stride_b = x.strides()[b];
      if (stride_a == 0 || stride_b == 0) continue;
      if (stride_a > stride_b) break;
      if (stride_a == stride_b && x.shape()[a] >= x.shape()[b]) continue;
      std::swap(order[here], order[next]);
      here = next;
    }
  }
  return order;
}

/// x times 1 / (1 - p) where `keep` is true and times 0 elsewhere; `keep` has x's elements in memory order.
Tensor apply_mask(const Tensor& x, const Tensor& keep, const Shape& order, double p) {
  const NoGradGuard no_grad;  // a profile would charge the ops here for dropout's work
  const Tensor values = ops::contiguous_values(permute(ops::widened(x), order));
  Tensor y = empty(values.shape(), values.dtype());
  dispatch_floating(y.dtype(), "dropout", [&]<class T>() {
    const T* from = values.data<T>();
    const bool* kept = keep.data<bool>();
    T* to = y.mutable_data<T>();
    const T scale = ops::element<T>(ops::rounded(dropout_scale<T>(p), x.dtype()));
    kernels::parallel_for(y.numel(), 0.3, [=](int64_t i, int64_t end) {
      for (; i < end; ++i) to[i] = from[i] * (static_cast<T>(kept[i]) * scale);
    });
  });
  return ops::rounded(permute(y, ops::inverse_order(order)), x.dtype());
}

/// apply_mask, recorded: dx = dy scale where kept, else 0.
Tensor dropped(const Tensor& x, const Tensor& keep, const Shape& order, double p) {
  return record("dropout", apply_mask(x, keep, order, p), {x}, {keep},
                [order, p](const Backward& b) -> Grads { return {dropped(b.grad(), b.saved(0), order, p)}; });
}

}  // namespace

Tensor dropout(const Tensor& x, double p, bool training, Generator& generator) {
  ONESTEP_CHECK(ConfigError, 0 <= p && p <= 1, "dropout: the probability must lie in [0, 1]: got ", p);
  if (!training || p == 0 || x.numel() == 0) return x;
  ops::check_floating("dropout", x);
  const Shape order = memory_order(x);
  Tensor keep = empty({x.numel()}, DType::boolean);
  fill_dropout_mask(std::span(keep.mutable_data<bool>(), static_cast<size_t>(x.numel())), p, generator);
  return dropped(x, keep, order, p);
}

}  // namespace onestep
