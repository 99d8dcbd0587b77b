// Attention step by step. What a reader sees is the code that ran: COMPUTE executes a line and keeps its text.
#include "web/engine/attention_steps.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "attention/mask.h"
#include "attention/multi_head_attention.h"
#include "autograd/ops.h"
#include "autograd/random/generator.h"
#include "base/hash.h"
#include "base/json_reader.h"
#include "learn/book/sections.h"
#include "web/engine/arguments.h"

namespace onestep::web {
namespace {

using attention::causal_mask;
using attention::merge_heads;
using attention::MultiHeadAttentionWrapper;
using attention::split_heads;
using nlohmann::json;
using nn::Linear;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kMaxWords = 12, kMaxSentence = 300;

/// none: words are their own queries, keys and values. uniform: drawn from [0, 1). linear: as a Linear layer draws. per head:
/// Linear layers of one head after the other.
const std::vector<std::string> kWeights{"none", "uniform", "linear", "per head"};

/// Steps in whose matrices numbers may be set by hand.
const std::vector<std::string> kEditable{"x", "W_query", "W_key", "W_value", "queries", "keys", "values", "W_out"};

std::string lower(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return word;
}

/// The book's vector of a word that it has, else three numbers drawn from a seed that the word itself gives.
Tensor embedding_of(const std::string& word) {
  static const std::vector<std::string> known = words_of(lower(AttentionChoice{}.sentence));
  const auto found = std::find(known.begin(), known.end(), lower(word));
  if (found != known.end()) return book::journey()[found - known.begin()];
  constexpr size_t kDigits = 8;
  Generator generator(static_cast<int64_t>(std::stoul(hash_of(lower(word)).substr(0, kDigits), nullptr, 16)));
  return round(rand({3}, generator), 2);
}

Tensor embeddings(const std::vector<std::string>& words) {
  std::vector<Tensor> rows;
  rows.reserve(words.size());
  for (const std::string& word : words) rows.push_back(embedding_of(word));
  return stack(rows);
}

/// The matrix as an expression of C++ or Python.
std::string literal(const Tensor& matrix, const std::string& open, const std::string& close) {
  std::ostringstream out;
  out << open;
  for (int64_t row = 0; row < matrix.size(0); ++row) {
    out << (row ? ", " : "") << open;
    for (int64_t column = 0; column < matrix.size(1); ++column) out << (column ? ", " : "") << matrix.at<float>({row, column});
    out << close;
  }
  out << close;
  return out.str();
}

/// Keeps every step as it is computed, with the numbers that were set by hand.
class Steps {
 public:
  explicit Steps(const AttentionChoice& choice) : choice_(choice) {}

  Tensor add(AttentionStep step) {
    if (std::any_of(choice_.edits.begin(), choice_.edits.end(), [&](const Edit& e) { return e.step == step.name; }))
      step.value = step.value.clone();  // it may be a view of a layer's weights
    for (const Edit& edit : choice_.edits)
      if (edit.step == step.name) step.value[edit.row][edit.column] = edit.value;
    all.push_back(std::move(step));
    return all.back().value;
  }

  std::vector<AttentionStep> all;

 private:
  const AttentionChoice& choice_;
};

/// `variable = expression;`, kept as the step `name` of `group`, whose axes are `rows` and `columns`.
#define COMPUTE(variable, name, group, rows, columns, python, ...) \
  variable = steps.add({name, group, rows, columns, #variable " = " #__VA_ARGS__ ";", #variable " = " python, __VA_ARGS__})

struct Weights {
  Tensor W_query, W_key, W_value;
  Tensor W_out = {}, b_out = {};
};

Weights uniform_weights(Steps& steps, int64_t d_in, int64_t d_out, Generator& generator) {
  Tensor W_query, W_key, W_value;
  COMPUTE(W_query, "W_query", "weights", "in", "out", "torch.rand(d_in, d_out)", rand({d_in, d_out}, generator));
  COMPUTE(W_key, "W_key", "weights", "in", "out", "torch.rand(d_in, d_out)", rand({d_in, d_out}, generator));
  COMPUTE(W_value, "W_value", "weights", "in", "out", "torch.rand(d_in, d_out)", rand({d_in, d_out}, generator));
  return {W_query, W_key, W_value};
}

#define LINEAR_IN_PYTHON "torch.nn.Linear(d_in, d_out, bias=False).weight.t().detach()"

Weights linear_weights(Steps& steps, int64_t d_in, int64_t d_out, Generator& generator) {
  Tensor W_query, W_key, W_value;
  COMPUTE(W_query, "W_query", "weights", "in", "out", LINEAR_IN_PYTHON, Linear(d_in, d_out, false, generator).weight.t());
  COMPUTE(W_key, "W_key", "weights", "in", "out", LINEAR_IN_PYTHON, Linear(d_in, d_out, false, generator).weight.t());
  COMPUTE(W_value, "W_value", "weights", "in", "out", LINEAR_IN_PYTHON, Linear(d_in, d_out, false, generator).weight.t());
  return {W_query, W_key, W_value};
}

/// The weights of one kind of all heads, side by side.
Tensor side_by_side(const MultiHeadAttentionWrapper& wrapper, Linear attention::CausalAttention::*layer) {
  std::vector<Tensor> all;
  for (const auto& head : wrapper.heads) all.push_back((head.*layer).weight.t());
  return cat(all, -1);
}

Weights weights_per_head(Steps& steps, int64_t d_in, int64_t d_out, int64_t heads, Generator& generator) {
  using attention::CausalAttention;
  const MultiHeadAttentionWrapper wrapper(d_in, d_out / heads, kMaxWords, 0.0, heads, false, generator);
  Tensor W_query, W_key, W_value;
  COMPUTE(W_query, "W_query", "weights", "in", "out", "torch.cat([head[0] for head in drawn], -1).detach()",
          side_by_side(wrapper, &CausalAttention::W_query));
  COMPUTE(W_key, "W_key", "weights", "in", "out", "torch.cat([head[1] for head in drawn], -1).detach()",
          side_by_side(wrapper, &CausalAttention::W_key));
  COMPUTE(W_value, "W_value", "weights", "in", "out", "torch.cat([head[2] for head in drawn], -1).detach()",
          side_by_side(wrapper, &CausalAttention::W_value));
  return {W_query, W_key, W_value};
}

void draw_output(Steps& steps, int64_t d_out, Generator& generator, Weights& weights) {
  const Linear out_proj(d_out, d_out, true, generator);
  Tensor W_out, b_out;
  COMPUTE(W_out, "W_out", "weights", "in", "out", "out_proj.weight.t().detach()", out_proj.weight.t());
  COMPUTE(b_out, "b_out", "weights", "one", "out", "out_proj.bias.detach()", out_proj.bias.unsqueeze(0));
  weights.W_out = W_out;
  weights.b_out = b_out;
}

Weights draw_weights(Steps& steps, const AttentionChoice& choice, int64_t d_in) {
  if (choice.weights == "none") return {};
  Generator generator(choice.seed);
  Weights weights = choice.weights == "uniform"  ? uniform_weights(steps, d_in, choice.width, generator)
                    : choice.weights == "linear" ? linear_weights(steps, d_in, choice.width, generator)
                                                 : weights_per_head(steps, d_in, choice.width, choice.heads, generator);
  if (choice.output) draw_output(steps, choice.width, generator, weights);
  return weights;
}

struct Projected {
  Tensor queries, keys, values;
};

Projected project(Steps& steps, const AttentionChoice& choice, const Tensor& x, const Weights& weights) {
  if (choice.weights == "none") return {x, x, x};
  const auto& [W_query, W_key, W_value, W_out, b_out] = weights;
  Tensor queries, keys, values;
  COMPUTE(queries, "queries", "projections", "words", "features", "x @ W_query", matmul(x, W_query));
  COMPUTE(keys, "keys", "projections", "words", "features", "x @ W_key", matmul(x, W_key));
  COMPUTE(values, "values", "projections", "words", "features", "x @ W_value", matmul(x, W_value));
  if (const int64_t heads = choice.heads; heads > 1) {
    COMPUTE(queries, "query_heads", "heads", "words", "features", "queries.view(T, heads, -1).transpose(0, 1)",
            split_heads(queries, heads));
    COMPUTE(keys, "key_heads", "heads", "words", "features", "keys.view(T, heads, -1).transpose(0, 1)",
            split_heads(keys, heads));
    COMPUTE(values, "value_heads", "heads", "words", "features", "values.view(T, heads, -1).transpose(0, 1)",
            split_heads(values, heads));
  }
  return {queries, keys, values};
}

/// Scores to weights. Without weights of their own, queries, keys and values are x.
Tensor compute_weights(Steps& steps, const AttentionChoice& choice, const Tensor& queries, const Tensor& keys) {
  const int64_t T = queries.size(-2);
  const auto d_k = static_cast<double>(keys.size(-1));
  Tensor scores, weights;
  if (const Tensor& x = queries; choice.weights == "none")
    COMPUTE(scores, "scores", "scores", "words", "words", "x @ x.t()", matmul(x, x.t()));
  else
    COMPUTE(scores, "scores", "scores", "words", "words", "queries @ keys.transpose(-2, -1)",
            matmul(queries, keys.transpose(-2, -1)));
  if (choice.masked)
    COMPUTE(scores, "masked", "masked", "words", "words",
            "scores.masked_fill(torch.ones(T, T).triu(diagonal=1).bool(), -torch.inf)",
            scores.masked_fill(causal_mask(T), -kInfinity));
  if (choice.scaled) COMPUTE(scores, "scaled", "scaled", "words", "words", "scores / d_k ** 0.5", scores / std::sqrt(d_k));
  COMPUTE(weights, "weights", "softmax", "words", "words", "torch.softmax(scores, dim=-1)", softmax(scores, -1));
  if (const double p = choice.dropout; p > 0) {
    Generator masks(choice.dropout_seed, choice.dialect == "torch" ? RngDialect::torch : RngDialect::torch_mkl);
    COMPUTE(weights, "dropped", "dropout", "words", "words", "torch.nn.functional.dropout(weights, p)",
            dropout(weights, p, /*training=*/true, masks));
  }
  return weights;
}

void gather_context(Steps& steps, const AttentionChoice& choice, const Tensor& weights, const Tensor& values,
                    const Weights& drawn) {
  Tensor context, output;
  if (const Tensor& x = values; choice.weights == "none")
    COMPUTE(context, "context", "context", "words", "features", "weights @ x", matmul(weights, x));
  else
    COMPUTE(context, "context", "context", "words", "features", "weights @ values", matmul(weights, values));
  if (choice.heads > 1)
    COMPUTE(context, "merged", "merged", "words", "features", "context.transpose(0, 1).reshape(T, -1)", merge_heads(context));
  if (!choice.output) return;
  const auto& [W_query, W_key, W_value, W_out, b_out] = drawn;
  COMPUTE(output, "output", "output", "words", "features", "context @ W_out + b_out", matmul(context, W_out) + b_out);
}

std::vector<Edit> edits_of(const json& lists) {
  ONESTEP_CHECK(ConfigError, lists.is_object(), "arguments: /edits: must be an object: ", brief(lists));
  std::vector<Edit> edits;
  for (const auto& [step, entries] : lists.items()) {
    const std::string where = json_pointer("/edits", step);
    ONESTEP_CHECK(ConfigError, std::find(kEditable.begin(), kEditable.end(), step) != kEditable.end() && entries.is_array(),
                  "arguments: ", where, ": must be a list of numbers set in x, a projection or its weights");
    for (const json& entry : entries) {
      ONESTEP_CHECK(ConfigError,
                    entry.is_array() && entry.size() == 3 && entry[0].is_number_integer() && entry[1].is_number_integer() &&
                        entry[2].is_number(),
                    "arguments: ", where, ": must hold [row, column, value]: ", brief(entry));
      edits.push_back({step, entry[0].get<int64_t>(), entry[1].get<int64_t>(), entry[2].get<double>()});
    }
  }
  return edits;
}

}  // namespace

std::vector<std::string> words_of(const std::string& sentence) {
  std::istringstream stream(sentence);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::vector<AttentionStep> attention_steps(const AttentionChoice& choice) {
  const std::vector<std::string> words = words_of(choice.sentence);
  ONESTEP_CHECK(ConfigError, !words.empty() && words.size() <= kMaxWords, "arguments: /sentence: has ", words.size(),
                " words, the page shows 1 to ", kMaxWords);
  ONESTEP_CHECK(ConfigError, choice.weights != "none" || (choice.heads == 1 && !choice.output),
                "arguments: /weights: without weights there is one head and no output projection");
  attention::shared_width("attention", choice.width, choice.heads);
  const NoGradGuard no_grad;
  Steps steps(choice);
  const Tensor given = embeddings(words);
  const Tensor x = steps.add({"x", "embeddings", "words", "features", "x = tensor(" + literal(given, "{", "}") + ");",
                              "x = torch.tensor(" + literal(given, "[", "]") + ")", given});
  const Weights drawn = draw_weights(steps, choice, x.size(1));
  const auto [queries, keys, values] = project(steps, choice, x, drawn);
  const Tensor weights = compute_weights(steps, choice, queries, keys);
  gather_context(steps, choice, weights, values, drawn);
  return std::move(steps.all);
}

AttentionChoice attention_choice(const json& arguments) {
  const Arguments given(arguments, {"sentence", "weights", "seed", "width", "heads", "masked", "scaled", "dropout",
                                    "dropout_seed", "dialect", "output", "edits"});
  const AttentionChoice standard;
  constexpr int64_t kMaxSeed = 1'000'000'000, kMaxWidth = 12, kMaxHeads = 4;
  return {.sentence = given.text("sentence", standard.sentence, kMaxSentence),
          .weights = given.choice("weights", standard.weights, kWeights),
          .seed = given.integer("seed", standard.seed, 0, kMaxSeed),
          .width = given.integer("width", standard.width, 1, kMaxWidth),
          .heads = given.integer("heads", standard.heads, 1, kMaxHeads),
          .masked = given.boolean("masked", standard.masked),
          .scaled = given.boolean("scaled", standard.scaled),
          .dropout = given.number("dropout", standard.dropout, 0, 1),
          .dropout_seed = given.integer("dropout_seed", standard.dropout_seed, 0, kMaxSeed),
          .dialect = given.choice("dialect", standard.dialect, {"torch", "torch-mkl"}),
          .output = given.boolean("output", standard.output),
          .edits = edits_of(arguments.value("edits", json::object()))};
}

json to_json(const AttentionChoice& choice) {
  return {{"sentence", choice.sentence}, {"weights", choice.weights}, {"seed", choice.seed},
          {"width", choice.width},       {"heads", choice.heads},     {"masked", choice.masked},
          {"scaled", choice.scaled},     {"dropout", choice.dropout}, {"dropout_seed", choice.dropout_seed},
          {"dialect", choice.dialect},   {"output", choice.output}};
}

}  // namespace onestep::web
