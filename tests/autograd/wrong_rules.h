#pragma once
// Ops with a mistake that can be switched on: how wrong_rules_test.cpp checks that the op suite sees mistakes.
#include <functional>
#include <string>
#include <vector>

#include "autograd/testing/op_case.h"

namespace onestep::testing {

struct WrongRule {
  std::string mistake;
  std::string caught_by;  ///< The check of the op suite that must see it.
  std::vector<InputSpec> inputs;
  std::function<Tensor(const std::vector<Tensor>& in, bool wrong)> op;  ///< Right with wrong = false.
};

std::vector<WrongRule> wrong_elementwise_rules();
std::vector<WrongRule> wrong_reduction_rules();
std::vector<WrongRule> wrong_matrix_rules();
std::vector<WrongRule> wrong_shape_rules();
/// Mistakes that leave the gradients of a simple call right.
std::vector<WrongRule> wrong_manners();
/// Mistakes in recorded passes alone.
std::vector<WrongRule> wrong_second_forms();

}  // namespace onestep::testing
