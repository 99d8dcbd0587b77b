#pragma once
// What the op suite asks of every sample of every op. Each check gives an empty text, or what is wrong in one sentence, so that
// the tests of the suite itself (wrong_rules_test.cpp) can see it fail.
#include <functional>
#include <string>
#include <vector>

#include "autograd/testing/op_case.h"

namespace onestep::testing {

struct SampleCheck {
  const char* name;
  std::string (*run)(const OpSample& sample);
};

/// All checks, cheap ones first.
const std::vector<SampleCheck>& sample_checks();

/// The names of the checks that a sample fails, with their texts: `gradcheck: input 0, element ...`.
std::vector<std::string> failures(const OpSample& sample);

/// An op applied once: its result and, if some input requires grad, the gradients for a fixed upstream gradient, which comes in
/// rows or as `relaid` returns it. Throws if the op's rule writes to the gradient that it is given.
struct Outcome {
  Tensor value;
  std::vector<Tensor> grads;  ///< Undefined where an input needs none.
};
Outcome evaluate(const OpSample& sample, const std::vector<Tensor>& inputs,
                 const std::function<Tensor(const Tensor&)>& relaid = {});

/// Where `got` is not within atol + rtol |want| of `want` (NaN equals NaN), or differs in shape; empty if nowhere.
std::string difference(const Tensor& got, const Tensor& want, double rtol, double atol);

/// Where the bits of two outcomes differ; empty if nowhere.
std::string bit_difference(const Outcome& got, const Outcome& want);

/// Adds a doctest test case `op suite: NAME` for every op case.
void register_op_tests();

}  // namespace onestep::testing
