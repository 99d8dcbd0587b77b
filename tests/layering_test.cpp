// The shape of the source tree: includes point one way, and files stay short enough to read.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/paths.h"

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = ONESTEP_SOURCE_DIR;
constexpr int kMaxLines = 450;

// What the files of each folder (or one file) may include: folders, or single files.
const std::map<std::string, std::set<std::string>> kAllowed = {
    // Hot loops on raw pointers: of the rest they know only how to fail and the mathematics of single numbers.
    {"autograd/kernels", {"autograd/kernels", "autograd/error.h", "autograd/portable_math.h"}},
    {"autograd/ops", {"autograd/kernels", "autograd/ops", "autograd"}},
    {"autograd", {"autograd/kernels", "autograd/ops", "autograd"}},
    // Modules are written in ops: no kernels, no graph internals of the ops.
    {"nn", {"autograd", "nn"}},
    {"attention", {"autograd", "nn", "attention"}},
    {"book", {"autograd", "nn", "attention", "book"}},
    {"train", {"autograd/kernels", "autograd", "nn", "attention", "train"}},
    {"train/main.cpp", {"autograd/error.h", "autograd/kernels", "train", "train/commands"}},
    {"bench", {"autograd/kernels", "autograd", "nn", "attention", "train", "bench"}},
    {"bench/programs", {"autograd/kernels", "autograd", "nn", "attention", "bench"}},
    {"train/mpi", {"autograd/kernels", "train", "train/mpi"}},
    {"train/commands",
     {"autograd/kernels", "autograd", "nn", "attention", "bench", "book", "train", "train/commands", "train/mpi"}},
};

// Libraries that stay in one place.
const std::map<std::string, std::set<std::string>> kLibraries = {
    {"nlohmann/", {"bench", "train", "train/commands"}},
    {"CLI/", {"train/commands"}},
    {"mpi.h", {"train/mpi"}},
    {"doctest/", {}},
};

// The complaints about the includes of `text`, the file at `path` (relative to the root).
std::vector<std::string> wrong_includes(const fs::path& path, const std::string& text) {
  std::vector<std::string> wrong;
  const std::string folder = kAllowed.contains(path.string()) ? path.string() : path.parent_path().string();
  if (!kAllowed.contains(folder)) return {path.string() + ": a folder without a rule in tests/layering_test.cpp"};
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = line.find_first_of("\"<");
    if (!line.starts_with("#include") || begin == std::string::npos) continue;
    const std::string target = line.substr(begin + 1, line.find_first_of("\">", begin + 1) - begin - 1);
    if (line[begin] == '"') {
      const std::set<std::string>& allowed = kAllowed.at(folder);
      if (!allowed.contains(target) && !allowed.contains(fs::path(target).parent_path().string()))
        wrong.push_back(path.string() + " may not include \"" + target + '"');
      continue;
    }
    for (const auto& [library, folders] : kLibraries) {
      if (target.starts_with(library) && !folders.contains(folder))
        wrong.push_back(path.string() + " may not include <" + target + '>');
    }
  }
  return wrong;
}

std::string read(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Sources and headers under the given folders, relative to the root.
std::vector<fs::path> sources(const std::vector<std::string>& folders) {
  std::vector<fs::path> found;
  for (const std::string& folder : folders) {
    if (!fs::exists(kRoot / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      const std::string extension = entry.path().extension().string();
      if (entry.is_regular_file() && (extension == ".h" || extension == ".cpp")) found.push_back(fs::relative(entry, kRoot));
    }
  }
  return found;
}

}  // namespace

TEST_CASE("layering: includes point from train to attention to nn to autograd") {
  const std::vector<fs::path> files = sources({"autograd", "nn", "attention", "bench", "book", "train"});
  CHECK(files.size() > 20);
  for (const fs::path& path : files) {
    for (const std::string& complaint : wrong_includes(path, read(kRoot / path))) FAIL_CHECK(complaint);
  }
}

TEST_CASE("layering: a wrong include is found") {
  const auto count = [](const char* path, const char* text) { return wrong_includes(path, text).size(); };
  CHECK(count("nn/linear.cpp", "#include \"autograd/ops.h\"\n#include \"nn/linear.h\"\n#include <vector>\n") == 0);
  CHECK(count("nn/linear.cpp", "#include \"attention/mask.h\"\n") == 1);
  CHECK(count("nn/linear.cpp", "#include \"autograd/kernels/kernels.h\"\n") == 1);
  CHECK(count("nn/linear.cpp", "#include \"autograd/ops/common.h\"\n") == 1);
  CHECK(count("autograd/tensor.h", "#include \"nn/module.h\"\n#include \"train/config.h\"\n") == 2);
  CHECK(count("autograd/tensor.h", "#include \"shape.h\"\n#include \"../autograd/shape.h\"\n") == 2);
  CHECK(count("autograd/kernels/simd.h", "#include \"autograd/tensor.h\"\n") == 1);
  CHECK(count("autograd/kernels/simd.h", "#include \"autograd/error.h\"\n") == 0);
  CHECK(count("train/config.cpp", "#include <nlohmann/json.hpp>\n") == 0);
  CHECK(count("train/config.cpp", "#include \"train/commands/commands.h\"\n#include <CLI/CLI.hpp>\n") == 2);
  CHECK(count("attention/factory.cpp", "#include <nlohmann/json.hpp>\n#include \"tests/goldens.h\"\n") == 2);
  CHECK(count("nn/new/file.cpp", "") == 1);
}

TEST_CASE("layering: no file is longer than a sitting") {
  for (const fs::path& path :
       sources({"autograd", "nn", "attention", "book", "train", "tests", "bench", "examples", "exercises"})) {
    const std::string text = read(kRoot / path);
    const auto lines = std::count(text.begin(), text.end(), '\n');
    CHECK_MESSAGE(lines <= kMaxLines, path.string(), " has ", lines, " lines");
  }
}
