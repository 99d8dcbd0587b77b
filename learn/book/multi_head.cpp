// Section 3.6: several heads.
#include "attention/mask.h"
#include "attention/multi_head_attention.h"
#include "learn/book/sections.h"

namespace onestep::book {

using attention::masked_attention_weights;
using attention::merge_heads;
using attention::MultiHeadAttention;
using attention::MultiHeadAttentionWrapper;
using attention::split_heads;

void multi_head_wrapper(Page& page) {
  RUN(const Tensor batch = stack({journey(), journey()}));
  page.note("Two causal heads with weights of their own; their results are concatenated.");
  RUN(Generator generator(123));
  RUN(const MultiHeadAttentionWrapper wrapper(/*d_in=*/3, /*d_out=*/2, /*context_length=*/6, /*dropout=*/0.0, /*num_heads=*/2,
                                              false, generator));
  SHOW(context, "mha_wrapper", wrapper(batch));
  SHOW(context_shape, "mha_wrapper_shape", context.shape());
  SHOW(width, "mha_width_in_text", wrapper.d_out());
}

namespace {

/// The forward pass of `mha` step by step.
void split_steps(Page& page, const MultiHeadAttention& mha, const Tensor& batch) {
  page.note("Inside: one projection for all heads, split into heads by a view, heads moved before tokens.");
  SHOW(queries, "", mha.W_query(batch));
  SHOW(query_heads, "", split_heads(queries, mha.num_heads()));
  RUN(const Tensor key_heads = split_heads(mha.W_key(batch), mha.num_heads()));
  RUN(const Tensor value_heads = split_heads(mha.W_value(batch), mha.num_heads()));
  SHOW(head_shape, "", query_heads.shape());
  page.note("All heads of all texts in one 4-D product.");
  RUN(const Tensor scores = matmul(query_heads, key_heads.transpose(2, 3)));
  SHOW(scores_shape, "", scores.shape());
  SHOW(weights, "", masked_attention_weights(scores, mha.mask, mha.head_dim()));
  page.note("The heads concatenated again, then mixed by the output projection.");
  SHOW(merged, "", merge_heads(matmul(weights, value_heads)));
  SHOW(projected, "mha", mha.out_proj(merged));
}

/// Matrix products of a 4-D tensor are products of its last two dims.
void products_by_head(Page& page) {
  page.note("What a 4-D product does: one matrix product for each head.");
  SHOW(a, "headwise_a",
       tensor({{{{0.2745, 0.6584, 0.2775, 0.8573}, {0.8993, 0.0390, 0.9268, 0.7388}, {0.7179, 0.7058, 0.9156, 0.4340}},
                {{0.0772, 0.3565, 0.1479, 0.5331}, {0.4066, 0.2318, 0.4545, 0.9737}, {0.4606, 0.5159, 0.4220, 0.5786}}}}));
  SHOW(a_shape, "headwise_a_shape_in_comment", a.shape());
  SHOW(product, "headwise_product", matmul(a, a.transpose(2, 3)));
  SHOW(first_head, "headwise_first", matmul(a[0][0], a[0][0].t()));
  SHOW(second_head, "headwise_second", matmul(a[0][1], a[0][1].t()));
}

}  // namespace

void multi_head_split(Page& page) {
  SHOW(batch, "mha_batch", stack({journey(), journey()}));
  SHOW(batch_shape, "mha_batch_shape", batch.shape());
  SHOW(batch_size, "mha_batch_size", batch.size(0));
  SHOW(context_length, "mha_context_length", batch.size(1));
  SHOW(d_in, "mha_d_in", batch.size(2));
  RUN(Generator generator(123));
  RUN(const MultiHeadAttention mha(d_in, /*d_out=*/2, context_length, /*dropout=*/0.0, /*num_heads=*/2, false, generator));
  SHOW(d_out, "mha_d_out", mha.d_out());
  SHOW(dropout, "mha_dropout_p", mha.dropout.p());
  SHOW(arguments, "mha_call_args", tensor({mha.d_in(), mha.d_out(), mha.mask.size(0), mha.dropout.p(), mha.num_heads()}));
  SHOW(description, "", mha.repr());
  page.note("Inputs and outputs of its four Linear layers.");
  SHOW(sizes, "mha_linear_sizes",
       std::vector<Shape>{mha.W_query.weight.t().shape(), mha.W_key.weight.t().shape(), mha.W_value.weight.t().shape(),
                          mha.out_proj.weight.t().shape()});
  SHOW(query_weight, "", mha.W_query.weight);
  SHOW(first_weight, "mha_query_weight_cut_off", query_weight[0].slice(0, 0, 1));
  SHOW(context, "mha", mha(batch));
  SHOW(context_shape, "mha_shape", context.shape());
  split_steps(page, mha, batch);
  products_by_head(page);
}

void gpt2_size(Page& page) {
  page.note("The smallest GPT-2: 768 features in 12 heads, up to 1024 tokens.");
  RUN(Generator generator(123));
  RUN(const MultiHeadAttention mha(/*d_in=*/768, /*d_out=*/768, /*context_length=*/1024, /*dropout=*/0.0, /*num_heads=*/12,
                                   false, generator));
  SHOW(description, "", mha.repr());
  SHOW(head_dim, "", mha.head_dim());
  page.note("Four matrices of 768 x 768 and the bias of the output projection.");
  SHOW(num_parameters, "", mha.num_parameters());
  SHOW(counted_by_hand, "", int64_t{4} * 768 * 768 + 768);
  SHOW(context_shape, "", mha(randn({1, 1024, 768}, generator)).shape());
}

}  // namespace onestep::book
