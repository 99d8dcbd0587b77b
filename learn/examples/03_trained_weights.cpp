// 3.4.1: Queries, keys and values, step by step.
//
// So far a word attends to words like itself, and there is nothing to learn. Three trained matrices change that: they make from
// each word what it looks for (its query), what it is found by (its key) and what it passes on (its value).
#include <onestep/onestep.h>

#include <cmath>
#include <iostream>
using namespace onestep;

int main() {
  const Tensor inputs = tensor({{0.43, 0.15, 0.89},
                                {0.55, 0.87, 0.66},
                                {0.57, 0.85, 0.64},
                                {0.22, 0.58, 0.33},
                                {0.77, 0.25, 0.10},
                                {0.05, 0.80, 0.55}});  // [T, d_in] = [6, 3]

  Generator generator(123);
  const Tensor W_query = rand({3, 2}, generator);  // [d_in, d_out]
  const Tensor W_key = rand({3, 2}, generator);
  const Tensor W_value = rand({3, 2}, generator);

  // The query of "journey"; the keys and values of all words.
  const Tensor query_2 = matmul(inputs[1], W_query);  // [3] x [3, 2] -> [2]
  const Tensor keys = matmul(inputs, W_key);          // [6, 3] x [3, 2] -> [6, 2]
  const Tensor values = matmul(inputs, W_value);      // [6, 2]
  std::cout << "query of \"journey\": " << query_2 << "\nkeys:\n" << keys << "\nvalues:\n" << values << "\n\n";

  // A score is query times key.
  std::cout << "score of \"journey\" with itself: " << dot(query_2, keys[1]) << '\n';
  const Tensor scores_2 = matmul(query_2, keys.t());  // [2] x [2, 6] -> [6]
  std::cout << "scores with all: " << scores_2 << "\n\n";

  // A dot product of d_k numbers grows like sqrt(d_k). Divided by that, scores stay in the range where softmax gives weight to
  // more than one word, and where its gradient is not zero.
  const double d_k = static_cast<double>(keys.size(-1));
  const Tensor weights_2 = softmax(scores_2 / std::sqrt(d_k), -1);  // [6]
  std::cout << "weights: " << weights_2 << '\n';

  // The weighted sum is one of values, not of the words themselves.
  std::cout << "context of \"journey\": " << matmul(weights_2, values) << '\n';  // [6] x [6, 2] -> [2]
}
