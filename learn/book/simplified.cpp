// Section 3.3: attention without trained weights.
#include "attention/self_attention.h"
#include "learn/book/sections.h"

namespace onestep::book {

using attention::naive_context;
using attention::naive_scores;
using attention::naive_softmax;
using attention::SimplifiedSelfAttention;
using attention::sum_normalized;

Tensor journey() {
  return tensor(
      {{0.43, 0.15, 0.89}, {0.55, 0.87, 0.66}, {0.57, 0.85, 0.64}, {0.22, 0.58, 0.33}, {0.77, 0.25, 0.10}, {0.05, 0.80, 0.55}});
}

namespace {

Tensor scores_one_by_one(Page& page, const Tensor& inputs) {
  page.note("The query is token 2. Its score with a token is their dot product: here with token 1, number by number.");
  SHOW(x1, "x1_row", inputs[0]);
  SHOW(query, "x2_row", inputs[1]);
  SHOW(x1_numbers, "dot_x1_elements", x1.to_vector<double>());
  SHOW(query_numbers, "dot_query_elements", query.to_vector<double>());
  SHOW(products, "", x1 * query);
  SHOW(product_numbers, "dot_products", products.to_vector<double>());
  SHOW(running_sum, "dot_sum", products[0] + products[1] + products[2]);
  SHOW(score_1, "dot_full", dot(x1, query).item());
  page.note("The same for every token, in a loop.");
  SHOW(scores, "simple_scores_q2 scores_q2_in_formula_1 scores_q2_in_formula_2 scores_q2_in_formula_3",
       naive_scores(query, inputs));
  return scores;
}

Tensor weights_three_ways(Page& page, const Tensor& scores) {
  page.note("Weights are scores made to sum to 1. First way: divide by the sum.");
  SHOW(by_sum, "simple_w_lin", sum_normalized(scores));
  SHOW(by_sum_total, "simple_w_lin_sum", sum(by_sum));
  page.note("Second way: exponentials first, so that no weight is negative.");
  SHOW(by_exp, "simple_w_naive", naive_softmax(scores));
  SHOW(by_exp_total, "simple_w_naive_sum", sum(by_exp));
  page.note("Third way: softmax, the same function, safe from overflow because it subtracts the maximum.");
  SHOW(weights, "simple_w_soft simple_w_soft_printed_again w_soft_in_formula_1 w_soft_in_formula_2", softmax(scores, 0));
  SHOW(total, "simple_w_soft_sum", sum(weights));
  SHOW(weight_numbers, "simple_w_soft_full", weights.to_vector<double>());
  return weights;
}

}  // namespace

void simplified_one_query(Page& page) {
  page.note("\"Your journey starts with one step\": six tokens, each an embedding of three numbers.");
  SHOW(inputs, "inputs inputs_printed inputs_printed_2 inputs_in_formula ctx_q2_input_rows", journey());
  SHOW(token_count, "row_count", inputs.size(0));
  const Tensor scores = scores_one_by_one(page, inputs);
  const Tensor weights = weights_three_ways(page, scores);
  page.note("The context vector of token 2: every token times its weight, summed.");
  SHOW(terms, "ctx_q2_terms", weights.unsqueeze(1) * inputs);
  SHOW(context, "simple_ctx_q2 ctx_q2_in_text", naive_context(weights, inputs));
  SHOW(first_number, "ctx_q2_cut_off", context.slice(0, 0, 1));
  page.note("A notebook's slip: its loop runs over the three numbers of token 2 instead of the six tokens.");
  SHOW(mistaken, "ctx_mistaken ctx_mistaken_in_formula", sum(weights.slice(0, 0, 3) * inputs[1]).expand({6}));
}

void simplified_all_queries(Page& page) {
  RUN(const Tensor inputs = journey());
  page.note("Scores of every token with every token, by two loops and as one matrix product.");
  SHOW(scores_by_loops, "simple_scores_loops", naive_scores(inputs));
  SHOW(scores, "simple_scores_mm", matmul(inputs, inputs.t()));
  page.note("Each row of weights sums to 1.");
  SHOW(weights, "simple_weights_all", softmax(scores, -1));
  SHOW(row_2, "row2_addends", tensor({0.1385, 0.2379, 0.2333, 0.1240, 0.1082, 0.1581}, DType::float64));
  SHOW(row_2_sum, "simple_row2_sum", sum(row_2).item());
  SHOW(row_sums, "simple_row_sums", sum(weights, -1));
  page.note("Context vectors of all tokens; the second is the one found above.");
  SHOW(contexts, "simple_ctx_all", matmul(weights, inputs));
  SHOW(context_2, "simple_ctx_q2", contexts[1]);
  page.note("The same as a module.");
  SHOW(module_contexts, "simple_ctx_all", SimplifiedSelfAttention(3)(inputs));
}

}  // namespace onestep::book
