// A notebook's worked example of multi-head attention: one text of 3 tokens, 6 features, 2 heads, in float64. It makes up its
// new numbers at steps 4, 5 and 6, so they do not follow from each other; from step 7 on it computes.
#include <cmath>
#include <limits>

#include "attention/mask.h"
#include "attention/multi_head_attention.h"
#include "learn/book/sections.h"

namespace onestep::book {

using attention::causal_mask;
using attention::masked_attention_weights;
using attention::merge_heads;
using attention::MultiHeadAttention;
using attention::split_heads;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// To four decimals, as one types them from a page.
Tensor as_printed(const Tensor& x) {
  std::vector<double> values = x.to_vector<double>();
  for (double& v : values) v = std::round(v * 1e4) / 1e4;
  return from_values(values, x.shape());
}

/// Steps 1 to 4: projections.
void projections(Page& page) {
  page.note("Step 1: the input, one text of three tokens.");
  SHOW(x, "x",
       tensor({{{1.0, 2.0, 3.0, 4.0, 5.0, 6.0}, {6.0, 5.0, 4.0, 3.0, 2.0, 1.0}, {1.0, 1.0, 1.0, 1.0, 1.0, 1.0}}},
              DType::float64));
  SHOW(x_shape, "step1_shape", x.shape());
  page.note("Step 2: d_out = 6 in two heads.");
  SHOW(head_dim, "head_dim", MultiHeadAttention(6, /*d_out=*/6, 3, 0.0, /*num_heads=*/2).head_dim());
  page.note("Step 3: the weights.");
  SHOW(Wq, "wq",
       tensor({{0.4993, 0.2528, 0.9087, 0.4387, 0.0761, 0.6710},
               {0.4096, 0.0766, 0.3847, 0.5818, 0.5646, 0.5658},
               {0.2798, 0.7151, 0.1058, 0.6133, 0.2456, 0.3947},
               {0.5394, 0.9090, 0.6069, 0.5502, 0.2611, 0.0625},
               {0.9705, 0.0770, 0.5557, 0.5505, 0.4124, 0.5342},
               {0.1674, 0.8521, 0.7174, 0.2237, 0.0440, 0.4619}},
              DType::float64));
  SHOW(Wk, "wk",
       tensor({{0.2858, 0.4111, 0.6800, 0.7871, 0.7942, 0.9427},
               {0.2936, 0.8079, 0.2960, 0.4484, 0.4080, 0.0224},
               {0.6710, 0.9872, 0.1064, 0.0914, 0.7141, 0.2901},
               {0.4991, 0.7919, 0.2702, 0.5881, 0.2960, 0.7207},
               {0.2867, 0.9855, 0.7803, 0.1783, 0.6278, 0.9921},
               {0.7149, 0.9552, 0.8109, 0.9274, 0.8857, 0.5978}},
              DType::float64));
  SHOW(Wv, "wv",
       tensor({{0.0403, 0.9850, 0.9636, 0.2161, 0.2303, 0.7819},
               {0.6405, 0.3427, 0.0892, 0.8515, 0.8595, 0.4642},
               {0.8738, 0.0162, 0.1105, 0.0801, 0.5262, 0.2379},
               {0.0604, 0.5162, 0.9510, 0.8857, 0.4536, 0.1404},
               {0.3554, 0.6543, 0.0071, 0.3822, 0.7250, 0.8788},
               {0.4789, 0.0458, 0.6999, 0.9771, 0.9141, 0.1221}},
              DType::float64));
  SHOW(weight_shape, "step3_weight_shape", Wq.shape());
  page.note("Step 4: what x times the weights is ...");
  SHOW(queries, "corrected_x_wq", matmul(x, Wq));
  SHOW(keys, "corrected_x_wk", matmul(x, Wk));
  SHOW(values, "corrected_x_wv", matmul(x, Wv));
  SHOW(queries_shape, "step4_shape", queries.shape());
  page.note("... and the numbers that stand for it on the page.");
  SHOW(made_up_queries, "step4_queries",
       tensor({{{0.9763, 0.3485, 0.3802, 0.3914, 0.2063, 0.8732},
                {0.7284, 0.0698, 0.4273, 0.5182, 0.3345, 0.5293},
                {0.0566, 0.5583, 0.0058, 0.6483, 0.8398, 0.5502}}},
              DType::float64));
  SHOW(made_up_keys, "step4_keys",
       tensor({{{0.0429, 0.5595, 0.3988, 0.1734, 0.0249, 0.3626},
                {0.5859, 0.9974, 0.0444, 0.3262, 0.6001, 0.3775},
                {0.8944, 0.9160, 0.1576, 0.2976, 0.8728, 0.2907}}},
              DType::float64));
  SHOW(made_up_values, "step4_values",
       tensor({{{0.4535, 0.7414, 0.1504, 0.6988, 0.6502, 0.8611},
                {0.5290, 0.1509, 0.2134, 0.8503, 0.3689, 0.2023},
                {0.1310, 0.2897, 0.6613, 0.5790, 0.4172, 0.6829}}},
              DType::float64));
}

/// Step 5: the features of each token split into heads.
void unrolled(Page& page) {
  page.note("Step 5: the features of each token, split into two heads.");
  SHOW(queries_5, "step5_queries",
       tensor({{{{0.8767, 0.2653, 0.2036}, {0.8964, 0.0012, 0.1222}},
                {{0.8092, 0.0758, 0.8391}, {0.7259, 0.9211, 0.7165}},
                {{0.4710, 0.6952, 0.8075}, {0.8630, 0.5784, 0.2735}}}},
              DType::float64));
  SHOW(keys_5, "step5_keys",
       tensor({{{{0.5248, 0.3205, 0.2382}, {0.0070, 0.7636, 0.3844}},
                {{0.9814, 0.8952, 0.4943}, {0.5488, 0.1439, 0.4917}},
                {{0.6674, 0.5351, 0.6264}, {0.9059, 0.3096, 0.5012}}}},
              DType::float64));
  SHOW(values_5, "step5_values",
       tensor({{{{0.8743, 0.3415, 0.7396}, {0.6737, 0.4974, 0.9672}},
                {{0.5274, 0.0807, 0.9981}, {0.4811, 0.3248, 0.2939}},
                {{0.1379, 0.6857, 0.7784}, {0.5672, 0.6477, 0.1868}}}},
              DType::float64));
  SHOW(shape_before, "step5_shapes", queries_5.reshape({1, 3, 6}).shape());
  SHOW(shape_after, "step5_shapes_after", queries_5.reshape({1, 3, 6}).view({1, 3, 2, 3}).shape());
  page.note("Step 6: heads before tokens. split_heads does both steps.");
  SHOW(shapes, "step6_shapes", std::vector<Shape>{queries_5.shape(), queries_5.transpose(1, 2).shape()});
  SHOW(split_shape, "", split_heads(queries_5.reshape({1, 3, 6}), 2).shape());
}

/// Steps 8 and 9 from `scores`: the context, heads first.
Tensor context_steps(Page& page, const Tensor& scores, const Tensor& values, const Tensor& dropout_mask) {
  page.note("Step 8: later tokens masked, scores divided by sqrt(head_dim), softmax.");
  SHOW(scaled, "corrected_scaled_scores", scores.masked_fill(causal_mask(3), -kInfinity) / std::sqrt(3));
  SHOW(weights, "corrected_attention_weights", softmax(scaled, -1));
  SHOW(module_weights, "corrected_attention_weights", masked_attention_weights(scores.clone(), causal_mask(3), /*d_k=*/3));
  page.note("Dropout with p = 0.5: the weights that are not dropped are doubled.");
  SHOW(dropped, "corrected_dropped_weights", weights * dropout_mask / (1 - 0.5));
  page.note("Step 9: the context vectors, without that dropout.");
  SHOW(context, "corrected_context", matmul(weights, values));
  return context;
}

/// The same as the page has it: its digits follow from scores already rounded to four decimals.
Tensor context_steps_as_printed(Page& page, const Tensor& rounded_scores, const Tensor& values, const Tensor& dropout_mask) {
  page.note("Step 8 as printed: the page continues from the scores that it shows, with four decimals.");
  SHOW(printed_scaled, "scaled_scores", rounded_scores.masked_fill(causal_mask(3), -kInfinity) / std::sqrt(3));
  SHOW(printed_weights, "attention_weights attention_weights_again", softmax(printed_scaled, -1));
  page.note("The same dropout mask.");
  SHOW(printed_dropped, "dropped_weights", printed_weights * dropout_mask / (1 - 0.5));
  page.note("Step 9 as printed.");
  SHOW(printed_context, "context", matmul(printed_weights, values));
  return printed_context;
}

/// Steps 10 and 11: the heads concatenated.
void merging(Page& page, const Tensor& context, const Tensor& printed_context) {
  page.note("Step 10: tokens before heads again.");
  SHOW(token_major, "context_token_major", printed_context.transpose(1, 2));
  SHOW(shapes, "step10_shapes", std::vector<Shape>{printed_context.shape(), token_major.shape()});
  page.note("Step 11 as printed: flattened without step 10, which mixes the heads of different tokens.");
  SHOW(mixed_shape_before, "step11_shape_before", printed_context.shape());
  SHOW(mixed, "context_flat", printed_context.reshape({1, 3, 6}));
  page.note("Step 11 done right: the heads of each token concatenated.");
  SHOW(shape_before, "", context.transpose(1, 2).shape());
  SHOW(flat, "corrected_context_flat", context.transpose(1, 2).reshape({1, 3, 6}));
  SHOW(shape_after, "step11_shape_after", flat.shape());
  SHOW(merged, "corrected_context_flat", merge_heads(context));
}

}  // namespace

void worked_example(Page& page) {
  projections(page);
  unrolled(page);
  page.note("From here on with the numbers that the page shows after step 6.");
  SHOW(queries, "step6_queries step7_queries",
       tensor({{{{0.0299, 0.7057, 0.1425}, {0.5029, 0.6294, 0.3265}, {0.8386, 0.7803, 0.8877}},
                {{0.0808, 0.7281, 0.7343}, {0.5948, 0.8757, 0.6526}, {0.8280, 0.1269, 0.9827}}}},
              DType::float64));
  SHOW(keys, "step6_keys",
       tensor({{{{0.2260, 0.7611, 0.6772}, {0.7446, 0.4209, 0.6467}, {0.4521, 0.1769, 0.1615}},
                {{0.6787, 0.7103, 0.8188}, {0.5338, 0.8099, 0.9866}, {0.0227, 0.4601, 0.4753}}}},
              DType::float64));
  SHOW(values, "step6_values values_again",
       tensor({{{{0.8375, 0.7430, 0.8563}, {0.1214, 0.1560, 0.0729}, {0.1887, 0.9912, 0.1640}},
                {{0.7458, 0.6515, 0.1220}, {0.6801, 0.4366, 0.6720}, {0.8135, 0.6831, 0.7280}}}},
              DType::float64));
  page.note("Step 7: scores in each head.");
  SHOW(keys_transposed, "step7_keys_transposed", keys.transpose(2, 3));
  SHOW(scores, "attention_scores corrected_attention_scores", matmul(queries, keys_transposed));
  SHOW(shapes, "step7_shapes", std::vector<Shape>{queries.shape(), keys_transposed.shape(), scores.shape()});
  SHOW(masked, "masked_scores", scores.masked_fill(causal_mask(3), -kInfinity));
  page.note("The page does not say from which seed its dropout mask comes, so it is written out here.");
  SHOW(dropout_mask, "", tensor({{{{0, 0, 0}, {1, 0, 0}, {1, 0, 1}}, {{0, 0, 0}, {0, 1, 0}, {1, 1, 0}}}}, DType::float64));
  const Tensor context = context_steps(page, scores, values, dropout_mask);
  RUN(const Tensor rounded_scores = as_printed(scores));
  const Tensor printed_context = context_steps_as_printed(page, rounded_scores, values, dropout_mask);
  merging(page, context, printed_context);
}

}  // namespace onestep::book
