#include <onestep/onestep.h>

#include <cstdio>

#include "nn/module.h"

int main() {
  using namespace onestep;
  std::puts(own_module());
  Generator generator(123);
  attention::MultiHeadAttention mha(/*d_in=*/3, /*d_out=*/2, /*context_length=*/6, /*dropout=*/0.0, /*num_heads=*/2,
                                    /*qkv_bias=*/false, generator);
  const Tensor x = randn({1, 6, 3}, generator);
  optim::SGD sgd(mha.parameters(), {.lr = 0.5});
  for (int step = 0; step < 2; ++step) {
    const Tensor loss = mean(pow(mha(x), 2));
    std::printf("%.4f\n", loss.item());
    sgd.zero_grad();
    loss.backward();
    sgd.step();
  }
}
