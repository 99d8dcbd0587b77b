// docs/from_pytorch.md: each of its lines of C++ runs in the program that CMakeLists.txt makes of the page.
#include <doctest/doctest.h>

#include <string>

#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"

namespace onestep::testing {

TEST_CASE("from pytorch: every line of the page compiles and runs") {
  if (skips_without_ci()) return;
  const ProcessResult result = run_process({ONESTEP_BINARY_DIR "/tests/docs/from_pytorch"});
  REQUIRE_MESSAGE(result.status == 0, result.err);
  CHECK(std::stoi(result.out) >= 100);
}

}  // namespace onestep::testing
