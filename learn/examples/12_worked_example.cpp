// worked example: two heads, three words, three features a head, with every number small enough to check by hand.
//
// It starts where the projections are done and split: queries, keys and values are given.
#include <onestep/onestep.h>

#include <cmath>
#include <iostream>
#include <limits>
using namespace onestep;

int main() {
  const Tensor queries = tensor({{{{0.0299, 0.7057, 0.1425}, {0.5029, 0.6294, 0.3265}, {0.8386, 0.7803, 0.8877}},
                                  {{0.0808, 0.7281, 0.7343}, {0.5948, 0.8757, 0.6526}, {0.8280, 0.1269, 0.9827}}}},
                                DType::float64);  // [B, H, T, head_dim] = [1, 2, 3, 3]
  const Tensor keys = tensor({{{{0.2260, 0.7611, 0.6772}, {0.7446, 0.4209, 0.6467}, {0.4521, 0.1769, 0.1615}},
                               {{0.6787, 0.7103, 0.8188}, {0.5338, 0.8099, 0.9866}, {0.0227, 0.4601, 0.4753}}}},
                             DType::float64);
  const Tensor values = tensor({{{{0.8375, 0.7430, 0.8563}, {0.1214, 0.1560, 0.0729}, {0.1887, 0.9912, 0.1640}},
                                 {{0.7458, 0.6515, 0.1220}, {0.6801, 0.4366, 0.6720}, {0.8135, 0.6831, 0.7280}}}},
                               DType::float64);

  // In each head every query is multiplied with every key. The first number, by hand: 0.0299 * 0.2260 + 0.7057 * 0.7611 +
  // 0.1425 * 0.6772.
  const Tensor scores = matmul(queries, keys.transpose(2, 3));
  std::cout << "scores:\n" << scores << "\n\n";

  const Tensor future = attention::causal_mask(3);
  const Tensor masked = scores.masked_fill(future, -std::numeric_limits<double>::infinity());
  std::cout << "with the future masked:\n" << masked << "\n\n";

  const Tensor scaled = masked / std::sqrt(3.0);
  std::cout << "divided by sqrt(3), the width of a head:\n" << scaled << "\n\n";

  const Tensor weights = softmax(scaled, -1);
  std::cout << "weights:\n" << weights << "\n\n";

  // The first word attends only to itself: its context is its own value. The others are weighted sums.
  const Tensor context = matmul(weights, values);  // [1, 2, 3, 3]
  std::cout << "context, head by head:\n" << context << "\n\n";

  // Back to one row a word. Without the transpose a row would hold one head of two words: compare the second rows.
  std::cout << "one row a word:\n" << context.transpose(1, 2).reshape({1, 3, 6}) << "\n\n";
  std::cout << "a mistake, the transpose forgotten:\n" << context.reshape({1, 3, 6}) << "\n";
}
