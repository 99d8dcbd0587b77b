// docs/Doxyfile: the comments of the public headers are well formed.
#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "tests/paths.h"
#include "tests/process.h"

namespace onestep::testing {

TEST_CASE("reference: Doxygen reads the public headers without a warning") {
  if (run_process({"doxygen", "--version"}).status != 0) {
    MESSAGE("Doxygen is not installed: the reference was not built");
    return;
  }
  const TemporaryFolder folder;
  const std::string config = folder.path() / "Doxyfile";
  std::ofstream(config) << std::ifstream(ONESTEP_SOURCE_DIR "/docs/Doxyfile").rdbuf()
                        << "\nOUTPUT_DIRECTORY = " << folder.path().string() << '\n';
  const ProcessResult result = run_process({"doxygen", config}, {.directory = ONESTEP_SOURCE_DIR});
  CHECK(result.err == "");
  CHECK(result.status == 0);
  CHECK(std::filesystem::exists(folder.path() / "html/classonestep_1_1Tensor.html"));
}

}  // namespace onestep::testing
