// `onestep gradcheck` from outside.
#include <doctest/doctest.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "autograd/testing/op_case.h"
#include "nn/module_case.h"
#include "tests/process.h"
#include "tests/support.h"

namespace onestep::testing {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

bool has_line(const std::vector<std::string>& lines, const std::string& kind, const std::string& name) {
  for (const std::string& line : lines) {
    std::istringstream in(line);
    std::string first, second;
    if (in >> first >> second && first == kind && second == name && line.ends_with("  ok")) return true;
  }
  return false;
}

TEST_CASE("cli gradcheck: a line for every op and module") {
  if (skips_without_ci()) return;
  const ProcessResult result = run_onestep({"gradcheck"});
  CHECK(result.status == 0);
  CHECK(result.err == "");
  const std::vector<std::string> lines = lines_of(result.out);
  std::map<std::string, bool> differentiable;  // an op may have several cases
  for (const OpCase& c : op_cases())
    for (const OpSample& sample : c.samples) differentiable[c.op] = differentiable[c.op] || sample.differentiable;
  for (const auto& op : differentiable) CHECK_MESSAGE(has_line(lines, "op", op.first) == op.second, op.first);
  for (const nn::ModuleCase& c : nn::module_cases()) CHECK_MESSAGE(has_line(lines, "module", c.module), c.module);
  const std::string count = std::to_string(lines.size() - 2);
  CHECK(lines.back() == count + " of " + count + " agree with finite differences (largest relative error allowed: 1.0e-06)");
}

TEST_CASE("cli gradcheck: one op and one module") {
  const std::vector<std::string> lines = lines_of(run_onestep({"gradcheck", "--op", "softmax"}).out);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] == "kind   name                          samples  derivatives     worst       second     worst");
  CHECK(has_line(lines, "op", "softmax"));
  CHECK(has_line(lines_of(run_onestep({"gradcheck", "--op", "Linear"}).out), "module", "Linear"));
}

TEST_CASE("cli gradcheck: exit status 1 when a gradient is not near enough") {
  const ProcessResult result = run_onestep({"gradcheck", "--op", "exp", "--tolerance", "1e-30"});
  CHECK(result.status == 1);
  const std::vector<std::string> lines = lines_of(result.out);
  REQUIRE(lines.size() > 3);
  CHECK(lines[1].ends_with("  FAILED"));
  CHECK(lines[2].starts_with("       gradcheck: input 0, element "));
  CHECK(lines.back().starts_with("0 of 1 agree"));
}

TEST_CASE("cli gradcheck: unknown names are refused with the nearest one") {
  const ProcessResult result = run_onestep({"gradcheck", "--op", "sofmax"});
  CHECK(result.status == 2);
  CHECK(result.out == "");
  CHECK(result.err == "onestep: gradcheck: no differentiable op or module is called sofmax (did you mean softmax?)\n");
  CHECK(run_onestep({"gradcheck", "--op", "argmax"}).status == 2);
  for (const char* tolerance : {"-1", "nan", "inf", ""}) {
    const ProcessResult refused = run_onestep({"gradcheck", "--op", "exp", "--tolerance", tolerance});
    CHECK(refused.status == 2);
    CHECK(refused.err.starts_with("onestep: --tolerance: "));
  }
}

}  // namespace
}  // namespace onestep::testing
