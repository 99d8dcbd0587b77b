#include "attention/heads.h"
#include "attention/multi_head_attention.h"
#include "learn/exercises/checks/check.h"

namespace exercises {
namespace {

const double kInf = std::numeric_limits<double>::infinity();

/// What the reference leaves out or does differently.
struct Variation {
  bool causal = true, scaled = true, attend = true, project = true;
  int64_t scale_width = 0;  ///< Instead of the width of a key.
};

Tensor reference(const Tensor& x, const MultiHeadWeights& w, int64_t H, const Variation& v) {
  const auto heads = [H](const Tensor& y) { return attention::split_heads(y, H); };
  const Tensor queries = heads(linear(x, w.query)), values = linear(x, w.value);
  Tensor scores = matmul(queries, heads(linear(x, w.key)).transpose(2, 3));
  const int64_t T = x.size(1), width = v.scale_width > 0 ? v.scale_width : queries.size(3);
  if (v.causal) scores = scores.masked_fill(triu(ones({T, T}, DType::boolean), 1), -kInf);
  if (v.scaled) scores = scores / std::sqrt(static_cast<double>(width));
  const Tensor context = v.attend ? attention::merge_heads(matmul(softmax(scores, -1), heads(values))) : values;
  return v.project ? linear(context, w.out, w.out_bias) : context;
}

std::vector<Mistake> mistakes(const Tensor& x, const MultiHeadWeights& w, int64_t H) {
  const auto with = [&](const Variation& variation) { return reference(x, w, H, variation); };
  return {{with({.attend = false}),
           "no token attends to another: the values are projected, but not multiplied by attention weights"},
          {with({.causal = false}), "tokens attend to later ones: the causal mask is missing"},
          {with({.scaled = false}), "the scores are not divided by sqrt(head_dim)"},
          {with({.scale_width = w.query.size(0)}), "the scores are divided by sqrt(d_out): a key has the width of one head"},
          {with({.project = false}), "the heads are not mixed: the output projection is missing"},
          {reference(x, w, 1, {}), "there is only one head: queries, keys and values are not split"}};
}

void check_random() {
  const Tensor x = random_leaf({2, 5, 3}, 1).detach();
  const auto matrix = [](int64_t rows, int64_t columns, int64_t seed) { return random_leaf({rows, columns}, seed).detach(); };
  const MultiHeadWeights w{matrix(8, 3, 2), matrix(8, 3, 3), matrix(8, 3, 4), matrix(8, 8, 5), random_leaf({8}, 6).detach()};
  require_close(multi_head_attention(x, w, 4), reference(x, w, 4, {}), mistakes(x, w, 4));
}

void check_book() {
  Generator generator(123);
  const attention::MultiHeadAttention mha(3, 2, 6, 0.0, 2, false, generator);
  require_printed(multi_head_attention(
                      stack({journey(), journey()}),
                      {mha.W_query.weight, mha.W_key.weight, mha.W_value.weight, mha.out_proj.weight, mha.out_proj.bias}, 2),
                  "mha");
}

void check_gradients() {
  const auto f = [](const std::vector<Tensor>& in) {
    return multi_head_attention(in[0], {in[1], in[2], in[3], in[4], in[5]}, 2);
  };
  require_gradients(f,
                    {random_leaf({1, 3, 2}, 1), random_leaf({4, 2}, 2), random_leaf({4, 2}, 3), random_leaf({4, 2}, 4),
                     random_leaf({4, 4}, 5), random_leaf({4}, 6)},
                    {"x", "weights.query", "weights.key", "weights.value", "weights.out", "weights.out_bias"});
}

const Register registered{
    {"10_multi_head_attention",
     "multi-head attention",
     "exercises 4 and 6 have all the pieces; learn/examples/09_multi_head_attention.cpp prints every step",
     {{"four heads on random texts", check_random},
      {"the book's numbers", check_book},
      {"gradients reach x and all parameters", check_gradients}}}};

}  // namespace
}  // namespace exercises
