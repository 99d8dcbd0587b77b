#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "autograd/kernels/parallel.h"
#include "tests/autograd/op_suite.h"
#include "tests/process.h"

namespace {

/// Whether one test is asked for by its whole name that is not that of an op; or a list of all, by ctest, which runs those of
/// ops in groups (CMakeLists.txt).
bool asks_for_others(std::string_view argument) {
  return argument == "--list-test-cases" ||
         (argument.starts_with("--test-case=") && argument.find_first_of("*?") == std::string_view::npos &&
          argument.find("op suite: ") == std::string_view::npos);
}

}  // namespace

int main(int argc, char** argv) {
  // After all op cases have registered themselves. To make them is most of the start of this program, of which ctest starts one
  // a test.
  if (std::none_of(argv, argv + argc, asks_for_others)) onestep::testing::register_op_tests();
  const onestep::testing::TemporaryFolder token_files;  // not those of the user
  ::setenv("ONESTEP_CACHE", (token_files.path() / "tokens").c_str(), 1);
  // Under ThreadSanitizer every loop is to be watched with several threads, however short (CMakePresets.json).
  if (std::getenv("ONESTEP_TESTS_SPLIT_ALL") != nullptr) onestep::kernels::set_min_work_per_thread(0);
  doctest::Context context(argc, argv);
  const auto asks = [](std::string_view argument) { return argument.find("nightly:") != argument.npos; };
  if (std::none_of(argv, argv + argc, asks)) context.addFilter("test-case-exclude", "nightly:*");  // hours
  return context.run();
}
