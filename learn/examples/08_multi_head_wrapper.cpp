// 3.6.1: Several heads, concatenated.
//
// One set of weights makes one weighted sum per word. But a word may need its verb for one reason and its adjective for
// another: several heads, each with queries, keys and values of its own, attend to different words, and their results are
// concatenated.
#include <onestep/onestep.h>

#include <iostream>
using namespace onestep;

int main() {
  const Tensor inputs = tensor(
      {{0.43, 0.15, 0.89}, {0.55, 0.87, 0.66}, {0.57, 0.85, 0.64}, {0.22, 0.58, 0.33}, {0.77, 0.25, 0.10}, {0.05, 0.80, 0.55}});
  const Tensor batch = stack({inputs, inputs});  // [B, T, d_in]

  Generator generator(123);
  const attention::MultiHeadAttentionWrapper wrapper(/*d_in=*/3, /*d_out=*/2, /*context_length=*/6, /*dropout=*/0.0,
                                                     /*num_heads=*/2, /*qkv_bias=*/false, generator);
  const Tensor context = wrapper(batch);  // d_out features a head: [B, T, num_heads * d_out]
  std::cout << "context: " << context.shape() << '\n' << context << "\n\n";

  // This is all: each head runs by itself, and the results are concatenated.
  std::vector<Tensor> results;
  for (const attention::CausalAttention& head : wrapper.heads) results.push_back(head(batch));  // [B, T, d_out]
  std::cout << std::boolalpha << "concatenated by hand the same: " << equal(cat(results, -1), context) << "\n\n";

  // The heads attend to different words: the last row of each, for "step".
  const Tensor weights = wrapper.forward_with_weights(inputs).weights;  // [num_heads, T, T]
  for (int64_t head = 0; head < 2; ++head) std::cout << "head " << head << " of \"step\": " << weights[head][5] << '\n';

  std::cout << '\n' << wrapper << '\n';
}
