// docs/engine.md: its programs, which CMakeLists.txt takes from the page, print what the page says.
#include <doctest/doctest.h>

#include <string>

#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"

namespace onestep::testing {
namespace {

TEST_CASE("engine page: its programs print what it says") {
  if (skips_without_ci()) return;
  const std::string page = read(ONESTEP_SOURCE_DIR "/docs/engine.md");
  const auto blocks = all_matches(page, R"re(^```cpp\n// (\w+)\.cpp\n)re");
  for (const std::vector<std::string>& block : blocks) {
    const std::string &name = block[1], between = "\n```\n```text\n";
    CAPTURE(name);
    const size_t printed = page.find("\n```\n", page.find(block[0]));
    REQUIRE(page.substr(printed, between.size()) == between);
    const size_t begin = printed + between.size();
    const ProcessResult result = run_process({ONESTEP_BINARY_DIR "/tests/docs/engine_" + name});
    CHECK(result.status == 0);
    CHECK(result.err == "");
    CHECK(result.out == page.substr(begin, page.find("```\n", begin) - begin));
  }
  CHECK(blocks.size() == 13);
}

}  // namespace
}  // namespace onestep::testing
