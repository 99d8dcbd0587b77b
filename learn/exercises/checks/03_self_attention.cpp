#include "learn/exercises/checks/check.h"

namespace exercises {
namespace {

struct Given {
  Tensor x, W_query, W_key, W_value;
};

Tensor attention(const Given& g, double divisor, int64_t dim = -1, bool mix_keys = false) {
  const Tensor keys = matmul(g.x, g.W_key);
  const Tensor weights = softmax(matmul(matmul(g.x, g.W_query), keys.t()) / divisor, dim);
  return matmul(weights, mix_keys ? keys : matmul(g.x, g.W_value));
}

/// What well-known mistakes give.
std::vector<Mistake> mistakes(const Given& g) {
  const auto d_k = static_cast<double>(g.W_key.size(1)), d_in = static_cast<double>(g.x.size(1));
  const auto tokens = static_cast<double>(g.x.size(0));
  return {{attention(g, 1, -1, true), "the weights multiply the keys, and the scores are not divided: multiply x W_value"},
          {attention(g, std::sqrt(d_k), -1, true),
           "the weights multiply the keys: those only make the scores, the weights multiply x W_value"},
          {attention(g, 1), "the scores are not divided by sqrt(d_k) yet"},
          {attention(g, d_k), "the scores are divided by d_k: it should be its square root"},
          {attention(g, std::sqrt(d_in)), "the scores are divided by sqrt(d_in): it is the width of a key that counts"},
          {attention(g, std::sqrt(tokens)),
           "the scores are divided by the square root of the number of tokens: it is the width "
           "of a key that counts"},
          {attention(g, std::sqrt(d_k), 0), "the columns of the weights sum to 1: the rows should, softmax along dim -1"}};
}

void check_book() {
  Generator generator(123);
  const Tensor W_query = rand({3, 2}, generator), W_key = rand({3, 2}, generator), W_value = rand({3, 2}, generator);
  require_printed(self_attention(journey(), W_query, W_key, W_value), "self_attention_v1",
                  mistakes({journey(), W_query, W_key, W_value}));
}

void check_sizes() {
  const Given g{random_leaf({5, 4}, 1).detach(), random_leaf({4, 9}, 2).detach(), random_leaf({4, 9}, 3).detach(),
                random_leaf({4, 9}, 4).detach()};
  require_close(self_attention(g.x, g.W_query, g.W_key, g.W_value), attention(g, 3), mistakes(g));
}

void check_gradients() {
  require_gradients([](const std::vector<Tensor>& in) { return self_attention(in[0], in[1], in[2], in[3]); },
                    {random_leaf({3, 2}, 1), random_leaf({2, 2}, 2), random_leaf({2, 2}, 3), random_leaf({2, 2}, 4)},
                    {"x", "W_query", "W_key", "W_value"});
}

const Register registered{
    {"03_self_attention",
     "self-attention with trained weights",
     "keys.size(-1) is d_k, std::sqrt(static_cast<double>(d_k)) its root; a tensor can be divided by a number",
     {{"the context vectors of the book", check_book},
      {"other numbers of tokens and features", check_sizes},
      {"gradients reach all four inputs", check_gradients}}}};

}  // namespace
}  // namespace exercises
