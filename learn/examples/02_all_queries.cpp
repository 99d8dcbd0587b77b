// 3.3.2: The same for all words at once.
//
// Six queries need no loop: each step of the last program becomes one operation on a matrix, in which row i belongs to word i.
#include <onestep/onestep.h>

#include <iostream>
using namespace onestep;

int main() {
  const Tensor inputs = tensor({{0.43, 0.15, 0.89},
                                {0.55, 0.87, 0.66},
                                {0.57, 0.85, 0.64},
                                {0.22, 0.58, 0.33},
                                {0.77, 0.25, 0.10},
                                {0.05, 0.80, 0.55}});  // [6, 3]

  // All dot products of rows with rows: a matrix times its own transpose. It is symmetric, since dot(a, b) = dot(b, a).
  const Tensor scores = matmul(inputs, inputs.t());  // [6, 3] x [3, 6] -> [6, 6]
  std::cout << "scores:\n" << scores << "\n\n";

  // softmax along the last dim turns each row into weights. Rows have sums of their own, so the symmetry is gone.
  const Tensor weights = softmax(scores, -1);  // [6, 6]
  std::cout << "weights:\n" << weights << "\nrow sums: " << sum(weights, -1) << "\n\n";

  // Each row of weights gives one context vector, a weighted sum of the six words.
  const Tensor contexts = matmul(weights, inputs);  // [6, 6] x [6, 3] -> [6, 3]
  std::cout << "contexts:\n" << contexts << "\n\n";
  std::cout << "row 2 is what the loops found for \"journey\": " << contexts[1] << "\n\n";

  // The library has these three lines as a module.
  const attention::SimplifiedSelfAttention attention(/*d_in=*/3);
  std::cout << "the module gives the same: " << std::boolalpha << equal(attention(inputs), contexts) << '\n';
}
