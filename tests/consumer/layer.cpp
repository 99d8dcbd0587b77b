#include <onestep/nn/linear.h>

#include <iostream>

int main() {
  onestep::Generator generator(789);
  const onestep::nn::Linear layer(3, 2, /*bias=*/false, generator);
  std::cout << layer(onestep::ones({1, 3})) << '\n';
}
