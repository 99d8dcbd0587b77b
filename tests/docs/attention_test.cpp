// docs/attention.md: its pictures are those that the program makes now. Its lines of C++ and those of
// attention/README.md print what the pages say.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "autograd/ops.h"
#include "learn/book/heat_map.h"
#include "learn/book/pictures.h"
#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"

namespace onestep::testing {
namespace {

namespace fs = std::filesystem;

const fs::path kDocs = fs::path(ONESTEP_SOURCE_DIR) / "docs";

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++found;
  return found;
}

std::set<std::string> files_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

TEST_CASE("attention page: the pictures are those that the program makes") {
  const std::string page = read(kDocs / "attention.md");
  std::set<std::string> names;
  for (const book::Picture& picture : book::pictures()) {
    const std::string file = picture.name + ".svg";
    CHECK_MESSAGE(read(kDocs / "pictures" / file) == picture.svg, file, ": run onestep book --svg docs/pictures");
    CHECK_MESSAGE(count(page, "](pictures/" + file + ")") == 1, file);
    names.insert(file);
  }
  CHECK(files_in(kDocs / "pictures") == names);
}

TEST_CASE("attention page: the program writes the pictures into a new folder") {
  const TemporaryFolder folder;
  const fs::path pictures = folder.path() / "a/b";
  const ProcessResult result = run_onestep({"book", "--svg", pictures}, {.environment = {{"ONESTEP_ISA", "generic"}}});
  CHECK(result.status == 0);
  CHECK(result.err == "");
  CHECK(result.out.starts_with((pictures / "weights.svg").string() + '\n'));
  CHECK(files_in(pictures) == files_in(kDocs / "pictures"));
  for (const std::string& name : files_in(pictures))
    CHECK_MESSAGE(read(pictures / name) == read(kDocs / "pictures" / name), name);
  const ProcessResult refused = run_onestep({"book", "--svg", "/dev/null/x"});
  CHECK(refused.status == 2);
  CHECK(refused.err.starts_with("onestep: /dev/null/x: "));
}

TEST_CASE("attention page: its lines of C++ print what it says") {
  if (skips_without_ci()) return;
  std::istringstream page(read(kDocs / "attention.md") + read(kDocs / "../attention/README.md"));
  std::string expected;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (inside) expected += line + '\n';
    if (line.starts_with("```")) inside = line == "```text";
  }
  CHECK(count(expected, "```\n") == 5);
  const ProcessResult result = run_process({ONESTEP_BINARY_DIR "/tests/attention_page"});
  CHECK(result.status == 0);
  CHECK(result.out == expected);
}

TEST_CASE("heat map: a cell for each number with labels and a colour that says its size") {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor values = tensor({{0.0, 2.0, -1.0}, {-inf, std::nan(""), 0.5}});
  const std::string svg = book::heat_maps_svg(
      {{.title = "a < b", .values = values, .rows = {"r1", "r2"}, .columns = {"c1", "c2", "c3"}, .decimals = 1}}, "d & e");
  CHECK(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" "));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(count(svg, " rx=\"3\" fill=\"") == 6);
  for (const char* text : {">0<", ">2.0<", ">-1.0<", ">-inf<", ">nan<", ">0.5<", ">r2<", ">c3<", ">a &lt; b<", ">d &amp; e<"})
    CHECK_MESSAGE(count(svg, text) == 1, text);
  CHECK(count(svg, "fill=\"#f3f6fa\"/>") == 1);       // 0
  CHECK(count(svg, "fill=\"#084594\"/>") == 1);       // the largest
  CHECK(count(svg, "fill=\"url(#masked)\"/>") == 1);  // -inf
  CHECK(count(svg, "prefers-color-scheme: dark") == 1);
}

TEST_CASE("heat map: text on a cell can be read") {
  // WCAG's contrast ratio of ink and fill, for every cell of every picture.
  const auto luminance = [](const std::string& hex) {
    double sum = 0;
    const double parts[] = {0.2126, 0.7152, 0.0722};
    for (size_t i = 0; i < 3; ++i) {
      const double c = std::stoi(hex.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
      sum += parts[i] * (c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4));
    }
    return sum;
  };
  size_t number = 0;
  for (const book::Picture& picture : book::pictures()) {
    const auto cells = all_matches(picture.svg, R"re(rx="3" fill="(#\w+)"/>\n<text [^>]*fill="(#\w+)")re");
    number += cells.size();
    for (const std::vector<std::string>& cell : cells) {
      const double a = luminance(cell[1]), b = luminance(cell[2]);
      const double contrast = (std::max(a, b) + 0.05) / (std::min(a, b) + 0.05);
      CHECK_MESSAGE(contrast >= 4.5, picture.name, ": ", cell[1], " ", cell[2]);
    }
  }
  CHECK(number > 200);
}

}  // namespace
}  // namespace onestep::testing
