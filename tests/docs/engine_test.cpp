// docs/engine.md: its programs, which CMakeLists.txt takes from the page, print what the page says.
#include <doctest/doctest.h>

#include <regex>
#include <string>

#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"

namespace onestep::testing {
namespace {

TEST_CASE("engine page: its programs print what it says") {
  if (skips_without_ci()) return;
  const std::string page = read(ONESTEP_SOURCE_DIR "/docs/engine.md");
  const std::regex block(R"re((?:^|\n)```cpp\n// (\w+)\.cpp\n)re");
  int programs = 0;
  for (std::sregex_iterator it(page.begin(), page.end(), block), end; it != end; ++it, ++programs) {
    const std::string name = (*it)[1], between = "\n```\n```text\n";
    CAPTURE(name);
    const auto after = static_cast<size_t>(it->position() + it->length());
    const size_t printed = page.find("\n```\n", after);
    REQUIRE(page.substr(printed, between.size()) == between);
    const size_t begin = printed + between.size();
    const ProcessResult result = run_process({ONESTEP_BINARY_DIR "/tests/docs/engine_" + name});
    CHECK(result.status == 0);
    CHECK(result.err == "");
    CHECK(result.out == page.substr(begin, page.find("```\n", begin) - begin));
  }
  CHECK(programs == 13);
}

}  // namespace
}  // namespace onestep::testing
