// The C library's elementary functions differ between its versions: which sources call them, and that training does not.
#include <doctest/doctest.h>

#include <csignal>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"

using onestep::testing::matches;
using onestep::testing::run_process;
namespace fs = std::filesystem;

namespace {

/// The sources that may call them, and what for. No float32 of a training run depends on any of them.
const std::map<std::string, std::string> kCallers = {
    {"autograd/kernels/reference.cpp", "the kernels of float64"},
    {"autograd/random/random_fill.cpp",
     "normals and exponentials in float64: PyTorch's own bits; RngRounding::separate, which no config sets"},
    {"autograd/testing/gradcheck.cpp", "the step of a difference in float64"},
    {"train/data/bigrams.cpp", "the loss of bigrams, which is only shown"},
    {"cli/commands/eval.cpp", "the perplexity, which is only shown"},
};

/// The functions that IEEE 754 does not define to the bit (it does sqrt, fma, floor, ldexp ...) and that an object file does
/// not hold itself. GCC makes one sincos of two calls.
std::set<std::string> inexact_calls(const fs::path& object) {
  return matches(
      run_process({"nm", "-u", object.string()}).out,
      "^ +[A-Za-z] "
      "((?:exp|exp2|exp10|expm1|log|log2|log10|log1p|pow|sin|cos|sincos|tan|asin|acos|atan|atan2|sinh|cosh|tanh|asinh|"
      "acosh|atanh|erf|erfc|lgamma|tgamma|cbrt|hypot)[fl]?(?:@.*)?|__.*_finite|_ZGV[a-z]N[0-9]+v.*)$");
}

/// train/CMakeFiles/onestep_train.dir/models/gpt.cpp.o is train/models/gpt.cpp; of a group (cmake/Unity.cmake) all its sources.
/// Those that are gone, with an object left from before, are left out.
std::vector<std::string> sources_of(const fs::path& object, const std::string& folder) {
  const std::string path = object.string();
  const size_t begin = path.find(".dir/") + 5;
  const std::string source = folder + "/" + path.substr(begin, path.size() - begin - 2);
  if (fs::exists(fs::path(ONESTEP_SOURCE_DIR) / source)) return {source};
  if (!fs::exists(fs::path(ONESTEP_BINARY_DIR) / source)) return {};
  std::vector<std::string> sources;
  std::istringstream lines(onestep::testing::read(fs::path(ONESTEP_BINARY_DIR) / source));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("#include ")) sources.push_back(line.substr(10, line.size() - 11));
  return sources;
}

}  // namespace

TEST_CASE("libm: what float32 training runs does not call it") {
  if (run_process({"nm", "--version"}).status != 0) {
    MESSAGE("skipped: there is no nm");
    return;
  }
  std::set<std::string> callers;
  size_t seen = 0;
  for (const std::string folder : {"base", "autograd", "nn", "attention", "optim", "train", "cli"}) {
    for (const fs::directory_entry& entry :
         fs::recursive_directory_iterator(fs::path(ONESTEP_BINARY_DIR) / folder / "CMakeFiles")) {
      const fs::path& object = entry.path();
      if (object.extension() != ".o") continue;
      const std::vector<std::string> sources = sources_of(object, folder);
      if (sources.empty() || sources[0].ends_with(".cases.cpp")) continue;  // the tests' own references
      seen += sources.size();
      for (const std::string& call : inexact_calls(object)) {
        CAPTURE(sources[0]);
        CAPTURE(call);
        CHECK(sources.size() == 1);  // a group has none that may
        CHECK(kCallers.contains(sources[0]));
        callers.insert(sources[0]);
      }
    }
  }
  CHECK(seen > 100);
  CHECK(callers.size() == kCallers.size());  // an entry that is no longer needed goes
}

#ifdef ONESTEP_NO_LIBM
namespace {

/// A program in which every call of such a function ends it with a line that names the function.
onestep::testing::ProcessResult run_without_libm(const std::vector<std::string>& command) {
  return run_process(command, {.environment = {{"LD_PRELOAD", ONESTEP_NO_LIBM}}});
}

}  // namespace

TEST_CASE("libm: training runs where calling it ends the program") {
  const onestep::testing::ProcessResult trained =
      run_without_libm({ONESTEP_BINARY_DIR "/tests/training_hashes", "repeat", "25", "1"});
  CHECK(trained.err == "");
  CHECK(trained.status == 0);
}

TEST_CASE("libm: a perplexity cannot be shown where calling it ends the program") {
  const onestep::testing::TemporaryFolder folder;
  const std::string run = (folder.path() / "run").string();
  REQUIRE(onestep::testing::run_onestep(
              {"train", ONESTEP_SOURCE_DIR "/tests/configs/bits_gpt.json", "--quiet", "--set", "train.steps=1", "--out", run})
              .status == 0);
  const onestep::testing::ProcessResult evaluated = run_without_libm({ONESTEP_BINARY_DIR "/onestep", "eval", run});
  CHECK(evaluated.err == "libm: exp\n");
  CHECK(evaluated.status == 128 + SIGABRT);
}
#endif
