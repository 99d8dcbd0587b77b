// cached_attention against a loop over texts, heads, queries and keys.
#include <algorithm>
#include <cmath>

#include "autograd/ops/cases.h"
#include "autograd/ops_nn.h"

namespace onestep {
namespace {

struct Sizes {
  int64_t heads, kv_heads, queries, features, value_features;
};

/// y[b, h, i] = sum_j softmax_j(q[b, h, i] k[b][g, j] / sqrt(d)) v[b][g, j] over the last `window` (0: all) keys j up to
/// position S_b - T + i of text b, g = h's group; x = q, the keys of every text, the values of every text.
Values naive(const Sizes& s, const std::vector<int64_t>& lengths, int64_t window, const std::vector<Values>& x) {
  const size_t texts = lengths.size();
  Values y({std::ssize(lengths), s.heads, s.queries, s.value_features});
  for (size_t b = 0; b < texts; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t i = 0; i < s.queries; ++i) {
        const Values &k = x[1 + b], &v = x[1 + texts + b];
        const int64_t row = (static_cast<int64_t>(b) * s.heads + h) * s.queries + i, group = h / (s.heads / s.kv_heads);
        const int64_t end = lengths[b] - s.queries + i + 1, first = window > 0 ? std::max<int64_t>(end - window, 0) : 0;
        std::vector<double> weights;
        double total = 0;
        for (int64_t j = first; j < end; ++j) {
          double score = 0;
          for (int64_t c = 0; c < s.features; ++c)
            score += x[0][row * s.features + c] * k[(group * lengths[b] + j) * s.features + c];
          weights.push_back(std::exp(score / std::sqrt(std::max(static_cast<double>(s.features), 1.0))));
          total += weights.back();
        }
        for (int64_t j = first; j < end; ++j)
          for (int64_t c = 0; c < s.value_features; ++c)
            y[row * s.value_features + c] +=
                weights[static_cast<size_t>(j - first)] / total * v[(group * lengths[b] + j) * s.value_features + c];
      }
  return y;
}

OpSample sample_of(const char* label, const Sizes& s, const std::vector<int64_t>& lengths, int64_t window) {
  std::vector<InputSpec> inputs = {{{std::ssize(lengths), s.heads, s.queries, s.features}}};
  for (const int64_t length : lengths) inputs.push_back({{1, s.kv_heads, length, s.features}});
  for (const int64_t length : lengths) inputs.push_back({{1, s.kv_heads, length, s.value_features}});
  return {label, inputs,
          [=, texts = lengths.size()](const std::vector<Tensor>& x) {
            const auto keys = x.begin() + 1, values = keys + static_cast<std::ptrdiff_t>(texts);
            return cached_attention(x[0], std::vector(keys, values), std::vector(values, x.end()), window);
          },
          [=](const std::vector<Values>& x) { return naive(s, lengths, window, x); }, false};
}

/// A call on q [1, 2, 2, 3] with keys and values of these shapes.
OpError refused_text(const char* label, const Shape& keys, const Shape& values, const char* message = "cached_attention: ") {
  return {label, [=] { cached_attention(zeros({1, 2, 2, 3}), {zeros(keys)}, {zeros(values)}); }, message, is_a<ShapeError>};
}

const RegisterOpCases registered([] {
  return OpCases{
      {"cached_attention",
       {sample_of("one query, three lengths", {4, 2, 1, 3, 3}, {5, 1, 20}, 0), sample_of("queries", {2, 2, 3, 4, 2}, {3, 7}, 0),
        sample_of("window", {2, 1, 2, 3, 3}, {9, 2}, 4), sample_of("one text", {1, 1, 2, 2, 2}, {6}, 0),
        sample_of("no queries", {2, 1, 0, 3, 3}, {4, 0}, 0), sample_of("no features", {2, 1, 1, 0, 2}, {4, 1}, 0)},
       {refused_text("tokens", {1, 2, 1, 3}, {1, 2, 1, 3},
                     "cached_attention: needs keys [1, H_kv, S, d] and values [1, H_kv, S, e] with S >= T and H a multiple of "
                     "H_kv: got [1, 2, 1, 3] and [1, 2, 1, 3] for text 0 and q [1, 2, 2, 3]"),
        refused_text("features", {1, 2, 4, 2}, {1, 2, 4, 3}),
        refused_text("heads", {1, 3, 4, 3}, {1, 3, 4, 3}),
        refused_text("no heads", {1, 0, 4, 3}, {1, 0, 4, 3}),
        refused_text("values", {1, 2, 4, 3}, {1, 2, 5, 3}),
        refused_text("rank", {2, 4, 3}, {2, 4, 3}),
        refused_text("batch", {2, 2, 4, 3}, {2, 2, 4, 3}),
        {"texts",
         [] {
           cached_attention(zeros({1, 2, 2, 3}), {}, {});
         },
         "cached_attention: needs q [B, H, T, d] and the keys and values of B > 0 texts: got [1, 2, 2, 3], 0 and 0"},
        {"window",
         [] {
           cached_attention(zeros({1, 1, 1, 2}), {zeros({1, 1, 1, 2})}, {zeros({1, 1, 1, 2})}, -1);
         },
         "cached_attention: window and query_offset cannot be negative: got -1 and 0"}}}};
});

}  // namespace
}  // namespace onestep
