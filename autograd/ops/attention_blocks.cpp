// Attention by blocks of queries, from the first to the last key that one of them attends to. What is masked never reaches a
// result, whatever it holds: masked scores are overwritten, weights and gradients of a row that has become NaN are 0 at masked
// keys, and where keys or values are not all finite a query is multiplied only with those that it attends to. The [T, S]
// weights never exist all at once: the backward pass recomputes those of a block, with the same bits (Dao et al. 2022).
#include "autograd/ops/attention_blocks.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "autograd/kernels/isa.h"
#include "autograd/kernels/kernels.h"
#include "autograd/ops/attention_operands.h"
#include "autograd/ops_index.h"
#include "autograd/ops_shape.h"

namespace onestep::ops {

using namespace blocks;
using kernels::Number, kernels::Source;

namespace {

constexpr const char* kOp = "scaled_dot_product_attention";
constexpr int64_t kKeys = 256;  // the product's k-block: a block of queries starts at a multiple of it, so that every sum over
                                // keys is cut at the same places whatever queries are computed together

// Templates take E, as which numbers are stored and multiplied (float, double, BFloat16). All else is computed in T = Number<E>.

/// Queries whose weights are computed together if keys and values are packed: fewer masked keys, and weights that stay in the
/// L2 cache. Tiles of bfloat16 sum 32 numbers at a time.
template <class E>
int64_t few_queries() {
  return std::is_same_v<E, BFloat16> && kernels::bf16_in_tiles() ? 32 : 24;
}

/// An operand of a product: stored as E, or computed.
template <class E, class X>
Source<E> source(const X* x) {
  if constexpr (std::is_same_v<E, BFloat16>)
    return {x, std::is_same_v<X, BFloat16>};
  else
    return x;
}

/// The keys and values of a head in the order in which products read them.
template <class E>
struct PackedHead {
  kernels::Packed<E> k_transposed, v_transposed, k, v;
};

/// The scratch memory of one thread. Weights and what is made of them have a row of `ld` elements a query of a block.
template <class T>
struct Workspace {
  T* weights;
  T* dropped;  ///< What dropout leaves of the weights; `weights` where there is none.
  T* ds;       ///< The gradient of the scores.
  T* copy;     ///< Attended rows of an operand that is not finite.
  T* packed;   ///< What a PackedHead consists of.
  T* rows;     ///< Where computed_rows of the queries of a block are,
  T *dk, *dv;  ///< and of all keys.
};

/// A block of queries [first, stop) of one head and the keys [key_begin, key_end) among which are those that they attend to. Of
/// the rows of weights [key_begin, end) are used; masked ones are 0.
template <class E>
struct Block {
  int64_t head, kv_head;
  int64_t first, stop;
  int64_t key_begin, key_end, end;
  bool finite;                  ///< No NaN or infinity in the operands of write_weighted and add_weighted.
  const PackedHead<E>* packed;  ///< With a key_begin of 0; or none.
  Workspace<Number<E>> memory;
};

/// 0 for masked keys in the rows [queries, keys] of a block after softmax or its gradient, where it is 0 already unless the
/// query attends to a NaN or its scores overflow: none of its row is finite then. Without a mask its span ends there.
template <class E, class T>
void clear_masked(const Inputs<E>& in, const Block<E>& b, const AttendedKeys<T>& attended, T* w) {
  if (!attended.masked() || b.end == 0) return;
  for (int64_t i = b.first; i < b.stop; ++i, w += in.ld)
    if (!std::isfinite(w[0])) attended.fill_masked(i, w, T(0));
}

/// to = from [n] where the query attends to the key, else 0.
template <class E, class T>
void copy_or_clear(bool attended, const E* from, int64_t n, T* to) {
  if (attended)
    std::copy_n(from, n, to);
  else
    std::fill_n(to, n, T(0));
}

/// y = a x^T for the queries and keys of a block, n features of each.
template <class E, class T>
void write_products(const Inputs<E>& in, const Block<E>& b, const Rows<const E>& a, const Rows<const E>& x,
                    const kernels::Packed<E>* packed, int64_t n, T* y) {
  const int64_t rows = b.stop - b.first;
  const E* const from = a.at(b.head, b.first);
  y += b.key_begin;
  if (packed) return kernels::gemm<E>(rows, b.key_end, n, source<E>(from), a.ld, *packed, y, in.ld);
  kernels::gemm(false, true, rows, b.key_end - b.key_begin, n, source<E>(from), a.ld, source<E>(x.at(b.kv_head, b.key_begin)),
                x.ld, y, in.ld, false);
}

/// y = w x for the queries of a block. Where x is not finite each query is multiplied with a copy in which the keys that it
/// does not attend to are 0, because 0 * NaN is NaN; the bits are the same either way.
template <class E, class T>
void compute_weighted(const Inputs<E>& in, const Block<E>& b, const T* w, const Rows<const E>& x,
                      const kernels::Packed<E>* packed, int64_t n, const Computed<T>& y) {
  w += b.key_begin;
  if (packed) return kernels::gemm<E>(b.stop - b.first, n, b.key_end, source<E>(w), in.ld, *packed, y.data, y.ld);
  if (b.finite)
    return kernels::gemm(false, false, b.stop - b.first, n, b.key_end - b.key_begin, source<E>(w), in.ld,
                         source<E>(x.at(b.kv_head, b.key_begin)), x.ld, y.data, y.ld, false);
  const AttendedKeys<T> attended = in.attended_keys(b.head);
  for (int64_t i = b.first; i < b.stop; ++i, w += in.ld) {
    const int64_t end = attended.end(i);
    for (int64_t j = b.key_begin; j < end; ++j)
      copy_or_clear(attended.attends(i, j), x.at(b.kv_head, j), n, b.memory.copy + (j - b.key_begin) * n);
    kernels::gemm(false, false, 1, n, std::max<int64_t>(end - b.key_begin, 0), source<E>(w), in.ld,
                  source<E>(static_cast<const T*>(b.memory.copy)), n, y.at(i - b.first), y.ld, false);
  }
}
template <class E, class T>
void write_weighted(const Inputs<E>& in, const Block<E>& b, const T* w, const Rows<const E>& x,
                    const kernels::Packed<E>* packed, int64_t n, const Rows<E>& y) {
  const Computed<T> rows = computed_rows(y, b.head, b.first, n, b.memory.rows);
  compute_weighted(in, b, w, x, packed, n, rows);
  store_rows(rows, b.stop - b.first, n, y, b.head, b.first);
}

/// y += w^T x for the keys of a block, likewise; the first block that adds to y writes all of it. A key's sum begins at the
/// first query that may attend to it: before are zeros.
template <class E, class T>
void add_weighted(const Inputs<E>& in, const Block<E>& b, const T* w, const Rows<const E>& x, int64_t n, const Computed<T>& y) {
  const AttendedKeys<T> attended = in.attended_keys(b.head);
  const bool begins = b.head % in.p.group == 0 && b.first == 0;
  const int64_t rows = b.stop - b.first;
  int64_t j = b.key_begin;
  if (begins) y.clear(0, j, n);
  if (b.finite) {
    const int64_t few = few_queries<E>();
    for (int64_t i = 0; i < rows; i += few) {
      const int64_t end = attended.end(b.first + i, b.first + std::min(i + few, rows));
      if (end > j)
        kernels::gemm(true, false, end - j, n, rows - i, source<E>(w + i * in.ld + j), in.ld,
                      source<E>(x.at(b.head, b.first + i)), x.ld, y.at(j), y.ld, !begins);
      j = std::max(j, end);
    }
  } else {
    for (; j < b.end; ++j) {
      for (int64_t i = b.first; i < b.stop; ++i)
        copy_or_clear(attended.attends(i, j), x.at(b.head, i), n, b.memory.copy + (i - b.first) * n);
      kernels::gemm(true, false, 1, n, rows, source<E>(w + j), in.ld, source<E>(static_cast<const T*>(b.memory.copy)), n,
                    y.at(j), y.ld, !begins);
    }
  }
  if (begins) y.clear(j, in.p.keys, n);
}

/// Weights of 0 for queries whose scores are all -inf, of which softmax makes NaN: as in PyTorch without a mask, too.
template <class E, class T>
void clear_unscored(const Inputs<E>& in, const Block<E>& b, const AttendedKeys<T>& attended, T scale) {
  T* w = b.memory.weights;
  for (Block<E> row = b; row.first < b.stop; ++row.first, w += in.ld) {
    const kernels::Span span = {attended.begin(row.first), attended.end(row.first)};
    if (span.begin >= span.end || std::isfinite(w[span.begin])) continue;
    row.stop = row.first + 1;
    write_products(in, row, in.q, in.k, b.packed ? &b.packed->k_transposed : nullptr, in.p.features, w);
    if (attended.masked()) attended.mask_scores(row.first, w, static_cast<T>(in.p.scale), b.key_end);
    const bool none = std::all_of(w + span.begin, w + span.end, [=](T s) { return s * scale == AttendedKeys<T>::kHidden; });
    const kernels::Span left = none ? kernels::Span{0, 0} : span;
    kernels::softmax_spans(w, in.ld, &left, 1, scale, {b.key_begin, b.end});
  }
}

/// softmax(scale q k^T + mask), and in b.memory.dropped what dropout leaves of it
template <class E>
void compute_weights(const Inputs<E>& in, const Block<E>& b) {
  using T = Number<E>;
  const AttendedKeys<T> attended = in.attended_keys(b.head);
  T scale = static_cast<T>(in.p.scale);
  write_products(in, b, in.q, in.k, b.packed ? &b.packed->k_transposed : nullptr, in.p.features, b.memory.weights);
  if (attended.masked()) {
    for (int64_t i = b.first; i < b.stop; ++i)
      attended.mask_scores(i, b.memory.weights + (i - b.first) * in.ld, scale, b.key_end);
    scale = 1;
  }
  kernels::softmax_spans(b.memory.weights, in.ld, attended.spans(b.first, b.stop).data(), b.stop - b.first, scale,
                         {b.key_begin, b.end});
  clear_unscored(in, b, attended, scale);
  clear_masked(in, b, attended, b.memory.weights);
  for (int64_t i = b.first; in.keep && i < b.stop; ++i)
    in.apply_dropout(b.head, i, b.key_begin, b.end, b.memory.weights + (i - b.first) * in.ld,
                     b.memory.dropped + (i - b.first) * in.ld);
}

/// The gradients that are wanted: rows of dq, dk, dv and of the mask's [queries, keys], or none.
template <class E>
struct OutputGrads {
  Rows<E> dq, dk, dv;
  Rows<Number<E>> dmask;
};

/// The mask's gradient of a block, and then ds = scale ds.
template <class E, class T>
void take_mask_gradient(const Weighting<T>& in, const Block<E>& b, const Rows<T>& dmask, T* ds) {
  const T scale = static_cast<T>(in.p.scale);
  for (int64_t i = b.first; i < b.stop; ++i, ds += in.ld) {
    T* const to = dmask.at(b.head, i);
    std::copy_n(ds, b.end, to);
    std::fill_n(to + b.end, in.p.keys - b.end, T(0));
    kernels::mul(ds, 1, &scale, 0, ds, b.end);
  }
}

/// The queries [first, stop) of a block.
template <class E>
Block<E> rows_of(const Inputs<E>& in, Block<E> b, int64_t first, int64_t stop) {
  const int64_t skipped = (first - b.first) * in.ld;
  b.memory.weights += skipped;
  b.memory.dropped += skipped;
  b.memory.ds += skipped;
  b.first = first;
  b.stop = stop;
  b.key_end = in.attended_keys(b.head).end(first, stop);
  return b;
}

/// What is summed over keys, with p the weights: dp = dropout(dy v^T), dmask = p (dp - sum(p dp)), ds = scale dmask, dq = ds k
template <class E>
void backward_queries(const Inputs<E>& in, const Block<E>& b, const Rows<const E>& dy, const OutputGrads<E>& to) {
  using T = Number<E>;
  compute_weights(in, b);
  if (!to.dq && !to.dk && !to.dmask) return;
  const AttendedKeys<T> attended = in.attended_keys(b.head);
  const int64_t rows = b.stop - b.first;
  T* const ds = b.memory.ds;
  write_products(in, b, dy, in.v, b.packed ? &b.packed->v_transposed : nullptr, in.p.value_features, ds);
  for (int64_t i = b.first; i < b.stop; ++i) {
    T* const row = ds + (i - b.first) * in.ld;
    attended.fill_masked(i, row, T(0));
    if (in.keep) in.apply_dropout(b.head, i, attended.begin(i), attended.end(i), row, row);
  }
  const T scale = to.dmask ? T(1) : static_cast<T>(in.p.scale);
  kernels::softmax_grad_spans(b.memory.weights, ds, in.ld, attended.spans(b.first, b.stop).data(), rows, scale,
                              {b.key_begin, b.end});
  clear_masked(in, b, attended, ds);
  if (to.dmask) take_mask_gradient(in, b, to.dmask, ds);
  if (to.dq) write_weighted(in, b, ds, in.k, b.packed ? &b.packed->k : nullptr, in.p.features, to.dq);
}

/// sums += w^T x for the keys of a block, which are stored in `to` after the last block that adds to them.
template <class E, class T>
void add_and_store(const Inputs<E>& in, const Block<E>& b, const T* w, const Rows<const E>& x, int64_t n, T* memory,
                   const Rows<E>& to) {
  const Computed<T> sums = computed_rows(to, b.kv_head, 0, n, memory);
  add_weighted(in, b, w, x, n, sums);
  if ((b.head + 1) % in.p.group == 0 && b.stop == in.p.queries) store_rows(sums, in.p.keys, n, to, b.kv_head, 0);
}

/// And what is summed over queries, with w = dropout(p): dv += w^T dy, dk += ds^T q
template <class E>
void backward_block(const Inputs<E>& in, const Block<E>& b, const Rows<const E>& dy, const OutputGrads<E>& to) {
  if (!b.packed) backward_queries(in, b, dy, to);
  const int64_t few = few_queries<E>();
  for (int64_t i = b.first; b.packed && i < b.stop; i += few)
    backward_queries(in, rows_of(in, b, i, std::min(i + few, b.stop)), dy, to);
  const auto* const weights = in.keep ? b.memory.dropped : b.memory.weights;
  if (to.dv) add_and_store(in, b, weights, dy, in.p.value_features, b.memory.dv, to.dv);
  if (to.dk) add_and_store(in, b, b.memory.ds, in.q, in.p.features, b.memory.dk, to.dk);
}

/// Of keys and values what the pass multiplies by: k^T and, forward, v; or v^T and k.
template <class E>
PackedHead<E> pack_head(const Inputs<E>& in, int64_t kv_head, bool backward, Number<E>* to) {
  const auto take = [&](const Rows<const E>& x, bool transposed, int64_t n, int64_t k) {
    kernels::pack<E>(transposed, n, k, source<E>(x.at(kv_head, 0)), x.ld, to);
    const kernels::Packed<E> packed = {to, n, k};
    to += kernels::packed_size<E>(n, k);
    return packed;
  };
  const AttentionPlan& p = in.p;
  const int64_t keys = in.k.rows(kv_head);
  PackedHead<E> head = {.k_transposed = take(in.k, true, keys, p.features), .v_transposed = {}, .k = {}, .v = {}};
  if (!backward) {
    head.v = take(in.v, false, p.value_features, keys);
  } else {
    head.v_transposed = take(in.v, true, keys, p.value_features);
    head.k = take(in.k, false, p.features, keys);
  }
  return head;
}
/// Elements that it writes.
template <class E>
int64_t packed_size(const AttentionPlan& p, bool backward) {
  const auto size = kernels::packed_size<E>;
  return size(p.keys, p.features) +
         (backward ? size(p.keys, p.value_features) + size(p.features, p.keys) : size(p.value_features, p.keys));
}

int64_t whole_lines(int64_t elements) { return (elements + 15) / 16 * 16; }

/// How a pass cuts the queries of each head into blocks, and how many elements of scratch memory a thread needs.
struct BlockPlan {
  bool finite;  ///< As in Block.
  bool backward, pack;
  int threads;
  int64_t queries;                               ///< In a block.
  int64_t weights_size, copy_size, packed_size;  ///< Of an array of weights, of `copy` and of `packed`.
  int64_t rows_size, dk_size, dv_size;           ///< Where what is computed is not stored as it is.
  bool dropout;

  int64_t arrays() const { return 1 + (dropout ? 1 : 0) + (backward ? 1 : 0); }
  int64_t size() const { return arrays() * weights_size + copy_size + packed_size + rows_size + dk_size + dv_size; }
};

template <class E>
BlockPlan plan_blocks(const Inputs<E>& in, bool finite, bool backward) {
  const AttentionPlan& p = in.p;
  const int64_t kv_heads = p.heads / p.group;
  const double cost = 0.1 * static_cast<double>(p.group * p.queries * p.keys * (p.features + p.value_features + 16));
  const int64_t few = few_queries<E>();
  const bool pack = finite && p.queries > few && p.window == 0 && kernels::packed_size<E>(p.keys, p.features) > 0;
  const int64_t queries = std::min(pack && !backward ? few : kQueries, p.queries);
  const bool rounds = std::is_same_v<E, BFloat16>, sums = rounds && backward;
  return {.finite = finite,
          .backward = backward,
          .pack = pack,
          .threads = kernels::threads_for(kv_heads, cost * static_cast<double>(kv_heads)),
          .queries = queries,
          .weights_size = whole_lines(queries * in.ld),
          .copy_size = finite ? 0 : whole_lines(std::max(queries, p.keys) * std::max(p.features, p.value_features)),
          .packed_size = pack ? packed_size<E>(p, backward) : 0,
          .rows_size = rounds ? whole_lines(queries * std::max(p.features, p.value_features)) : 0,
          .dk_size = sums ? whole_lines(p.keys * p.features) : 0,
          .dv_size = sums ? whole_lines(p.keys * p.value_features) : 0,
          .dropout = in.keep != nullptr};
}

template <class T>
Workspace<T> workspace_at(const BlockPlan& plan, T* memory) {
  T* const dropped = memory + (plan.dropout ? plan.weights_size : 0);
  T* const copy = memory + plan.arrays() * plan.weights_size;
  T* const rows = copy + plan.copy_size + plan.packed_size;
  return {.weights = memory,
          .dropped = dropped,
          .ds = plan.backward ? dropped + plan.weights_size : nullptr,
          .copy = copy,
          .packed = copy + plan.copy_size,
          .rows = rows,
          .dk = rows + plan.rows_size,
          .dv = rows + plan.rows_size + plan.dk_size};
}

/// Calls run(block) for the blocks of a head, in order, those that attend to no key included.
template <class E, class F>
void run_head(const Inputs<E>& in, const BlockPlan& plan, int64_t head, const PackedHead<E>* packed,
              const Workspace<Number<E>>& memory, const F& run) {
  const AttentionPlan& p = in.p;
  const auto attended = in.attended_keys(head);
  for (int64_t first = 0; first < p.queries; first += plan.queries) {
    const int64_t stop = std::min(first + plan.queries, p.queries), end = attended.end(first, stop);
    run(Block<E>{.head = head,
                 .kv_head = head / p.group,
                 .first = first,
                 .stop = stop,
                 .key_begin = std::min(attended.begin(first), end) / kKeys * kKeys,
                 .key_end = end,
                 .end = end,
                 .finite = plan.finite,
                 .packed = packed,
                 .memory = memory});
  }
}

/// Plans, and packs and runs every head; the heads that share a key and value head go to one thread, in order.
template <class E, class F>
void for_each_block(const Inputs<E>& in, bool finite, bool backward, const F& run) {
  using T = Number<E>;
  const AttentionPlan& p = in.p;
  if (p.heads == 0) return;
  const BlockPlan plan = plan_blocks(in, finite, backward);
  Tensor scratch = empty({plan.threads, plan.size()}, dtype_of<T>());
  T* const memory = scratch.mutable_data<T>();
  // Neighbouring heads, whose rows share cache lines, stay on one thread: four pieces a thread, dynamically scheduled.
  const int64_t kv_heads = p.heads / p.group, pieces = std::min(int64_t{4} * plan.threads, kv_heads);
  kernels::parallel_pieces(plan.threads, pieces, [&](int64_t piece, int thread) {
    const Workspace<T> own = workspace_at(plan, memory + thread * plan.size());
    for (int64_t kv_head = kv_heads * piece / pieces; kv_head < kv_heads * (piece + 1) / pieces; ++kv_head) {
      if (p.queries <= few_queries<E>() && kv_head + 1 < kv_heads) {
        prefetch_rows(in.k, kv_head + 1);
        prefetch_rows(in.v, kv_head + 1);
      }
      const PackedHead<E> packed = plan.pack ? pack_head(in, kv_head, backward, own.packed) : PackedHead<E>{};
      for (int64_t i = 0; i < p.group; ++i) run_head(in, plan, kv_head * p.group + i, plan.pack ? &packed : nullptr, own, run);
    }
  });
}

template <class E>
void attend_in(const AttentionPlan& p, const AttentionOperands& x, Tensor& y) {
  const Inputs<E> in(p, x);
  const Rows<E> to = writable<E>(y, batch_dims(y.shape()));
  const bool finite = !in.hides() || is_finite(in.v, p.value_features);
  for_each_block(in, finite, /*backward=*/false, [&](const Block<E>& block) {
    compute_weights(in, block);
    write_weighted(in, block, in.keep ? block.memory.dropped : block.memory.weights, in.v,
                   block.packed ? &block.packed->v : nullptr, p.value_features, to);
  });
}

template <class E>
void attend_backward_in(const AttentionPlan& p, const AttentionOperands& x, const Tensor& dy, AttentionGrads& grads) {
  const Shape batch = batch_dims(x.q.shape()), key_batch = batch_dims(x.k.shape());
  const Inputs<E> in(p, x);
  const Rows<const E> from = readable<E>(dy, batch);
  const OutputGrads<E> to{writable<E>(grads.q, batch), writable<E>(grads.k, key_batch), writable<E>(grads.v, key_batch),
                          writable<Number<E>>(grads.mask, batch)};
  const bool finite =
      !in.hides() || (is_finite(in.k, p.features) && is_finite(in.q, p.features) && is_finite(from, p.value_features));
  for_each_block(in, finite, /*backward=*/true, [&](const Block<E>& block) { backward_block(in, block, from, to); });
  if (p.queries > 0) return;
  for (int64_t head = 0; head < p.heads / p.group; ++head) {
    if (to.dk) to.dk.clear(head, 0, p.keys, p.features);
    if (to.dv) to.dv.clear(head, 0, p.keys, p.value_features);
  }
}

}  // namespace

void attend(const AttentionPlan& p, const AttentionOperands& x, Tensor& y) {
  if (p.bf16) return attend_in<BFloat16>(p, x, y);
  dispatch_floating(y.dtype(), kOp, [&]<class T>() { attend_in<T>(p, x, y); });
}

void attend_backward(const AttentionPlan& p, const AttentionOperands& x, const Tensor& dy, AttentionGrads& grads) {
  if (p.bf16) return attend_backward_in<BFloat16>(p, x, dy, grads);
  dispatch_floating(dy.dtype(), kOp, [&]<class T>() { attend_backward_in<T>(p, x, dy, grads); });
}

}  // namespace onestep::ops
