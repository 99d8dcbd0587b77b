// 3.6.3: One attention layer of the smallest GPT-2: 768 features in 12 heads, texts of up to 1024 tokens.
#include <onestep/onestep.h>

#include <iostream>
using namespace onestep;

int main() {
  Generator generator(123);
  attention::MultiHeadAttention mha(/*d_in=*/768, /*d_out=*/768, /*context_length=*/1024, /*dropout=*/0.0,
                                    /*num_heads=*/12, /*qkv_bias=*/false, generator);
  std::cout << mha << "\n\n" << mha.num_heads() << " heads of " << mha.head_dim() << " features\n\n";

  for (const auto& [name, tensor] : mha.named_parameters())
    std::cout << name << ' ' << tensor.shape() << ": " << tensor.numel() << '\n';
  std::cout << "parameters: " << mha.num_parameters() << "\n\n";

  // The number of heads changes what the parameters mean, not how many there are.
  const attention::MultiHeadAttention one_head(768, 768, 1024, 0.0, /*num_heads=*/1, false, generator);
  std::cout << "with one head: " << one_head.num_parameters() << "\n\n";

  // Without gradients nothing is saved for the backward pass.
  const NoGradGuard no_grad;
  const Tensor text = randn({1, 1024, 768}, generator);
  std::cout << "context of 1024 tokens: " << mha(text).shape() << '\n';
}
