// Programs of tensor operations that PyTorch ran: the engine comes to the same results and refuses what PyTorch refuses.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/goldens.h"
#include "tests/programs/interpreter.h"

namespace onestep::programs {
namespace {

void check_all(const std::string& golden, size_t at_least) {
  const nlohmann::json& programs = testing::golden(golden)["programs"];
  CHECK(programs.size() >= at_least);
  for (const nlohmann::json& program : programs) {
    const Outcome outcome = check(program);
    CHECK_MESSAGE(outcome.verdict == Verdict::equal, name(outcome.verdict)
                                                         << " at step " << outcome.step << ": " << outcome.what << "\n"
                                                         << program.dump());
  }
}

}  // namespace

TEST_CASE("programs: random ones of views and in-place writes come to PyTorch's results") { check_all("programs.json", 200); }

TEST_CASE("programs: those that differed once do no longer") { check_all("mended_programs.json", 20); }

TEST_CASE("programs: PyTorch's samples of its operators come to its results") { check_all("op_samples.json", 500); }

TEST_CASE("programs: a wrong value or gradient or a step that is or is not refused is seen") {
  nlohmann::json program = nlohmann::json::parse(R"({"steps": [
    ["w", "tensor", ["float32", [2], [1, 2], true]],
    ["x", "mul", ["$w", 3]],
    ["", "backward", ["$x", "weights"]],
    ["", "backward", ["$w", "weights", true]],
    ["", "add_", ["$w", 1]]],
    "want": {"status": "....x", "tensors": {"w": ["float32", [2], null, "rl", [-5, 2], 0],
                                            "x": ["float32", [2], [3, 6], "r", null, 0]}}})");
  CHECK(check(program).what == "");
  const auto verdict_with = [&](const char* pointer, const nlohmann::json& value) {
    nlohmann::json other = program;
    other["want"][nlohmann::json::json_pointer(pointer)] = value;
    return check(other).verdict;
  };
  CHECK(verdict_with("/tensors/x/2/1", 6.01) == Verdict::different);
  CHECK(verdict_with("/tensors/x/2/1", "nan") == Verdict::different);
  CHECK(verdict_with("/tensors/x/2/1", nullptr) == Verdict::equal);
  CHECK(verdict_with("/tensors/x/2", {nullptr, 6.01}) == Verdict::different);
  CHECK(verdict_with("/tensors/w/4/0", 5) == Verdict::different);
  CHECK(verdict_with("/tensors/w/4", nullptr) == Verdict::different);
  CHECK(verdict_with("/tensors/x/4", {0, 0}) == Verdict::different);
  CHECK(verdict_with("/tensors/x/3", "rl") == Verdict::different);
  CHECK(verdict_with("/tensors/x/0", "float64") == Verdict::different);
  CHECK(verdict_with("/tensors/x/1", {1, 2}) == Verdict::different);
  CHECK(verdict_with("/tensors/x", nullptr) == Verdict::different);
  CHECK(verdict_with("/status", "...x.") == Verdict::accepted);
  CHECK(verdict_with("/status", ".....") == Verdict::refused);
}

}  // namespace onestep::programs
