#pragma once
// What attention by blocks reads: the operands as rows, and which keys a query attends to.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <vector>

#include "autograd/half.h"
#include "autograd/kernels/kernels.h"
#include "autograd/kernels/table.h"
#include "autograd/ops/attention_blocks.h"
#include "autograd/ops/matrices.h"
#include "autograd/random/random_fill.h"

namespace onestep::ops::blocks {

inline constexpr int64_t kQueries = 128;  // in a block; the backward pass cuts its sums over queries there

/// Which keys a query attends to: all; with `causal` those up to its own position, or the last `window` of them; or those where
/// a bool mask is true, or one that is added to the scores is not -inf.
template <class T>
struct AttendedKeys {
  int64_t keys;
  bool causal;
  int64_t offset, window;
  const bool* mask;
  const T* added;
  int64_t row_stride, key_stride;

  bool masked() const { return mask != nullptr || added != nullptr; }

  /// The first key that query i attends to.
  int64_t begin(int64_t i) const { return causal && window > 0 ? std::clamp<int64_t>(i + offset + 1 - window, 0, end(i)) : 0; }
  /// One past the last.
  int64_t end(int64_t i) const {
    int64_t j = causal ? std::min(i + offset + 1, keys) : keys;
    while (masked() && j > 0 && !at(i, j - 1)) --j;
    return j;
  }
  /// One past the last key that a query of [first, stop) attends to.
  int64_t end(int64_t first, int64_t stop) const {
    int64_t last = stop > first ? end(stop - 1) : 0;  // the last query's, unless there is a mask
    for (int64_t i = first; masked() && i + 1 < stop; ++i) last = std::max(last, end(i));
    return last;
  }
  /// Whether the mask, if there is one, leaves key j to query i.
  bool at(int64_t i, int64_t j) const {
    const int64_t place = i * row_stride + j * key_stride;
    return (!mask || mask[place]) && (!added || added[place] != kHidden);
  }
  /// Whether query i attends to key j.
  bool attends(int64_t i, int64_t j) const { return masked() ? at(i, j) : begin(i) <= j && j < end(i); }
  /// row[j] = value for the masked keys among those.
  void fill_masked(int64_t i, T* row, T value) const {
    const int64_t last = masked() ? end(i) : 0;
    const auto fill = [=, this](auto attended) {
      if (key_stride == 1)
        for (int64_t j = 0; j < last; ++j) row[j] = select_value(attended(j), row[j], value);
      else
        for (int64_t j = 0; j < last; ++j) row[j] = select_value(attended(j * key_stride), row[j], value);
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

/// Matrices a head, where they lie: those of a batch, or of several whose matrices may have different numbers of rows. An
/// undefined tensor gives none, and one without heads.
class HeadMatrices {
 public:
  explicit operator bool() const { return !matrices_.empty(); }
  int64_t heads() const { return std::ssize(matrices_); }
  int64_t rows(int64_t head) const { return matrices_[static_cast<size_t>(head)].rows; }

  int64_t ld = 0;

 protected:
  HeadMatrices() = default;
  HeadMatrices(const Tensor& x, const void* data, const Shape& batch) {
    if (!data) return;
    ld = x.strides()[x.dim() - 2];
    add(x, data, batch);
  }
  /// The first element of a head.
  const std::byte* first(int64_t head) const { return matrices_[static_cast<size_t>(head)].data; }
  void add(const Tensor& x, const void* data, const Shape& batch) {
    for (const int64_t start : batch_starts(x.shape(), x.strides(), batch))
      matrices_.push_back({static_cast<const std::byte*>(data) + start * size_of(x.dtype()), x.size(-2)});
  }

 private:
  struct Matrix {
    const std::byte* data;
    int64_t rows;
  };
  std::vector<Matrix, memory::Allocator<Matrix>> matrices_;
};

/// Their rows.
template <class T>
class Rows : public HeadMatrices {
 public:
  Rows() = default;
  Rows(const Tensor& x, T* data, const Shape& batch) : HeadMatrices(x, data, batch) {}
  /// Of several tensors, whose rows of `row` elements are one right after the other.
  Rows(TensorList tensors, int64_t row) {
    ld = row;
    for (const Tensor& x : tensors) add(x, x.data<std::remove_const_t<T>>(), batch_dims(x.shape()));
  }
  T* at(int64_t head, int64_t i) const { return reinterpret_cast<T*>(const_cast<std::byte*>(first(head))) + i * ld; }
  void clear(int64_t head, int64_t begin, int64_t end, int64_t n) const {
    for (int64_t i = begin; i < end; ++i) std::fill_n(at(head, i), n, T(0));
  }
};

template <class T>
Rows<const T> readable(const Tensor& x, const Shape& batch) {
  return {x, x.defined() ? x.data<T>() : nullptr, batch};
}
template <class T>
Rows<T> writable(Tensor& x, const Shape& batch) {
  return {x, x.defined() ? x.mutable_data<T>() : nullptr, batch};
}

/// False if rows of n elements hold a NaN or an infinity: their exponents say it, whose bits are all 1 then.
inline bool is_finite(const Rows<const BFloat16>& x, int64_t n) {
  std::atomic<bool> finite = true;
  const double cost = x.heads() > 0 ? 0.1 * static_cast<double>(x.rows(0) * (n + 5)) : 0;
  kernels::parallel_for(x.heads(), cost, [&](int64_t head, int64_t stop) {
    int16_t largest = 0;
    for (; head < stop; ++head)
      for (int64_t i = 0; i < x.rows(head); ++i) {
        const BFloat16* const row = x.at(head, i);
        for (int64_t j = 0; j < n; ++j) largest = std::max(largest, static_cast<int16_t>(row[j].bits & 0x7fff));
      }
    if (largest >= 0x7f80) finite = false;
  });
  return finite;
}
/// The same of others: the sum of a head's column is not finite then.
template <class T>
bool is_finite(const Rows<const T>& x, int64_t n) {
  const int64_t heads = x.heads();
  std::vector<T, memory::Allocator<T>> totals(static_cast<size_t>(heads * n));
  T* const total = totals.data();
  const double cost = heads > 0 ? 0.1 * static_cast<double>(x.rows(0) * (n + 50)) : 0;
  kernels::parallel_for(heads, cost, [&, total](int64_t head, int64_t stop) {
    for (; head < stop; ++head)
      if (x.rows(head) > 0) kernels::sum_rows(x.at(head, 0), total + head * n, x.rows(head), n, x.ld);
  });
  return std::all_of(totals.begin(), totals.end(), [](T t) { return std::isfinite(t); });
}

/// Rows of numbers that are computed, `ld` apart: where those of a tensor lie, or in memory if they are stored as others.
template <class T>
struct Computed {
  T* data;
  int64_t ld;

  T* at(int64_t i) const { return data + i * ld; }
  void clear(int64_t first, int64_t stop, int64_t n) const {
    for (int64_t i = first; i < stop; ++i) std::fill_n(at(i), n, T(0));
  }
};

/// For rows of n elements of a head, from the first one on.
template <class E>
Computed<kernels::Number<E>> computed_rows(const Rows<E>& to, int64_t head, int64_t first, int64_t n,
                                           kernels::Number<E>* memory) {
  if constexpr (std::is_same_v<E, BFloat16>)
    return {memory, n};
  else
    return {to.at(head, first), to.ld};
}

/// Stores them where they are not yet.
template <class E>
void store_rows(const Computed<kernels::Number<E>>& rows, int64_t count, int64_t n, const Rows<E>& to, int64_t head,
                int64_t first) {
  if constexpr (std::is_same_v<E, BFloat16>)
    for (int64_t i = 0; i < count; ++i)
      kernels::table<float>().to_bf16(rows.at(i), reinterpret_cast<uint16_t*>(to.at(head, first + i)), n);
}

/// Asks for the first rows of a head while the one before is computed: a few queries are done before the CPU has seen that its
/// rows lie one after the other.
template <class T>
void prefetch_rows(const Rows<const T>& x, int64_t head) {
  constexpr int64_t kMost = 16384, kLine = 64;  // bytes
  const char* const first = reinterpret_cast<const char*>(x.at(head, 0));
  const int64_t bytes = std::min(x.rows(head) * x.ld * static_cast<int64_t>(sizeof(T)), kMost);
  for (int64_t i = 0; i < bytes; i += kLine) __builtin_prefetch(first + i, 0, 1);
}

/// What says which weights there are. `keep` is the dropout mask [heads, queries, keys], or null.
template <class T>
struct Weighting {
  Weighting(const AttentionPlan& plan, const AttentionOperands& x)
      : p(plan), mask(x.mask), keep(x.keep.defined() ? x.keep.data<bool>() : nullptr) {
    if (mask.defined()) mask_starts = batch_starts(mask.shape(), mask.strides(), batch_dims(x.q.shape()));
  }
  /// Of a head with so many keys.
  AttendedKeys<T> attended(int64_t head, int64_t keys) const {
    if (!mask.defined()) return {keys, p.causal, p.offset - (p.keys - keys), p.window, nullptr, nullptr, 0, 0};
    const int64_t first = mask_starts[static_cast<size_t>(head)];
    const bool* const is_attended = mask.is_floating() ? nullptr : mask.data<bool>() + first;
    const T* const added = mask.is_floating() ? mask.data<T>() + first : nullptr;
    return {p.keys, false, 0, 0, is_attended, added, mask.strides()[mask.dim() - 2], mask.strides()[mask.dim() - 1]};
  }
  /// False if every query attends to all keys.
  bool hides() const { return mask.defined() || (p.causal && (p.queries > 1 || p.offset + 1 < p.keys || p.window > 0)); }
  /// to = from times the dropout factor, for the weights [begin, end) of a query.
  void apply_dropout(int64_t head, int64_t i, int64_t begin, int64_t end, const T* from, T* to) const {
    const bool* kept = keep + (head * p.queries + i) * p.keys;
    const T factor = dropout_scale<T>(p.dropout_p);
    for (int64_t j = begin; j < end; ++j) to[j] = from[j] * (static_cast<T>(kept[j]) * factor);
  }

  AttentionPlan p;
  /// Between rows of weights: not a multiple of 256 bytes, or a column of them would lie in few places of the caches.
  int64_t ld = p.keys + (p.keys % 64 == 0 ? 16 : 0);
  Tensor mask;
  Offsets mask_starts;
  const bool* keep = nullptr;
};

/// What forward and backward read, of numbers that are stored as E.
template <class E>
struct Inputs : Weighting<kernels::Number<E>> {
  using T = kernels::Number<E>;

  Inputs(const AttentionPlan& plan, const AttentionOperands& x) : Weighting<T>(plan, x) {
    q = readable<E>(x.q, batch_dims(x.q.shape()));
    k = x.k.defined() ? readable<E>(x.k, batch_dims(x.k.shape())) : Rows<const E>(x.text_keys, plan.features);
    v = x.v.defined() ? readable<E>(x.v, batch_dims(x.v.shape())) : Rows<const E>(x.text_values, plan.value_features);
  }
  AttendedKeys<T> attended_keys(int64_t head) const { return this->attended(head, k.rows(head / this->p.group)); }

  Rows<const E> q, k, v;
};

}  // namespace onestep::ops::blocks
