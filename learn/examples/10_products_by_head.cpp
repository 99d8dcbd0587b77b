// 3.6.2: What a product of 4-D tensors is.
//
// [B, H, T, d] times [B, H, d, T]: the first two dims are batch dims: for each text and head there is one product of two
// matrices.
#include <onestep/onestep.h>

#include <iostream>
using namespace onestep;

int main() {
  const Tensor a =
      tensor({{{{0.2745, 0.6584, 0.2775, 0.8573}, {0.8993, 0.0390, 0.9268, 0.7388}, {0.7179, 0.7058, 0.9156, 0.4340}},
               {{0.0772, 0.3565, 0.1479, 0.5331},
                {0.4066, 0.2318, 0.4545, 0.9737},
                {0.4606, 0.5159, 0.4220, 0.5786}}}});  // one text, two heads, three words, four features
  std::cout << "a: " << a.shape() << ", its transpose: " << a.transpose(2, 3).shape() << "\n\n";

  const Tensor product = matmul(a, a.transpose(2, 3));  // [1, 2, 3, 4] x [1, 2, 4, 3] -> [1, 2, 3, 3]
  std::cout << "product: " << product.shape() << '\n' << product << "\n\n";

  // Head by head the same.
  const Tensor first = a[0][0], second = a[0][1];  // [3, 4]
  std::cout << "first head:\n" << matmul(first, first.t()) << "\n\nsecond head:\n" << matmul(second, second.t()) << '\n';
}
