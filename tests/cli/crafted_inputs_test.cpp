// The tests of crafted files make one check a file: how many there are is what the test program counts.
#include <doctest/doctest.h>

#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"

namespace {

int assertions(const std::string& cases) {
  const std::string program = ONESTEP_BINARY_DIR "/tests/onestep_tests";
  const std::string out = onestep::testing::run_process({program, "-tc=" + cases, "--no-colors"}).out;
  const auto found = onestep::testing::all_matches(out, "assertions: +([0-9]+) \\| +([0-9]+) passed");
  REQUIRE(found.size() == 1);
  CHECK(found[0][1] == found[0][2]);
  return std::stoi(found[0][1]);
}

}  // namespace

TEST_CASE("crafted inputs: there are more than 250 files and 400 configs") {
  CHECK(assertions("hostile safetensors*,hostile state*,hostile tokenizer*,hostile token file: fields*,hostile gpt2*") > 700);
  CHECK(assertions("bad *") > 1200);
}
