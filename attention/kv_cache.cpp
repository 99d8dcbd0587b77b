#include "attention/kv_cache.h"

#include "autograd/ops_math.h"
#include "autograd/ops_shape.h"

namespace onestep::attention {
namespace {

constexpr int64_t kFirstCapacity = 16;

/// `stored` with room for `needed` tokens, the first `used` of which are kept; of the shape of `added` but for the tokens.
void reserve(Tensor& stored, const Tensor& added, int64_t used, int64_t needed) {
  if (stored.defined() && stored.size(-2) >= needed) return;
  int64_t capacity = stored.defined() ? stored.size(-2) : kFirstCapacity;
  while (capacity < needed) capacity *= 2;
  Shape shape = added.shape();
  shape[shape.rank() - 2] = capacity;
  Tensor larger = empty(shape, added.dtype());
  if (used > 0) {
    Tensor start = narrow(larger, -2, 0, used);
    copy_(start, narrow(stored, -2, 0, used));
  }
  stored = larger;
}

/// Throws unless the tokens `added` fit those stored.
void check_fits(const Tensor& stored, const Tensor& added) {
  if (!stored.defined()) return;
  Shape expected = stored.shape();
  expected[expected.rank() - 2] = added.size(-2);
  ONESTEP_CHECK(ShapeError, added.shape() == expected, "KvCache: new tokens of shape ", added.shape(),
                " do not fit those before: needs ", expected, " (clear() it for other texts)");
  ONESTEP_CHECK(DTypeError, added.dtype() == stored.dtype(), "KvCache: new tokens of dtype ", added.dtype(),
                " do not fit those before: needs ", stored.dtype(), " (clear() it for other texts)");
}

/// Writes the tokens `added` after the first `used` ones and returns them all.
Tensor extended(Tensor& stored, const Tensor& added, int64_t used) {
  const int64_t count = added.size(-2);
  reserve(stored, added, used, used + count);
  Tensor place = narrow(stored, -2, used, count);
  copy_(place, added);
  return narrow(stored, -2, 0, used + count);
}

}  // namespace

std::pair<Tensor, Tensor> KvCache::append(const Tensor& keys, const Tensor& values) {
  const NoGradGuard no_grad;
  ONESTEP_CHECK(ShapeError, keys.dim() >= 2 && values.dim() >= 2 && keys.size(-2) == values.size(-2),
                "KvCache: keys and values must be [..., n, d] and [..., n, e]: got ", keys.shape(), " and ", values.shape());
  check_fits(keys_, keys);
  check_fits(values_, values);
  const Tensor all_keys = extended(keys_, keys, length_), all_values = extended(values_, values, length_);
  length_ += keys.size(-2);
  return {all_keys, all_values};
}

KvCache& KvCache::head(size_t i) {
  if (heads_.size() <= i) heads_.resize(i + 1);
  return heads_[i];
}

std::pair<Tensor, Tensor> with_cached(KvCache* cache, const Tensor& keys, const Tensor& values) {
  return cache ? cache->append(keys, values) : std::pair{keys, values};
}

}  // namespace onestep::attention
