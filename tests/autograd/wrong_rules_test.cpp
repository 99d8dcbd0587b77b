// Deliberate mistakes: the op suite must find nothing wrong with each op as it is, and must see the mistake once it is made.
#include "tests/autograd/wrong_rules.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "tests/autograd/op_suite.h"

namespace onestep::testing {
namespace {

OpSample sample_of(const WrongRule& rule, bool wrong) {
  OpSample sample;
  sample.label = rule.mistake;
  sample.inputs = rule.inputs;
  sample.rounds_once = false;                                            // they are made of ops
  sample.twice_differentiable = rule.caught_by == "second derivatives";  // the others save constants
  sample.forward = [op = rule.op, wrong](const std::vector<Tensor>& in) { return op(in, wrong); };
  sample.reference = [op = rule.op, inputs = sample](const std::vector<Values>& values) {
    const Tensor y = op(make_inputs(inputs, values, DType::float64), false);
    Values result(y.shape());
    result.data = y.to_vector<double>();
    return result;
  };
  return sample;
}

void expect_all_caught(const std::vector<WrongRule>& rules) {
  for (const WrongRule& rule : rules) {
    CAPTURE(rule.mistake);
    for (const std::string& failure : failures(sample_of(rule, false))) FAIL_CHECK("without the mistake: " << failure);
    const std::vector<std::string> caught = failures(sample_of(rule, true));
    const std::string prefix = rule.caught_by + ": ";
    CHECK_MESSAGE(std::any_of(caught.begin(), caught.end(), [&](const std::string& f) { return f.starts_with(prefix); }),
                  "not caught by: " << rule.caught_by);
  }
}

TEST_CASE("wrong rules: elementwise") { expect_all_caught(wrong_elementwise_rules()); }
TEST_CASE("wrong rules: reductions") { expect_all_caught(wrong_reduction_rules()); }
TEST_CASE("wrong rules: products and layers") { expect_all_caught(wrong_matrix_rules()); }
TEST_CASE("wrong rules: shapes") { expect_all_caught(wrong_shape_rules()); }
TEST_CASE("wrong rules: what the gradient of a simple call does not show") { expect_all_caught(wrong_manners()); }

TEST_CASE("wrong rules: second derivatives") { expect_all_caught(wrong_second_forms()); }

TEST_CASE("wrong rules: there are many") {
  const size_t count = wrong_elementwise_rules().size() + wrong_reduction_rules().size() + wrong_matrix_rules().size() +
                       wrong_shape_rules().size() + wrong_manners().size();
  CHECK(count >= 60);
  CHECK(wrong_second_forms().size() >= 20);
}

}  // namespace
}  // namespace onestep::testing
