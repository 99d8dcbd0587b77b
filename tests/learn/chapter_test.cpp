// The chapter's results against the printed numbers (seeds.json) and against PyTorch's in full (reference.json).
#include "learn/book/chapter.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

#include "autograd/ops.h"
#include "tests/goldens.h"
#include "tests/nn/check.h"

namespace onestep::book {
namespace {

/// The whole chapter in both dialects.
const std::vector<Result>& chapter() {
  static const std::vector<Result> results = compute(find_sections(""));
  return results;
}

std::vector<Result> results_of(const std::string& id, const std::string& dialect = "") {
  std::vector<Result> found;
  for (const Result& result : chapter()) {
    const bool named = std::find(result.ids.begin(), result.ids.end(), id) != result.ids.end();
    if (named && (dialect.empty() || result.dialect == dialect)) found.push_back(result);
  }
  return found;
}

/// The dropout dialect that an entry was printed with, if it hangs on one.
std::string dialect_of(const nlohmann::json& entry) {
  static const std::map<std::string, std::string> names{{"", ""}, {"default", "torch"}, {"mkl", "torch-mkl"}};
  return names.at(entry.value("mask", ""));
}

/// `value` rounded to `decimals` as printf rounds, or cut off there.
double to_decimals(double value, int decimals, bool cut_off) {
  char text[400];
  const int length = std::snprintf(text, sizeof text, "%.*f", decimals + (cut_off ? 1 : 0), value);
  return std::strtod(std::string(text, static_cast<size_t>(length - (cut_off ? 1 : 0))).c_str(), nullptr);
}

int decimals_of(const nlohmann::json& entry, size_t i) {
  const auto& decimals = entry.at("decimals");
  return decimals.is_array() ? decimals.at(i).get<int>() : decimals.get<int>();
}

TEST_CASE("book: every printed number comes out to its last digit") {
  std::map<std::string, int> kinds;
  size_t numbers = 0;
  for (const auto& entry : testing::golden("seeds.json").at("entries")) {
    const std::string id = entry.at("id");
    INFO(entry.at("seed_file").get<std::string>(), " ", id);
    const std::vector<Result> results = results_of(id, dialect_of(entry));
    REQUIRE(!results.empty());
    ++kinds[entry.at("kind")];
    const std::vector<double> printed = testing::numbers<double>(entry.at("values"));
    numbers += printed.size();
    for (const Result& result : results) {
      INFO(result.code);
      CHECK(result.value.shape() == Shape(entry.at("shape").get<std::vector<int64_t>>()));
      const std::vector<double> values = result.value.to_vector<double>();
      REQUIRE(values.size() == printed.size());
      for (size_t i = 0; i < printed.size(); ++i) {
        const double rounded = to_decimals(values[i], decimals_of(entry, i), entry.value("truncated", false));
        CHECK_MESSAGE(rounded == printed[i], "element ", i, ": ", values[i], " is printed as ", printed[i]);
      }
    }
  }
  CHECK(kinds == std::map<std::string, int>{{"input", 19}, {"output", 180}, {"corrected", 8}});
  CHECK(numbers == 2779);
}

TEST_CASE("book: where a page is wrong the right result is beside it") {
  const auto value = [](const char* id) { return results_of(id).at(0).value; };
  CHECK(!allclose(value("ctx_mistaken").slice(0, 0, 3), value("simple_ctx_q2"), 0, 1e-3));
  CHECK(!allclose(value("context_flat"), value("corrected_context_flat"), 0, 1e-3));
  CHECK(equal(value("step11_shape_before"), tensor({1, 2, 3, 3})));
  CHECK(equal(value("step10_shapes")[1], tensor({1, 3, 2, 3})));
  std::map<std::string, Tensor> by_code;
  for (const Result& result : chapter()) {
    if (result.section == "3.5.3") by_code[result.code.substr(0, result.code.find(" ="))] = result.value;
  }
  CHECK(equal(by_code.at("const auto queries_shape"), tensor({6, 2})));
  CHECK(equal(by_code.at("const auto context_0_shape"), tensor({6, 2})));
  CHECK(equal(by_code.at("const auto context_shape"), tensor({2, 6, 2})));
}

TEST_CASE("book: results are PyTorch's in full precision") {
  // Held bit for bit where these layers are tested (tests/nn/init_test.cpp and tests/attention).
  const std::set<std::string> weights = {"rand_3x2_three_times_seed123", "linear_weights_seed789_three_3to2",
                                         "linear_weights_seed123_three_3to2", "linear_weights_seed123_six_3to2",
                                         "linear_params_seed123_mha_3to2_outproj"};
  // The worked example without the rounding in the middle.
  const std::set<std::string> unrounded = {"scaled_scores", "attention_weights", "context", "context_flat", "dropped_weights"};
  const std::string old_mask = "__old_mkl_mask";
  int compared = 0;
  for (const auto& [key, result] : testing::golden("reference.json").at("seed_results_full_precision").items()) {
    if (weights.contains(key)) continue;
    const std::string& label = key;  // clang 14 captures no binding
    CAPTURE(label);
    const bool mkl = key.ends_with(old_mask);
    std::string id = mkl ? key.substr(0, key.size() - old_mask.size()) : key;
    if (unrounded.contains(id)) id.insert(0, "corrected_");
    const std::vector<Result> ours = results_of(id, id.starts_with("dropout_") ? (mkl ? "torch-mkl" : "torch") : "");
    REQUIRE(!ours.empty());
    const std::vector<double> wanted = testing::numbers<double>(result.at("values"));
    for (const Result& own : ours) {
      const bool wide = own.value.dtype() == DType::float64;
      const Tensor expected = from_values(wanted, Shape(result.at("shape").get<std::vector<int64_t>>()));
      CHECK(allclose(own.value.to(DType::float64), expected, wide ? 1e-13 : 2e-6, wide ? 1e-14 : 1e-6));
    }
    ++compared;
  }
  CHECK(compared == 53);
}

TEST_CASE("book: the table of printed digits is that of the goldens") {
  std::map<std::pair<std::string, std::string>, std::string> table;
  for (const Printed& row : printed()) CHECK(table.emplace(std::pair(row.id, row.dialect), row.digits).second);
  std::set<std::pair<std::string, std::string>> seen;
  for (const auto& entry : testing::golden("seeds.json").at("entries")) {
    const std::pair<std::string, std::string> key(entry.at("id"), dialect_of(entry));
    std::string digits;
    const std::vector<double> values = testing::numbers<double>(entry.at("values"));
    for (size_t i = 0; i < values.size(); ++i) {
      char text[400];
      std::snprintf(text, sizeof text, "%.*f", decimals_of(entry, i), values[i]);
      if (i > 0) digits += ' ';
      digits += text;
    }
    if (entry.value("truncated", false)) digits += "...";
    CHECK_MESSAGE(table[key] == digits, key.first, ": run tests/goldens/printed.py");
    seen.insert(key);
  }
  CHECK(seen.size() == printed().size());
}

TEST_CASE("book: each printed result is shown and each id is known") {
  std::set<std::string> known{"corrected_dropped_weights"}, shown;
  for (const Printed& golden : printed()) known.insert(golden.id);
  for (const Result& result : chapter()) shown.insert(result.ids.begin(), result.ids.end());
  CHECK(shown == known);
}

TEST_CASE("book: comparing finds the first digit that differs") {
  CHECK(compare(chapter()).difference == "");
  CHECK(compare(chapter()).results >= 147);
  std::vector<Result> results;
  Page page("1", {RngDialect::torch}, results);
  RUN(const double third = 1 / 3.0);
  SHOW(numbers, "x y", std::vector<double>{third, -1e-9, 2 * third});
  const auto difference = [&](const char* digits) {
    const std::vector<Printed> goldens = {{"other", "", "9"}, {"x", "torch-mkl", "9"}, {"y", "", digits}};
    return compare(results, goldens).difference;
  };
  const std::string from = " from const auto numbers = std::vector<double>{third, -1e-9, 2 * third};";
  CHECK(difference("0.33 0.000 0.6667") == "");
  CHECK(difference("0.33 0.000 0.66...") == "");
  CHECK(difference("0.33 0.000 0.67...") == "y: element 2: expected 0.67, got 0.66" + from);
  CHECK(difference("0.34 0.001 0.6667").starts_with("y: element 0: "));
  CHECK(difference("0.33 -inf 0.6667").starts_with("y: element 1: "));
  CHECK(difference("0.33 0.000") == "y: expected 2 numbers, got 3" + from);
  CHECK(difference("0.33 0.000 0.6667 1").starts_with("y: expected 4 numbers"));

  std::ostringstream out;
  CHECK(check(out, results, std::vector<Printed>{{"x", "", "0.33 0.0 0.7"}}));
  CHECK(!check(out, results, std::vector<Printed>{{"x", "", "0.33 0.0 0.8"}}));
  CHECK(out.str() == "1 printed results, 3 numbers: every digit agrees\nx: element 2: expected 0.8, got 0.7" + from + "\n");
}

TEST_CASE("book: a page shows the lines that ran and their results as PyTorch prints them") {
  std::vector<Result> results;
  Page page("3.5.2", {RngDialect::torch}, results);
  page.note("A remark.");
  RUN(const Tensor x = tensor({1.5, 2.0}));
  SHOW(y, "", add(/*a=*/x, 1));
  SHOW(shapes, "", std::vector<Shape>{y.shape(), {1}});
  SHOW(rows, "", y.size(0));
  SHOW(numbers, "", y.to_vector<double>());
  std::ostringstream out;
  print(out, results);
  CHECK(out.str() ==
        "3.5.2  dropout on the attention weights\n"
        "---------------------------------------\n\n"
        "// A remark.\n"
        "const Tensor x = tensor({1.5, 2.0});\n"
        "const auto y = add(x, 1);\ntensor([2.5000, 3.0000])\n\n"
        "const auto shapes = std::vector<Shape>{y.shape(), {1}};\ntorch.Size([2]), torch.Size([1])\n\n"
        "const auto rows = y.size(0);\n2\n\n"
        "const auto numbers = y.to_vector<double>();\n[2.5, 3.0]\n\n");
}

TEST_CASE("book: a section number stands for those below it") {
  const auto numbers = [](const char* number) {
    std::string found;
    for (const Section& section : find_sections(number)) found += std::string(section.number) + ';';
    return found;
  };
  CHECK(numbers("3.3") == "3.3.1;3.3.2;");
  CHECK(numbers("3.5.2") == "3.5.2;");
  CHECK(numbers("worked") == "worked example;");
  CHECK(numbers("worked example") == "worked example;");
  CHECK(find_sections("").size() == sections().size());
  CHECK(find_sections("3").size() == sections().size() - 1);
  for (const char* unknown : {"3.", "3.3.", "3.30", "4", "work", "3.3.1.1"}) CHECK(numbers(unknown) == "");
}

}  // namespace
}  // namespace onestep::book
