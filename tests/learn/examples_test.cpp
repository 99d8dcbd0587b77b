// The examples: each prints what is expected, and in it every number that the chapter prints there.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "learn/book/chapter.h"
#include "tests/paths.h"
#include "tests/process.h"
#include "tests/support.h"

namespace onestep::testing {
namespace {

namespace fs = std::filesystem;

const fs::path kExamples = fs::path(ONESTEP_SOURCE_DIR) / "learn/examples";

// The printed results of the chapter that each example comes to; `id/dialect` where dropout masks matter.
const std::map<std::string, std::string> kPrinted = {
    {"01_one_query", "simple_scores_q2 simple_w_lin simple_w_naive simple_w_soft simple_w_soft_sum simple_ctx_q2"},
    {"02_all_queries", "simple_scores_mm simple_weights_all simple_row_sums simple_ctx_all simple_ctx_q2"},
    {"03_trained_weights", "qkv_query_2 qkv_keys qkv_values qkv_score_22 qkv_scores_2 qkv_weights_2 qkv_context_2"},
    {"04_modules", "self_attention_v1 self_attention_v2"},
    {"05_causal_masks", "sa2_weights sa2_weights_masked sa2_weights_masked_norm sa2_scores_neg_inf sa2_causal_weights"},
    {"06_dropout",
     "dropout_scale_in_text dropout_ones/torch dropout_ones/torch-mkl dropout_causal/torch dropout_causal/torch-mkl"},
    {"07_causal_attention", "batch_shape causal_attention_shape causal_attention"},
    {"08_multi_head_wrapper", "mha_wrapper_shape mha_wrapper"},
    {"09_multi_head_attention", "mha_shape mha"},
    {"10_products_by_head", "headwise_a_shape_in_comment headwise_product headwise_first headwise_second"},
    {"11_gpt2_size", ""},
    {"12_worked_example",
     "corrected_attention_scores masked_scores corrected_scaled_scores corrected_attention_weights corrected_context "
     "corrected_context_flat"},
    {"13_train", ""},
};

/// The examples in reading order, without `.cpp`.
std::vector<std::string> examples() {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(kExamples))
    if (entry.path().extension() == ".cpp") names.insert(entry.path().stem());
  return {names.begin(), names.end()};
}

/// The numbers of a text, as they are written there.
std::vector<std::string> numbers_in(const std::string& text) {
  std::vector<std::string> found;
  for (const auto& match : all_matches(text, R"((^|[\s\[])(-?(inf|\d+(\.\d*)?))(?=[\s,\]\)]|$))")) found.push_back(match[2]);
  return found;
}

/// Whether `shown` is `printed`, to all digits or (where the chapter prints eight) to four.
bool same_number(const std::string& shown, const std::string& printed) {
  const double a = std::strtod(shown.c_str(), nullptr), b = std::strtod(printed.c_str(), nullptr);
  const size_t point = printed.find('.');
  const bool eight = point != std::string::npos && printed.size() - point - 1 == 8;
  return a == b || (eight && std::abs(a - b) <= 0.5000001e-4);
}

bool shows(const std::vector<std::string>& numbers, const std::string& digits) {
  std::vector<std::string> wanted;
  std::istringstream words(digits);
  for (std::string word; words >> word;) wanted.push_back(word);
  return std::search(numbers.begin(), numbers.end(), wanted.begin(), wanted.end(), same_number) != numbers.end();
}

/// The printed digits of `id` or `id/dialect`.
std::string digits_of(const std::string& name) {
  for (const book::Printed& printed : book::printed()) {
    const std::string dialect = printed.dialect;
    if (printed.id + (dialect.empty() ? "" : '/' + dialect) == name) return printed.digits;
  }
  FAIL(name, " is not printed");
  return {};
}

TEST_CASE("examples: each prints what is expected on every instruction set and number of threads") {
  if (skips_without_ci()) return;
  for (const std::string& name : examples()) {
    CAPTURE(name);
    const std::string expected = read(kExamples / "expected" / (name + ".txt"));
    for (const auto& [isa, threads] : {std::pair{"", "1"}, {"", "2"}, {"generic", "2"}}) {
      if (name == "11_gpt2_size" && isa[0] != '\0') continue;  // 5 GFLOP by emulated fma take ten seconds
      const ProcessResult result = run_process({std::string(ONESTEP_BINARY_DIR "/learn/examples/") + name},
                                               {.environment = {{"ONESTEP_ISA", isa}, {"OMP_NUM_THREADS", threads}}});
      CHECK(result.status == 0);
      CHECK(result.err == "");
      CHECK(result.out == expected);
    }
  }
}

TEST_CASE("examples: the chapter's printed numbers are in what they print") {
  for (const std::string& name : examples()) {
    CAPTURE(name);
    REQUIRE(kPrinted.contains(name));
    const std::vector<std::string> numbers = numbers_in(read(kExamples / "expected" / (name + ".txt")));
    std::istringstream ids(kPrinted.at(name));
    for (std::string id; ids >> id;) CHECK_MESSAGE(shows(numbers, digits_of(id)), id);
  }
  CHECK(shows({"1.", "-inf", "0.3697"}, "1.0000 -inf 0.36971587"));
  CHECK(!shows({"1.", "-inf", "0.3698"}, "1.0000 -inf 0.36971587"));
  CHECK(!shows({"0.9544", "1.4950"}, "0.9544 1.4951"));
  CHECK(numbers_in("sum: 1\n[[-0.5, 2.], a_3 [6]] = tensor(1.5)") == std::vector<std::string>{"1", "-0.5", "2.", "6"});
}

TEST_CASE("examples: they are short and there is one for each section in the order of the chapter") {
  std::string sections;
  for (const std::string& name : examples()) {
    const std::string text = read(kExamples / (name + ".cpp"));
    CHECK_MESSAGE(std::count(text.begin(), text.end(), '\n') <= 80, name);
    CHECK_MESSAGE(text.find("#include <onestep/onestep.h>\n") != std::string::npos, name);
    CHECK_MESSAGE(text.find("#include \"") == std::string::npos, name);
    const std::string section = text.substr(3, text.find(':') - 3);  // "// 3.3.1: ..."
    if (!sections.ends_with(section + ';')) sections += section + ';';
  }
  std::string wanted;
  for (const book::Section& section : book::sections()) wanted += std::string(section.number) + ';';
  CHECK(sections == wanted + "Training;");
}

/// The examples that a page links to, in its order.
std::vector<std::string> links_in(const std::string& page) {
  const std::string text = read(fs::path(ONESTEP_SOURCE_DIR) / page);
  std::vector<std::string> found;
  for (const auto& match : all_matches(text, R"(\]\([./a-z]*(\d\d_\w+)\.cpp\))"))
    if (std::find(found.begin(), found.end(), match[1]) == found.end()) found.push_back(match[1]);
  return found;
}

TEST_CASE("examples: the pages about them list them in reading order") {
  std::vector<std::string> all = examples();
  CHECK(links_in("learn/examples/README.md") == all);
  all.pop_back();  // training is no section of the chapter
  CHECK(links_in("attention/README.md") == all);
}

}  // namespace
}  // namespace onestep::testing
