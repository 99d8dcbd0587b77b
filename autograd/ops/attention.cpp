// Scaled dot-product attention as one op (Vaswani et al. 2017): by blocks of queries, from the first to the last key that one
// of them sees. What is masked never reaches a result, whatever it holds: masked scores are overwritten, and where keys or
// values are not all finite a query meets only those that it sees. The [T, S] weights are never all there at once: the backward
// pass computes those of a block anew, with the same bits (Dao et al. 2022). Only dropout's mask, drawn in one go, has a byte a
// weight.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "autograd/kernels/kernels.h"
#include "autograd/ops/matrices.h"
#include "autograd/random_fill.h"

namespace onestep {
namespace {

constexpr const char* kOp = "scaled_dot_product_attention";
constexpr int64_t kQueries = 64;  // in a block
constexpr int64_t kKeys = 256;  // the product's k-block: a block of queries starts at a multiple of it, so that every sum over
                                // keys is cut at the same places whatever queries are computed together

/// Which keys a query sees: all; with `causal` those up to its own position, or the last `window` of them; or those where the
/// mask is true.
struct Visible {
  int64_t keys;
  bool causal;
  int64_t offset, window;
  const bool* mask;
  int64_t row_stride, key_stride;

  /// The first key that query i sees.
  int64_t begin(int64_t i) const { return causal && window > 0 ? std::clamp<int64_t>(i + offset + 1 - window, 0, end(i)) : 0; }
  /// Behind the last one.
  int64_t end(int64_t i) const {
    int64_t j = causal ? std::min(i + offset + 1, keys) : keys;
    while (mask && j > 0 && !at(i, j - 1)) --j;
    return j;
  }
  /// Behind the last one that a query of [first, stop) sees.
  int64_t end(int64_t first, int64_t stop) const {
    int64_t last = 0;
    for (int64_t i = first; i < stop; ++i) last = std::max(last, end(i));
    return last;
  }
  /// Whether query i sees key j, between begin(i) and end(i).
  bool at(int64_t i, int64_t j) const { return !mask || mask[i * row_stride + j * key_stride]; }
  /// row[j] = value for the masked keys among those.
  template <class T>
  void fill_masked(int64_t i, T* row, T value) const {
    for (int64_t j = 0, last = mask ? end(i) : 0; j < last; ++j)
      if (!at(i, j)) row[j] = value;
  }
};

/// The rows of a batch of matrices, written where they lie. An undefined tensor gives none.
template <class T>
class Rows {
 public:
  Rows(const Tensor& x, T* data, const Shape& batch) : data_(data) {
    if (!data) return;
    ld = x.strides()[x.dim() - 2];
    starts_ = ops::batch_starts(x, batch);
  }
  explicit operator bool() const { return data_ != nullptr; }
  T* at(int64_t head, int64_t i) const { return data_ + starts_[static_cast<size_t>(head)] + i * ld; }

  int64_t ld = 0;

 private:
  T* data_;
  ops::Offsets starts_;
};

template <class T>
Rows<const T> readable(const Tensor& x, const Shape& batch) {
  return {x, x.defined() ? x.data<T>() : nullptr, batch};
}
template <class T>
Rows<T> writable(Tensor& x, const Shape& batch) {
  return {x, x.defined() ? x.mutable_data<T>() : nullptr, batch};
}

/// x itself if the elements of a row are neighbours, else a copy.
Tensor unit_rows(const Tensor& x) {
  return x.shape().back() <= 1 || x.strides()[x.dim() - 1] == 1 ? x.detach() : ops::contiguous_values(x);
}

/// Zeros [..., H, T, d] stored as [..., T, H, d]: merging the heads is then a view.
Tensor token_major(Shape shape, DType dtype) {
  const int rank = shape.rank();
  if (rank < 4) return zeros(shape, dtype);
  std::swap(shape[rank - 3], shape[rank - 2]);
  return transpose(zeros(shape, dtype), -3, -2);
}

/// Sizes and options of one call; `group` neighbouring heads of the query share one head of key and value.
struct Plan {
  int64_t heads, group, queries, keys, features, value_features;
  double scale, dropout_p;
  bool causal;
  int64_t offset, window;
};

/// What forward and backward read. `keep` is the dropout mask [heads, queries, keys], or null.
template <class T>
struct Inputs {
  Inputs(const Plan& plan, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& visible_keys,
         const Tensor& kept)
      : p(plan), mask(visible_keys), keep(kept.defined() ? kept.data<bool>() : nullptr) {
    const Shape batch = ops::batch_dims(query.shape()), key_batch = ops::batch_dims(key.shape());
    q = readable<T>(query, batch);
    k = readable<T>(key, key_batch);
    v = readable<T>(value, key_batch);
    if (mask.defined()) mask_starts = ops::batch_starts(mask, batch);
  }
  Visible visible(int64_t head) const {
    if (!mask.defined()) return {p.keys, p.causal, p.offset, p.window, nullptr, 0, 0};
    const bool* first = mask.data<bool>() + mask_starts[static_cast<size_t>(head)];
    return {p.keys, false, 0, 0, first, mask.strides()[mask.dim() - 2], mask.strides()[mask.dim() - 1]};
  }
  /// False if every query sees all keys.
  bool hides() const { return mask.defined() || (p.causal && (p.queries > 1 || p.offset + 1 < p.keys || p.window > 0)); }
  /// to = from times the dropout factor, for the weights [begin, end) of a query.
  void drop(int64_t head, int64_t i, int64_t begin, int64_t end, const T* from, T* to) const {
    const bool* kept = keep + (head * p.queries + i) * p.keys;
    const T factor = dropout_scale<T>(p.dropout_p);
    for (int64_t j = begin; j < end; ++j) to[j] = from[j] * (kept[j] ? factor : T(0));
  }

  Plan p;
  Rows<const T> q{{}, nullptr, {}}, k = q, v = q;
  Tensor mask;
  ops::Offsets mask_starts;
  const bool* keep;
};

/// A block of queries [first, stop) of one head, the keys [begin, end) among which are those that they see, and scratch memory.
/// Arrays of weights have rows of `keys` elements, of which [begin, end) are used; masked ones are 0.
template <class T>
struct Block {
  int64_t head, kv_head, first, stop, begin, end;
  bool finite;  ///< No NaN or infinity in the operand of add_weighted.
  T *weights, *dropped, *ds, *copy;
};

/// y += w x for the queries of a block. Where x is not finite each query meets a copy without the keys that it does not see,
/// because 0 * NaN is NaN; the bits are the same either way.
template <class T>
void add_weighted(const Inputs<T>& in, const Block<T>& b, const T* w, const Rows<const T>& x, int64_t n, const Rows<T>& y) {
  const int64_t keys = in.p.keys;
  w += b.begin;
  if (b.finite)
    return kernels::gemm(false, false, b.stop - b.first, n, b.end - b.begin, w, keys, x.at(b.kv_head, b.begin), x.ld,
                         y.at(b.head, b.first), y.ld, true);
  const Visible visible = in.visible(b.head);
  for (int64_t i = b.first; i < b.stop; ++i, w += keys) {
    const int64_t begin = visible.begin(i), end = visible.end(i);
    for (int64_t j = b.begin; j < end; ++j) {
      T* const row = b.copy + (j - b.begin) * n;
      if (j >= begin && visible.at(i, j))
        std::copy_n(x.at(b.kv_head, j), n, row);
      else
        std::fill_n(row, n, T(0));
    }
    if (end > b.begin) kernels::gemm(false, false, 1, n, end - b.begin, w, keys, b.copy, n, y.at(b.head, i), y.ld, true);
  }
}

/// softmax(scale q k^T), and in b.dropped what dropout leaves of it
template <class T>
void weigh(const Inputs<T>& in, const Block<T>& b) {
  const Visible visible = in.visible(b.head);
  const int64_t keys = in.p.keys;
  const T scale = static_cast<T>(in.p.scale);
  kernels::gemm(false, true, b.stop - b.first, b.end - b.begin, in.p.features, in.q.at(b.head, b.first), in.q.ld,
                in.k.at(b.kv_head, b.begin), in.k.ld, b.weights + b.begin, keys, false);
  for (int64_t i = b.first; i < b.stop; ++i) {
    T* row = b.weights + (i - b.first) * keys;
    const int64_t begin = visible.begin(i), end = visible.end(i);
    std::fill(row + b.begin, row + begin, T(0));
    kernels::mul(row + begin, 1, &scale, 0, row + begin, end - begin);
    visible.fill_masked(i, row, -std::numeric_limits<T>::infinity());
    if (end > begin) kernels::softmax_rows(row + begin, row + begin, 1, end - begin);
    std::fill(row + end, row + b.end, T(0));
    if (in.keep) in.drop(b.head, i, b.begin, b.end, row, b.dropped + (i - b.first) * keys);
  }
}

/// The gradients that are wanted: rows of dq, dk and dv, or none.
template <class T>
struct Wanted {
  Rows<T> dq, dk, dv;
};

/// With p the weights and w = dropout(p): dv += w^T dy, dp = dropout(dy v^T), ds = scale p (dp - sum(p dp)), dq += ds k,
/// dk += ds^T q
template <class T>
void backward_block(const Inputs<T>& in, const Block<T>& b, const Rows<const T>& dy, const Wanted<T>& to) {
  const Visible visible = in.visible(b.head);
  const int64_t keys = in.p.keys, rows = b.stop - b.first, columns = b.end - b.begin;
  const T *from = dy.at(b.head, b.first), *w = in.keep ? b.dropped : b.weights;
  weigh(in, b);
  if (to.dv)
    kernels::gemm(true, false, columns, in.p.value_features, rows, w + b.begin, keys, from, dy.ld, to.dv.at(b.kv_head, b.begin),
                  to.dv.ld, true);
  if (!to.dq && !to.dk) return;
  T* const ds = b.ds;
  kernels::gemm(false, true, rows, columns, in.p.value_features, from, dy.ld, in.v.at(b.kv_head, b.begin), in.v.ld,
                ds + b.begin, keys, false);
  const T scale = static_cast<T>(in.p.scale);
  for (int64_t i = b.first; i < b.stop; ++i) {
    T* row = ds + (i - b.first) * keys;
    const int64_t begin = visible.begin(i), end = visible.end(i);
    std::fill(row + b.begin, row + begin, T(0));
    visible.fill_masked(i, row, T(0));
    if (in.keep) in.drop(b.head, i, begin, end, row, row);
    const T* const p = b.weights + (i - b.first) * keys;
    if (end > begin) kernels::softmax_grad_rows(p + begin, row + begin, row + begin, 1, end - begin);
    kernels::mul(row + begin, 1, &scale, 0, row + begin, end - begin);
    std::fill(row + end, row + b.end, T(0));
  }
  if (to.dq) add_weighted(in, b, ds, in.k, in.p.features, to.dq);
  if (to.dk)
    kernels::gemm(true, false, columns, in.p.features, rows, ds + b.begin, keys, in.q.at(b.head, b.first), in.q.ld,
                  to.dk.at(b.kv_head, b.begin), to.dk.ld, true);
}

/// False if [heads, keys, n] holds a NaN or an infinity: the sum of a head is not finite then.
template <class T>
bool is_finite(const Rows<const T>& x, int64_t heads, int64_t keys, int64_t n) {
  std::vector<T, memory::Allocator<T>> totals(static_cast<size_t>(heads));
  T* const total = totals.data();
  kernels::parallel_for(heads, 0.1 * static_cast<double>(keys * (n + 50)), [&, total](int64_t head, int64_t stop) {
    for (; head < stop; ++head)
      for (int64_t j = 0; j < keys; ++j) total[head] += kernels::sum(x.at(head, j), n);
  });
  return std::all_of(totals.begin(), totals.end(), [](T t) { return std::isfinite(t); });
}

/// Calls run(block) for the blocks of every head, in order; the heads that share a key and value head go to one thread, in
/// order. `weighted` [keys, n] is the operand of add_weighted; `buffers` blocks of weights are scratch memory.
template <class T, class F>
void for_each_block(const Inputs<T>& in, const Rows<const T>& weighted, int64_t n, int64_t buffers, F run) {
  const Plan& p = in.p;
  if (p.heads == 0) return;
  const int64_t kv_heads = p.heads / p.group, slots = std::min<int64_t>(kv_heads, kernels::num_threads());
  const bool finite = !in.hides() || is_finite(weighted, kv_heads, p.keys, n);
  const int64_t rows = std::min(kQueries, p.queries) * p.keys, size = buffers * rows + (finite ? 0 : p.keys * n);
  Tensor scratch = empty({slots, size}, dtype_of<T>());
  T* const memory = scratch.mutable_data<T>();
  std::atomic<int64_t> next_slot{0};
  const auto run_head = [&](int64_t head, T* buffer) {
    const Visible visible = in.visible(head);
    for (int64_t i = 0; i < p.queries; i += kQueries) {
      const int64_t last = std::min(i + kQueries, p.queries), end = visible.end(i, last);
      const int64_t begin = std::min(visible.begin(i), end) / kKeys * kKeys;
      T* const dropped = buffer + (in.keep ? rows : 0);
      if (end > 0)
        run(Block<T>{head, head / p.group, i, last, begin, end, finite, buffer, dropped, dropped + rows,
                     buffer + buffers * rows});
    }
  };
  const double cost = 0.1 * static_cast<double>(p.group * p.queries * p.keys * (p.features + p.value_features + 16));
  kernels::parallel_for(kv_heads, cost, [&](int64_t kv_head, int64_t stop) {
    T* const buffer = memory + next_slot++ * size;
    for (int64_t head = kv_head * p.group; head < stop * p.group; ++head) run_head(head, buffer);
  });
}

/// y = dropout(softmax(scale q k^T)) v
Tensor attend(const Plan& p, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, const Tensor& keep) {
  Shape shape = q.shape();
  shape[shape.rank() - 1] = p.value_features;
  Tensor y = token_major(shape, q.dtype());
  dispatch_floating(q.dtype(), kOp, [&]<class T>() {
    const Inputs<T> in(p, q, k, v, mask, keep);
    const Rows<T> to = writable<T>(y, ops::batch_dims(shape));
    for_each_block(in, in.v, p.value_features, in.keep ? 2 : 1, [&](const Block<T>& block) {
      weigh(in, block);
      add_weighted(in, block, in.keep ? block.dropped : block.weights, in.v, p.value_features, to);
    });
  });
  return y;
}

Grads attend_grads(const Plan& p, const Backward& b) {
  const Tensor &q = b.saved(0), &k = b.saved(1), &v = b.saved(2), dy = unit_rows(b.grad());
  Grads grads(3);
  for (size_t i = 0; i < 3; ++i)
    if (b.needs(i)) grads[i] = token_major(b.input_shape(i), dy.dtype());
  dispatch_floating(dy.dtype(), kOp, [&]<class T>() {
    const Shape batch = ops::batch_dims(q.shape()), key_batch = ops::batch_dims(k.shape());
    const Inputs<T> in(p, q, k, v, b.saved(3), b.saved(4));
    const Rows<const T> from = readable<T>(dy, batch);
    const Wanted<T> to{writable<T>(grads[0], batch), writable<T>(grads[1], key_batch), writable<T>(grads[2], key_batch)};
    for_each_block(in, in.k, p.features, in.keep ? 3 : 2, [&](const Block<T>& block) { backward_block(in, block, from, to); });
  });
  return grads;
}

void check_attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
  ops::check_floating(kOp, q);
  for (const Tensor* x : {&q, &k, &v}) {
    ops::check_same_dtype(kOp, q, *x);
    check<ShapeError>(x->dim() >= 2, kOp, ": needs [..., tokens, features]: got shape ", x->shape());
  }
  check<ShapeError>(q.size(-1) == k.size(-1), kOp, ": query and key features differ: ", q.shape(), " and ", k.shape());
  check<ShapeError>(k.size(-2) == v.size(-2), kOp, ": key and value tokens differ: ", k.shape(), " and ", v.shape());
  check<ConfigError>(o.is_causal || (o.window == 0 && o.query_offset == 0), kOp,
                     ": window and query_offset go with is_causal: got window=", o.window, ", query_offset=", o.query_offset);
  check<ConfigError>(o.window >= 0 && o.query_offset >= 0, kOp, ": window and query_offset cannot be negative: got ", o.window,
                     " and ", o.query_offset);
  check<ConfigError>(0 <= o.dropout_p && o.dropout_p <= 1, kOp, ": dropout_p must lie in [0, 1]: got ", o.dropout_p);
  if (!o.mask.defined()) return;
  check<ConfigError>(!o.is_causal, kOp, ": takes a mask or is_causal, not both");
  check<DTypeError>(o.mask.dtype() == DType::boolean, kOp, ": the mask must be bool (true = may attend): got ", o.mask.dtype());
}

/// x with the batch dims in front of its last two.
Tensor with_batch(const Tensor& x, Shape batch) {
  if (ops::batch_dims(x.shape()) == batch) return x;
  batch.push_back(x.size(-2));
  batch.push_back(x.size(-1));
  return expand(x, batch);
}

/// How many heads of the query share one of key and value: 1 unless options.enable_gqa.
int64_t group_size(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  if (!options.enable_gqa) return 1;
  const bool ranks = q.dim() >= 3 && k.dim() >= 3 && v.dim() >= 3;
  const int64_t heads = ranks ? q.size(-3) : 0, kv_heads = ranks ? k.size(-3) : 0;
  check<ShapeError>(ranks && kv_heads > 0 && v.size(-3) == kv_heads && heads % kv_heads == 0, kOp,
                    ": enable_gqa needs heads of the query [..., H, T, d] that are a multiple of those of key and value: got ",
                    q.shape(), ", ", k.shape(), " and ", v.shape());
  return heads / kv_heads;
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  check_attention(q, k, v, options);
  const int64_t group = group_size(q, k, v, options);
  const char* batch_op = "scaled_dot_product_attention: batch dims";
  // The heads of one group meet the batch dims of key and value as one.
  Shape q_batch = ops::batch_dims(q.shape());
  if (group > 1) q_batch[q_batch.rank() - 1] /= group;
  const Shape keys = broadcast_shapes(batch_op, ops::batch_dims(k.shape()), ops::batch_dims(v.shape()));
  const Shape key_batch = broadcast_shapes(batch_op, q_batch, keys);
  Shape batch = key_batch;
  if (group > 1) batch[batch.rank() - 1] *= group;
  const Tensor query = with_batch(q, batch), key = with_batch(k, key_batch), value = with_batch(v, key_batch);
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(std::max<int64_t>(q.size(-1), 1))));
  const Plan plan{batch.numel(), group, q.size(-2),        k.size(-2),        q.size(-1),
                  v.size(-1),    scale, options.dropout_p, options.is_causal, options.query_offset,
                  options.window};
  Shape shape = batch;
  shape.push_back(plan.queries);
  shape.push_back(plan.keys);
  const Tensor mask = options.mask.defined() ? ops::expand_values(kOp, options.mask, shape) : Tensor();
  Tensor keep;
  if (plan.dropout_p > 0 && shape.numel() > 0) {
    keep = empty(shape, DType::boolean);
    fill_dropout_mask(std::span(keep.mutable_data<bool>(), static_cast<size_t>(keep.numel())), plan.dropout_p,
                      options.generator ? *options.generator : default_generator());
  }
  const Tensor from_q = unit_rows(query), from_k = unit_rows(key), from_v = unit_rows(value);
  return record(kOp, attend(plan, from_q, from_k, from_v, mask, keep), {query, key, value},
                {from_q, from_k, from_v, mask, keep}, [plan](const Backward& b) { return attend_grads(plan, b); });
}

}  // namespace onestep
