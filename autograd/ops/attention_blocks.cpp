// Attention by blocks of queries, from the first to the last key that one of them sees. What is masked never reaches a result,
// whatever it holds: masked scores are overwritten, weights and gradients of a row that has become NaN are 0 at the keys that a
// mask hides, and where keys or values are not all finite a query meets only those that it sees. The [T, S] weights are never
// all there at once: the backward pass computes those of a block anew, with the same bits (Dao et al. 2022).
#include "autograd/ops/attention_blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "autograd/kernels/kernels.h"
#include "autograd/ops/matrices.h"
#include "autograd/random/random_fill.h"

namespace onestep::ops {
namespace {

constexpr const char* kOp = "scaled_dot_product_attention";
constexpr int64_t kQueries = 128;    // in a block; the backward pass cuts its sums over queries there
constexpr int64_t kFewQueries = 24;  // whose weights are computed together if keys and values are packed: fewer masked keys,
                                     // and weights that stay in the L2 cache
constexpr int64_t kKeys = 256;  // the product's k-block: a block of queries starts at a multiple of it, so that every sum over
                                // keys is cut at the same places whatever queries are computed together

/// Which keys a query sees: all; with `causal` those up to its own position, or the last `window` of them; or those where a
/// bool mask is true, or one that is added to the scores is not -inf.
template <class T>
struct Visible {
  int64_t keys;
  bool causal;
  int64_t offset, window;
  const bool* mask;
  const T* added;
  int64_t row_stride, key_stride;

  bool masked() const { return mask != nullptr || added != nullptr; }

  /// The first key that query i sees.
  int64_t begin(int64_t i) const { return causal && window > 0 ? std::clamp<int64_t>(i + offset + 1 - window, 0, end(i)) : 0; }
  /// Behind the last one.
  int64_t end(int64_t i) const {
    int64_t j = causal ? std::min(i + offset + 1, keys) : keys;
    while (masked() && j > 0 && !at(i, j - 1)) --j;
    return j;
  }
  /// Behind the last one that a query of [first, stop) sees.
  int64_t end(int64_t first, int64_t stop) const {
    int64_t last = stop > first ? end(stop - 1) : 0;  // the last one sees most, unless there is a mask
    for (int64_t i = first; masked() && i + 1 < stop; ++i) last = std::max(last, end(i));
    return last;
  }
  /// Whether the mask, if there is one, leaves key j to query i.
  bool at(int64_t i, int64_t j) const {
    const int64_t place = i * row_stride + j * key_stride;
    return (!mask || mask[place]) && (!added || added[place] != kHidden);
  }
  /// Whether query i sees key j.
  bool sees(int64_t i, int64_t j) const { return masked() ? at(i, j) : begin(i) <= j && j < end(i); }
  /// row[j] = value for the masked keys among those.
  void fill_masked(int64_t i, T* row, T value) const {
    const int64_t last = masked() ? end(i) : 0;
    const auto fill = [=, this](auto seen) {
      if (key_stride == 1)
        for (int64_t j = 0; j < last; ++j) row[j] = select_value(seen(j), row[j], value);
      else
        for (int64_t j = 0; j < last; ++j) row[j] = select_value(seen(j * key_stride), row[j], value);
    };
    if (mask != nullptr)
      fill([from = mask + i * row_stride](int64_t j) { return from[j]; });
    else if (added)
      fill([from = added + i * row_stride](int64_t j) { return from[j] != kHidden; });
  }
  /// row = scale row + mask for the first n keys, and -inf where they are masked: the scale may be negative.
  void mask_scores(int64_t i, T* row, T scale, int64_t n) const {
    kernels::mul(row, 1, &scale, 0, row, n);
    const T* const from = added + (added ? i * row_stride : 0);
    for (int64_t j = 0; added && j < n; ++j) row[j] += from[j * key_stride];
    fill_masked(i, row, kHidden);
  }
  static constexpr T kHidden = -std::numeric_limits<T>::infinity();
  std::array<kernels::Span, kQueries> spans(int64_t first, int64_t stop) const {
    std::array<kernels::Span, kQueries> s;
    for (int64_t i = first; i < stop; ++i) s[static_cast<size_t>(i - first)] = {begin(i), end(i)};
    return s;
  }
};

/// The rows of a batch of matrices, written where they lie. An undefined tensor gives none.
template <class T>
class Rows {
 public:
  Rows(const Tensor& x, T* data, const Shape& batch) : data_(data) {
    if (!data) return;
    ld = x.strides()[x.dim() - 2];
    starts_ = batch_starts(x, batch);
  }
  explicit operator bool() const { return data_ != nullptr; }
  T* at(int64_t head, int64_t i) const { return data_ + starts_[static_cast<size_t>(head)] + i * ld; }
  void clear(int64_t head, int64_t rows, int64_t n) const {
    for (int64_t i = 0; i < rows; ++i) std::fill_n(at(head, i), n, T(0));
  }

  int64_t ld = 0;

 private:
  T* data_;
  Offsets starts_;
};

template <class T>
Rows<const T> readable(const Tensor& x, const Shape& batch) {
  return {x, x.defined() ? x.data<T>() : nullptr, batch};
}
template <class T>
Rows<T> writable(Tensor& x, const Shape& batch) {
  return {x, x.defined() ? x.mutable_data<T>() : nullptr, batch};
}

/// What forward and backward read. `keep` is the dropout mask [heads, queries, keys], or null.
template <class T>
struct Inputs {
  Inputs(const AttentionPlan& plan, const AttentionOperands& x)
      : p(plan), mask(x.mask), keep(x.keep.defined() ? x.keep.data<bool>() : nullptr) {
    const Shape batch = batch_dims(x.q.shape()), key_batch = batch_dims(x.k.shape());
    q = readable<T>(x.q, batch);
    k = readable<T>(x.k, key_batch);
    v = readable<T>(x.v, key_batch);
    if (mask.defined()) mask_starts = batch_starts(mask, batch);
  }
  Visible<T> visible(int64_t head) const {
    if (!mask.defined()) return {p.keys, p.causal, p.offset, p.window, nullptr, nullptr, 0, 0};
    const int64_t first = mask_starts[static_cast<size_t>(head)];
    const bool* const attended = mask.is_floating() ? nullptr : mask.data<bool>() + first;
    const T* const added = mask.is_floating() ? mask.data<T>() + first : nullptr;
    return {p.keys, false, 0, 0, attended, added, mask.strides()[mask.dim() - 2], mask.strides()[mask.dim() - 1]};
  }
  /// False if every query sees all keys.
  bool hides() const { return mask.defined() || (p.causal && (p.queries > 1 || p.offset + 1 < p.keys || p.window > 0)); }
  /// to = from times the dropout factor, for the weights [begin, end) of a query.
  void drop(int64_t head, int64_t i, int64_t begin, int64_t end, const T* from, T* to) const {
    const bool* kept = keep + (head * p.queries + i) * p.keys;
    const T factor = dropout_scale<T>(p.dropout_p);
    for (int64_t j = begin; j < end; ++j) to[j] = from[j] * (static_cast<T>(kept[j]) * factor);
  }

  AttentionPlan p;
  /// Between rows of weights: not a multiple of 256 bytes, or a column of them would lie in few places of the caches.
  int64_t ld = p.keys + (p.keys % 64 == 0 ? 16 : 0);
  Rows<const T> q{{}, nullptr, {}}, k = q, v = q;
  Tensor mask;
  Offsets mask_starts;
  const bool* keep;
};

/// The keys and values of a head in the order in which products read them.
template <class T>
struct PackedHead {
  kernels::Packed<T> k_transposed, v_transposed, k, v;
};

/// A block of queries [first, stop) of one head, the keys [begin, seen) among which are those that they see, and scratch
/// memory. Arrays of weights have rows of `ld` elements, of which [begin, end) are used; masked ones are 0.
template <class T>
struct Block {
  int64_t head, kv_head, first, stop, begin, seen, end;
  bool finite;  ///< No NaN or infinity in the operands of write_weighted and add_weighted.
  T *weights, *dropped, *ds, *copy;
  const PackedHead<T>* packed;  ///< Of which begin is 0, or none.
};

/// 0 for what a mask hides in the rows [queries, keys] of a block after softmax or its gradient, where it is 0 already unless
/// the query sees a NaN or its scores overflow: none of its row is finite then. Without a mask its span ends there.
template <class T>
void clear_masked(const Inputs<T>& in, const Block<T>& b, const Visible<T>& visible, T* w) {
  if (!visible.masked() || b.end == 0) return;
  for (int64_t i = b.first; i < b.stop; ++i, w += in.ld)
    if (!std::isfinite(w[0])) visible.fill_masked(i, w, T(0));
}

/// to = from [n], or 0 where that is not to be seen.
template <class T>
void copy_or_clear(bool seen, const T* from, int64_t n, T* to) {
  if (seen)
    std::copy_n(from, n, to);
  else
    std::fill_n(to, n, T(0));
}

/// y = a x^T for the queries and keys of a block, n features of each.
template <class T>
void write_products(const Inputs<T>& in, const Block<T>& b, const Rows<const T>& a, const Rows<const T>& x,
                    const kernels::Packed<T>* packed, int64_t n, T* y) {
  const int64_t rows = b.stop - b.first;
  const T* const from = a.at(b.head, b.first);
  y += b.begin;
  if (packed) return kernels::gemm(rows, b.seen, n, from, a.ld, *packed, y, in.ld);
  kernels::gemm(false, true, rows, b.seen - b.begin, n, from, a.ld, x.at(b.kv_head, b.begin), x.ld, y, in.ld, false);
}

/// y = w x for the queries of a block. Where x is not finite each query meets a copy without the keys that it does not see,
/// because 0 * NaN is NaN; the bits are the same either way.
template <class T>
void write_weighted(const Inputs<T>& in, const Block<T>& b, const T* w, const Rows<const T>& x,
                    const kernels::Packed<T>* packed, int64_t n, const Rows<T>& y) {
  w += b.begin;
  if (packed) return kernels::gemm(b.stop - b.first, n, b.seen, w, in.ld, *packed, y.at(b.head, b.first), y.ld);
  if (b.finite)
    return kernels::gemm(false, false, b.stop - b.first, n, b.seen - b.begin, w, in.ld, x.at(b.kv_head, b.begin), x.ld,
                         y.at(b.head, b.first), y.ld, false);
  const Visible<T> visible = in.visible(b.head);
  for (int64_t i = b.first; i < b.stop; ++i, w += in.ld) {
    const int64_t end = visible.end(i);
    for (int64_t j = b.begin; j < end; ++j)
      copy_or_clear(visible.sees(i, j), x.at(b.kv_head, j), n, b.copy + (j - b.begin) * n);
    kernels::gemm(false, false, 1, n, std::max<int64_t>(end - b.begin, 0), w, in.ld, b.copy, n, y.at(b.head, i), y.ld, false);
  }
}

/// y += w^T x for the keys of a block, likewise. A key's sum begins where a query may see it: before are zeros.
template <class T>
void add_weighted(const Inputs<T>& in, const Block<T>& b, const T* w, const Rows<const T>& x, int64_t n, const Rows<T>& y) {
  const Visible<T> visible = in.visible(b.head);
  const int64_t rows = b.stop - b.first;
  if (b.finite) {
    for (int64_t i = 0, j = b.begin; i < rows; i += kFewQueries) {
      const int64_t end = visible.end(b.first + i, b.first + std::min(i + kFewQueries, rows));
      if (end > j)
        kernels::gemm(true, false, end - j, n, rows - i, w + i * in.ld + j, in.ld, x.at(b.head, b.first + i), x.ld,
                      y.at(b.kv_head, j), y.ld, true);
      j = std::max(j, end);
    }
    return;
  }
  for (int64_t j = b.begin; j < b.end; ++j) {
    for (int64_t i = b.first; i < b.stop; ++i)
      copy_or_clear(visible.sees(i, j), x.at(b.head, i), n, b.copy + (i - b.first) * n);
    kernels::gemm(true, false, 1, n, rows, w + j, in.ld, b.copy, n, y.at(b.kv_head, j), y.ld, true);
  }
}

/// Weights of 0 for queries whose scores are all -inf, of which softmax makes NaN: as in PyTorch without a mask, too.
template <class T>
void clear_unscored(const Inputs<T>& in, const Block<T>& b, const Visible<T>& visible, T scale) {
  T* w = b.weights;
  for (Block<T> row = b; row.first < b.stop; ++row.first, w += in.ld) {
    const kernels::Span span = {visible.begin(row.first), visible.end(row.first)};
    if (span.begin >= span.end || std::isfinite(w[span.begin])) continue;
    row.stop = row.first + 1;
    write_products(in, row, in.q, in.k, b.packed ? &b.packed->k_transposed : nullptr, in.p.features, w);
    if (visible.masked()) visible.mask_scores(row.first, w, static_cast<T>(in.p.scale), b.seen);
    const bool none = std::all_of(w + span.begin, w + span.end, [=](T s) { return s * scale == Visible<T>::kHidden; });
    const kernels::Span left = none ? kernels::Span{0, 0} : span;
    kernels::softmax_spans(w, in.ld, &left, 1, scale, {b.begin, b.end});
  }
}

/// softmax(scale q k^T + mask), and in b.dropped what dropout leaves of it
template <class T>
void weigh(const Inputs<T>& in, const Block<T>& b) {
  const Visible<T> visible = in.visible(b.head);
  T scale = static_cast<T>(in.p.scale);
  write_products(in, b, in.q, in.k, b.packed ? &b.packed->k_transposed : nullptr, in.p.features, b.weights);
  if (visible.masked()) {
    for (int64_t i = b.first; i < b.stop; ++i) visible.mask_scores(i, b.weights + (i - b.first) * in.ld, scale, b.seen);
    scale = 1;
  }
  kernels::softmax_spans(b.weights, in.ld, visible.spans(b.first, b.stop).data(), b.stop - b.first, scale, {b.begin, b.end});
  clear_unscored(in, b, visible, scale);
  clear_masked(in, b, visible, b.weights);
  for (int64_t i = b.first; in.keep && i < b.stop; ++i)
    in.drop(b.head, i, b.begin, b.end, b.weights + (i - b.first) * in.ld, b.dropped + (i - b.first) * in.ld);
}

/// The gradients that are wanted: rows of dq, dk, dv and of the mask's [queries, keys], or none.
template <class T>
struct Wanted {
  Rows<T> dq, dk, dv, dmask;
};

/// The mask's gradient of a block, and then ds = scale ds.
template <class T>
void take_mask_gradient(const Inputs<T>& in, const Block<T>& b, const Rows<T>& dmask, T* ds) {
  const T scale = static_cast<T>(in.p.scale);
  for (int64_t i = b.first; i < b.stop; ++i, ds += in.ld) {
    T* const to = dmask.at(b.head, i);
    std::copy_n(ds, b.end, to);
    std::fill_n(to + b.end, in.p.keys - b.end, T(0));
    kernels::mul(ds, 1, &scale, 0, ds, b.end);
  }
}

/// The queries [first, stop) of a block.
template <class T>
Block<T> rows_of(const Inputs<T>& in, Block<T> b, int64_t first, int64_t stop) {
  const int64_t skipped = (first - b.first) * in.ld;
  b.weights += skipped, b.dropped += skipped, b.ds += skipped;
  b.first = first, b.stop = stop, b.seen = in.visible(b.head).end(first, stop);
  return b;
}

/// What is summed over keys, with p the weights: dp = dropout(dy v^T), dmask = p (dp - sum(p dp)), ds = scale dmask, dq = ds k
template <class T>
void backward_queries(const Inputs<T>& in, const Block<T>& b, const Rows<const T>& dy, const Wanted<T>& to) {
  weigh(in, b);
  if (!to.dq && !to.dk && !to.dmask) return;
  const Visible<T> visible = in.visible(b.head);
  const int64_t rows = b.stop - b.first;
  T* const ds = b.ds;
  write_products(in, b, dy, in.v, b.packed ? &b.packed->v_transposed : nullptr, in.p.value_features, ds);
  for (int64_t i = b.first; i < b.stop; ++i) {
    T* const row = ds + (i - b.first) * in.ld;
    visible.fill_masked(i, row, T(0));
    if (in.keep) in.drop(b.head, i, visible.begin(i), visible.end(i), row, row);
  }
  const T scale = to.dmask ? T(1) : static_cast<T>(in.p.scale);
  kernels::softmax_grad_spans(b.weights, ds, in.ld, visible.spans(b.first, b.stop).data(), rows, scale, {b.begin, b.end});
  clear_masked(in, b, visible, ds);
  if (to.dmask) take_mask_gradient(in, b, to.dmask, ds);
  if (to.dq) write_weighted<T>(in, b, ds, in.k, b.packed ? &b.packed->k : nullptr, in.p.features, to.dq);
}

/// And what is summed over queries, with w = dropout(p): dv += w^T dy, dk += ds^T q
template <class T>
void backward_block(const Inputs<T>& in, const Block<T>& b, const Rows<const T>& dy, const Wanted<T>& to) {
  if (b.head % in.p.group == 0 && b.first == 0) {  // the first block of those that add to this head's
    if (to.dk) to.dk.clear(b.kv_head, in.p.keys, in.p.features);
    if (to.dv) to.dv.clear(b.kv_head, in.p.keys, in.p.value_features);
  }
  if (!b.packed) backward_queries(in, b, dy, to);
  for (int64_t i = b.first; b.packed && i < b.stop; i += kFewQueries)
    backward_queries(in, rows_of(in, b, i, std::min(i + kFewQueries, b.stop)), dy, to);
  if (to.dv) add_weighted(in, b, in.keep ? b.dropped : b.weights, dy, in.p.value_features, to.dv);
  if (to.dk) add_weighted(in, b, b.ds, in.q, in.p.features, to.dk);
}

/// False if [heads, rows, n] holds a NaN or an infinity: the sum of a head's column is not finite then.
template <class T>
bool is_finite(const Rows<const T>& x, int64_t heads, int64_t rows, int64_t n) {
  std::vector<T, memory::Allocator<T>> totals(static_cast<size_t>(heads * n));
  T* const total = totals.data();
  kernels::parallel_for(heads, 0.1 * static_cast<double>(rows * (n + 50)), [&, total](int64_t head, int64_t stop) {
    for (; rows > 0 && head < stop; ++head) kernels::sum_rows(x.at(head, 0), total + head * n, rows, n, x.ld);
  });
  return std::all_of(totals.begin(), totals.end(), [](T t) { return std::isfinite(t); });
}

/// Of keys and values what the pass multiplies by: k^T and, forward, v; or v^T and k.
template <class T>
PackedHead<T> pack_head(const Inputs<T>& in, int64_t kv_head, bool backward, T* to) {
  const auto take = [&](const Rows<const T>& x, bool transposed, int64_t n, int64_t k) {
    kernels::pack(transposed, n, k, x.at(kv_head, 0), x.ld, to);
    const kernels::Packed<T> packed = {to, n, k};
    to += kernels::packed_size<T>(n, k);
    return packed;
  };
  const AttentionPlan& p = in.p;
  PackedHead<T> head = {.k_transposed = take(in.k, true, p.keys, p.features), .v_transposed = {}, .k = {}, .v = {}};
  if (!backward) {
    head.v = take(in.v, false, p.value_features, p.keys);
  } else {
    head.v_transposed = take(in.v, true, p.keys, p.value_features);
    head.k = take(in.k, false, p.features, p.keys);
  }
  return head;
}
/// Elements that it writes.
template <class T>
int64_t packed_size(const Inputs<T>& in, bool backward) {
  const AttentionPlan& p = in.p;
  const auto size = kernels::packed_size<T>;
  return size(p.keys, p.features) +
         (backward ? size(p.keys, p.value_features) + size(p.features, p.keys) : size(p.value_features, p.keys));
}

int64_t whole_lines(int64_t elements) { return (elements + 15) / 16 * 16; }

/// Calls run(block) for the blocks of every head, in order, those that see no key included; the heads that share a key and
/// value head go to one thread, in order. `finite` as in Block; `buffers` blocks of weights are scratch memory.
template <class T, class F>
void for_each_block(const Inputs<T>& in, bool finite, int64_t buffers, bool backward, F run) {
  const AttentionPlan& p = in.p;
  if (p.heads == 0) return;
  const int64_t kv_heads = p.heads / p.group;
  const double cost = 0.1 * static_cast<double>(p.group * p.queries * p.keys * (p.features + p.value_features + 16));
  const int threads = kernels::threads_for(kv_heads, cost * static_cast<double>(kv_heads));
  const bool pack = finite && p.queries > kFewQueries && p.window == 0 && kernels::packed_size<T>(p.keys, p.features) > 0;
  const int64_t block = std::min(pack && !backward ? kFewQueries : kQueries, p.queries), rows = whole_lines(block * in.ld);
  const int64_t copied = finite ? 0 : whole_lines(std::max(block, p.keys) * std::max(p.features, p.value_features));
  const int64_t size = buffers * rows + copied + (pack ? packed_size(in, backward) : 0);
  Tensor scratch = empty({threads, size}, dtype_of<T>());
  T* const memory = scratch.mutable_data<T>();
  const auto run_head = [&](int64_t head, T* buffer, const PackedHead<T>* packed) {
    T *const dropped = buffer + (in.keep ? rows : 0), *const copy = buffer + buffers * rows;
    const Visible<T> visible = in.visible(head);
    for (int64_t i = 0; i < p.queries; i += block) {
      const int64_t last = std::min(i + block, p.queries), end = visible.end(i, last);
      const int64_t begin = std::min(visible.begin(i), end) / kKeys * kKeys;
      run(Block<T>{head, head / p.group, i, last, begin, end, end, finite, buffer, dropped, dropped + rows, copy, packed});
    }
  };
  // Neighbouring heads, whose rows share cache lines, stay on one thread: four pieces a thread, taken as threads come free.
  const int64_t pieces = std::min(int64_t{4} * threads, kv_heads);
  kernels::parallel_pieces(threads, pieces, [&](int64_t piece, int thread) {
    T* const buffer = memory + thread * size;
    for (int64_t kv_head = kv_heads * piece / pieces; kv_head < kv_heads * (piece + 1) / pieces; ++kv_head) {
      const PackedHead<T> packed = pack ? pack_head(in, kv_head, backward, buffer + buffers * rows + copied) : PackedHead<T>{};
      for (int64_t i = 0; i < p.group; ++i) run_head(kv_head * p.group + i, buffer, pack ? &packed : nullptr);
    }
  });
}

}  // namespace

void attend(const AttentionPlan& p, const AttentionOperands& x, Tensor& y) {
  dispatch_floating(y.dtype(), kOp, [&]<class T>() {
    const Inputs<T> in(p, x);
    const Rows<T> to = writable<T>(y, batch_dims(y.shape()));
    const bool finite = !in.hides() || is_finite(in.v, p.heads / p.group, p.keys, p.value_features);
    for_each_block(in, finite, in.keep ? 2 : 1, /*backward=*/false, [&](const Block<T>& block) {
      weigh(in, block);
      write_weighted(in, block, in.keep ? block.dropped : block.weights, in.v, block.packed ? &block.packed->v : nullptr,
                     p.value_features, to);
    });
  });
}

void attend_backward(const AttentionPlan& p, const AttentionOperands& x, const Tensor& dy, AttentionGrads& grads) {
  dispatch_floating(dy.dtype(), kOp, [&]<class T>() {
    const Shape batch = batch_dims(x.q.shape()), key_batch = batch_dims(x.k.shape());
    const Inputs<T> in(p, x);
    const Rows<const T> from = readable<T>(dy, batch);
    const Wanted<T> to{writable<T>(grads.q, batch), writable<T>(grads.k, key_batch), writable<T>(grads.v, key_batch),
                       writable<T>(grads.mask, batch)};
    const bool finite = !in.hides() || (is_finite(in.k, p.heads / p.group, p.keys, p.features) &&
                                        is_finite(in.q, p.heads, p.queries, p.features) &&
                                        is_finite(from, p.heads, p.queries, p.value_features));
    for_each_block(in, finite, in.keep ? 3 : 2, /*backward=*/true,
                   [&](const Block<T>& block) { backward_block(in, block, from, to); });
    if (p.queries > 0) return;
    for (int64_t head = 0; head < p.heads / p.group; ++head) {
      if (to.dk) to.dk.clear(head, p.keys, p.features);
      if (to.dv) to.dv.clear(head, p.keys, p.value_features);
    }
  });
}

}  // namespace onestep::ops
