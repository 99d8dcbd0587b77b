// packed_attention against scaled_dot_product_attention's naive version would be the same loop again: its reference reads heads
// where they lie and has no blocks.
#include <cmath>
#include <random>

#include "autograd/ops_nn.h"
#include "autograd/testing/op_case.h"

namespace onestep {
namespace {

constexpr uint32_t kSeed = 321;

struct Sizes {
  int64_t sequences, tokens, heads, kv_heads, features;
};

/// y[b, i, h] = sum over the keys j that i attends to of softmax_j(scale q[b, i, h] k[b, j, g]) factor v[b, j, g], g = h's
/// group. With a mask [T, T], that is added to the scores.
Values naive(const Sizes& s, const Values& qkv, const Shape& out, const AttentionOptions& o, const Values& mask = {}) {
  const int64_t width = (s.heads + 2 * s.kv_heads) * s.features;
  const double scale = o.scale.value_or(1 / std::sqrt(static_cast<double>(s.features)));
  const auto at = [&](int64_t b, int64_t t, int64_t head, int64_t c) {
    return qkv[(b * s.tokens + t) * width + head * s.features + c];
  };
  Values y(out);
  std::mt19937 words(kSeed);
  const auto factor = [&] {  // one 53-bit uniform a weight, in row-major order
    const uint64_t high = words(), word = high << 32 | words();
    return static_cast<double>(word & ((uint64_t{1} << 53) - 1)) * 0x1p-53 < 1 - o.dropout_p ? 1 / (1 - o.dropout_p) : 0.0;
  };
  for (int64_t b = 0; b < s.sequences; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t i = 0; i < s.tokens; ++i) {
        const int64_t key_head = s.heads + h / (s.heads / s.kv_heads), value_head = key_head + s.kv_heads;
        const int64_t first = o.window > 0 ? std::max<int64_t>(i + 1 - o.window, 0) : 0, end = o.is_causal ? i + 1 : s.tokens;
        double total = 0;
        std::vector<double> weights(static_cast<size_t>(s.tokens)), dropped;
        for (int64_t j = first; j < end; ++j) {
          double score = 0;
          for (int64_t c = 0; c < s.features; ++c) score += at(b, i, h, c) * at(b, j, key_head, c);
          total += weights[static_cast<size_t>(j)] = std::exp(score * scale + (mask.data.empty() ? 0 : mask[i * s.tokens + j]));
        }
        for (int64_t j = 0; j < s.tokens; ++j) {
          const double weight = weights[static_cast<size_t>(j)] / total * (o.dropout_p > 0 ? factor() : 1);
          for (int64_t c = 0; c < s.features; ++c)
            y[((b * s.tokens + i) * s.heads + h) * s.features + c] += weight * at(b, j, value_head, c);
        }
      }
  return y;
}

OpSample sample_of(const std::string& label, const Sizes& s, const AttentionOptions& options) {
  const Shape in = {s.sequences, s.tokens, (s.heads + 2 * s.kv_heads) * s.features};
  const Shape out = {s.sequences, s.tokens, s.heads * s.features};
  return {label,
          {{in}},
          [=](const std::vector<Tensor>& x) {
            Generator generator(kSeed);
            AttentionOptions o = options;
            o.generator = &generator;
            return packed_attention(x[0], s.heads, s.kv_heads, o);
          },
          [=](const std::vector<Values>& x) { return naive(s, x[0], out, options); }};
}

OpSample with_added_mask(const std::string& label, const Sizes& s) {
  OpSample sample = sample_of(label, s, {});
  sample.inputs.push_back({{s.tokens, s.tokens}});
  const Shape out = {s.sequences, s.tokens, s.heads * s.features};
  sample.forward = [=](const std::vector<Tensor>& x) { return packed_attention(x[0], s.heads, s.kv_heads, {.mask = x[1]}); };
  sample.reference = [=](const std::vector<Values>& x) { return naive(s, x[0], out, {}, x[1]); };
  return sample;
}

const RegisterOpCases registered([] {
  return OpCases{
      {"packed_attention",
       {sample_of("causal", {2, 5, 2, 2, 3}, {.is_causal = true}), sample_of("all keys", {1, 4, 3, 3, 2}, {}),
        sample_of("one head", {2, 3, 1, 1, 2}, {.is_causal = true}),
        sample_of("shared keys and values", {2, 4, 4, 2, 2}, {.is_causal = true}),
        sample_of("one head of keys and values", {1, 4, 3, 1, 2}, {.is_causal = true}),
        sample_of("window", {1, 6, 2, 2, 2}, {.is_causal = true, .window = 3}),
        sample_of("scale", {1, 3, 2, 2, 2}, {.is_causal = true, .scale = -0.5}),
        sample_of("dropout", {2, 4, 2, 1, 2}, {.is_causal = true, .dropout_p = 0.4}),
        sample_of("two blocks of queries", {1, 67, 1, 1, 2}, {.is_causal = true}),
        with_added_mask("added mask", {2, 4, 2, 1, 3}), sample_of("no sequences", {0, 4, 2, 2, 2}, {.is_causal = true}),
        sample_of("no tokens", {2, 0, 2, 2, 2}, {.is_causal = true})},
       {{"width",
         [] {
           packed_attention(zeros({2, 7}), 1, 1);
         },
         "packed_attention: needs [..., T, (H + 2 H_kv) d] with H a multiple of H_kv: got [2, 7] "
         "for H=1 and H_kv=1"},
        {"groups",
         [] {
           packed_attention(zeros({2, 14}), 3, 2);
         },
         "packed_attention: ", is_a<ShapeError>},
        {"too many heads",
         [] {
           packed_attention(zeros({3, 0}), int64_t{1} << 62, 1);
         },
         "packed_attention: needs at most 1048576 heads: got H=4611686018427387904 and H_kv=1"},
        {"dropout",
         [] {
           packed_attention(zeros({2, 6}), 1, 1, {.dropout_p = -1.0});
         },
         "packed_attention: dropout_p must lie in [0, 1]: got -1"}}}};
});

}  // namespace
}  // namespace onestep
