// What the README says is so: its C++, its table of commands, its links; its Python is in python/tests/test_readme.py.

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>

#include "tests/docs/command_lines.h"
#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"

namespace fs = std::filesystem;
using onestep::testing::matches;
using onestep::testing::ProcessResult;
using onestep::testing::run_onestep;
using onestep::testing::run_process;

namespace {

std::string read_page(const std::string& file) { return onestep::testing::read(fs::path(ONESTEP_SOURCE_DIR) / file); }

}  // namespace

TEST_CASE("readme: the example prints what the README says on every instruction set and number of threads") {
  const std::string readme = read_page("README.md");
  const std::string open = "```text\n";
  const size_t begin = readme.find(open, readme.find("```cpp\n"));
  REQUIRE(begin != std::string::npos);
  const size_t end = readme.find("```\n", begin + open.size());
  const std::string expected = readme.substr(begin + open.size(), end - begin - open.size());
  for (const char* isa : {"", "generic"}) {
    for (const char* threads : {"1", "2", "7"}) {
      CAPTURE(isa);
      CAPTURE(threads);
      const ProcessResult result = run_process({ONESTEP_BINARY_DIR "/tests/readme_example"},
                                               {.environment = {{"ONESTEP_ISA", isa}, {"OMP_NUM_THREADS", threads}}});
      CHECK(result.status == 0);
      CHECK(result.err == "");
      CHECK(result.out == expected);
    }
  }
}

TEST_CASE("readme: the table lists the commands of the program") {
  const std::set<std::string> table = matches(read_page("README.md"), R"(^\| `([a-z-]+)[^|]*\|)");
  const std::string help = run_onestep({"--help"}).out;
  CHECK(table == matches(help.substr(help.find("\nCommands:")), "^  ([a-z-]+) "));
}

TEST_CASE("readme: links lead to files") {
  for (const std::string file :
       {"README.md", "CONTRIBUTING.md", "docs/design.md", "docs/attention.md", "docs/formats.md", "docs/engine.md",
        "docs/adding_an_op.md", "docs/from_pytorch.md", "docs/python.md", "attention/README.md", "learn/examples/README.md",
        "learn/exercises/README.md", "notebooks/README.md"}) {
    CHECK_MESSAGE(!read_page(file).empty(), file);
    for (const std::string& link : matches(read_page(file), R"(\]\(([^)#: ]+)\))")) {
      CHECK_MESSAGE(fs::exists(fs::path(ONESTEP_SOURCE_DIR) / fs::path(file).parent_path() / link), file, ": ", link);
    }
  }
}

// Trainings are cut short; `test`, `exercise` and the Python environment build things, which other tests look at. The example
// is built as a project.
TEST_CASE("readme: its command lines run") {
  if (onestep::testing::skips_without_ci()) return;
  const onestep::testing::CheckoutFolder folder;
  const std::string readme = read_page("README.md");
  const auto block = [&](const std::string& language) {
    const size_t begin = readme.find("```" + language + '\n') + language.size() + 4;
    return readme.substr(begin, readme.find("```\n", begin) - begin);
  };
  fs::create_directory(folder.path() / "program");
  std::ofstream(folder.path() / "program/program.cpp") << block("cpp");
  std::ofstream(folder.path() / "program/CMakeLists.txt") << block("cmake");
  const std::string lines = onestep::testing::command_lines("README.md");
  CHECK(std::count(lines.begin(), lines.end(), '\n') >= 16);
  const ProcessResult result = folder.run("export CXX='" ONESTEP_CXX_COMPILER "' FLAGS='" ONESTEP_LINK_FLAGS
                                          "'"
                                          R"sh(
c++() { "$CXX" "$@" $FLAGS; }
command -v ninja >/dev/null || cmake() { command cmake "${@/Ninja/Unix Makefiles}"; }
python3() { mkdir -p build/venv/bin; printf '#!/bin/sh\necho "pip $*"\n' >build/venv/bin/pip; chmod +x build/venv/bin/pip; }
command -v pkg-config >/dev/null || c++() { cp program/build/program program/program; }
onestep() {
  local few=()
  case $1 in
    test | example | exercise) return ;;
    train) [[ $2 == --resume ]] || few=(--set train.steps=2 --set train.eval_batches=1 --set train.eval_every=0 --set schedule.warmup_steps=0) ;;
  esac
  echo "onestep $*"
  build/release/onestep "$@" "${few[@]}"
}
)sh",
                                          lines);
  CHECK_MESSAGE(result.status == 0, lines, result.out, result.err);
  CHECK_MESSAGE(result.out.find("\npip install .\n") != std::string::npos, result.out);
  for (const char* made : {"runs/four_heads/report.html", "runs/mine/report.html", "bpe/merges.txt", ".local/bin/onestep"})
    CHECK_MESSAGE(fs::exists(folder.path() / made), made);
  CHECK_MESSAGE(result.out.ends_with(block("text") + block("text")), result.out);  // with CMake and without
}
