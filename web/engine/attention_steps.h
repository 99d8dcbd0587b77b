#pragma once
// The methods of the page's room on attention: every step from words to context vectors, and what one number is made of.
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/tensor.h"
#include "web/engine/methods.h"

namespace onestep::web {

/// A number that somebody set by hand in the matrix of a step.
struct Edit {
  std::string step;
  int64_t row, column;
  double value;
  bool operator==(const Edit&) const = default;
};

/// What attention is computed with.
struct AttentionChoice {
  std::string sentence = "Your journey starts with one step";
  std::string weights = "uniform";  ///< As `kWeights` in attention_steps.cpp.
  int64_t seed = 123;               ///< Of the weights.
  int64_t width = 2;                ///< Features of a query, all heads together.
  int64_t heads = 1;
  bool masked = false, scaled = true;
  double dropout = 0;
  int64_t dropout_seed = 123;
  std::string dialect = "torch";  ///< Of the dropout mask.
  bool output = false;            ///< With an output projection.
  std::vector<Edit> edits = {};
  bool operator==(const AttentionChoice&) const = default;
};

/// A line that was executed, and its result.
struct AttentionStep {
  std::string_view name, group;    ///< Steps of one group are side by side.
  std::string_view rows, columns;  ///< What the axes stand for: words, features, in, out.
  std::string cpp, python;
  Tensor value;  ///< [rows, columns], or [heads, rows, columns].
};

/// The words of a sentence.
std::vector<std::string> words_of(const std::string& sentence);

/// All steps, in order. Throws ConfigError or ShapeError on what does not fit together.
std::vector<AttentionStep> attention_steps(const AttentionChoice& choice);

/// The fields of an AttentionChoice from JSON, edits as {"queries": [[row, column, value], ...]}.
AttentionChoice attention_choice(const nlohmann::json& arguments);

/// One field a member of AttentionChoice but for edits; what is left out has its default.
nlohmann::json to_json(const AttentionChoice& choice);

// ---- the methods ---------------------------------------------------------------------------------------------------------

/// {choice} -> {words, section, steps: [{name, group, rows, columns, cpp, python, per_head, values, texts, edited, printed}]},
/// where `printed` compares with the digits that the book prints, if the choice is a section of it.
nlohmann::json attention(const nlohmann::json& arguments);

/// {choice, step, head, row, column} -> what made that number: {formula, numbers, value, sources: [{step, head, row, column}]},
/// a source without a row or column being a whole column or row.
nlohmann::json attention_cell(const nlohmann::json& arguments);

/// The choices with which the chapter's sections compute: [{section, title, choice}].
nlohmann::json attention_sections(const nlohmann::json& arguments);

/// The three above.
std::vector<Method> attention_methods();

}  // namespace onestep::web
