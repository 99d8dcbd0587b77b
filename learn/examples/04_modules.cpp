// 3.4.2: Self-attention as a module: SelfAttention_v1 and SelfAttention_v2.
//
// A module is a struct with its parameters, a forward() and a list of its fields. From that list come training, counting,
// printing, saving and loading.
#include <onestep/onestep.h>

#include <cmath>
#include <iostream>
using namespace onestep;

class SelfAttention : public nn::Layer {
 public:
  SelfAttention(int64_t d_in, int64_t d_out, Generator& generator)
      : W_query(rand({d_in, d_out}, generator).requires_grad_()),
        W_key(rand({d_in, d_out}, generator).requires_grad_()),
        W_value(rand({d_in, d_out}, generator).requires_grad_()) {}

  std::string name() const override { return "SelfAttention"; }
  void visit(nn::Visitor& visitor) override {
    visitor.parameter("W_query", W_query);
    visitor.parameter("W_key", W_key);
    visitor.parameter("W_value", W_value);
  }

  Tensor forward(const Tensor& x) const override {
    const Tensor queries = matmul(x, W_query), keys = matmul(x, W_key), values = matmul(x, W_value);  // each [T, d_out]
    const Tensor scores = matmul(queries, keys.t());                                                  // [T, T]
    const double d_k = static_cast<double>(keys.size(-1));
    return matmul(softmax(scores / std::sqrt(d_k), -1), values);  // [T, d_out]
  }

  Tensor W_query, W_key, W_value;  // [d_in, d_out]
};

int main() {
  const Tensor inputs = tensor(
      {{0.43, 0.15, 0.89}, {0.55, 0.87, 0.66}, {0.57, 0.85, 0.64}, {0.22, 0.58, 0.33}, {0.77, 0.25, 0.10}, {0.05, 0.80, 0.55}});

  Generator generator(123);
  const SelfAttention own(3, 2, generator);
  std::cout << "our own module:\n" << own(inputs) << "\n\n";

  // The library's is the same, and starts from the same numbers.
  generator.manual_seed(123);
  attention::SelfAttention_v1 v1(3, 2, generator);
  std::cout << "SelfAttention_v1 gives the same: " << std::boolalpha << equal(v1(inputs), own(inputs)) << "\n\n";

  // v2 has Linear layers instead of bare matrices: their initial values lie around 0 and suit their size. The same formula, but
  // other numbers.
  generator.manual_seed(789);
  const attention::SelfAttention_v2 v2(3, 2, /*qkv_bias=*/false, generator);
  std::cout << "SelfAttention_v2:\n" << v2(inputs) << "\n\n" << v2 << "\n\n";

  // A Linear layer stores its matrix as [d_out, d_in]. Loaded with the transposed matrices, v1 computes the same as v2.
  v1.load_state_dict({{"W_query", v2.W_query.weight.t()}, {"W_key", v2.W_key.weight.t()}, {"W_value", v2.W_value.weight.t()}});
  std::cout << "SelfAttention_v1 with the weights of v2:\n" << v1(inputs) << '\n';
}
