// 3.5.1: Three ways not to look ahead.
//
// A model that is to guess the next word must not see it. So a word may look at itself and back: in the matrix of weights all
// that is right of the diagonal has to go, and each row still has to sum to 1.
#include <onestep/onestep.h>

#include <cmath>
#include <iostream>
#include <limits>
using namespace onestep;

int main() {
  const Tensor inputs = tensor(
      {{0.43, 0.15, 0.89}, {0.55, 0.87, 0.66}, {0.57, 0.85, 0.64}, {0.22, 0.58, 0.33}, {0.77, 0.25, 0.10}, {0.05, 0.80, 0.55}});
  Generator generator(789);
  const attention::SelfAttention_v2 sa(3, 2, /*qkv_bias=*/false, generator);
  const Tensor scores = matmul(sa.W_query(inputs), sa.W_key(inputs).t());  // [6, 6]
  const double d_k = 2;
  const Tensor weights = softmax(scores / std::sqrt(d_k), -1);
  std::cout << "everyone sees everyone:\n" << weights << "\n\n";

  // First way: multiply with a lower triangle of ones, then make each row sum to 1 again.
  const Tensor zeroed = weights * tril(ones({6, 6}));
  std::cout << "future weights set to 0:\n" << zeroed << "\n\n";
  const Tensor first = zeroed / sum(zeroed, -1, /*keepdim=*/true);
  std::cout << "and each row divided by its sum:\n" << first << "\n\n";

  // Second way: take the future out before the softmax. exp(-inf) is 0, so it gets no share, and what softmax divides by counts
  // only the words that are left: nothing needs repair afterwards.
  const Tensor future = triu(ones({6, 6}, DType::boolean), /*diagonal=*/1);  // true right of the diagonal
  const Tensor hidden = scores.masked_fill(future, -std::numeric_limits<double>::infinity());
  std::cout << "future scores set to -inf:\n" << hidden << "\n\n";
  const Tensor second = softmax(hidden / std::sqrt(d_k), -1);
  std::cout << "and their softmax:\n" << second << "\n\n";

  // Third way: never compute what nobody sees. This op goes straight to the context and skips hidden keys and values.
  const Tensor queries = sa.W_query(inputs), keys = sa.W_key(inputs), values = sa.W_value(inputs);
  const Tensor third = scaled_dot_product_attention(queries, keys, values, {.is_causal = true});

  std::cout << std::boolalpha << "the first two agree: " << allclose(first, second, 1e-5, 1e-6)
            << "\nand the third: " << allclose(third, matmul(second, values), 1e-5, 1e-6) << '\n';
}
