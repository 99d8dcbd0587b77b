// The shape of the source tree: includes point one way, and files stay short enough to read.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/paths.h"
#include "tests/support.h"

namespace {

namespace fs = std::filesystem;
using onestep::testing::read;

const fs::path kRoot = ONESTEP_SOURCE_DIR;
constexpr int kMaxLines = 450;
const std::vector<std::string> kRooms{"base",       "autograd", "nn",  "attention",  "optim",     "train",
                                      "learn/book", "bench",    "cli", "web/engine", "python/src"};

// The rooms, bottom up: each may include those before it that it names, and itself.
const std::map<std::string, std::set<std::string>> kAllowed = {
    {"base", {}},
    // Hot loops on raw pointers: of the rest they know only how to fail and the mathematics of single numbers.
    {"autograd/kernels",
     {"base/error.h", "autograd/half.h", "autograd/memory.h", "autograd/portable_formulas.h", "autograd/portable_math.h",
      "autograd/vector_loop.h"}},
    {"autograd/random",
     {"base", "autograd/dtype.h", "autograd/half.h", "autograd/kernels", "autograd/portable_math.h",
      "autograd/gamma_formulas.h", "autograd/vector_loop.h"}},
    // What records the graph and walks it calls ops by their public headers; it knows nothing of how they are made.
    {"autograd", {"base", "autograd/kernels", "autograd/random"}},
    {"autograd/ops", {"autograd/kernels", "autograd/random", "autograd/testing", "autograd"}},
    {"autograd/testing", {"base", "autograd", "autograd/random"}},
    // Modules are written in ops: no kernels, no graph internals of the ops.
    {"nn", {"base", "autograd", "autograd/random", "autograd/testing"}},
    {"attention", {"base", "autograd", "autograd/random", "autograd/testing", "nn"}},
    {"optim", {"base", "autograd/kernels", "autograd", "nn"}},
    {"train/text", {"base"}},
    {"train/config",
     {"base", "autograd/dtype.h", "autograd/random/generator.h", "autograd/rotary_scaling.h", "attention", "optim",
      "train/text/tokenizer_kind.h"}},
    {"train/data", {"base", "autograd", "autograd/random", "train/config", "train/text"}},
    {"train/checkpoint", {"base", "autograd", "nn", "train/log"}},
    {"train/log", {"base"}},
    {"train/models",
     {"base", "autograd", "autograd/random", "nn", "attention", "train/config", "train/text", "train/checkpoint"}},
    {"train/distributed", {"base", "autograd", "nn", "optim"}},
    {"train/distributed/mpi", {"base", "autograd/kernels", "train/distributed"}},
    {"train",
     {"base", "autograd", "autograd/random", "nn", "optim", "train/config", "train/text", "train/data", "train/models",
      "train/checkpoint", "train/distributed", "train/log"}},
    {"train/report", {"base", "autograd", "nn", "attention", "train", "train/config", "train/log"}},
    {"train/runs",
     {"base", "autograd/kernels", "autograd/random", "nn", "train", "train/config", "train/text", "train/data", "train/models",
      "train/checkpoint", "train/log", "train/report"}},
    {"learn/book", {"autograd", "autograd/random", "nn", "attention"}},
    {"bench",
     {"base", "autograd/kernels", "autograd", "autograd/random", "nn", "attention", "optim", "train", "train/config",
      "train/models"}},
    {"bench/programs", {"base", "autograd/kernels", "autograd", "nn", "attention", "bench"}},
    {"cli/commands",
     {"base",
      "autograd/kernels",
      "autograd",
      "autograd/random",
      "autograd/testing",
      "nn",
      "optim",
      "train",
      "train/config",
      "train/text",
      "train/data",
      "train/models",
      "train/checkpoint",
      "train/distributed/mpi",
      "train/log",
      "train/report",
      "train/runs",
      "learn/book",
      "bench",
      "cli/arguments.h",
      "cli/guarded.h"}},
    {"cli/gradcheck", {"base", "autograd", "autograd/testing", "nn", "cli/guarded.h"}},
    {"cli", {"base", "autograd/kernels", "cli/commands"}},
    {"web/engine",
     {"base", "autograd/kernels", "autograd", "autograd/random", "nn", "attention", "optim", "train", "train/config",
      "train/text", "train/data", "train/models", "train/checkpoint", "train/log", "train/report", "train/runs", "learn/book"}},
    {"python/src",
     {"base", "autograd/kernels", "autograd", "autograd/random", "autograd/testing", "optim", "train/log", "train/models",
      "train/report", "train/runs", "train/text", "onestep_docs.h"}},
};

// Libraries that stay in one place.
const std::map<std::string, std::set<std::string>> kLibraries = {
    {"nlohmann/",
     {"base", "bench", "train", "train/config", "train/text", "train/data", "train/models", "train/checkpoint", "train/log",
      "train/report", "train/runs", "cli/commands", "web/engine"}},
    {"CLI/", {"cli", "cli/commands"}},
    {"mpi.h", {"train/distributed/mpi"}},
    {"Python.h", {"python/src"}},
    {"nanobind/", {"python/src"}},
    {"doctest/", {}},
};

// The complaints about the includes of `text`, the file at `path` (relative to the root).
std::vector<std::string> wrong_includes(const fs::path& path, const std::string& text) {
  std::vector<std::string> wrong;
  const std::string folder = path.parent_path().string();
  if (!kAllowed.contains(folder)) return {path.string() + ": a folder without a rule in tests/layering_test.cpp"};
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = line.find_first_of("\"<");
    if (!line.starts_with("#include") || begin == std::string::npos) continue;
    const std::string target = line.substr(begin + 1, line.find_first_of("\">", begin + 1) - begin - 1);
    if (line[begin] == '"') {
      const std::set<std::string>& allowed = kAllowed.at(folder);
      const std::string room = fs::path(target).parent_path().string();
      if (room != folder && !allowed.contains(target) && !allowed.contains(room))
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

// The headers that cmake/PublicHeaders.cmake publishes: those of its list, and what they include.
std::set<std::string> published_headers() {
  const std::string rules = read(kRoot / "cmake/PublicHeaders.cmake");
  const size_t begin = rules.find("set(public_headers"), end = rules.find(')', begin);
  REQUIRE(end != std::string::npos);
  std::istringstream words(rules.substr(begin, end - begin));
  std::set<std::string> found;
  std::vector<std::string> next;
  for (std::string word; words >> word;)
    if (word.ends_with(".h")) next.push_back(word);
  while (!next.empty()) {
    const std::string header = next.back();
    next.pop_back();
    if (!found.insert(header).second) continue;
    std::istringstream lines(read(kRoot / header));
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("#include \"")) next.push_back(line.substr(10, line.find('"', 10) - 10));
  }
  return found;
}

}  // namespace

TEST_CASE("layering: includes point from the top rooms down") {
  const std::vector<fs::path> files = sources(kRooms);
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
  CHECK(count("autograd/tensor.h", "#include \"nn/module.h\"\n#include \"train/config/config.h\"\n") == 2);
  CHECK(count("autograd/tensor.h", "#include \"shape.h\"\n#include \"../autograd/shape.h\"\n") == 2);
  CHECK(count("autograd/tensor.cpp", "#include \"autograd/ops_math.h\"\n#include \"autograd/ops/common.h\"\n") == 1);
  CHECK(count("autograd/kernels/simd.h", "#include \"autograd/tensor.h\"\n") == 1);
  CHECK(count("autograd/kernels/simd.h", "#include \"base/error.h\"\n") == 0);
  CHECK(count("train/config/config.cpp", "#include <nlohmann/json.hpp>\n") == 0);
  CHECK(count("train/config/config.cpp", "#include \"cli/commands/commands.h\"\n#include <CLI/CLI.hpp>\n") == 2);
  CHECK(count("attention/factory.cpp", "#include <nlohmann/json.hpp>\n#include \"tests/goldens.h\"\n") == 2);
  CHECK(count("nn/new/file.cpp", "") == 1);
  CHECK(count("train/text/tokenizer.cpp", "#include \"train/data/data.h\"\n") == 1);
}

TEST_CASE("layering: no two rooms include each other") {
  std::map<std::string, int> floor;  // 1 + that of the highest room below
  std::set<std::string> entered;
  const std::function<int(const std::string&)> height = [&](const std::string& room) {
    if (floor.contains(room)) return floor.at(room);
    REQUIRE_MESSAGE(entered.insert(room).second, "a circle through " << room);
    int highest = 0;
    for (const std::string& below : kAllowed.at(room))
      if (!below.ends_with(".h")) highest = std::max(highest, height(below));
    return floor[room] = highest + 1;
  };
  for (const auto& [room, below] : kAllowed) height(room);
  CHECK(floor.at("base") == 1);
  CHECK(floor.at("cli") > floor.at("train"));
}

TEST_CASE("layering: public headers carry little of base") {
  // Not how files are read and written, text is checked, terminals are served and JSON is read.
  const std::set<std::string> known = {"base/enum_names.h", "base/error.h", "base/file_stamp.h", "base/format.h",
                                       "base/machine.h"};
  const std::set<std::string> published = published_headers();
  CHECK(published.contains("autograd/scalar.h"));  // is not in the list: tensor.h includes it
  for (const std::string& header : published)
    CHECK_MESSAGE((!header.starts_with("base/") || known.contains(header)), "<onestep/onestep.h> includes ", header);
}

TEST_CASE("layering: no file is longer than a sitting") {
  for (const fs::path& path :
       sources({"base", "autograd", "nn", "attention", "optim", "train", "cli", "learn", "bench", "python", "web", "tests"})) {
    const std::string text = read(kRoot / path);
    const auto lines = std::count(text.begin(), text.end(), '\n');
    CHECK_MESSAGE(lines <= kMaxLines, path.string(), " has ", lines, " lines");
  }
}
