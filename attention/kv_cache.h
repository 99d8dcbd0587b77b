#pragma once
#include <utility>
#include <vector>

#include "autograd/tensor.h"

namespace onestep::attention {

/// The keys and values of the tokens that one attention layer has computed so far: with them a further token costs one row
/// instead of all. It is filled by Attention::forward_cached and belongs to one model and one batch of texts.
class KvCache {
 public:
  /// Number of tokens stored.
  int64_t length() const { return heads_.empty() ? length_ : heads_[0].length(); }
  /// Drops them.
  void clear() { *this = KvCache(); }

  /// Appends the keys [..., n, d] and values [..., n, e] of n new tokens and returns those of all S tokens: views [..., S, d]
  /// and [..., S, e], valid until the next call. Not recorded. Throws ShapeError or DTypeError unless the other dims and the
  /// dtype are those of the calls before.
  std::pair<Tensor, Tensor> append(const Tensor& keys, const Tensor& values);

  /// The cache of head `i` of a layer whose heads are layers of their own (MultiHeadAttentionWrapper).
  KvCache& head(size_t i);

 private:
  Tensor keys_, values_;  // [..., capacity, d]
  int64_t length_ = 0;
  std::vector<KvCache> heads_;
};

/// Keys and values of all tokens: those given, after those in `cache` unless it is null.
std::pair<Tensor, Tensor> with_cached(KvCache* cache, const Tensor& keys, const Tensor& values);

}  // namespace onestep::attention
