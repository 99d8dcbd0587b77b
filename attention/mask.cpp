#include "attention/mask.h"

#include <cmath>
#include <limits>

#include "attention/heads.h"
#include "autograd/anomaly.h"
#include "autograd/operators.h"
#include "autograd/ops_shape.h"

namespace onestep::attention {
namespace {

/// Options of the fused op with the dropout of `dropout`.
AttentionOptions with_dropout(const nn::Dropout& dropout) {
  return {.dropout_p = dropout.is_training() ? dropout.p() : 0.0, .generator = &dropout.generator()};
}

/// Whether `mask` is the causal mask for the queries of the last T of S tokens.
bool is_causal(const Tensor& mask, int64_t T, int64_t S) {
  if (mask.shape() != Shape{T, S} || T > S) return false;
  const int64_t row = mask.strides()[0], step = mask.strides()[1];
  const bool* const masked = mask.data<bool>();
  for (int64_t t = 0; t < T; ++t)
    for (int64_t s = 0; s < S; ++s)
      if (masked[t * row + s * step] != (s > t + S - T)) return false;
  return true;
}

}  // namespace

Tensor causal_mask(int64_t context_length) {
  ONESTEP_CHECK(ShapeError, context_length >= 0, "causal_mask: context_length cannot be negative: got ", context_length);
  return triu(ones({context_length, context_length}, DType::boolean), /*diagonal=*/1);
}

Tensor sliding_window_mask(int64_t context_length, int64_t window) {
  ONESTEP_CHECK(ShapeError, context_length >= 0, "sliding_window_mask: context_length cannot be negative: got ",
                context_length);
  ONESTEP_CHECK(ConfigError, window >= 0, "sliding_window_mask: window cannot be negative: got ", window);
  const Tensor future = causal_mask(context_length);
  return window == 0 ? future : logical_or(future, tril(ones({context_length, context_length}, DType::boolean), -window));
}

Tensor last_rows(const Tensor& mask, int64_t T, int64_t S) { return mask.slice(0, S - T, S).slice(1, 0, S); }

Tensor masked_product(const Tensor& left, const Tensor& right, const Tensor& mask,
                      Tensor (*product)(const Tensor& left, const Tensor& right)) {
  if (all_finite(left) && all_finite(right)) return product(left, right);
  std::vector<Tensor> rows;
  for (int64_t t = 0; t < mask.size(0); ++t)
    rows.push_back(product(narrow(left, -2, t, 1), masked_fill(right, mask[t].unsqueeze(-1), 0.0)));
  return cat(rows, -2);
}

Tensor masked_attention_weights(const Tensor& scores, const Tensor& mask, int64_t d_k) {
  masked_fill_(scores, mask, -std::numeric_limits<double>::infinity());
  const Tensor weights = softmax(scores / std::sqrt(static_cast<double>(d_k)), -1);  // [..., T, S]
  // softmax of a row of -inf is NaN. masked_fill's gradient is 0 there whatever arrives, so replacing the values is enough.
  const Tensor all_masked = eq(sum(mask, {-1}, /*keepdim=*/true), mask.size(-1));  // [T, 1]
  return any(all_masked).item<bool>() ? masked_fill(weights, all_masked, 0.0) : weights;
}

Tensor masked_attention(const Tensor& queries, const Tensor& keys, const Tensor& values, const Tensor& mask,
                        const nn::Dropout& dropout, Tensor* weights) {
  if (!weights) {
    AttentionOptions options = with_dropout(dropout);
    const int64_t T = queries.size(-2), S = keys.size(-2);
    options.is_causal = is_causal(mask, T, S);  // the fused op then needs no mask
    if (options.is_causal)
      options.query_offset = S - T;
    else
      options.mask = logical_not(mask);
    return scaled_dot_product_attention(queries, keys, values, options);
  }
  const auto q_times_k = [](const Tensor& q, const Tensor& k) { return matmul(q, k.transpose(-2, -1)); };
  const Tensor scores = masked_product(queries, keys, mask, q_times_k);               // [..., T, S]
  const Tensor attn_weights = masked_attention_weights(scores, mask, keys.size(-1));  // [..., T, S]
  *weights = dropout(attn_weights);                                                   // [..., T, S]
  return masked_product(*weights, values, mask, matmul);                              // [..., T, d_v]
}

Tensor causal_attention(const Tensor& queries, const Tensor& keys, const Tensor& values, int64_t window,
                        const nn::Dropout& dropout, Tensor* weights) {
  const int64_t T = queries.size(-2), S = keys.size(-2), group = queries.size(-3) / keys.size(-3);
  if (weights) {
    const Tensor mask = last_rows(sliding_window_mask(S, window), T, S);
    return masked_attention(queries, repeat_heads(keys, group), repeat_heads(values, group), mask, dropout, weights);
  }
  AttentionOptions options = with_dropout(dropout);
  options.is_causal = true;
  options.query_offset = S - T;
  options.window = window;
  options.enable_gqa = group > 1;
  return scaled_dot_product_attention(queries, keys, values, options);
}

Tensor packed_causal_attention(const Tensor& qkv, int64_t num_heads, int64_t num_kv_heads, int64_t window,
                               const nn::Dropout& dropout) {
  AttentionOptions options = with_dropout(dropout);
  options.is_causal = true;
  options.window = window;
  return packed_attention(qkv, num_heads, num_kv_heads, options);
}

}  // namespace onestep::attention
