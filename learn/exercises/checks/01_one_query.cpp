#include "learn/exercises/checks/check.h"

namespace exercises {
namespace {

/// What well-known mistakes give.
std::vector<Mistake> mistakes(const Tensor& inputs, int64_t query) {
  const Tensor scores = matmul(inputs, inputs[query]);
  return {{mean(inputs, {0}), "every token has the same weight: the scores with the query are not used yet"},
          {inputs[query], "this is the query itself: sum all tokens, each times its weight"},
          {matmul(scores, inputs), "the scores are used as they are: softmax makes weights of them that sum to 1"},
          {matmul(scores / sum(scores), inputs), "the weights sum to 1, but they are made by a division: use softmax"}};
}

const Register registered{{"01_one_query",
                           "the context of one token",
                           "matmul of a matrix [T, d] and a vector [d] gives T dot products; softmax takes a dim",
                           {{"the token \"journey\" has the context of the book",
                             [] { require_printed(context_of(journey(), 1), "simple_ctx_q2", mistakes(journey(), 1)); }},
                            {"so have all other tokens",
                             [] {
                               std::vector<Tensor> rows;
                               for (int64_t t = 0; t < 6; ++t) rows.push_back(context_of(journey(), t));
                               require_printed(stack(rows), "simple_ctx_all");
                             }},
                            {"any number of tokens and features", [] {
                               const Tensor x = random_leaf({4, 5}, 1).detach();
                               require_close(context_of(x, 3), matmul(softmax(matmul(x, x[3]), 0), x));
                             }}}}};

}  // namespace
}  // namespace exercises
