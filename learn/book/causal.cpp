// Section 3.5: causal attention.
#include <cmath>
#include <limits>

#include "attention/causal_attention.h"
#include "attention/mask.h"
#include "attention/self_attention.h"
#include "learn/book/sections.h"

namespace onestep::book {

using attention::causal_mask;
using attention::CausalAttention;
using attention::masked_attention_weights;
using attention::SelfAttention_v2;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Queries times keys of the module that `seed` builds: [T, d_in] -> [T, T].
Tensor v2_scores(const Tensor& inputs, int64_t seed) {
  Generator generator(seed);
  const SelfAttention_v2 v2(inputs.size(1), 2, false, generator);
  return matmul(v2.W_query(inputs), v2.W_key(inputs).t());
}

}  // namespace

void causal_masks(Page& page) {
  RUN(const Tensor inputs = journey());
  page.note("Scores and weights of SelfAttention_v2 from seed 789; nothing is masked yet.");
  RUN(Generator generator(789));
  RUN(const SelfAttention_v2 v2(3, 2, false, generator));
  RUN(const Tensor scores = matmul(v2.W_query(inputs), v2.W_key(inputs).t()));
  SHOW(weights, "sa2_weights", softmax(scores / std::sqrt(2), -1));
  page.note("First way: set the weights above the diagonal to zero and make each row sum to 1 again.");
  SHOW(lower_triangle, "tril_mask", tril(ones({6, 6})));
  SHOW(zeroed, "sa2_weights_masked", weights * lower_triangle);
  SHOW(renormalised, "sa2_weights_masked_norm", zeroed / sum(zeroed, -1, /*keepdim=*/true));
  page.note("Second way: set the scores above the diagonal to -inf, which softmax turns into zeros.");
  SHOW(masked, "sa2_scores_neg_inf", scores.masked_fill(causal_mask(6), -kInfinity));
  SHOW(causal_weights, "sa2_causal_weights", softmax(masked / std::sqrt(2), -1));
  page.note("Third way: the function that the modules call; it also handles a row whose keys are all masked.");
  SHOW(module_weights, "sa2_causal_weights", masked_attention_weights(scores, causal_mask(6), /*d_k=*/2));
  page.note("A notebook that does not seed here shows the numbers of seed 123. v2_scores: the scores as above, for any seed.");
  RUN(const Tensor other_scores = v2_scores(inputs, 123));
  SHOW(other_weights, "sa2_weights_unseeded", softmax(other_scores / std::sqrt(2), -1));
  SHOW(other_causal, "sa2_causal_weights_unseeded", masked_attention_weights(other_scores, causal_mask(6), /*d_k=*/2));
}

void dropout_masks(Page& page) {
  RUN(const Tensor inputs = journey());
  page.note(
      "With probability p a weight becomes 0; the others are scaled by 1 / (1 - p), so that sums stay the same on average.");
  RUN(const double p = 0.5);
  SHOW(scale, "dropout_scale_in_text", 1 / (1 - p));
  RUN(const Tensor causal_weights = masked_attention_weights(v2_scores(inputs, 789), causal_mask(6), /*d_k=*/2));
  RUN(const Tensor other_causal = masked_attention_weights(v2_scores(inputs, 123), causal_mask(6), /*d_k=*/2));
  for (const RngDialect dialect : page.dialects()) {
    page.set_dialect(dialect);
    page.note(std::string("Masks of dialect ") + name(dialect) +
              (dialect == RngDialect::torch ? " (PyTorch 2.7 and later, and all CPUs but Intel's)."
                                            : " (older PyTorch on Intel CPUs)."));
    RUN(Generator generator(123, dialect));
    RUN(const nn::Dropout dropout(p, generator));
    SHOW(dropped_ones, "dropout_ones", dropout(ones({6, 6})));
    RUN(generator.manual_seed(123));
    SHOW(dropped_weights, "dropout_causal", dropout(causal_weights));
    RUN(generator.manual_seed(123));
    SHOW(dropped_other, "dropout_causal_unseeded", dropout(other_causal));
  }
}

void causal_module(Page& page) {
  page.note("A batch: the same text twice.");
  RUN(const Tensor inputs = journey());
  SHOW(batch, "batch", stack({inputs, inputs}));
  SHOW(batch_shape, "batch_shape formula_batch_shape", batch.shape());
  page.note("Mask and dropout in one module; with dropout 0 nothing is drawn.");
  RUN(Generator generator(123));
  RUN(const CausalAttention attention(/*d_in=*/3, /*d_out=*/2, /*context_length=*/6, /*dropout=*/0.0, false, generator));
  SHOW(context, "causal_attention", attention(batch));
  SHOW(context_shape, "causal_attention_shape causal_attention_shape_in_text", context.shape());
  page.note("Shapes of the intermediate results, for one text of the batch.");
  SHOW(queries_shape, "", attention.W_query(batch[0]).shape());
  SHOW(scores_shape, "formula_scores_shape", matmul(attention.W_query(batch[0]), attention.W_key(batch[0]).t()).shape());
  SHOW(weights_shape, "formula_weights_shape", attention.forward_with_weights(batch[0]).weights.shape());
  SHOW(context_0_shape, "", context[0].shape());
  page.note("The shapes in a notebook's formulas are those of d_out = 3; its own module has d_out = 2.");
  RUN(const CausalAttention wide(/*d_in=*/3, /*d_out=*/3, /*context_length=*/6, /*dropout=*/0.0, false, generator));
  SHOW(wide_queries_shape, "formula_qkv_shape", wide.W_query(batch[0]).shape());
  SHOW(wide_context_0_shape, "formula_context_item_shape", wide(batch[0]).shape());
  SHOW(wide_context_shape, "formula_context_shape", wide(batch).shape());
}

}  // namespace onestep::book
