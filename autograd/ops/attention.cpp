// Scaled dot-product attention as one op (Vaswani et al. 2017). It works through tiles of the [T, S] weights that hold no
// masked place: a masked key or value is never read, whatever it holds. The weights are kept for the backward pass.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "autograd/kernels/kernels.h"
#include "autograd/ops/matrices.h"
#include "autograd/random_fill.h"

namespace onestep {
namespace {

constexpr const char* kOp = "scaled_dot_product_attention";
constexpr int64_t kQueries = 32;  // in a block; also the rows of a tile

/// Which keys a query sees: all, the first i + 1 with `causal`, or those where the mask is true.
struct Visible {
  int64_t keys;
  bool causal;
  const bool* mask;
  int64_t row_stride, key_stride;

  bool at(int64_t i, int64_t j) const { return mask[i * row_stride + j * key_stride]; }
  /// Keys up to the last visible one.
  int64_t end(int64_t i) const {
    int64_t j = causal ? std::min(i + 1, keys) : keys;
    while (mask && j > 0 && !at(i, j - 1)) --j;
    return j;
  }
  /// Visible keys before the first masked one.
  int64_t leading(int64_t i) const {
    if (!mask) return end(i);
    int64_t j = 0;
    while (j < keys && at(i, j)) ++j;
    return j;
  }
  /// Calls tile(i, rows, j, cols) so that the visible places of the queries [begin, stop) are covered once: one tile of the
  /// leading keys that all of them see, then the runs that are left in each row.
  template <class F>
  void for_each_tile(int64_t begin, int64_t stop, F tile) const {
    int64_t shared = keys;
    for (int64_t i = begin; i < stop; ++i) shared = std::min(shared, leading(i));
    if (shared > 0) tile(begin, stop - begin, int64_t{0}, shared);
    for (int64_t i = begin; i < stop; ++i) {
      const int64_t last = end(i);
      for (int64_t j = shared, from; j < last; ++j) {
        if (mask && !at(i, j)) continue;
        for (from = j; j < last && (!mask || at(i, j));) ++j;
        tile(i, int64_t{1}, from, j - from);
      }
    }
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

/// Sizes and options of one call.
struct Plan {
  int64_t heads, queries, keys, features, value_features;
  double scale, dropout_p;
  bool causal;
};

/// What forward and backward read. `keep` is the dropout mask [heads, queries, keys], or null.
template <class T>
struct Inputs {
  Inputs(const Plan& plan, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& visible_keys,
         const Tensor& kept)
      : p(plan), mask(visible_keys), keep(kept.defined() ? kept.data<bool>() : nullptr) {
    const Shape batch = ops::batch_dims(query.shape());
    q = readable<T>(query, batch);
    k = readable<T>(key, batch);
    v = readable<T>(value, batch);
    if (mask.defined()) mask_starts = ops::batch_starts(mask, batch);
  }
  Visible visible(int64_t head) const {
    if (!mask.defined()) return {p.keys, p.causal, nullptr, 0, 0};
    const bool* first = mask.data<bool>() + mask_starts[static_cast<size_t>(head)];
    return {p.keys, p.causal, first, mask.strides()[mask.dim() - 2], mask.strides()[mask.dim() - 1]};
  }
  /// to = from times the dropout factor, for the first `n` weights of a query.
  void drop(int64_t head, int64_t i, int64_t n, const T* from, T* to) const {
    const bool* kept = keep + (head * p.queries + i) * p.keys;
    const T factor = dropout_scale<T>(p.dropout_p);
    for (int64_t j = 0; j < n; ++j) to[j] = from[j] * (kept[j] ? factor : T(0));
  }

  Plan p;
  Rows<const T> q{{}, nullptr, {}}, k = q, v = q;
  Tensor mask;
  ops::Offsets mask_starts;
  const bool* keep;
};

/// Weights p = softmax(scale q k^T) of the queries [begin, stop) of one head, and y += dropout(p) v. Rows of `p` and `dropped`
/// count from `begin`.
template <class T>
void forward_block(const Inputs<T>& in, int64_t head, int64_t begin, int64_t stop, T* p, T* dropped, const Rows<T>& y) {
  const Visible visible = in.visible(head);
  const int64_t keys = in.p.keys;
  const T scale = static_cast<T>(in.p.scale);
  for (int64_t i = begin; i < stop; ++i)
    std::fill_n(p + (i - begin) * keys, visible.end(i), -std::numeric_limits<T>::infinity());
  visible.for_each_tile(begin, stop, [&](int64_t i, int64_t rows, int64_t j, int64_t cols) {
    T* tile = p + (i - begin) * keys + j;
    kernels::gemm(false, true, rows, cols, in.p.features, in.q.at(head, i), in.q.ld, in.k.at(head, j), in.k.ld, tile, keys,
                  false);
    for (int64_t r = 0; r < rows; ++r) kernels::mul(tile + r * keys, 1, &scale, 0, tile + r * keys, cols);
  });
  for (int64_t i = begin; i < stop; ++i) {
    T* row = p + (i - begin) * keys;
    const int64_t end = visible.end(i);
    if (end > 0) kernels::softmax_rows(row, row, 1, end);
    if (in.keep) in.drop(head, i, end, row, dropped + (i - begin) * keys);
  }
  const T* weights = in.keep ? dropped : p;
  visible.for_each_tile(begin, stop, [&](int64_t i, int64_t rows, int64_t j, int64_t cols) {
    kernels::gemm(false, false, rows, in.p.value_features, cols, weights + (i - begin) * keys + j, keys, in.v.at(head, j),
                  in.v.ld, y.at(head, i), y.ld, true);
  });
}

/// The gradients that are wanted: rows of dq, dk and dv, or none.
template <class T>
struct Wanted {
  Rows<T> dq, dk, dv;
};

/// With w = dropout(p): dv += w^T dy, dp = dropout(dy v^T), ds = scale p (dp - sum(p dp)), dq += ds k, dk += ds^T q, for the
/// queries [begin, stop) of one head. `dp` and `dropped` are scratch rows that count from `begin`, as p does.
template <class T>
void backward_block(const Inputs<T>& in, int64_t head, int64_t begin, int64_t stop, const T* p, const Rows<const T>& dy, T* dp,
                    T* dropped, const Wanted<T>& to) {
  const Visible visible = in.visible(head);
  const int64_t keys = in.p.keys;
  const T scale = static_cast<T>(in.p.scale);
  const auto place = [=](int64_t i, int64_t j) { return (i - begin) * keys + j; };
  for (int64_t i = begin; i < stop; ++i) {
    std::fill_n(dp + place(i, 0), visible.end(i), T(0));
    if (in.keep) in.drop(head, i, visible.end(i), p + place(i, 0), dropped + place(i, 0));
  }
  const T* weights = in.keep ? dropped : p;
  visible.for_each_tile(begin, stop, [&](int64_t i, int64_t rows, int64_t j, int64_t cols) {
    if (to.dv)
      kernels::gemm(true, false, cols, in.p.value_features, rows, weights + place(i, j), keys, dy.at(head, i), dy.ld,
                    to.dv.at(head, j), to.dv.ld, true);
    if (to.dq || to.dk)
      kernels::gemm(false, true, rows, cols, in.p.value_features, dy.at(head, i), dy.ld, in.v.at(head, j), in.v.ld,
                    dp + place(i, j), keys, false);
  });
  if (!to.dq && !to.dk) return;
  for (int64_t i = begin; i < stop; ++i) {
    T* row = dp + place(i, 0);
    const int64_t end = visible.end(i);
    if (in.keep) in.drop(head, i, end, row, row);
    if (end > 0) kernels::softmax_grad_rows(p + place(i, 0), row, row, 1, end);
    kernels::mul(row, 1, &scale, 0, row, end);
  }
  visible.for_each_tile(begin, stop, [&](int64_t i, int64_t rows, int64_t j, int64_t cols) {
    if (to.dq)
      kernels::gemm(false, false, rows, in.p.features, cols, dp + place(i, j), keys, in.k.at(head, j), in.k.ld,
                    to.dq.at(head, i), to.dq.ld, true);
    if (to.dk)
      kernels::gemm(true, false, cols, in.p.features, rows, dp + place(i, j), keys, in.q.at(head, i), in.q.ld,
                    to.dk.at(head, j), to.dk.ld, true);
  });
}

/// Calls block(head, begin, stop, scratch) for the blocks of queries of every head, in order within a head: heads go to
/// threads. `scratch` has room for `buffers` blocks of weights.
template <class T, class F>
void for_each_block(const Plan& p, int64_t buffers, F block) {
  const int64_t size = buffers * std::min(kQueries, p.queries) * p.keys;
  Tensor scratch = empty({p.heads, size}, dtype_of<T>());
  T* memory = scratch.mutable_data<T>();
  const double cost = 0.2 * static_cast<double>(p.queries * p.keys * (p.features + p.value_features + 8));
  kernels::parallel_for(p.heads, cost, [&](int64_t head, int64_t end) {
    for (; head < end; ++head)
      for (int64_t i = 0; i < p.queries; i += kQueries) block(head, i, std::min(i + kQueries, p.queries), memory + head * size);
  });
}

Tensor attend(const Plan& p, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, const Tensor& keep,
              Tensor& weights) {
  Shape shape = q.shape();
  shape[shape.rank() - 1] = p.value_features;
  Tensor y = token_major(shape, q.dtype());
  dispatch_floating(q.dtype(), kOp, [&]<class T>() {
    const Inputs<T> in(p, q, k, v, mask, keep);
    const Rows<T> to = writable<T>(y, ops::batch_dims(shape));
    T* first = weights.mutable_data<T>();
    for_each_block<T>(p, keep.defined() ? 1 : 0, [&](int64_t head, int64_t begin, int64_t stop, T* scratch) {
      forward_block(in, head, begin, stop, first + (head * p.queries + begin) * p.keys, scratch, to);
    });
  });
  return y;
}

Grads attend_grads(const Plan& p, const Backward& b) {
  const Tensor &q = b.saved(0), &k = b.saved(1), &v = b.saved(2), &weights = b.saved(3), dy = unit_rows(b.grad());
  Grads grads(3);
  for (size_t i = 0; i < 3; ++i)
    if (b.needs(i)) grads[i] = token_major(b.input_shape(i), dy.dtype());
  dispatch_floating(dy.dtype(), kOp, [&]<class T>() {
    const Shape batch = ops::batch_dims(q.shape());
    const Inputs<T> in(p, q, k, v, b.saved(4), b.saved(5));
    const Rows<const T> from = readable<T>(dy, batch);
    const Wanted<T> to{writable<T>(grads[0], batch), writable<T>(grads[1], batch), writable<T>(grads[2], batch)};
    for_each_block<T>(p, 2, [&](int64_t head, int64_t begin, int64_t stop, T* scratch) {
      const T* rows = weights.data<T>() + (head * p.queries + begin) * p.keys;
      backward_block(in, head, begin, stop, rows, from, scratch, scratch + std::min(kQueries, p.queries) * p.keys, to);
    });
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

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  check_attention(q, k, v, options);
  const char* batch_op = "scaled_dot_product_attention: batch dims";
  const Shape keys = broadcast_shapes(batch_op, ops::batch_dims(k.shape()), ops::batch_dims(v.shape()));
  const Shape batch = broadcast_shapes(batch_op, ops::batch_dims(q.shape()), keys);
  const Tensor query = with_batch(q, batch), key = with_batch(k, batch), value = with_batch(v, batch);
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(std::max<int64_t>(q.size(-1), 1))));
  const Plan plan{batch.numel(), q.size(-2), k.size(-2), q.size(-1), v.size(-1), scale, options.dropout_p, options.is_causal};
  Shape shape = batch;
  shape.push_back(plan.queries);
  shape.push_back(plan.keys);
  const Tensor mask = options.mask.defined() ? ops::expand_values(kOp, options.mask, shape) : Tensor();
  Tensor weights = empty(shape, q.dtype()), keep;
  if (plan.dropout_p > 0 && weights.numel() > 0) {
    keep = empty(shape, DType::boolean);
    fill_dropout_mask(std::span(keep.mutable_data<bool>(), static_cast<size_t>(keep.numel())), plan.dropout_p,
                      options.generator ? *options.generator : default_generator());
  }
  const Tensor from_q = unit_rows(query), from_k = unit_rows(key), from_v = unit_rows(value);
  return record(kOp, attend(plan, from_q, from_k, from_v, mask, keep, weights), {query, key, value},
                {from_q, from_k, from_v, weights, mask, keep}, [plan](const Backward& b) { return attend_grads(plan, b); });
}

}  // namespace onestep
