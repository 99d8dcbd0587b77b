// 3.5.3: CausalAttention: queries, keys and values, the mask and dropout in one module, for batches of texts.
#include <onestep/onestep.h>

#include <iostream>
using namespace onestep;

int main() {
  const Tensor inputs = tensor(
      {{0.43, 0.15, 0.89}, {0.55, 0.87, 0.66}, {0.57, 0.85, 0.64}, {0.22, 0.58, 0.33}, {0.77, 0.25, 0.10}, {0.05, 0.80, 0.55}});
  const Tensor batch = stack({inputs, inputs});  // the text twice: [B, T, d_in]
  std::cout << "batch: " << batch.shape() << '\n';

  Generator generator(123);
  attention::CausalAttention attention(/*d_in=*/3, /*d_out=*/2, /*context_length=*/6, /*dropout=*/0.0, /*qkv_bias=*/false,
                                       generator);
  const Tensor context = attention(batch);  // [B, T, d_out]
  std::cout << "context: " << context.shape() << '\n' << context << "\n\n";

  // Row = query, column = key. The two texts do not attend to each other.
  std::cout << "weights of the first text:\n" << attention.forward_with_weights(batch).weights[0] << "\n\n";

  // The mask is a buffer: it is saved and converted with the module, but not trained.
  std::cout << "parameters:";
  for (const auto& [name, tensor] : attention.named_parameters()) std::cout << ' ' << name;
  std::cout << "\nbuffers:   ";
  for (const auto& [name, tensor] : attention.named_buffers()) std::cout << ' ' << name << ' ' << tensor.shape();
  std::cout << "\n\n";

  // It is as large as the longest text allowed; a shorter one uses its top left corner, and gives the same numbers as the same
  // words at the beginning of a longer text, because no word attends to a later one.
  const Tensor two_words = inputs.slice(0, 0, 2);  // [2, 3]
  std::cout << "the first two words alone:\n" << attention(two_words) << "\n\n";

  // Dropout draws in training and does nothing in evaluation.
  generator.manual_seed(123);
  attention::CausalAttention forgetful(3, 2, 6, /*dropout=*/0.5, false, generator);
  std::cout << "weights in training, p = 0.5:\n" << forgetful.forward_with_weights(inputs).weights << "\n\n";
  forgetful.eval();
  std::cout << std::boolalpha << "in evaluation as without dropout: " << equal(forgetful(batch), context) << '\n';
}
