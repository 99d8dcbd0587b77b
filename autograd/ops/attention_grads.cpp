// The gradients of attention in ops that are recorded, for a pass that will be differentiated again.
#include <limits>

#include "autograd/operators.h"
#include "autograd/ops/attention_blocks.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops_nn.h"
#include "autograd/ops_shape.h"
#include "autograd/random/random_fill.h"

namespace onestep::ops {
namespace {

/// Which keys each query may attend to, as bool that broadcasts to [kv_heads, group, T, S]; undefined if all of them.
Tensor attended_keys(const AttentionPlan& p, const Tensor& mask) {
  if (mask.defined()) return mask.is_floating() ? ne(mask, -std::numeric_limits<double>::infinity()) : mask;
  if (!p.causal) return {};
  const Tensor key = view(arange(p.keys), {1, 1, 1, p.keys});
  const Tensor position = view(arange(p.offset, p.offset + p.queries), {1, 1, p.queries, 1});
  const Tensor attended = key <= position;
  return p.window > 0 ? logical_and(attended, key > position - p.window) : attended;
}

/// What dropout multiplies the weights by, or none.
Tensor dropout_factors(const AttentionPlan& p, const Tensor& keep, DType dtype) {
  if (!keep.defined()) return {};
  const double scale =
      dispatch_floating(dtype, "dropout", [&]<class T>() { return static_cast<double>(dropout_scale<T>(p.dropout_p)); });
  return to(reshape(keep, {p.heads / p.group, p.group, p.queries, p.keys}), dtype) * scale;
}

}  // namespace

// With p the weights, w = dropout(p) and dp = dropout(dy v^T): dmask = p (dp - sum(p dp)), ds = scale dmask, dq = ds k,
// dk = ds^T q, dv = w^T dy. Queries that attend to nothing and keys that nothing attends to become 0: they may be NaN, and 0 *
// NaN is NaN.
AttentionGrads recorded_attention_grads(const AttentionPlan& plan, const AttentionOperands& x, const Tensor& upstream) {
  if (is_narrow(upstream.dtype())) {
    const AttentionGrads g =
        recorded_attention_grads(plan, {wide(x.q), wide(x.k), wide(x.v), wide(x.mask), x.keep}, wide(upstream));
    const DType dtype = upstream.dtype();
    return {to(g.q, dtype), to(g.k, dtype), to(g.v, dtype), g.mask.defined() ? to(g.mask, dtype) : g.mask};
  }
  const int64_t kv_heads = plan.heads / plan.group;
  const auto grouped = [&](const Tensor& t, int64_t group) { return reshape(t, {kv_heads, group, t.size(-2), t.size(-1)}); };
  Tensor q = grouped(x.q, plan.group), dy = grouped(upstream, plan.group), k = grouped(x.k, 1), v = grouped(x.v, 1);
  const Tensor mask = x.mask.defined() ? reshape(x.mask, {kv_heads, plan.group, plan.queries, plan.keys}) : x.mask;
  const Tensor attended = attended_keys(plan, mask), factors = dropout_factors(plan, x.keep, dy.dtype());
  const Tensor hidden = attended.defined() ? logical_not(attended) : Tensor();
  if (attended.defined()) {
    const Tensor idle = eq(sum(attended, -1, true), 0), unused = transpose(eq(sum(attended, {1, 2}, true), 0), -2, -1);
    q = masked_fill(q, idle, 0), dy = masked_fill(dy, idle, 0);
    k = masked_fill(k, unused, 0), v = masked_fill(v, unused, 0);
  }
  const auto hide = [&](const Tensor& t, double value) { return hidden.defined() ? masked_fill(t, hidden, value) : t; };
  const auto drop = [&](const Tensor& t) { return factors.defined() ? t * factors : t; };
  Tensor scores = matmul(q, transpose(k, -2, -1)) * plan.scale;
  if (mask.defined() && mask.is_floating()) scores = scores + hide(mask, 0);
  // Queries whose scores are all -inf have weights of 0, too.
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Tensor unscored = all(eq(hide(scores.detach(), -kInfinity), -kInfinity), -1, true);
  const Tensor finite = masked_fill(hide(scores, std::numeric_limits<float>::lowest()), unscored, 0);
  const Tensor p = masked_fill(hide(softmax(finite, -1), 0), unscored, 0);
  const Tensor dp = hide(drop(matmul(dy, transpose(v, -2, -1))), 0);
  const Tensor dmask = p * (dp - sum(p * dp, -1, true)), ds = dmask * plan.scale;
  return {reshape(matmul(ds, k), x.q.shape()), reshape(sum(matmul(transpose(ds, -2, -1), q), 1), x.k.shape()),
          reshape(sum(matmul(transpose(drop(p), -2, -1), dy), 1), x.v.shape()),
          x.mask.defined() && x.mask.is_floating() ? reshape(dmask, x.mask.shape()) : Tensor()};
}

}  // namespace onestep::ops
