// The exercises: the solutions pass every check, and each gap fails with the sentence that helps.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"

namespace onestep::testing {
namespace {

namespace fs = std::filesystem;

const fs::path kExercises = fs::path(ONESTEP_SOURCE_DIR) / "learn/exercises";

// What is wrong with each exercise before anything is filled in.
const std::map<std::string, std::string> kGaps = {
    {"01_one_query", "every token has the same weight: the scores with the query are not used yet"},
    {"02_softmax", "the weights of all rows together sum to 1: each row should, along dim -1"},
    {"03_self_attention", "the weights multiply the keys, and the scores are not divided: multiply x W_value"},
    {"04_causal_mask", "every token still attends to the later ones"},
    {"05_dropout", "what is not dropped is not multiplied by 1 / (1 - p)"},
    {"06_split_heads",
     "heads have features of the wrong tokens: head 0 should begin with the first features of token 0 and continue with those "
     "of "
     "token 1, but it continues with the other head's of token 0"},
    {"07_softmax_backward", "raising one score lowers the weights of all others, which is the term sum(y dy): it is missing"},
    {"08_broken_gradient", "the gradient of x is wrong: at [2, 4] backward() says 1.1239, finite differences say -0.3359"},
    {"09_gradient_accumulation",
     "only the last micro-batch counts: zero_grad() inside the loop clears the gradients of the others"},
    {"10_multi_head_attention",
     "no token attends to another: the values are projected, but not multiplied by attention weights"},
};

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().stem();
    if (entry.path().extension() == ".cpp" && name[0] >= '0' && name[0] <= '9') names.insert(name);
  }
  return names;
}

TEST_CASE("exercises: each has a gap and checks and a solution and a line in the list") {
  const std::set<std::string> names = names_in(kExercises);
  CHECK(names.size() == 10);
  CHECK(names_in(kExercises / "solutions") == names);
  CHECK(names_in(kExercises / "checks") == names);
  const std::string page = read(kExercises / "README.md");
  for (const std::string& name : names) {
    CHECK_MESSAGE(kGaps.contains(name), name);
    CHECK_MESSAGE(contains(page, "[" + name + "](" + name + ".cpp)"), name);
    CHECK_MESSAGE(read(kExercises / (name + ".cpp")).starts_with("// Exercise " + std::to_string(std::stoi(name)) + ": "),
                  name);
    const std::string solution = read(kExercises / "solutions" / (name + ".cpp"));
    CHECK_MESSAGE(!contains(solution, "GAP"), name);
  }
}

TEST_CASE("exercises: the solutions pass every check") {
  if (skips_without_ci()) return;
  for (const std::string& name : names_in(kExercises)) {
    const ProcessResult result = run_process({ONESTEP_BINARY_DIR "/tests/exercise_solutions", name});
    CHECK_MESSAGE(result.status == 0, result.out);
    CHECK(result.err == "");
    CHECK_MESSAGE(result.out.starts_with("exercise " + std::to_string(std::stoi(name)) + ": "), result.out);
    CHECK_MESSAGE(result.out.ends_with("\nSolved.\n"), result.out);
    CHECK(std::count(result.out.begin(), result.out.end(), '\n') >= 5);  // three checks or more
  }
}

TEST_CASE("exercises: a gap fails with a sentence that says what is wrong") {
  if (skips_without_ci()) return;
  for (const std::string& name : names_in(kExercises)) {
    if (!contains(read(kExercises / (name + ".cpp")), "// GAP: ")) {
      MESSAGE(name, ": filled in here, nothing to test");  // a learner's checkout
      continue;
    }
    const ProcessResult result = run_process({ONESTEP_BINARY_DIR "/tests/exercise_gaps", name});
    if (name == "01_one_query")
      CHECK(run_process({ONESTEP_BINARY_DIR "/learn/exercises/exercise_01_one_query"}).out == result.out);
    CHECK(result.status == 1);
    CHECK(result.err == "");
    CHECK_MESSAGE(contains(result.out, "\nStill wrong: " + kGaps.at(name)), result.out);
    CHECK_MESSAGE(contains(result.out, "\nHint: "), result.out);
    CHECK_MESSAGE(result.out.ends_with("\nThe file: learn/exercises/" + name + ".cpp\n"), result.out);
  }
}

TEST_CASE("exercises: an unknown name is refused") {
  if (skips_without_ci()) return;
  const ProcessResult result = run_process({ONESTEP_BINARY_DIR "/tests/exercise_solutions", "11_none"});
  CHECK(result.status == 1);
  CHECK(result.err == "no exercise 11_none\n");
}

}  // namespace
}  // namespace onestep::testing
