// 3.3.1: The context vector of one word, with nothing trained.
//
// A sentence of six words, three numbers a word. The numbers of "journey" say nothing about the sentence it is in; its
// context vector will: a weighted sum of all six words, in which those that resemble it have larger weights.
#include <onestep/onestep.h>

#include <iostream>
using namespace onestep;

int main() {
  const Tensor inputs = tensor({{0.43, 0.15, 0.89},    // Your
                                {0.55, 0.87, 0.66},    // journey
                                {0.57, 0.85, 0.64},    // starts
                                {0.22, 0.58, 0.33},    // with
                                {0.77, 0.25, 0.10},    // one
                                {0.05, 0.80, 0.55}});  // step; all together [6, 3]
  const Tensor query = inputs[1];                      // "journey", [3]

  // Similarity is the dot product: large where both vectors are large in the same places.
  std::vector<Tensor> dots;
  for (int64_t i = 0; i < inputs.size(0); ++i) dots.push_back(dot(inputs[i], query));
  const Tensor scores = stack(dots);  // [6]
  std::cout << "scores:\n" << scores << "\n\n";

  // The scores have to become weights: not negative, with the sum 1. Dividing by the sum is a first attempt ...
  std::cout << "scores / sum:\n" << scores / sum(scores) << "\n\n";

  // ... which a negative score would spoil. exp() makes any score positive, and the largest ones stand out more.
  const Tensor by_hand = exp(scores) / sum(exp(scores));
  std::cout << "exp / sum of exp:\n" << by_hand << "\n\n";

  // softmax is the same function, but it subtracts the largest score first: exp(1000) would be infinite.
  const Tensor weights = softmax(scores, 0);  // [6]
  std::cout << "softmax:\n" << weights << "\nsum: " << sum(weights).item() << "\n\n";
  std::cout << "of scores that are 1000 larger, by hand:\n" << exp(scores + 1000) / sum(exp(scores + 1000)) << '\n';
  std::cout << "and by softmax:\n" << softmax(scores + 1000, 0) << "\n\n";

  // The context vector: the sum of the words, each times its weight.
  Tensor context = zeros({3});
  for (int64_t i = 0; i < inputs.size(0); ++i) context = context + weights[i] * inputs[i];
  std::cout << "context of \"journey\":\n" << context << '\n';
}
