#include "attention/attention.h"

#include "attention/weights_recorder.h"
#include "autograd/ops_shape.h"

namespace onestep::attention {
namespace {

/// The shape with another last dim.
Shape with_last(Shape shape, int64_t size) {
  shape[shape.rank() - 1] = size;
  return shape;
}

}  // namespace

Attention::Attention(int64_t d_in, int64_t d_out, std::optional<int64_t> context_length)
    : d_in_(d_in), d_out_(d_out), context_length_(context_length) {
  ONESTEP_CHECK(ShapeError, d_in > 0 && d_out > 0, "attention: sizes must be positive: d_in=", d_in, ", d_out=", d_out);
  ONESTEP_CHECK(ShapeError, !context_length || *context_length > 0, "attention: context_length must be positive: got ",
                context_length.value_or(0));
}

Tensor Attention::forward(const Tensor& x) const {
  if (WeightsRecorder* const recorder = WeightsRecorder::active()) {
    const AttentionResult result = forward_with_weights(x);
    recorder->add(result.weights);
    return result.context;
  }
  check_input(x, 0);
  return attend(x, nullptr, nullptr);
}

Tensor Attention::forward_cached(const Tensor& x, KvCache& cache) const {
  check_input(x, cache.length());
  const NoGradGuard no_grad;
  return attend(x, nullptr, &cache);
}

Tensor Attention::forward_cached(const Tensor& x, std::span<KvCache* const> caches) const {
  ONESTEP_CHECK(ShapeError, x.dim() == 3 && x.size(0) == std::ssize(caches), name(), ": x must be [B, n, ", d_in_,
                "] with a cache for each of the B texts: got ", x.shape(), " and ", caches.size(), " caches");
  for (const KvCache* const cache : caches) check_input(x, cache->length());
  const NoGradGuard no_grad;
  return attend_each(x, caches);
}

Tensor Attention::attend_each(const Tensor& x, std::span<KvCache* const> caches) const {
  std::vector<Tensor> contexts;
  for (int64_t b = 0; b < x.size(0); ++b)
    contexts.push_back(attend(narrow(x, 0, b, 1), nullptr, caches[static_cast<size_t>(b)]));
  return cat(contexts);
}

Tensor Attention::forward_apart(const Tensor& x, const std::vector<int64_t>& lengths) const {
  check_input(x, 0);
  const int64_t row = x.size(-2), rows = x.numel() / d_in_;
  int64_t end = 0;
  for (const int64_t length : lengths) {
    ONESTEP_CHECK(ShapeError, length > 0 && end % row + length <= row && end + length <= rows, name(), ": a sequence of ",
                  length, " tokens after ", end, " others crosses the rows of x ", x.shape());
    end += length;
  }
  ONESTEP_CHECK(ShapeError, end == rows, name(), ": the sequences have ", end, " tokens, x ", x.shape(), " has ", rows);
  return attend_apart(x.reshape({rows, d_in_}), lengths).reshape(with_last(x.shape(), d_out_));
}

Tensor Attention::attend_apart(const Tensor& x, const std::vector<int64_t>& lengths) const {
  std::vector<Tensor> contexts;
  for (const Tensor& sequence : split(x, lengths)) contexts.push_back(attend(sequence, nullptr, nullptr));
  return cat(contexts);
}

AttentionResult Attention::forward_with_weights(const Tensor& x) const {
  check_input(x, 0);
  AttentionResult result;
  result.context = attend(x, &result.weights, nullptr);
  return result;
}

void Attention::check_input(const Tensor& x, int64_t cached) const {
  ONESTEP_CHECK(ShapeError, (x.dim() == 2 || x.dim() == 3) && x.size(-1) == d_in_, name(), ": x must be [T, ", d_in_,
                "] or [B, T, ", d_in_, "]: got ", x.shape());
  ONESTEP_CHECK(ShapeError, !context_length_ || cached + x.size(-2) <= *context_length_, name(),
                ": too many tokens: ", cached + x.size(-2), cached > 0 ? " with those in the cache and " : " in ", "x ",
                x.shape(), " for context_length ", context_length_.value_or(0), " (cut x, or build it with a larger one)");
}

}  // namespace onestep::attention
