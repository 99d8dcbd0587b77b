#include "learn/exercises/checks/check.h"

namespace exercises {
namespace {

/// gradcheck for one input, the others held fixed.
void check_gradient_of(size_t chosen, const char* name) {
  std::vector<Tensor> inputs{random_leaf({3, 5}, 1), random_leaf({5}, 2), random_leaf({5}, 3)};
  for (size_t i = 0; i < inputs.size(); ++i)
    if (i != chosen) inputs[i] = inputs[i].detach();
  std::vector<std::string> names(3);
  names[chosen] = name;
  require_gradients([](const std::vector<Tensor>& in) { return recorded_layer_norm(in[0], in[1], in[2]); }, inputs, names);
}

void check_values() {
  const Tensor x = random_leaf({3, 5}, 1).detach(), weight = random_leaf({5}, 2).detach(), bias = random_leaf({5}, 3).detach();
  require_close(recorded_layer_norm(x, weight, bias), layer_norm(x, {5}, weight, bias));
}

const Register registered{
    {"08_broken_gradient",
     "find the broken gradient",
     "y depends on x in three ways: directly, through the mean, and through the variance. Each is a term of "
     "its gradient; which one "
     "is not the derivative of anything? (d inv_std / dx_i = -inv_std^2 x_hat_i / d)",
     {{"the values", check_values},
      {"the gradient of bias", [] { check_gradient_of(2, "bias"); }},
      {"the gradient of weight", [] { check_gradient_of(1, "weight"); }},
      {"the gradient of x", [] { check_gradient_of(0, "x"); }}}}};

}  // namespace
}  // namespace exercises
