#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <utility>

#include "autograd/ops_nn.h"
#include "autograd/ops_shape.h"
#include "autograd/testing/op_case.h"

namespace onestep {
namespace {

constexpr uint32_t kSeed = 123;

/// Sizes of a case: q [heads, T, d], k [heads / group, S, d], v [heads / group, S, e], whatever the batch dims are called.
struct Sizes {
  int64_t heads, queries, keys, features, value_features, group = 1;
};

/// attends(head, i, j) says which key a query attends to; `factor` holds what dropout multiplies each weight by; added(head, i,
/// j) is added to the score.
using Attends = std::function<bool(int64_t, int64_t, int64_t)>;
using Added = std::function<double(int64_t, int64_t, int64_t)>;

Values naive(const Sizes& s, const std::vector<Values>& in, const Shape& out, double scale, const Attends& attends,
             const std::vector<double>& factor, const Added& added = {}) {
  const Values &q = in[0], &k = in[1], &v = in[2];
  Values y(out);
  for (int64_t h = 0; h < s.heads; ++h)
    for (int64_t i = 0; i < s.queries; ++i) {
      double total = 0;
      std::vector<double> weights(static_cast<size_t>(s.keys));
      for (int64_t j = 0; j < s.keys; ++j) {
        if (!attends(h, i, j)) continue;
        double score = 0;
        for (int64_t c = 0; c < s.features; ++c)
          score += q[(h * s.queries + i) * s.features + c] * k[(h / s.group * s.keys + j) * s.features + c];
        total += weights[static_cast<size_t>(j)] = std::exp(score * scale + (added ? added(h, i, j) : 0));
      }
      for (int64_t j = 0; j < s.keys; ++j) {
        if (!attends(h, i, j)) continue;
        const auto place = static_cast<size_t>((h * s.queries + i) * s.keys + j);
        const double weight = weights[static_cast<size_t>(j)] / total * (factor.empty() ? 1 : factor[place]);
        for (int64_t c = 0; c < s.value_features; ++c)
          y[(h * s.queries + i) * s.value_features + c] += weight * v[(h / s.group * s.keys + j) * s.value_features + c];
      }
    }
  return y;
}

bool everything(int64_t, int64_t, int64_t) { return true; }

/// What is_causal, query_offset and window leave.
Attends attends_of(const AttentionOptions& o) {
  if (!o.is_causal) return everything;
  return [offset = o.query_offset, window = o.window](int64_t, int64_t i, int64_t j) {
    return j <= i + offset && (window == 0 || j > i + offset - window);
  };
}

Shape with_batch(Shape batch, int64_t rows, int64_t cols) {
  batch.push_back(rows);
  batch.push_back(cols);
  return batch;
}

/// What dropout multiplies the weights by: one 53-bit uniform a weight, in row-major order.
std::vector<double> dropout_factors(int64_t n, double p) {
  std::mt19937 words(kSeed);
  std::vector<double> factors;
  for (int64_t i = 0; p > 0 && i < n; ++i) {
    const uint64_t high = words(), word = high << 32 | words();
    const bool keep = static_cast<double>(word & ((uint64_t{1} << 53) - 1)) * 0x1p-53 < 1 - p;
    factors.push_back(keep ? 1 / (1 - p) : 0);
  }
  return factors;
}

OpSample sample_of(const std::string& label, const Shape& batch, Sizes s, const AttentionOptions& options = {}) {
  s.heads = batch.numel();
  Shape kv_batch = batch;
  if (s.group > 1) kv_batch[batch.rank() - 1] /= s.group;
  return {label,
          {{with_batch(batch, s.queries, s.features)},
           {with_batch(kv_batch, s.keys, s.features)},
           {with_batch(kv_batch, s.keys, s.value_features)}},
          [options](const std::vector<Tensor>& in) {
            Generator generator(kSeed);
            AttentionOptions o = options;
            o.generator = &generator;
            return scaled_dot_product_attention(in[0], in[1], in[2], o);
          },
          [=](const std::vector<Values>& in) {
            const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(s.features)));
            return naive(s, in, with_batch(batch, s.queries, s.value_features), scale, attends_of(options),
                         dropout_factors(s.heads * s.queries * s.keys, options.dropout_p));
          }};
}

/// A mask that depends on the head only through `mask[head % heads of the mask]`: bool, or floating and added to the scores; of
/// one that is added, -inf where `attended`, if there is one, is 0.
OpSample masked(const std::string& label, const Shape& batch, Sizes s, const InputSpec& mask, double dropout_p = 0,
                std::vector<double> attended = {}) {
  s.heads = batch.numel();
  const Shape& shape = mask.shape;
  const int64_t row = shape[shape.rank() - 2] == 1 ? 0 : s.keys, size = shape[shape.rank() - 2] * s.keys;
  OpSample sample = {
      label,
      {{with_batch(batch, s.queries, s.features)},
       {with_batch(batch, s.keys, s.features)},
       {with_batch(batch, s.keys, s.value_features)},
       mask},
      [dropout_p](const std::vector<Tensor>& in) {
        Generator generator(kSeed);
        const Tensor m = in.size() > 4 ? masked_fill(in[3], logical_not(in[4]), -INFINITY) : in[3];
        return scaled_dot_product_attention(in[0], in[1], in[2], {.mask = m, .dropout_p = dropout_p, .generator = &generator});
      },
      [=](const std::vector<Values>& in) {
        const int64_t masks = in[3].shape.numel() / size;
        const auto place = [=](int64_t h, int64_t i, int64_t j) { return h % masks * size + i * row + j; };
        const bool adds = is_floating(mask.dtype);
        const Attends attends = [&](int64_t h, int64_t i, int64_t j) {
          return in.size() > 4 ? in[4][place(h, i, j)] != 0 : adds || in[3][place(h, i, j)] != 0;
        };
        const Added value = [&](int64_t h, int64_t i, int64_t j) { return adds ? in[3][place(h, i, j)] : 0; };
        return naive(s, in, with_batch(batch, s.queries, s.value_features), 1 / std::sqrt(static_cast<double>(s.features)),
                     attends, dropout_factors(s.heads * s.queries * s.keys, dropout_p), value);
      }};
  if (!attended.empty()) sample.inputs.push_back({.shape = shape, .dtype = DType::boolean, .values = std::move(attended)});
  return sample;
}

InputSpec attended(const Shape& shape, std::vector<double> values) {
  return {.shape = shape, .dtype = DType::boolean, .values = std::move(values)};
}

/// q [2, 1, 3, 4] against k and v [3, 5, .]: three heads share each query.
OpSample broadcast_batch() {
  return {"batch dims repeat",
          {{{2, 1, 3, 4}}, {{3, 5, 4}}, {{1, 3, 5, 2}}},
          [](const std::vector<Tensor>& in) { return scaled_dot_product_attention(in[0], in[1], in[2]); },
          [](const std::vector<Values>& in) {
            std::vector<Values> full = {Values({6, 3, 4}), Values({6, 5, 4}), Values({6, 5, 2})};
            for (int64_t h = 0; h < 6; ++h) {
              std::copy_n(in[0].data.begin() + h / 3 * 12, 12, full[0].data.begin() + h * 12);
              std::copy_n(in[1].data.begin() + h % 3 * 20, 20, full[1].data.begin() + h * 20);
              std::copy_n(in[2].data.begin() + h % 3 * 10, 10, full[2].data.begin() + h * 10);
            }
            return naive({6, 3, 5, 4, 2}, full, {2, 3, 3, 2}, 0.5, everything, {});
          }};
}

const std::vector<double> kDeadRow = {1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0, 1, 1, 1, 1};
const std::vector<double> kTwoMasks = {1, 1, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0};

const RegisterOpCases registered([] {
  return OpCases{
      {"scaled_dot_product_attention",
       {sample_of("all keys", {1, 2}, {0, 4, 4, 3, 3}),
        sample_of("matrices", {}, {0, 3, 5, 4, 2}),
        sample_of("causal", {2, 2}, {0, 4, 4, 3, 3}, {.is_causal = true}),
        sample_of("causal with more keys", {1}, {0, 2, 4, 3, 2}, {.is_causal = true}),
        sample_of("causal with more queries", {1}, {0, 5, 2, 3, 2}, {.is_causal = true}),
        sample_of("causal over two blocks of queries", {1}, {0, 37, 37, 2, 2}, {.is_causal = true}),
        sample_of("scale", {2}, {0, 3, 3, 2, 2}, {.scale = 0.25}),
        sample_of("negative scale", {2}, {0, 3, 3, 2, 2}, {.is_causal = true, .scale = -1.5}),
        sample_of("dropout", {2, 2}, {0, 4, 4, 3, 3}, {.dropout_p = 0.4}),
        sample_of("causal with dropout", {2, 2}, {0, 4, 4, 3, 3}, {.is_causal = true, .dropout_p = 0.4}),
        sample_of("later queries", {2}, {0, 2, 5, 3, 2}, {.is_causal = true, .query_offset = 3}),
        sample_of("one later query", {2}, {0, 1, 5, 3, 2}, {.is_causal = true, .query_offset = 4}),
        sample_of("window", {2}, {0, 6, 6, 3, 2}, {.is_causal = true, .window = 3}),
        sample_of("window of one", {1}, {0, 4, 4, 3, 2}, {.is_causal = true, .window = 1}),
        sample_of("window of later queries with dropout", {2}, {0, 3, 7, 3, 2},
                  {.is_causal = true, .query_offset = 4, .window = 2, .dropout_p = 0.3}),
        sample_of("window behind the keys", {1}, {0, 6, 3, 2, 2}, {.is_causal = true, .window = 2}),
        sample_of("shared keys and values", {2, 4}, {0, 3, 3, 3, 2, 2}, {.enable_gqa = true}),
        sample_of("one head of keys and values", {1, 3}, {0, 4, 4, 3, 2, 3},
                  {.is_causal = true, .window = 3, .enable_gqa = true, .dropout_p = 0.3}),
        sample_of("groups of one", {2, 2}, {0, 3, 3, 3, 2}, {.enable_gqa = true}),
        sample_of("rank 6", {1, 2, 1, 2}, {0, 2, 3, 2, 1}),
        sample_of("no batch", {0, 2}, {0, 3, 3, 2, 2}),
        sample_of("no queries", {2}, {0, 0, 3, 2, 2}),
        sample_of("no keys", {2}, {0, 3, 0, 2, 2}),
        masked("mask", {1, 1}, {0, 4, 4, 3, 3}, attended({4, 4}, {1, 1, 0, 1, 0, 1, 0, 0, 1, 0, 1, 1, 1, 1, 1, 1})),
        masked("a row without keys", {2, 1}, {0, 4, 4, 3, 3}, attended({4, 4}, kDeadRow)),
        masked("padding mask", {3}, {0, 2, 4, 3, 2}, attended({1, 4}, {0, 1, 1, 0})),
        masked("a mask for each head", {2}, {0, 2, 3, 2, 2}, attended({2, 2, 3}, kTwoMasks)),
        masked("mask with dropout", {2, 1}, {0, 4, 4, 3, 3}, attended({4, 4}, kDeadRow), 0.3),
        masked("added mask", {2, 2}, {0, 3, 4, 3, 2}, {{3, 4}}),
        masked("added mask with a row without keys", {2, 1}, {0, 4, 4, 3, 3}, {{4, 4}}, 0, kDeadRow),
        masked("added padding mask", {3}, {0, 2, 4, 3, 2}, {{1, 4}}, 0, {0, 1, 1, 0}),
        masked("an added mask for each head", {2}, {0, 2, 3, 2, 2}, {{2, 2, 3}}, 0, kTwoMasks),
        masked("added mask over two blocks of queries", {1}, {0, 30, 3, 2, 2}, {{30, 3}}),
        masked("added mask with dropout", {2, 1}, {0, 4, 4, 3, 3}, {{4, 4}}, 0.3, kDeadRow),
        broadcast_batch()},
       {{"rank",
         [] {
           scaled_dot_product_attention(zeros(3), zeros({2, 3}), zeros({2, 3}));
         },
         "scaled_dot_product_attention: needs [..., tokens, features]: got shape [3]"},
        {"features",
         [] {
           scaled_dot_product_attention(zeros({2, 3}), zeros({2, 4}), zeros({2, 3}));
         },
         "scaled_dot_product_attention: query and key features differ: [2, 3] and [2, 4]"},
        {"tokens",
         [] {
           scaled_dot_product_attention(zeros({2, 3}), zeros({4, 3}), zeros({2, 3}));
         },
         "scaled_dot_product_attention: key and value tokens differ: [4, 3] and [2, 3]"},
        {"batch",
         [] {
           scaled_dot_product_attention(zeros({2, 4, 3}), zeros({3, 4, 3}), zeros({3, 4, 3}));
         },
         "scaled_dot_product_attention: batch dims: ", is_a<ShapeError>},
        {"dtypes",
         [] {
           scaled_dot_product_attention(zeros({2, 3}), zeros({2, 3}), zeros({2, 3}, DType::float64));
         },
         "scaled_dot_product_attention: ", is_a<DTypeError>},
        {"mask and causal",
         [] {
           scaled_dot_product_attention(zeros({2, 3}), zeros({2, 3}), zeros({2, 3}),
                                        {.mask = ones({2, 2}, DType::boolean), .is_causal = true});
         },
         "scaled_dot_product_attention: takes a mask or is_causal, not both"},
        {"groups",
         [] {
           scaled_dot_product_attention(zeros({3, 4, 2}), zeros({2, 4, 2}), zeros({2, 4, 2}), {.enable_gqa = true});
         },
         "scaled_dot_product_attention: enable_gqa needs heads of the query [..., H, T, d] that are a multiple of those of key "
         "and "
         "value: got [3, 4, 2], [2, 4, 2] and [2, 4, 2]"},
        {"window without causal",
         [] {
           scaled_dot_product_attention(zeros({2, 3}), zeros({2, 3}), zeros({2, 3}), {.window = 2});
         },
         "scaled_dot_product_attention: window and query_offset go with is_causal: got window=2, query_offset=0"},
        {"negative window",
         [] {
           scaled_dot_product_attention(zeros({2, 3}), zeros({2, 3}), zeros({2, 3}), {.is_causal = true, .window = -1});
         },
         "scaled_dot_product_attention: window and query_offset cannot be negative: got -1 and 0"},
        {"offset too large",
         [] {
           scaled_dot_product_attention(zeros({2, 3}), zeros({2, 3}), zeros({2, 3}),
                                        {.is_causal = true, .query_offset = INT64_MAX - 2});
         },
         "scaled_dot_product_attention: query_offset is too large for 2 queries: got 9223372036854775805"},
        {"mask dtype",
         [] {
           scaled_dot_product_attention(zeros({2, 3}), zeros({2, 3}), zeros({2, 3}), {.mask = ones({2, 2}, DType::int64)});
         },
         "scaled_dot_product_attention: the mask must be bool (true = may attend) or float32 as the query (added to the "
         "scores): "
         "got int64"},
        {"mask shape",
         [] {
           scaled_dot_product_attention(zeros({2, 3}), zeros({2, 3}), zeros({2, 3}), {.mask = ones({3, 2}, DType::boolean)});
         },
         "scaled_dot_product_attention: ", is_a<ShapeError>},
        {"dropout",
         [] {
           scaled_dot_product_attention(zeros({2, 3}), zeros({2, 3}), zeros({2, 3}), {.dropout_p = 2.0});
         },
         "scaled_dot_product_attention: dropout_p must lie in [0, 1]: got 2"}}}};
});

}  // namespace
}  // namespace onestep
