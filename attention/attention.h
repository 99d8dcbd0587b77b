#pragma once
#include <optional>
#include <span>
#include <vector>

#include "attention/kv_cache.h"
#include "nn/module.h"

namespace onestep::attention {

/// A context and the attention weights that it was computed with.
struct AttentionResult {
  Tensor context;  ///< [..., T, d_out]
  Tensor weights;  ///< [..., T, T], with several heads [..., H, T, T]: row = query, column = key, after dropout.
};

/// What all attention types have in common: they map T token vectors to T context vectors, for one text [T, d_in] or a
/// batch [B, T, d_in].
class Attention : public nn::Layer {
 public:
  /// x [..., T, d_in] -> [..., T, d_out]. Throws ShapeError, saying what is expected, unless x has rank 2 or 3, d_in
  /// features and no more than context_length tokens; DTypeError unless x has the dtype of the parameters.
  Tensor forward(const Tensor& x) const final;
  /// The same by unfused attention, with the attention weights.
  AttentionResult forward_with_weights(const Tensor& x) const;

  /// The same for the n tokens x [..., n, d_in] that follow those in `cache`, to which they are appended -> [..., n, d_out]:
  /// the last n rows of forward(all tokens), bit for bit, without recomputing the others. (In a type that is not causal the
  /// others would change.) Not recorded. Throws as forward does, for all tokens together.
  Tensor forward_cached(const Tensor& x, KvCache& cache) const;
  /// The same for texts with caches of their own, which may be of different lengths: x [B, n, d_in], of which x[b:b+1]
  /// follows the tokens in caches[b] -> [B, n, d_out]: what they give one by one, bit for bit.
  Tensor forward_cached(const Tensor& x, std::span<KvCache* const> caches) const;

  /// The same for sequences that lie one after the other in the rows of x [B, T, d_in] or [T, d_in]: `lengths` are theirs, and
  /// none crosses from one row into the next. Each attends to itself alone and begins at position 0: what they give one by one,
  /// bit for bit.
  Tensor forward_apart(const Tensor& x, const std::vector<int64_t>& lengths) const;

  int64_t d_in() const { return d_in_; }
  int64_t d_out() const { return d_out_; }  ///< Width of the result, over all heads.
  /// The largest number of tokens, if there is a limit.
  std::optional<int64_t> context_length() const { return context_length_; }

 protected:
  /// Throws ShapeError unless all sizes are positive.
  Attention(int64_t d_in, int64_t d_out, std::optional<int64_t> context_length = {});
  /// The computation on a checked x. Stores the attention weights in `*weights` unless it is null; x follows the tokens in
  /// `*cache` unless it is null.
  virtual Tensor attend(const Tensor& x, Tensor* weights, KvCache* cache) const = 0;
  /// attend(x[b:b+1], nullptr, caches[b]) for every b. A type may share what does not depend on the cache.
  virtual Tensor attend_each(const Tensor& x, std::span<KvCache* const> caches) const;
  /// attend(x[begin:begin+length], nullptr, nullptr) for the rows x [N, d_in] of every sequence. A type may share what does
  /// not depend on the others.
  virtual Tensor attend_apart(const Tensor& x, const std::vector<int64_t>& lengths) const;

 private:
  void check_input(const Tensor& x, int64_t cached) const;

  int64_t d_in_, d_out_;
  std::optional<int64_t> context_length_;
};

}  // namespace onestep::attention
