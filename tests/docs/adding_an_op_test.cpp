// docs/adding_an_op.md: CMakeLists.txt builds its three files; the commands that it names print what it says.
#include <doctest/doctest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"

namespace onestep::testing {
namespace {

const std::string kBuilt = ONESTEP_BINARY_DIR "/tests/docs/";

/// What the page shows as printed, block by block.
std::vector<std::string> printed_blocks() {
  std::ifstream page(ONESTEP_SOURCE_DIR "/docs/adding_an_op.md");
  std::vector<std::string> blocks;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("```")) {
      inside = line == "```text";
      if (inside) blocks.emplace_back();
    } else if (inside) {
      blocks.back() += line + '\n';
    }
  }
  return blocks;
}

TEST_CASE("adding an op: the easy ways, and gradcheck of the rule and of the mistaken one, print what the page says") {
  if (skips_without_ci()) return;
  const std::vector<std::string> blocks = printed_blocks();
  REQUIRE(blocks.size() == 3);
  CHECK(run_process({kBuilt + "adding_an_op_easy"}).out == blocks[0]);
  const ProcessResult right = run_process({kBuilt + "gradcheck_with_addcmul", "addcmul", "1e-6"});
  CHECK(right.status == 0);
  CHECK(right.out == blocks[1]);
  const ProcessResult mistaken = run_process({kBuilt + "gradcheck_with_mistaken", "addcmul", "1e-6"});
  CHECK(mistaken.status == 1);
  CHECK(mistaken.out == blocks[2]);
}

TEST_CASE("adding an op: the suite passes with the page's three files and misses the third one") {
  if (skips_without_ci()) return;
  const std::string cases = "-tc=op suite: addcmul,op cases*";
  const ProcessResult whole = run_process({kBuilt + "suite_with_addcmul", cases});
  CHECK_MESSAGE(whole.status == 0, whole.out);
  CHECK(whole.out.find("4 passed | 0 failed") != std::string::npos);
  const ProcessResult lacking = run_process({kBuilt + "suite_without_cases", cases});
  CHECK(lacking.status == 1);
  CHECK(lacking.out.find("logged: op := addcmul") != std::string::npos);
}

}  // namespace
}  // namespace onestep::testing
