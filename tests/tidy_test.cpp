// tests/tidy.py where clang cannot compile what it is given, with a stand-in for clang-tidy that says so.

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"

namespace fs = std::filesystem;
using onestep::testing::contains;
using onestep::testing::ProcessResult;
using onestep::testing::run_process;
using onestep::testing::TemporaryFolder;

namespace {

// What `tests/tidy.py headers` says where clang-tidy finds this error, and what it calls clang-tidy with.
struct Tidy {
  ProcessResult result;
  std::string calls;
};

Tidy tidy_headers(const std::string& error) {
  const TemporaryFolder folder;
  const fs::path program = folder.path() / "clang-tidy", log = folder.path() / "log";
  std::ofstream(program) << "#!/bin/sh\necho \"$*\" >>'" << log.string() << "'\necho '" << error << "'\nexit 1\n";
  fs::permissions(program, fs::perms::owner_all);
  const std::string path = folder.path().string() + ':' + std::getenv("PATH");
  const ProcessResult result =
      run_process({ONESTEP_SOURCE_DIR "/tests/tidy.py", folder.path(), "headers"}, {.environment = {{"PATH", path}}});
  return {result, onestep::testing::read(log)};
}

long lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

}  // namespace

TEST_CASE("tidy: headers that clang cannot compile are one line and not one each") {
  if (run_process({"python3", "--version"}).status != 0) return;
  const std::string error = ":3:1: error: no such thing [clang-diagnostic-error]";
  const Tidy foreign = tidy_headers("/usr/include/some.h" + error);
  CHECK(foreign.result.status == 77);
  CHECK(lines(foreign.calls) == 1);
  CHECK(contains(foreign.calls, " -- -xc++ "));  // clang takes a .h for C
  CHECK(lines(foreign.result.out) == 2);         // the first says how many files there are
  CHECK(contains(foreign.result.out, "/usr/include/some.h" + error));

  const Tidy ours = tidy_headers(ONESTEP_SOURCE_DIR "/nn/linear.h" + error);
  CHECK(ours.result.status == 1);
  CHECK(lines(ours.calls) == 1);
  CHECK(lines(ours.result.out) == 3);  // the last says where the checks are
  CHECK(contains(ours.result.out, ONESTEP_SOURCE_DIR "/nn/linear.h" + error));
}
