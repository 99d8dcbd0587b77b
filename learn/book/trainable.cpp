// Section 3.4: attention with trained weights.
#include <cmath>

#include "attention/self_attention.h"
#include "learn/book/sections.h"

namespace onestep::book {

using attention::SelfAttention_v1;
using attention::SelfAttention_v2;

void trainable_steps(Page& page) {
  RUN(const Tensor inputs = journey());
  page.note("Three matrices, drawn uniformly from [0, 1): tokens of width 3 become queries, keys and values of width 2.");
  RUN(Generator generator(123));
  SHOW(W_query, "", rand({3, 2}, generator));
  SHOW(W_key, "", rand({3, 2}, generator));
  SHOW(W_value, "", rand({3, 2}, generator));
  page.note("Query, key and value of token 2.");
  SHOW(query_2, "qkv_query_2 qkv_query_2_again qkv_query_2_third", matmul(inputs[1], W_query));
  SHOW(key_2, "qkv_key_2", matmul(inputs[1], W_key));
  SHOW(value_2, "qkv_value_2", matmul(inputs[1], W_value));
  page.note("Its context needs the keys and values of all tokens.");
  SHOW(keys, "qkv_keys", matmul(inputs, W_key));
  SHOW(values, "qkv_values", matmul(inputs, W_value));
  SHOW(query_2_shape, "query_2_shape", query_2.shape());
  SHOW(keys_shape, "keys_shape", keys.shape());
  SHOW(values_shape, "values_shape", values.shape());
  page.note("The score of token 2 with itself, then with all tokens.");
  SHOW(score_22, "qkv_score_22", dot(query_2, keys[1]));
  SHOW(score_22_number, "qkv_score_22_full", score_22.item());
  SHOW(scores_2, "qkv_scores_2", matmul(query_2, keys.t()));
  page.note("Scores are divided by the square root of the key width before the softmax.");
  SHOW(d_k, "", keys.size(-1));
  SHOW(weights_2, "qkv_weights_2", softmax(scores_2 / std::sqrt(d_k), -1));
  SHOW(weights_2_sum, "qkv_weights_2_sum", sum(weights_2));
  page.note("The context vector of token 2.");
  SHOW(context_2, "qkv_context_2", matmul(weights_2, values));
}

void trainable_modules(Page& page) {
  RUN(const Tensor inputs = journey());
  page.note("The steps above as a module, for all tokens.");
  RUN(Generator generator(123));
  RUN(SelfAttention_v1 v1(3, 2, generator));
  SHOW(context_v1, "self_attention_v1", v1(inputs));
  SHOW(context_2, "qkv_context_2", context_v1[1]);
  page.note("With Linear layers, whose initial values are better: other numbers from another seed.");
  RUN(generator.manual_seed(789));
  RUN(const SelfAttention_v2 v2(3, 2, false, generator));
  SHOW(context_v2, "self_attention_v2", v2(inputs));
  page.note("A Linear layer stores its weights transposed: with these weights both modules are the same function.");
  RUN(v1.load_state_dict(
      {{"W_query", v2.W_query.weight.t()}, {"W_key", v2.W_key.weight.t()}, {"W_value", v2.W_value.weight.t()}}));
  SHOW(context_v1_with_v2, "self_attention_v2", v1(inputs));
}

}  // namespace onestep::book
