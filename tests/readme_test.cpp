// What the README says is so: its example, its table of commands, its links.

#include <doctest/doctest.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "tests/paths.h"
#include "tests/process.h"

namespace fs = std::filesystem;
using onestep::testing::ProcessResult;
using onestep::testing::run_onestep;
using onestep::testing::run_process;

namespace {

std::string read(const std::string& file) {
  std::ifstream in(fs::path(ONESTEP_SOURCE_DIR) / file);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The first capture of every match.
std::set<std::string> matches(const std::string& text, const char* pattern) {
  std::set<std::string> found;
  const std::regex regex(pattern, std::regex::ECMAScript | std::regex::multiline);
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) found.insert((*it)[1]);
  return found;
}

}  // namespace

TEST_CASE("readme: the example prints what the README says on every instruction set and number of threads") {
  const std::string readme = read("README.md");
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
  const std::set<std::string> table = matches(read("README.md"), R"(^\| `([a-z-]+)[^|]*\|)");
  const std::string help = run_onestep({"--help"}).out;
  CHECK(table == matches(help.substr(help.find("Subcommands:")), "^  ([a-z-]+) "));
}

TEST_CASE("readme: links lead to files") {
  for (const std::string file :
       {"README.md", "CONTRIBUTING.md", "docs/design.md", "docs/attention.md", "docs/formats.md", "docs/engine.md",
        "docs/adding_an_op.md", "attention/README.md", "examples/README.md", "exercises/README.md"}) {
    CHECK_MESSAGE(!read(file).empty(), file);
    for (const std::string& link : matches(read(file), R"(\]\(([^)#: ]+)\))")) {
      CHECK_MESSAGE(fs::exists(fs::path(ONESTEP_SOURCE_DIR) / fs::path(file).parent_path() / link), file, ": ", link);
    }
  }
}

// In a folder with what the lines take for granted: this checkout's configs and texts, a text for FILE, a GPT-2. Trainings are
// cut short; `test` and `exercise` build things, which other tests look at.
TEST_CASE("readme: its command lines run") {
  const onestep::testing::TemporaryFolder folder;
  for (const auto& entry : fs::directory_iterator(ONESTEP_SOURCE_DIR)) {
    const std::string name = entry.path().filename();
    if (name != "build" && name != "runs" && name != "onestep") fs::create_symlink(entry.path(), folder.path() / name);
  }
  fs::create_directory(folder.path() / "build");
  fs::create_symlink(ONESTEP_BINARY_DIR, folder.path() / "build/release");
  fs::create_symlink(ONESTEP_SOURCE_DIR "/tests/goldens/hf_gpt2", folder.path() / "gpt2");
  std::ofstream text(folder.path() / "FILE");
  for (int i = 0; i < 300; ++i) text << "Your journey starts with one step.\n";
  text.close();

  std::string script = R"sh(set -e
onestep() {
  local few=()
  case $1 in
    test | exercise) return ;;
    train) [[ $2 == --resume ]] || few=(--set train.steps=2 --set train.eval_batches=1 --set train.eval_every=0 --set schedule.warmup_steps=0) ;;
  esac
  echo "onestep $*"
  )sh" ONESTEP_BINARY_DIR R"sh(/onestep "$@" "${few[@]}"
}
)sh";
  std::istringstream lines(read("README.md"));
  bool inside = false;
  int commands = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      inside = line == "```sh";
      continue;
    }
    if (!inside) continue;
    ++commands;
    for (size_t at = 0; (at = line.find("./onestep ", at)) != std::string::npos;) line.erase(at, 2);
    script += line + '\n';
  }
  CHECK(commands >= 16);
  const ProcessResult result =
      run_process({"bash", "-c", script}, {.directory = folder.path(), .environment = {{"HOME", folder.path()}}});
  CHECK_MESSAGE(result.status == 0, script, result.out, result.err);
  for (const char* made : {"runs/four_heads/report.html", "runs/mine/report.html", "bpe/merges.txt", ".local/bin/onestep"})
    CHECK_MESSAGE(fs::exists(folder.path() / made), made);
}
