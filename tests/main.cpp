#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "autograd/kernels/parallel.h"
#include "tests/autograd/op_suite.h"
#include "tests/process.h"

int main(int argc, char** argv) {
  onestep::testing::register_op_tests();                // after all op cases have registered themselves
  const onestep::testing::TemporaryFolder token_files;  // not those of the user
  ::setenv("ONESTEP_CACHE", (token_files.path() / "tokens").c_str(), 1);
  // Under ThreadSanitizer every loop is to be watched with several threads, however short (CMakePresets.json).
  if (std::getenv("ONESTEP_TESTS_SPLIT_ALL") != nullptr) onestep::kernels::set_min_work_per_thread(0);
  doctest::Context context(argc, argv);
  const auto asks = [](std::string_view argument) { return argument.find("nightly:") != argument.npos; };
  if (std::none_of(argv, argv + argc, asks)) context.addFilter("test-case-exclude", "nightly:*");  // hours
  return context.run();
}
