// Scaled dot-product attention as one op (Vaswani et al. 2017), of queries, keys and values that lie apart or side by side.
#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "autograd/autocast.h"
#include "autograd/ops/attention_blocks.h"
#include "autograd/ops/matrices.h"
#include "autograd/ops_nn.h"
#include "autograd/ops_shape.h"
#include "autograd/random/random_fill.h"

namespace onestep {
namespace {

constexpr const char* kOp = "scaled_dot_product_attention";

void check_options(const char* op, const AttentionOptions& o, const Tensor& q) {
  const int64_t queries = q.size(-2);
  ONESTEP_CHECK(ConfigError, o.is_causal || (o.window == 0 && o.query_offset == 0), op,
                ": window and query_offset go with is_causal: got window=", o.window, ", query_offset=", o.query_offset);
  ONESTEP_CHECK(ConfigError, o.window >= 0 && o.query_offset >= 0, op, ": window and query_offset cannot be negative: got ",
                o.window, " and ", o.query_offset);
  ONESTEP_CHECK(ConfigError, o.query_offset < INT64_MAX - queries, op, ": query_offset is too large for ", queries,
                " queries: got ", o.query_offset);
  ONESTEP_CHECK(ConfigError, 0 <= o.dropout_p && o.dropout_p <= 1, op, ": dropout_p must lie in [0, 1]: got ", o.dropout_p);
  if (!o.mask.defined()) return;
  ONESTEP_CHECK(ConfigError, !o.is_causal, op, ": takes a mask or is_causal, not both");
  ONESTEP_CHECK(DTypeError, o.mask.dtype() == DType::boolean || o.mask.dtype() == q.dtype(), op,
                ": the mask must be bool (true = may attend) or ", q.dtype(), " as the query (added to the scores): got ",
                o.mask.dtype());
}

void check_attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
  ops::check_floating(kOp, q);
  for (const Tensor* x : {&q, &k, &v}) {
    ops::check_same_dtype(kOp, q, *x);
    ONESTEP_CHECK(ShapeError, x->dim() >= 2, kOp, ": needs [..., tokens, features]: got shape ", x->shape());
  }
  ONESTEP_CHECK(ShapeError, q.size(-1) == k.size(-1), kOp, ": query and key features differ: ", q.shape(), " and ", k.shape());
  ONESTEP_CHECK(ShapeError, k.size(-2) == v.size(-2), kOp, ": key and value tokens differ: ", k.shape(), " and ", v.shape());
  check_options(kOp, o, q);
}

/// x with the batch dims in front of its last two.
Tensor with_batch(const Tensor& x, Shape batch) {
  if (ops::batch_dims(x.shape()) == batch) return x;
  batch.push_back(x.size(-2));
  batch.push_back(x.size(-1));
  return expand(x, batch);
}

/// How many heads of the query share one of key and value: 1 unless options.enable_gqa, 0 if the query has none.
int64_t group_size(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  if (!options.enable_gqa) return 1;
  const bool ranks = q.dim() >= 3 && k.dim() >= 3 && v.dim() >= 3;
  const int64_t heads = ranks ? q.size(-3) : 0, kv_heads = ranks ? k.size(-3) : 0;
  ONESTEP_CHECK(ShapeError, ranks && kv_heads > 0 && v.size(-3) == kv_heads && heads % kv_heads == 0, kOp,
                ": enable_gqa needs heads of the query [..., H, T, d] that are a multiple of those of key and value: got ",
                q.shape(), ", ", k.shape(), " and ", v.shape());
  return heads / kv_heads;
}

/// x itself if the elements of a row are neighbours, else a copy.
Tensor unit_rows(const Tensor& x) {
  return x.shape().back() <= 1 || x.strides()[x.dim() - 1] == 1 ? x.values() : ops::contiguous_values(x);
}

/// [..., H, T, d] stored as [..., T, H, d]: merging the heads is then a view.
Tensor token_major(Shape shape, DType dtype) {
  const int rank = shape.rank();
  if (rank < 4) return empty(shape, dtype);
  std::swap(shape[rank - 3], shape[rank - 2]);
  return transpose(empty(shape, dtype), -3, -2);
}

/// For queries, keys and values whose batch dims are `batch`, or `batch` with groups of heads as one.
ops::AttentionPlan plan_for(const Shape& batch, int64_t group, const Tensor& q, const Tensor& k, const Tensor& v,
                            const AttentionOptions& o) {
  const double scale = o.scale.value_or(1 / std::sqrt(static_cast<double>(std::max<int64_t>(q.size(-1), 1))));
  return {batch.numel(), group,          q.size(-2), k.size(-2),
          q.size(-1),    v.size(-1),     scale,      o.dropout_p,
          o.is_causal,   o.query_offset, o.window,   q.dtype() == DType::bfloat16 && autocast_enabled()};
}

/// Operands and a gradient as `attend` takes them, and the dtype of what it writes.
Tensor widened(const Tensor& x) { return x.defined() ? ops::widened(x) : x; }
Tensor operand(const ops::AttentionPlan& plan, const Tensor& x) { return plan.bf16 ? x : widened(x); }
ops::AttentionOperands operands(const ops::AttentionPlan& plan, const ops::AttentionOperands& x) {
  return {operand(plan, x.q), operand(plan, x.k), operand(plan, x.v), widened(x.mask), x.keep};
}
DType result_type(const ops::AttentionPlan& plan, DType dtype) { return plan.bf16 ? dtype : compute_type(dtype); }

/// [..., T, S]
Shape weights_shape(Shape batch, const ops::AttentionPlan& plan) {
  batch.push_back(plan.queries);
  batch.push_back(plan.keys);
  return batch;
}

/// The mask for every head, or none.
Tensor expanded_mask(const char* op, const Shape& shape, const Tensor& mask) {
  return mask.defined() ? ops::expand_values(op, mask, shape) : Tensor();
}

bool adds_mask(const Tensor& mask) { return mask.defined() && mask.is_floating(); }

/// The mask as an input of the op, whose gradient may be wanted: one that is added to the scores, for every head.
Tensor added_mask(const AttentionOptions& options, const Shape& weights) {
  return adds_mask(options.mask) ? expand(options.mask, weights) : Tensor();
}

/// Input `i` of the op, and what it saved i-th: a mask, in its place in the graph.
Tensor placed_mask(const Backward& b, size_t i) { return adds_mask(b.saved(i)) ? b.input(i, b.saved(i)) : b.saved(i); }

/// For inputs that are widened: a mask that is added is widened, too.
AttentionOptions wide(AttentionOptions options) {
  options.mask = ops::wide(options.mask);
  return options;
}

/// What dropout leaves of the weights, or none: drawn in one go, so that it does not depend on the blocks.
Tensor dropout_mask(const Shape& shape, const AttentionOptions& options) {
  if (options.dropout_p == 0 || shape.numel() == 0) return {};
  Tensor keep = empty(shape, DType::boolean);
  fill_dropout_mask(std::span(keep.mutable_data<bool>(), static_cast<size_t>(keep.numel())), options.dropout_p,
                    options.generator ? *options.generator : default_generator());
  return keep;
}

Tensor rounded_or_none(Tensor gradient, DType dtype) {
  return gradient.defined() ? ops::rounded(std::move(gradient), dtype) : gradient;
}

constexpr int64_t kMostHeads = int64_t{1} << 20;  // without features any number would fit

/// Heads of queries, keys and values side by side in rows [..., T, (H + 2 H_kv) d].
struct Packed {
  int64_t heads, kv_heads, features;

  /// `count` heads from the given one on: [..., T, width] -> [..., count, T, d], a view.
  Tensor part(const Tensor& x, int64_t first, int64_t count) const {
    Shape shape = x.shape(), strides = x.strides();
    const int last = shape.rank() - 1;
    shape[last] = features;
    shape.insert(last - 1, count);
    strides.insert(last - 1, features);
    return ops::view_of(x, shape, strides, x.offset() + first * features);
  }
  Tensor queries(const Tensor& x) const { return part(x, 0, heads); }
  Tensor keys(const Tensor& x) const { return part(x, heads, kv_heads); }
  Tensor values(const Tensor& x) const { return part(x, heads + kv_heads, kv_heads); }

  /// The same in ops that are recorded, and back.
  Tensor recorded_part(const Tensor& x, int64_t first, int64_t count) const {
    Shape shape = x.shape();
    shape[shape.rank() - 1] = features;
    shape.insert(shape.rank() - 1, count);
    return transpose(reshape(narrow(x, -1, first * features, count * features), shape), -3, -2);
  }
  static Tensor merged(const Tensor& x) { return flatten(transpose(x, -3, -2), -2, -1); }
  Grads recorded_grads(const ops::AttentionPlan& plan, const Tensor& x, const Tensor& mask, const Tensor& keep,
                       const Tensor& dy) const {
    const Tensor q = recorded_part(x, 0, heads), k = recorded_part(x, heads, kv_heads),
                 v = recorded_part(x, heads + kv_heads, kv_heads);
    const ops::AttentionGrads grads = ops::recorded_attention_grads(plan, {q, k, v, mask, keep}, recorded_part(dy, 0, heads));
    return {cat({merged(grads.q), merged(grads.k), merged(grads.v)}, -1), grads.mask};
  }
};

}  // namespace

namespace {

/// scaled_dot_product_attention of operands as they are.
Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  check_attention(q, k, v, options);
  if (q.dtype() == DType::float16) return to(attend(ops::wide(q), ops::wide(k), ops::wide(v), wide(options)), q.dtype());
  const int64_t group = group_size(q, k, v, options);
  if (group == 0) {  // no head of key and value is looked at
    AttentionOptions alone = options;
    alone.enable_gqa = false;
    return attend(q, narrow(k, -3, 0, 0), narrow(v, -3, 0, 0), alone);
  }
  const char* batch_op = "scaled_dot_product_attention: batch dims";
  // The heads of one group meet the batch dims of key and value as one.
  Shape q_batch = ops::batch_dims(q.shape());
  if (group > 1) q_batch[q_batch.rank() - 1] /= group;
  const Shape keys = broadcast_shapes(batch_op, ops::batch_dims(k.shape()), ops::batch_dims(v.shape()));
  const Shape key_batch = broadcast_shapes(batch_op, q_batch, keys);
  Shape batch = key_batch;
  if (group > 1) batch[batch.rank() - 1] *= group;
  const Tensor query = with_batch(q, batch), key = with_batch(k, key_batch), value = with_batch(v, key_batch);
  const ops::AttentionPlan plan = plan_for(batch, group, q, k, v, options);
  const Shape weights = weights_shape(batch, plan);
  const ops::AttentionOperands x = {unit_rows(query), unit_rows(key), unit_rows(value),
                                    expanded_mask(kOp, weights, options.mask), dropout_mask(weights, options)};
  batch.push_back(plan.queries);
  batch.push_back(plan.value_features);
  Tensor y = token_major(batch, result_type(plan, q.dtype()));
  is_narrow(q.dtype()) ? ops::attend(plan, operands(plan, x), y) : ops::attend(plan, x, y);
  const Tensor added = added_mask(options, weights);
  // Queries and keys may be written to afterwards where PyTorch scales copies of them: but for [N, H, T, d].
  const bool copies = q.dim() != 4 && detail::should_record({query, key, value, added});
  return record(kOp, ops::rounded(std::move(y), q.dtype()), {query, key, value, added},
                {copies ? clone(x.q) : x.q, copies ? clone(x.k) : x.k, x.v, x.mask, x.keep},
                [plan](const Backward& b) -> Grads {
                  if (b.recording()) {
                    const ops::AttentionOperands in = {b.input(0, b.saved(0)), b.input(1, b.saved(1)), b.input(2, b.saved(2)),
                                                       placed_mask(b, 3), b.saved(4)};
                    const ops::AttentionGrads grads = ops::recorded_attention_grads(plan, in, b.grad());
                    return {grads.q, grads.k, grads.v, grads.mask};
                  }
                  const DType dtype = b.grad().dtype(), computed = result_type(plan, dtype);
                  ops::AttentionGrads grads;
                  if (b.needs(0)) grads.q = token_major(b.input_shape(0), computed);
                  if (b.needs(1)) grads.k = token_major(b.input_shape(1), computed);
                  if (b.needs(2)) grads.v = token_major(b.input_shape(2), computed);
                  if (b.needs(3)) grads.mask = empty(b.saved(3).shape(), compute_type(dtype));
                  ops::attend_backward(plan, operands(plan, {b.saved(0), b.saved(1), b.saved(2), b.saved(3), b.saved(4)}),
                                       operand(plan, unit_rows(b.grad())), grads);
                  return {rounded_or_none(grads.q, dtype), rounded_or_none(grads.k, dtype), rounded_or_none(grads.v, dtype),
                          rounded_or_none(grads.mask, dtype)};
                });
}

/// packed_attention of operands as they are.
Tensor attend_packed(const Tensor& qkv, int64_t num_heads, int64_t num_kv_heads, const AttentionOptions& options) {
  constexpr const char* op = "packed_attention";
  ops::check_floating(op, qkv);
  ONESTEP_CHECK(ShapeError, num_heads <= kMostHeads && num_kv_heads <= kMostHeads, op, ": needs at most ", kMostHeads,
                " heads: got H=", num_heads, " and H_kv=", num_kv_heads);
  const int64_t parts = num_heads > 0 && num_kv_heads > 0 ? num_heads + 2 * num_kv_heads : 1;
  ONESTEP_CHECK(
      ShapeError,
      qkv.dim() >= 2 && num_heads > 0 && num_kv_heads > 0 && num_heads % num_kv_heads == 0 && qkv.size(-1) % parts == 0, op,
      ": needs [..., T, (H + 2 H_kv) d] with H a multiple of H_kv: got ", qkv.shape(), " for H=", num_heads,
      " and H_kv=", num_kv_heads);
  check_options(op, options, qkv);
  if (qkv.dtype() == DType::float16)
    return to(attend_packed(ops::wide(qkv), num_heads, num_kv_heads, wide(options)), qkv.dtype());
  const Tensor x = unit_rows(qkv);
  const Packed heads = {num_heads, num_kv_heads, qkv.size(-1) / parts};
  const Tensor q = heads.queries(x), k = heads.keys(x), v = heads.values(x);
  const Shape batch = ops::batch_dims(q.shape());
  const ops::AttentionPlan plan = plan_for(batch, num_heads / num_kv_heads, q, k, v, options);
  const Shape weights = weights_shape(batch, plan);
  const Tensor mask = expanded_mask(op, weights, options.mask), keep = dropout_mask(weights, options);
  Shape shape = qkv.shape();
  shape[shape.rank() - 1] = num_heads * heads.features;
  const Tensor computed = operand(plan, x);
  Tensor y = empty(shape, computed.dtype()), y_heads = heads.queries(y);
  ops::attend(plan, {heads.queries(computed), heads.keys(computed), heads.values(computed), widened(mask), keep}, y_heads);
  return record(op, ops::rounded(std::move(y), x.dtype()), {qkv, added_mask(options, weights)}, {x, mask, keep},
                [plan, heads](const Backward& b) -> Grads {
                  if (b.recording())
                    return heads.recorded_grads(plan, b.input(0, b.saved(0)), placed_mask(b, 1), b.saved(2), b.grad());
                  const DType dtype = b.grad().dtype();
                  const Tensor given = operand(plan, b.saved(0)), dy = operand(plan, unit_rows(b.grad()));
                  Tensor dqkv = empty(given.shape(), dy.dtype());
                  ops::AttentionGrads grads = {heads.queries(dqkv), heads.keys(dqkv), heads.values(dqkv),
                                               b.needs(1) ? empty(b.saved(1).shape(), compute_type(dtype)) : Tensor()};
                  ops::attend_backward(
                      plan, {heads.queries(given), heads.keys(given), heads.values(given), widened(b.saved(1)), b.saved(2)},
                      heads.queries(dy), grads);
                  return {ops::rounded(std::move(dqkv), dtype), rounded_or_none(grads.mask, dtype)};
                });
}

/// Throws unless keys and values of every text fit q [B, H, T, d].
void check_texts(const char* op, const Tensor& q, const std::vector<Tensor>& keys, const std::vector<Tensor>& values) {
  ops::check_floating(op, q);
  ONESTEP_CHECK(ShapeError, q.dim() == 4 && !keys.empty() && q.size(0) == std::ssize(keys) && values.size() == keys.size(), op,
                ": needs q [B, H, T, d] and the keys and values of B > 0 texts: got ", q.shape(), ", ", keys.size(), " and ",
                values.size());
  for (size_t b = 0; b < keys.size(); ++b) {
    const Tensor &k = keys[b], &v = values[b];
    ops::check_same_dtype(op, q, k);
    ops::check_same_dtype(op, q, v);
    const int64_t heads = keys[0].dim() == 4 ? keys[0].size(1) : 0, length = k.dim() == 4 ? k.size(2) : 0;
    const bool fits = heads > 0 && q.size(1) % heads == 0 && length >= q.size(2) &&
                      k.shape() == Shape{1, heads, length, q.size(3)} && v.dim() == 4 &&
                      v.shape() == Shape{1, heads, length, values[0].size(-1)};
    ONESTEP_CHECK(ShapeError, fits, op,
                  ": needs keys [1, H_kv, S, d] and values [1, H_kv, S, e] with S >= T and H a multiple of H_kv: got ",
                  k.shape(), " and ", v.shape(), " for text ", b, " and q ", q.shape());
  }
}

/// x [1, H, S, d] if its rows are neighbours, else a copy.
Tensor dense_rows(const Tensor& x) {
  const bool dense = x.strides()[3] == 1 && x.strides()[2] == x.size(3);
  return dense ? x.values() : ops::contiguous_values(x);
}

/// With an added mask as autocast wants it.
AttentionOptions autocast_options(AttentionOptions options) {
  options.mask = ops::autocast_operand(options.mask);
  return options;
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  using ops::autocast_operand;
  if (!autocast_enabled()) return attend(q, k, v, options);
  return attend(autocast_operand(q), autocast_operand(k), autocast_operand(v), autocast_options(options));
}

Tensor cached_attention(const Tensor& queries, TensorList keys, TensorList values, int64_t window) {
  constexpr const char* op = "cached_attention";
  const NoGradGuard no_grad;
  const Tensor q = ops::autocast_operand(queries);
  std::vector<Tensor> k = ops::each(keys, ops::autocast_operand), v = ops::each(values, ops::autocast_operand);
  check_texts(op, q, k, v);
  k = ops::each(k, dense_rows);
  v = ops::each(v, dense_rows);
  const Tensor& longest =
      *std::max_element(k.begin(), k.end(), [](const Tensor& a, const Tensor& b) { return a.size(2) < b.size(2); });
  const AttentionOptions options = {.is_causal = true, .query_offset = longest.size(2) - q.size(2), .window = window};
  check_options(op, options, q);
  const ops::AttentionPlan plan = plan_for(ops::batch_dims(q.shape()), q.size(1) / k[0].size(1), q, longest, v[0], options);
  if (!plan.bf16) {
    k = ops::each(k, widened);
    v = ops::each(v, widened);
  }
  Tensor y = token_major({q.size(0), q.size(1), q.size(2), v[0].size(3)}, result_type(plan, q.dtype()));
  ops::attend(plan, {.q = operand(plan, unit_rows(q)), .text_keys = k, .text_values = v}, y);
  return ops::rounded(std::move(y), q.dtype());
}

Tensor packed_attention(const Tensor& qkv, int64_t num_heads, int64_t num_kv_heads, const AttentionOptions& options) {
  if (!autocast_enabled()) return attend_packed(qkv, num_heads, num_kv_heads, options);
  return attend_packed(ops::autocast_operand(qkv), num_heads, num_kv_heads, autocast_options(options));
}

}  // namespace onestep
