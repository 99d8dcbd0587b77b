#include "attention/self_attention.h"
#include "learn/exercises/checks/check.h"

namespace exercises {
namespace {

const double kInf = std::numeric_limits<double>::infinity();

Tensor weights(const Tensor& scores, double divisor, const Tensor& mask) {
  return softmax(scores.masked_fill(mask, -kInf) / divisor, -1);
}

Tensor future(int64_t T, int64_t diagonal = 1) { return triu(ones({T, T}, DType::boolean), diagonal); }

/// What well-known mistakes give.
std::vector<Mistake> mistakes(const Tensor& scores, int64_t d_k) {
  const int64_t T = scores.size(-1);
  const double root = std::sqrt(static_cast<double>(d_k));
  const Tensor unmasked = softmax(scores / root, -1);
  return {
      {unmasked, "every token still attends to the later ones"},
      {unmasked * tril(ones({T, T}, scores.dtype())),
       "the weights of later tokens are 0, but rows no longer sum to 1: they were set to 0 after the softmax had counted them"},
      {softmax(tril(scores) / root, -1), "the scores of later tokens are set to 0, but exp(0) is 1: a weight above 0"},
      {weights(scores, root, future(T).t()), "it is the past that is masked: the mask is transposed"},
      {weights(scores, root, future(T, 0)),
       "a token does not attend to itself, and the first one to nothing at all: the mask begins above the diagonal (diagonal = "
       "1)"},
      {weights(scores, root, future(T, 2)), "a token still attends to the next one: the mask begins one place too late"},
      {weights(scores, 1, future(T)), "the mask is right; the division by sqrt(d_k) is lost"}};
}

void check_book() {
  Generator generator(789);
  const attention::SelfAttention_v2 v2(3, 2, false, generator);
  const Tensor scores = matmul(v2.W_query(journey()), v2.W_key(journey()).t()).detach();
  require_printed(causal_weights(scores.clone(), 2), "sa2_causal_weights", mistakes(scores, 2));
}

void check_batch() {
  const Tensor scores = random_leaf({2, 3, 4, 4}, 1).detach();
  require_close(causal_weights(scores.clone(), 9), weights(scores, 3, future(4)), mistakes(scores, 9));
}

/// Whatever a later token's score is, it must not even be counted.
void check_large_future() {
  const Tensor scores = random_leaf({4, 4}, 2).detach().masked_fill(future(4), 1000);
  const Tensor zeroed = softmax(scores, -1) * tril(ones({4, 4}, scores.dtype()));
  require_close(
      causal_weights(scores.clone(), 1), weights(scores, 1, future(4)),
      {{zeroed / sum(zeroed, {-1}, true),
        "the softmax still counts the later tokens: beside a score of 1000 all others become 0, and rows 0 / 0 = NaN"}});
}

const Register registered{{"04_causal_mask",
                           "the causal mask",
                           "triu(ones({T, T}, DType::boolean), 1) is true above the diagonal; exp of which score is 0?",
                           {{"the causal weights of the book", check_book},
                            {"any number of tokens, for batches and heads", check_batch},
                            {"a later token's score of 1000 does not count", check_large_future},
                            {"gradients", [] {
                               require_gradients([](const std::vector<Tensor>& in) { return causal_weights(in[0], 4); },
                                                 {random_leaf({3, 3}, 1)}, {"the scores"});
                             }}}}};

}  // namespace
}  // namespace exercises
