// Scaled dot-product attention as one op (Vaswani et al. 2017): by blocks of queries, up to the last key that one of them
// sees. What is masked never reaches a result, whatever it holds: masked scores are overwritten, and where keys or values are
// not all finite a query meets only those that it sees. The weights are kept for the backward pass.
#include <algorithm>
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

/// Which keys a query sees: all, the first i + 1 with `causal`, or those where the mask is true.
struct Visible {
  int64_t keys;
  bool causal;
  const bool* mask;
  int64_t row_stride, key_stride;

  bool at(int64_t i, int64_t j) const { return mask ? mask[i * row_stride + j * key_stride] : !causal || j <= i; }
  /// Keys up to the last one that query i sees.
  int64_t end(int64_t i) const {
    int64_t j = causal ? std::min(i + 1, keys) : keys;
    while (mask && j > 0 && !at(i, j - 1)) --j;
    return j;
  }
  /// Keys up to the last one that a query of [begin, stop) sees.
  int64_t end(int64_t begin, int64_t stop) const {
    int64_t last = 0;
    for (int64_t i = begin; i < stop; ++i) last = std::max(last, end(i));
    return last;
  }
  /// row[j] = value for the masked keys before the end of query i.
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

/// A block of queries [begin, stop) of one head, the keys [0, end) that they see, and scratch memory. Arrays of weights have
/// rows of `keys` elements, of which the first `end` are used; masked ones are 0.
template <class T>
struct Block {
  int64_t head, begin, stop, end;
  bool finite;  ///< No NaN or infinity in the operand of add_weighted.
  T *dropped, *ds, *copy;
};

/// y += w x for the queries of a block. Where x is not finite each query meets a copy without the keys that it does not see,
/// because 0 * NaN is NaN; the bits are the same either way.
template <class T>
void add_weighted(const Inputs<T>& in, const Block<T>& b, const T* w, const Rows<const T>& x, int64_t n, const Rows<T>& y) {
  const int64_t keys = in.p.keys;
  if (b.finite)
    return kernels::gemm(false, false, b.stop - b.begin, n, b.end, w, keys, x.at(b.head, 0), x.ld, y.at(b.head, b.begin), y.ld,
                         true);
  const Visible visible = in.visible(b.head);
  for (int64_t i = b.begin; i < b.stop; ++i, w += keys) {
    const int64_t end = visible.end(i);
    for (int64_t j = 0; j < end; ++j) {
      if (visible.at(i, j))
        std::copy_n(x.at(b.head, j), n, b.copy + j * n);
      else
        std::fill_n(b.copy + j * n, n, T(0));
    }
    kernels::gemm(false, false, 1, n, end, w, keys, b.copy, n, y.at(b.head, i), y.ld, true);
  }
}

/// p = softmax(scale q k^T), y += dropout(p) v
template <class T>
void forward_block(const Inputs<T>& in, const Block<T>& b, T* p, const Rows<T>& y) {
  const Visible visible = in.visible(b.head);
  const int64_t keys = in.p.keys;
  const T scale = static_cast<T>(in.p.scale);
  kernels::gemm(false, true, b.stop - b.begin, b.end, in.p.features, in.q.at(b.head, b.begin), in.q.ld, in.k.at(b.head, 0),
                in.k.ld, p, keys, false);
  for (int64_t i = b.begin; i < b.stop; ++i) {
    T* row = p + (i - b.begin) * keys;
    const int64_t end = visible.end(i);
    kernels::mul(row, 1, &scale, 0, row, end);
    visible.fill_masked(i, row, -std::numeric_limits<T>::infinity());
    if (end > 0) kernels::softmax_rows(row, row, 1, end);
    std::fill(row + end, row + b.end, T(0));
    if (in.keep) in.drop(b.head, i, b.end, row, b.dropped + (i - b.begin) * keys);
  }
  add_weighted(in, b, in.keep ? b.dropped : p, in.v, in.p.value_features, y);
}

/// The gradients that are wanted: rows of dq, dk and dv, or none.
template <class T>
struct Wanted {
  Rows<T> dq, dk, dv;
};

/// With w = dropout(p): dv += w^T dy, dp = dropout(dy v^T), ds = scale p (dp - sum(p dp)), dq += ds k, dk += ds^T q
template <class T>
void backward_block(const Inputs<T>& in, const Block<T>& b, const T* p, const Rows<const T>& dy, const Wanted<T>& to) {
  const Visible visible = in.visible(b.head);
  const int64_t keys = in.p.keys, rows = b.stop - b.begin;
  const T* from = dy.at(b.head, b.begin);
  if (to.dv) {
    for (int64_t r = 0; in.keep && r < rows; ++r) in.drop(b.head, b.begin + r, b.end, p + r * keys, b.dropped + r * keys);
    kernels::gemm(true, false, b.end, in.p.value_features, rows, in.keep ? b.dropped : p, keys, from, dy.ld,
                  to.dv.at(b.head, 0), to.dv.ld, true);
  }
  if (!to.dq && !to.dk) return;
  T* const ds = b.ds;
  kernels::gemm(false, true, rows, b.end, in.p.value_features, from, dy.ld, in.v.at(b.head, 0), in.v.ld, ds, keys, false);
  const T scale = static_cast<T>(in.p.scale);
  for (int64_t i = b.begin; i < b.stop; ++i) {
    T* row = ds + (i - b.begin) * keys;
    const int64_t end = visible.end(i);
    visible.fill_masked(i, row, T(0));
    if (in.keep) in.drop(b.head, i, end, row, row);
    if (end > 0) kernels::softmax_grad_rows(p + (i - b.begin) * keys, row, row, 1, end);
    kernels::mul(row, 1, &scale, 0, row, end);
    std::fill(row + end, row + b.end, T(0));
  }
  if (to.dq) add_weighted(in, b, ds, in.k, in.p.features, to.dq);
  if (to.dk)
    kernels::gemm(true, false, b.end, in.p.features, rows, ds, keys, in.q.at(b.head, b.begin), in.q.ld, to.dk.at(b.head, 0),
                  to.dk.ld, true);
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

/// Calls run(block, weights of the block) for the blocks of every head, in order within a head; heads go to threads. `weighted`
/// [keys, n] is the operand of add_weighted; `buffers` blocks of weights are scratch memory, dropped weights first.
template <class T, class P, class F>
void for_each_block(const Inputs<T>& in, P* weights, const Rows<const T>& weighted, int64_t n, int64_t buffers, F run) {
  const Plan& p = in.p;
  const bool finite = is_finite(weighted, p.heads, p.keys, n);
  const int64_t rows = std::min(kQueries, p.queries) * p.keys, size = buffers * rows + (finite ? 0 : p.keys * n);
  Tensor scratch = empty({p.heads, size}, dtype_of<T>());
  T* const first = scratch.mutable_data<T>();
  const double cost = 0.1 * static_cast<double>(p.queries * p.keys * (p.features + p.value_features + 16));
  kernels::parallel_for(p.heads, cost, [&](int64_t head, int64_t stop) {
    for (; head < stop; ++head) {
      T* const dropped = first + head * size;
      const Visible visible = in.visible(head);
      for (int64_t i = 0; i < p.queries; i += kQueries) {
        const int64_t last = std::min(i + kQueries, p.queries);
        const Block<T> block{
            head, i, last, visible.end(i, last), finite, dropped, dropped + (in.keep ? rows : 0), dropped + buffers * rows};
        if (block.end > 0) run(block, weights + (head * p.queries + i) * p.keys);
      }
    }
  });
}

/// Writes the weights and returns the values that they pick.
Tensor attend(const Plan& p, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, const Tensor& keep,
              Tensor& weights) {
  Shape shape = q.shape();
  shape[shape.rank() - 1] = p.value_features;
  Tensor y = token_major(shape, q.dtype());
  dispatch_floating(q.dtype(), kOp, [&]<class T>() {
    const Inputs<T> in(p, q, k, v, mask, keep);
    const Rows<T> to = writable<T>(y, ops::batch_dims(shape));
    for_each_block(in, weights.mutable_data<T>(), in.v, p.value_features, in.keep ? 1 : 0,
                   [&](const Block<T>& block, T* rows) { forward_block(in, block, rows, to); });
  });
  return y;
}

Grads attend_grads(const Plan& p, const Backward& b) {
  const Tensor &q = b.saved(0), &k = b.saved(1), &v = b.saved(2), dy = unit_rows(b.grad());
  Grads grads(3);
  for (size_t i = 0; i < 3; ++i)
    if (b.needs(i)) grads[i] = token_major(b.input_shape(i), dy.dtype());
  dispatch_floating(dy.dtype(), kOp, [&]<class T>() {
    const Shape batch = ops::batch_dims(q.shape());
    const Inputs<T> in(p, q, k, v, b.saved(4), b.saved(5));
    const Rows<const T> from = readable<T>(dy, batch);
    const Wanted<T> to{writable<T>(grads[0], batch), writable<T>(grads[1], batch), writable<T>(grads[2], batch)};
    for_each_block(in, b.saved(3).data<T>(), in.k, p.features, in.keep ? 2 : 1,
                   [&](const Block<T>& block, const T* rows) { backward_block(in, block, rows, from, to); });
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
