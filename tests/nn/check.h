#pragma once
// Comparing tensors and modules with golden numbers.
#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "autograd/ops.h"
#include "nn/module.h"
#include "tests/goldens.h"
#include "tests/support.h"

namespace onestep::testing {

/// |actual - expected| <= 1e-6 + 2e-6 |expected| for every element: what the goldens promise for float32.
inline void check_close(const Tensor& actual, const nlohmann::json& expected) {
  const std::vector<double> wanted = numbers<double>(expected), got = actual.to_vector<double>();
  REQUIRE(got.size() == wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const bool close = got[i] == wanted[i] || std::abs(got[i] - wanted[i]) <= 1e-6 + 2e-6 * std::abs(wanted[i]);
    CHECK_MESSAGE(close, "element ", i, ": ", got[i], " is not ", wanted[i]);
  }
}

/// The same float32 bits.
inline void check_same(const Tensor& actual, const nlohmann::json& expected) {
  CHECK(actual.to_vector<float>() == numbers<float>(expected));
}

/// Repeats what tests/goldens/modules.py did with seed 7: x, the module, a training pass with gradients, an evaluation pass.
/// `build(Generator&)` returns a unique_ptr to the module.
template <class Build>
void check_against_pytorch(const std::string& name, Build build) {
  CAPTURE(name);
  const auto& wanted = golden("modules.json").at("runs").at(name);
  Generator generator(7);
  const Tensor x = randn({2, 6, 5}, generator);
  const std::unique_ptr<nn::Layer> module = build(generator);
  CHECK(module->repr() == wanted.at("repr"));
  CHECK(module->num_parameters() == wanted.at("count"));
  std::vector<std::string> keys;
  for (const auto& [key, _] : module->state_dict()) keys.push_back(key);
  CHECK(keys == wanted.at("keys"));

  const Tensor y = (*module)(x);
  check_close(y, wanted.at("y"));
  sum(y * y).backward();
  for (const auto& [key, parameter] : module->named_parameters()) {
    const std::string& label = key;  // clang 14 captures no binding
    CAPTURE(label);
    check_same(parameter, wanted.at("parameters").at(key));
    check_close(parameter.grad(), wanted.at("grads").at(key));
  }
  module->eval();
  check_close((*module)(x), wanted.at("y_eval"));
}

}  // namespace onestep::testing
