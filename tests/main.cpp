#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "tests/autograd/op_suite.h"

int main(int argc, char** argv) {
  onestep::testing::register_op_tests();  // after all op cases have registered themselves
  return doctest::Context(argc, argv).run();
}
