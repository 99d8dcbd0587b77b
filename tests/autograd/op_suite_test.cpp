// Runs the checks of op_suite.h on every sample of every op case: one test case an op.
#include "tests/autograd/op_suite.h"

#include <doctest/doctest.h>

#include <list>
#include <string>

#include "tests/support.h"

namespace onestep::testing {
namespace {

constexpr const char* kPrefix = "op suite: ";

void check_error(const OpError& error) {
  CAPTURE(error.label);
  try {
    error.call();
    FAIL_CHECK("no error");
  } catch (const Error& e) {
    expect_refusal(e.what(), error.message);
    CHECK(error.type(e));
  }
}

/// The body of every registered test: doctest's test functions take no argument, so the op is read off the test's name.
void run_current_op() {
  const std::string op = std::string(doctest::getContextOptions()->currentTest->m_name).substr(std::string(kPrefix).size());
  for (const OpCase& op_case : op_cases()) {
    if (op_case.op != op) continue;
    for (const OpSample& sample : op_case.samples) {
      CAPTURE(sample.label);
      const std::vector<std::string> failed = failures(sample);
      for (const std::string& what : failed) FAIL_CHECK(what);
      CHECK(failed.empty());
    }
    for (const OpError& error : op_case.errors) check_error(error);
  }
}

}  // namespace

void register_op_tests() {
  static std::list<std::string> names;  // doctest keeps pointers into it
  for (const OpCase& op_case : op_cases()) {
    if (!names.empty() && names.back() == kPrefix + op_case.op) continue;  // cases are sorted by op
    names.push_back(kPrefix + op_case.op);
    doctest::detail::regTest(doctest::detail::TestCase(&run_current_op, __FILE__, __LINE__, doctest::detail::TestSuite()) *
                             names.back().c_str());
  }
}

}  // namespace onestep::testing
