// 3.5.2: Dropout on the attention weights.
//
// In training, random weights are set to 0, so that no word learns to rely on one other word only. The rest is scaled by
// 1 / (1 - p): the context stays the same on average, and nothing has to change when dropout is turned off.
#include <onestep/onestep.h>

#include <iostream>
using namespace onestep;

int main() {
  const double p = 0.5;
  std::cout << "what is not dropped is multiplied by " << 1 / (1 - p) << "\n\n";

  // The dropout mask depends on the stream of random numbers. PyTorch has had two: this is the one of version 2.7 and later
  // (and of every version on processors that are not Intel's) ...
  Generator generator(123);
  nn::Dropout dropout(p, generator);
  std::cout << "ones, dialect torch:\n" << dropout(ones({6, 6})) << "\n\n";

  // ... and this the one of earlier versions on Intel processors, which many printed pages show.
  generator.set_dialect(RngDialect::torch_mkl);
  generator.manual_seed(123);
  std::cout << "ones, dialect torch-mkl:\n" << dropout(ones({6, 6})) << "\n\n";

  // On the causal weights of the last program. A row need not sum to 1 any more: that holds on average.
  const Tensor inputs = tensor(
      {{0.43, 0.15, 0.89}, {0.55, 0.87, 0.66}, {0.57, 0.85, 0.64}, {0.22, 0.58, 0.33}, {0.77, 0.25, 0.10}, {0.05, 0.80, 0.55}});
  Generator weights_generator(789);
  const attention::SelfAttention_v2 sa(3, 2, /*qkv_bias=*/false, weights_generator);
  const Tensor scores = matmul(sa.W_query(inputs), sa.W_key(inputs).t());
  const Tensor weights = attention::masked_attention_weights(scores, attention::causal_mask(6), /*d_k=*/2);
  for (const RngDialect dialect : {RngDialect::torch, RngDialect::torch_mkl}) {
    generator.set_dialect(dialect);
    generator.manual_seed(123);
    std::cout << "weights, dialect " << (dialect == RngDialect::torch ? "torch" : "torch-mkl") << ":\n"
              << dropout(weights) << "\n\n";
  }

  // The average of many masks is what was there before.
  Tensor total = zeros({6, 6});
  for (int draw = 0; draw < 10000; ++draw) total = total + dropout(ones({6, 6}));
  std::cout << "mean of 10000 masks: " << mean(total / 10000) << '\n';

  dropout.eval();
  std::cout << std::boolalpha << "in evaluation nothing happens: " << equal(dropout(weights), weights) << '\n';
}
