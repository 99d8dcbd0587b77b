// What the room on attention shows: the steps with the book's digits beside them, and what a number is made of.
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "autograd/ops.h"
#include "base/json_reader.h"
#include "learn/book/chapter.h"
#include "web/engine/arguments.h"
#include "web/engine/attention_steps.h"
#include "web/engine/tensor_json.h"

namespace onestep::web {
namespace {

using nlohmann::json;

/// Where the book prints what a step computes: all of it, or one row; once, or for a batch of the same text twice.
struct PrintedStep {
  std::string_view step, id;
  int64_t row = -1;
  bool twice = false;
};

struct Section {
  std::string_view number, title;
  AttentionChoice choice;
  std::vector<PrintedStep> printed;
};

const std::vector<Section>& all_sections() {
  static const std::vector<Section> all{
      {"3.3.2",
       "Without weights",
       {.weights = "none", .width = 3, .scaled = false},
       {{"x", "inputs"}, {"scores", "simple_scores_mm"}, {"weights", "simple_weights_all"}, {"context", "simple_ctx_all"}}},
      {"3.4.1",
       "Queries, keys and values",
       {},
       {{"x", "inputs"},
        {"queries", "qkv_query_2", 1},
        {"keys", "qkv_keys"},
        {"values", "qkv_values"},
        {"scores", "qkv_scores_2", 1},
        {"weights", "qkv_weights_2", 1},
        {"context", "self_attention_v1"}}},
      {"3.4.2",
       "Linear layers",
       {.weights = "linear", .seed = 789},
       {{"x", "inputs"}, {"weights", "sa2_weights"}, {"context", "self_attention_v2"}}},
      {"3.5.1",
       "Causal mask",
       {.weights = "linear", .seed = 789, .masked = true},
       {{"x", "inputs"}, {"masked", "sa2_scores_neg_inf"}, {"weights", "sa2_causal_weights"}}},
      {"3.5.2",
       "Dropout",
       {.weights = "linear", .seed = 789, .masked = true, .dropout = 0.5},
       {{"x", "inputs"}, {"weights", "sa2_causal_weights"}, {"dropped", "dropout_causal"}}},
      {"3.5.3",
       "A causal module",
       {.weights = "linear", .masked = true},
       {{"x", "inputs"}, {"context", "causal_attention", -1, true}}},
      {"3.6.1",
       "Two heads side by side",
       {.weights = "per head", .width = 4, .heads = 2, .masked = true},
       {{"x", "inputs"}, {"merged", "mha_wrapper", -1, true}}},
      {"3.6.2",
       "Heads in one product",
       {.weights = "linear", .heads = 2, .masked = true, .output = true},
       {{"x", "inputs"}, {"output", "mha", -1, true}}}};
  return all;
}

const Section* section_of(const AttentionChoice& choice) {
  for (const Section& section : all_sections()) {
    AttentionChoice wanted = section.choice;
    if (wanted.dropout > 0) wanted.dialect = choice.dialect;  // the book's numbers of either
    if (wanted == choice) return &section;
  }
  return nullptr;
}

/// The comparison of a step with what the book prints of it; null if it prints nothing.
json compare_with_book(const Section* section, const AttentionChoice& choice, const AttentionStep& step) {
  if (!section) return nullptr;
  const auto found =
      std::find_if(section->printed.begin(), section->printed.end(), [&](const PrintedStep& p) { return p.step == step.name; });
  if (found == section->printed.end()) return nullptr;
  book::Result result;
  result.value = found->row >= 0 ? step.value[found->row] : found->twice ? stack({step.value, step.value}) : step.value;
  result.ids = {std::string(found->id)};
  result.code = step.cpp;
  if (choice.dropout > 0) result.dialect = choice.dialect;
  const book::Comparison comparison = book::compare({&result, 1});
  return {{"row", found->row >= 0 ? json(found->row) : json(nullptr)},
          {"numbers", found->twice ? comparison.numbers / 2 : comparison.numbers},
          {"agrees", comparison.difference.empty() && comparison.results > 0},
          {"difference", comparison.difference}};
}

/// What comes before the line of a step, in C++ and in Python.
std::pair<std::string, std::string> setup_of(const AttentionStep& step, const AttentionChoice& choice) {
  const auto seeded = [](int64_t seed) { return std::to_string(seed); };
  if (step.name == "W_query") {
    const std::string heads = std::to_string(choice.heads), d_out = std::to_string(choice.width);
    const std::string generator = "Generator generator(" + seeded(choice.seed) + ");\n";
    const std::string seed = "torch.manual_seed(" + seeded(choice.seed) + ")\n";
    const std::string sizes = "d_in, d_out = 3, " + d_out + "\n";
    if (choice.weights != "per head") return {generator + "const int64_t d_in = 3, d_out = " + d_out + ";\n", seed + sizes};
    const std::string head_dim = std::to_string(choice.width / choice.heads);
    return {
        generator + "const MultiHeadAttentionWrapper wrapper(3, " + head_dim + ", 12, 0.0, " + heads + ", false, generator);\n",
        seed + "drawn = [[torch.nn.Linear(3, " + head_dim + ", bias=False).weight.t() for _ in range(3)] for _ in range(" +
            heads + ")]\n"};
  }
  if (step.name == "query_heads")
    return {"const int64_t heads = " + std::to_string(choice.heads) + ";\n",
            "T, heads = len(x), " + std::to_string(choice.heads) + "\n"};
  if (step.name == "masked") return {"const int64_t T = x.size(0);\n", "T = len(x)\n"};
  if (step.name == "scaled") {
    if (choice.weights == "none") return {"const double d_k = x.size(-1);\n", "d_k = x.size(-1)\n"};
    return {"const double d_k = keys.size(-1);\n", "d_k = keys.size(-1)\n"};
  }
  if (step.name == "dropped") {
    const std::string p = json(choice.dropout).dump();
    const std::string dialect = choice.dialect == "torch" ? "" : ", RngDialect::torch_mkl";
    return {"const double p = " + p + ";\nGenerator masks(" + seeded(choice.dropout_seed) + dialect + ");\n",
            "p = " + p + "\ntorch.manual_seed(" + seeded(choice.dropout_seed) + ")\n"};
  }
  if (step.name == "W_out")
    return {"const Linear out_proj(d_out, d_out, true, generator);\n", "out_proj = torch.nn.Linear(d_out, d_out)\n"};
  return {};
}

json edited_in(const AttentionStep& step, const AttentionChoice& choice) {
  json edited = json::array();
  for (const Edit& edit : choice.edits)
    if (edit.step == step.name) edited.push_back({edit.row, edit.column});
  return edited;
}

/// The numbers of a 3-D tensor as the page shows them.
json texts(const Tensor& value) {
  json all = nested(value);
  for (json& matrix : all)
    for (json& row : matrix)
      for (json& number : row)
        if (number.is_number()) number = four_decimals(number.get<double>());
  return all;
}

// ---- one number ----------------------------------------------------------------------------------------------------------

/// The place of a number: a step, and in its matrix (of a head, where it has several) a row and a column.
class Explanation {
 public:
  Explanation(const AttentionChoice& choice, const std::vector<AttentionStep>& steps, size_t at, int64_t head, int64_t row,
              int64_t column)
      : choice_(choice), steps_(steps), at_(at), head_(head), row_(row), column_(column), words_(words_of(choice.sentence)) {}

  json explain() {
    const AttentionStep& step = steps_[at_];
    const std::string_view name = step.name;
    if (name == "x") return given("number " + one_based(column_) + " of the embedding of " + word(row_));
    if (name.starts_with("W_") || name == "b_out")
      return given(choice_.weights == "uniform" && name != "W_out" && name != "b_out"
                       ? "drawn uniformly between 0 and 1"
                       : "drawn uniformly within ±1/√(width of the input)");
    if (name == "queries") return product("x", "W_query", false);
    if (name == "keys") return product("x", "W_key", false);
    if (name == "values") return product("x", "W_value", false);
    if (name.ends_with("_heads")) return copied_to_heads();
    if (name == "scores") return scores();
    if (name == "masked") return masked();
    if (name == "scaled") return scaled();
    if (name == "weights") return softmax_of_row();
    if (name == "dropped") return dropped();
    if (name == "context") return context();
    if (name == "merged") return copied_from_heads();
    return product("context", "W_out", true);
  }

 private:
  static std::string one_based(int64_t i) { return std::to_string(i + 1); }
  const std::string& word(int64_t i) const { return words_[static_cast<size_t>(i)]; }

  /// The newest step before this one that is one of `names`.
  size_t before(std::initializer_list<std::string_view> names) const {
    for (size_t i = at_; i-- > 0;)
      if (std::find(names.begin(), names.end(), steps_[i].name) != names.end()) return i;
    fail<Error>("attention_cell: ", steps_[at_].name, " is computed from nothing");
  }
  double number(size_t step, int64_t row, int64_t column) const {
    const Tensor& value = steps_[step].value;
    return value.dim() == 3 ? value.at({head_, row, column}) : value.at({row, column});
  }
  std::string text(size_t step, int64_t row, int64_t column) const { return four_decimals(number(step, row, column)); }
  /// A cell, a row (without column) or a column (without row) that the number comes from.
  void source(size_t step, std::optional<int64_t> row, std::optional<int64_t> column, std::optional<int64_t> head = {}) {
    const bool heads = steps_[step].value.dim() == 3;
    sources_.push_back({{"step", steps_[step].name},
                        {"head", heads ? head.value_or(head_) : 0},
                        {"row", row ? json(*row) : json(nullptr)},
                        {"column", column ? json(*column) : json(nullptr)}});
  }
  json result(const std::string& formula, const std::string& numbers) const {
    return {{"formula", formula},
            {"numbers", numbers},
            {"value", number_or_text(number(at_, row_, column_))},
            {"sources", sources_}};
  }

  json given(const std::string& how) const { return result(how, ""); }

  /// The sum of left[row, k] right[k, column], or of left[row, k] right[column, k].
  std::string sum_of_products(size_t left, size_t right, bool transposed) {
    std::string sum;
    for (int64_t k = 0; k < steps_[left].value.size(-1); ++k) {
      if (k) sum += " + ";
      sum += text(left, row_, k) + " × " + (transposed ? text(right, column_, k) : text(right, k, column_));
    }
    source(left, row_, {});
    if (transposed)
      source(right, column_, {});
    else
      source(right, {}, column_);
    return sum;
  }

  json product(std::string_view left, std::string_view right, bool bias) {
    const size_t a = left == "context" ? before({"context", "merged"}) : before({left}), b = before({right});
    std::string numbers = sum_of_products(a, b, false);
    std::string formula = (left == "x" ? "embedding of " : "context of ") + word(row_) + " · column " + one_based(column_) +
                          " of " + std::string(right);
    if (bias) {
      const size_t b_out = before({"b_out"});
      numbers += " + " + text(b_out, 0, column_);
      formula += " + b_out";
      source(b_out, 0, column_);
    }
    return result(formula, numbers);
  }
  json scores() {
    const bool none = choice_.weights == "none";
    const size_t queries = none ? before({"x"}) : before({"query_heads", "queries"});
    const size_t keys = none ? queries : before({"key_heads", "keys"});
    const std::string numbers = sum_of_products(queries, keys, true);
    if (none) return result("embedding of " + word(row_) + " · embedding of " + word(column_), numbers);
    return result("query of " + word(row_) + " · key of " + word(column_), numbers);
  }
  json masked() {
    const size_t scores = before({"scores"});
    source(scores, row_, column_);
    if (column_ > row_)
      return result("−∞, since " + word(column_) + " comes after " + word(row_), text(scores, row_, column_) + " → -inf");
    return result("the score itself: " + word(column_) + " does not come after " + word(row_), text(scores, row_, column_));
  }
  json scaled() {
    const size_t scores = before({"masked", "scores"});
    const size_t keys = choice_.weights == "none" ? before({"x"}) : before({"key_heads", "keys"});
    source(scores, row_, column_);
    const int64_t d_k = steps_[keys].value.size(-1);
    return result("score / √d_k, the width of a key being " + std::to_string(d_k),
                  text(scores, row_, column_) + " / √" + std::to_string(d_k));
  }
  json softmax_of_row() {
    const size_t scores = before({"scaled", "masked", "scores"});
    const int64_t T = steps_[scores].value.size(-1);
    std::string sum;
    for (int64_t s = 0; s < T; ++s) {
      const double score = number(scores, row_, s);
      if (score == -std::numeric_limits<double>::infinity()) continue;  // exp gives 0
      sum += (sum.empty() ? "" : " + ") + ("exp(" + four_decimals(score) + ")");
    }
    source(scores, row_, {});
    return result("exp(score with " + word(column_) + ") / sum of exp over the row of " + word(row_),
                  "exp(" + text(scores, row_, column_) + ") / (" + sum + ")");
  }
  json dropped() {
    const size_t weights = before({"weights"});
    source(weights, row_, column_);
    const std::string p = four_decimals(choice_.dropout), weight = text(weights, row_, column_);
    if (number(at_, row_, column_) == 0 && number(weights, row_, column_) != 0)
      return result("dropped: 0, with probability " + p, weight + " → 0");
    return result("kept: divided by 1 − p", weight + " / (1 − " + p + ")");
  }
  json context() {
    const bool none = choice_.weights == "none";
    const size_t weights = before({"dropped", "weights"}), values = none ? before({"x"}) : before({"value_heads", "values"});
    const std::string numbers = sum_of_products(weights, values, false);
    return result(
        "weights of " + word(row_) + " · number " + one_based(column_) + (none ? " of all embeddings" : " of all values"),
        numbers);
  }
  json copied_to_heads() {
    const std::string_view name = steps_[at_].name;
    const size_t whole = before({name == "query_heads" ? "queries" : name == "key_heads" ? "keys" : "values"});
    const int64_t column = head_ * steps_[at_].value.size(-1) + column_;
    source(whole, row_, column);
    return result("column " + one_based(column) + " of " + std::string(steps_[whole].name) + ": head " + one_based(head_) +
                      " has " + std::to_string(steps_[at_].value.size(-1)) + " of them",
                  text(whole, row_, column));
  }
  json copied_from_heads() {
    const size_t context = before({"context"});
    const int64_t width = steps_[context].value.size(-1), head = column_ / width;
    source(context, row_, column_ % width, head);
    return result("column " + one_based(column_ % width) + " of head " + one_based(head),
                  four_decimals(steps_[context].value.at({head, row_, column_ % width})));
  }

  const AttentionChoice& choice_;
  const std::vector<AttentionStep>& steps_;
  size_t at_;
  int64_t head_, row_, column_;
  std::vector<std::string> words_;
  json sources_ = json::array();
};

}  // namespace

json attention(const json& arguments) {
  const AttentionChoice choice = attention_choice(arguments);
  const Section* const section = section_of(choice);
  json steps = json::array();
  for (const AttentionStep& step : attention_steps(choice)) {
    const bool per_head = step.value.dim() == 3;
    const auto [cpp, python] = setup_of(step, choice);
    steps.push_back({{"name", step.name},
                     {"group", step.group},
                     {"rows", step.rows},
                     {"columns", step.columns},
                     {"cpp", cpp + step.cpp},
                     {"python", python + step.python},
                     {"per_head", per_head},
                     {"texts", texts(per_head ? step.value : step.value.unsqueeze(0))},
                     {"values", nested(per_head ? step.value : step.value.unsqueeze(0))},
                     {"edited", edited_in(step, choice)},
                     {"printed", compare_with_book(section, choice, step)}});
  }
  return {{"words", words_of(choice.sentence)},
          {"section", section ? json(section->number) : json(nullptr)},
          {"steps", std::move(steps)}};
}

json attention_cell(const json& arguments) {
  json fields = arguments;
  for (const char* key : {"step", "head", "row", "column"}) fields.erase(key);
  const AttentionChoice choice = attention_choice(fields);
  const std::vector<AttentionStep> steps = attention_steps(choice);
  const std::string name = arguments.value("step", json()).is_string() ? arguments.at("step").get<std::string>() : "";
  const auto step = std::find_if(steps.begin(), steps.end(), [&](const AttentionStep& s) { return s.name == name; });
  ONESTEP_CHECK(ConfigError, step != steps.end(),
                "arguments: /step: there is no such step: ", brief(arguments.value("step", json())));
  json place = json::object();
  for (const char* key : {"head", "row", "column"})
    if (arguments.contains(key)) place[key] = arguments.at(key);
  const Arguments given(place, {"head", "row", "column"});
  const Shape& shape = step->value.shape();
  const int64_t head = given.integer("head", 0, 0, shape.rank() == 3 ? shape[0] - 1 : 0);
  const int64_t row = given.integer("row", 0, 0, step->value.size(-2) - 1);
  const int64_t column = given.integer("column", 0, 0, step->value.size(-1) - 1);
  return Explanation(choice, steps, static_cast<size_t>(step - steps.begin()), head, row, column).explain();
}

json attention_sections(const json& /*arguments*/) {
  json sections = json::array();
  for (const Section& section : all_sections())
    sections.push_back({{"section", section.number}, {"title", section.title}, {"choice", to_json(section.choice)}});
  return sections;
}

std::vector<Method> attention_methods() {
  return {{"attention", attention}, {"attention_cell", attention_cell}, {"attention_sections", attention_sections}};
}

}  // namespace onestep::web
