#include "learn/book/chapter.h"

#include <algorithm>
#include <cstdio>
#include <ostream>
#include <sstream>

#include "learn/book/sections.h"

namespace onestep::book {
namespace {

constexpr Section kSections[] = {
    {"3.3.1", "simplified self-attention: one query", simplified_one_query},
    {"3.3.2", "simplified self-attention: all queries at once", simplified_all_queries},
    {"3.4.1", "self-attention with trainable weights, step by step", trainable_steps},
    {"3.4.2", "self-attention as a module: SelfAttention_v1 and SelfAttention_v2", trainable_modules},
    {"3.5.1", "causal attention: three ways to mask later tokens", causal_masks},
    {"3.5.2", "dropout on the attention weights", dropout_masks},
    {"3.5.3", "CausalAttention on a batch", causal_module},
    {"3.6.1", "multi-head attention by stacking: MultiHeadAttentionWrapper", multi_head_wrapper},
    {"3.6.2", "multi-head attention by splitting weights: MultiHeadAttention", multi_head_split},
    {"3.6.3", "attention of the size of GPT-2", gpt2_size},
    {"worked example", "multi-head attention, step by step with numbers", worked_example},
};

/// `value` as it is printed with the digits of `printed`; a negative zero is printed as zero.
std::string with_digits_of(const std::string& printed, double value) {
  const size_t point = printed.find('.');
  const int decimals = point == std::string::npos ? 0 : static_cast<int>(printed.size() - point - 1);
  char text[400];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  const bool zero = std::string_view(text).find_first_not_of("-0.") == std::string_view::npos;
  return zero && text[0] == '-' ? text + 1 : text;
}

/// The place and the digits of the first number that differs, or nothing.
std::string first_difference(const Result& result, const Printed& golden, int& compared) {
  const std::vector<double> values = result.value.to_vector<double>();
  std::istringstream words(golden.digits);
  size_t i = 0;
  for (std::string expected; words >> expected; ++i, ++compared) {
    if (i >= values.size()) break;
    const bool cut_off = expected.ends_with("...");
    if (cut_off) expected.resize(expected.size() - 3);
    std::string got = with_digits_of(cut_off ? expected + '0' : expected, values[i]);
    if (cut_off) got.pop_back();
    if (got != expected) return "element " + std::to_string(i) + ": expected " + expected + ", got " + got;
  }
  const std::string text = golden.digits;
  const auto printed_numbers = static_cast<size_t>(std::count(text.begin(), text.end(), ' ') + 1);
  if (values.size() == printed_numbers) return {};
  return "expected " + std::to_string(printed_numbers) + " numbers, got " + std::to_string(values.size());
}

}  // namespace

std::span<const Section> sections() { return kSections; }

std::vector<Section> find_sections(const std::string& number) {
  std::vector<Section> found;
  for (const Section& section : kSections) {
    const std::string own = section.number;
    const bool below = own.starts_with(number) && own.find_first_of(". ", number.size()) == number.size();
    if (number.empty() || own == number || below) found.push_back(section);
  }
  return found;
}

std::vector<Result> compute(const std::vector<Section>& chosen, std::optional<RngDialect> dialect) {
  std::vector<RngDialect> dialects{RngDialect::torch, RngDialect::torch_mkl};
  if (dialect) dialects = {*dialect};
  std::vector<Result> results;
  for (const Section& section : chosen) {
    Page page(section.number, dialects, results);
    section.show(page);
  }
  return results;
}

void print(std::ostream& out, std::span<const Result> results) {
  std::string section;
  bool blank = true;  // after a blank line
  for (const Result& result : results) {
    if (result.section != section) {
      out << (section.empty() ? "" : blank ? "\n" : "\n\n");
      section = result.section;
      blank = false;
      const std::string heading = section + "  " + find_sections(section).front().title;
      out << heading << '\n' << std::string(heading.size(), '-') << '\n';
    }
    if (!result.note.empty()) out << (blank ? "// " : "\n// ") << result.note << '\n';
    out << result.code << '\n';
    blank = !result.text.empty();
    if (blank) out << result.text << "\n\n";
  }
}

Comparison compare(std::span<const Result> results, std::span<const Printed> goldens) {
  Comparison comparison;
  for (const Result& result : results) {
    for (const std::string& id : result.ids) {
      for (const Printed& golden : goldens) {
        if (golden.id != id || (*golden.dialect && golden.dialect != result.dialect)) continue;
        const std::string difference = first_difference(result, golden, comparison.numbers);
        if (!difference.empty()) {
          comparison.difference = id + ": " + difference + " from " + result.code;
          return comparison;
        }
        ++comparison.results;
      }
    }
  }
  return comparison;
}

bool check(std::ostream& out, std::span<const Result> results, std::span<const Printed> goldens) {
  const Comparison comparison = compare(results, goldens);
  if (!comparison.difference.empty()) {
    out << comparison.difference << '\n';
    return false;
  }
  out << comparison.results << " printed results, " << comparison.numbers << " numbers: every digit agrees\n";
  return true;
}

}  // namespace onestep::book
