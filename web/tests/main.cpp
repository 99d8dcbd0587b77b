// The tests of autograd and of the known trainings as a module for WASI.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "tests/autograd/op_suite.h"

int main(int argc, char** argv) {
  onestep::testing::register_op_tests();
  doctest::Context context(argc, argv);
  context.addFilter("test-case-exclude", "nightly:*");
  return context.run();
}
