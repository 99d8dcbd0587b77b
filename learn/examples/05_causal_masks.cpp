// 3.5.1: Three ways to mask the future.
//
// A model that predicts the next word must not attend to it. So a word attends to itself and the words before it: the weights
// above the diagonal have to be 0, and each row still has to sum to 1.
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
  std::cout << "unmasked:\n" << weights << "\n\n";

  // First way: multiply with a lower triangle of ones, then make each row sum to 1 again.
  const Tensor zeroed = weights * tril(ones({6, 6}));
  std::cout << "future weights set to 0:\n" << zeroed << "\n\n";
  const Tensor first = zeroed / sum(zeroed, -1, /*keepdim=*/true);
  std::cout << "and each row divided by its sum:\n" << first << "\n\n";

  // Second way: mask the future before the softmax. exp(-inf) is 0, so its weight is 0, and the sum that softmax divides by has
  // only the words that are left: no second normalisation is needed.
  const Tensor future = triu(ones({6, 6}, DType::boolean), /*diagonal=*/1);  // true above the diagonal
  const Tensor masked = scores.masked_fill(future, -std::numeric_limits<double>::infinity());
  std::cout << "future scores set to -inf:\n" << masked << "\n\n";
  const Tensor second = softmax(masked / std::sqrt(d_k), -1);
  std::cout << "and their softmax:\n" << second << "\n\n";

  // Third way: do not compute what is masked. The fused op gives the context and skips masked keys and values.
  const Tensor queries = sa.W_query(inputs), keys = sa.W_key(inputs), values = sa.W_value(inputs);
  const Tensor third = scaled_dot_product_attention(queries, keys, values, {.is_causal = true});

  std::cout << std::boolalpha << "the first two agree: " << allclose(first, second, 1e-5, 1e-6)
            << "\nand the third: " << allclose(third, matmul(second, values), 1e-5, 1e-6) << '\n';
}
