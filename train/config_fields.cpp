#include "train/config_fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "attention/factory.h"

namespace onestep::train {
namespace {

constexpr double kMaxWidth = 1 << 16;   // d_model, heads
constexpr double kMaxLength = 1 << 20;  // tokens a window, windows a batch
constexpr double kMaxVocab = 1 << 24;
constexpr double kMaxSteps = 1e12;

template <class Section, class T>
Field field(std::string path, Section Config::*section, T Section::*member, std::string doc) {
  Field row;
  row.path = std::move(path);
  row.value = [=](Config& config) -> FieldValue { return &(config.*section.*member); };
  row.doc = std::move(doc);
  return row;
}

std::vector<Field> top_fields() {
  Field seed;
  seed.path = "seed";
  seed.value = [](Config& config) -> FieldValue { return &config.seed; };
  seed.doc =
      "seed of the run's generator: parameters, batches and dropout follow from it (its low 32 bits count, as in PyTorch)";
  return {seed};
}

std::vector<Field> model_fields() {
  using M = ModelConfig;
  constexpr auto in = &Config::model;
  const std::string type = "model.attention";
  const auto kinds = attention::attention_kinds();
  return {
      field("model.kind", in, &M::kind,
            "the network around the attention: logits = head(attention(token + position embedding))")
          .one_of({"attention"}),
      field(type, in, &M::attention, "type of attention, by the name the chapter gives it")
          .one_of({kinds.begin(), kinds.end()}),
      field("model.d_model", in, &M::d_model, "width of the embeddings and of the attention's output").range(1, kMaxWidth),
      field("model.num_heads", in, &M::num_heads, "attention heads; must divide d_model")
          .range(1, kMaxWidth)
          .only(type, {"multi_head_wrapper", "multi_head", "einsum", "fused_qkv"})
          .elsewhere_only("1"),
      field("model.context_length", in, &M::context_length, "longest sequence, in tokens").range(1, kMaxLength),
      field("model.dropout", in, &M::dropout, "probability that an attention weight is dropped in training")
          .range(0, 1)
          .only(type, {"causal", "multi_head_wrapper", "multi_head", "einsum", "fused_qkv"})
          .elsewhere_only("0"),
      field("model.qkv_bias", in, &M::qkv_bias, "whether the query, key and value projections have a bias")
          .only(type, {"self_v2", "causal", "multi_head_wrapper", "multi_head", "einsum", "fused_qkv"})
          .elsewhere_only("false"),
      field("model.rng_dialect", in, &M::rng_dialect,
            "whose dropout masks: torch (2.7 and later, and all CPUs but Intel's) or torch-mkl (older, on Intel CPUs)")
          .one_of({"torch", "torch-mkl"}),
  };
}

std::vector<Field> data_fields() {
  using D = DataConfig;
  constexpr auto in = &Config::data;
  const std::string kind = "data.kind", task = "data.task";
  return {
      field(kind, in, &D::kind, "what is learned: ids written in this file, a text, or sequences generated for a task")
          .one_of({"tokens", "text", "task"})
          .needed(kind, {""}),
      field(task, in, &D::task,
            "copy, reverse, sort: random symbols, then the same ones copied, reversed or sorted; modular_addition: a, b, =, a "
            "+ b mod "
            "modulus. Loss and accuracy count the second part only")
          .one_of({"copy", "reverse", "sort", "modular_addition"})
          .only(kind, {"task"})
          .needed(kind, {"task"}),
      field("data.tokens", in, &D::tokens, "the token ids")
          .range(0, kMaxVocab - 1)
          .only(kind, {"tokens"})
          .needed(kind, {"tokens"}),
      field("data.vocab_size", in, &D::vocab_size, "number of different ids: 0 to vocab_size - 1")
          .range(1, kMaxVocab)
          .only(kind, {"tokens"})
          .only(task, {"copy", "reverse", "sort"})
          .needed(kind, {"tokens"}),
      field("data.window_starts", in, &D::window_starts,
            "where the windows of the one batch begin that every step uses; without it each step draws its windows at random")
          .at_least(0)
          .only(kind, {"tokens"})
          .may_be_absent(),
      field("data.path", in, &D::path, "a UTF-8 text file, relative to the working directory")
          .only(kind, {"text"})
          .may_be_absent(),
      field("data.paths", in, &D::paths, "several text files in this order; `*`, `?` and `[...]` match file names, sorted")
          .only(kind, {"text"})
          .may_be_absent(),
      field("data.text", in, &D::text, "the text itself").only(kind, {"text"}).may_be_absent(),
      field("data.tokenizer", in, &D::tokenizer,
            "what a token is: a Unicode code point, a byte (256 ids), or a word (punctuation stands alone)")
          .one_of({"char", "byte", "word"})
          .only(kind, {"text"}),
      field("data.length", in, &D::length, "random symbols a sequence; it is 2 length long, a window 2 length - 1")
          .range(1, kMaxLength / 2)
          .only(task, {"copy", "reverse", "sort"}),
      field("data.modulus", in, &D::modulus, "numbers are 0 to modulus - 1; the id `modulus` is the equals sign")
          .range(2, kMaxWidth)
          .only(task, {"modular_addition"}),
      field("data.val_fraction", in, &D::val_fraction,
            "share kept from training: the last tokens, or the sequences that a fixed hash picks")
          .from_to_below(0, 1)
          .default_for("tokens", 0),
  };
}

std::vector<Field> optimizer_fields() {
  using O = OptimizerConfig;
  constexpr auto in = &Config::optimizer;
  const std::string kind = "optimizer.kind";
  return {
      field(kind, in, &O::kind, "the update rule; names, formulas and defaults are torch.optim's")
          .one_of({"sgd", "adam", "adamw", "rmsprop", "adagrad"}),
      field("optimizer.lr", in, &O::lr, "learning rate").at_least(0).default_for("rmsprop", 1e-2).default_for("adagrad", 1e-2),
      field("optimizer.betas", in, &O::betas, "decay rates of the averages of the gradient and of its square")
          .from_to_below(0, 1)
          .only(kind, {"adam", "adamw"}),
      field("optimizer.alpha", in, &O::alpha, "decay rate of the average of the squared gradient")
          .range(0, 1)
          .only(kind, {"rmsprop"}),
      field("optimizer.eps", in, &O::eps, "added to the denominator")
          .at_least(0)
          .only(kind, {"adam", "adamw", "rmsprop", "adagrad"})
          .default_for("adagrad", 1e-10),
      field("optimizer.weight_decay", in, &O::weight_decay, "decoupled from the gradient in adamw, added to it in the others")
          .at_least(0)
          .default_for("sgd", 0)
          .default_for("adam", 0)
          .default_for("rmsprop", 0)
          .default_for("adagrad", 0),
      field("optimizer.decay", in, &O::decay,
            "which parameters weight_decay applies to: all, or matrices (2 or more dimensions); auto is all for model.kind "
            "attention")
          .one_of({"auto", "all", "matrices"}),
      field("optimizer.amsgrad", in, &O::amsgrad, "divide by the largest average so far").only(kind, {"adam", "adamw"}),
      field("optimizer.momentum", in, &O::momentum, "share of the last update that is kept").at_least(0).only(kind, {"sgd"}),
      field("optimizer.dampening", in, &O::dampening, "share of the gradient kept out of the momentum").only(kind, {"sgd"}),
      field("optimizer.nesterov", in, &O::nesterov, "Nesterov momentum; needs momentum above 0 and dampening 0")
          .only(kind, {"sgd"}),
  };
}

std::vector<Field> schedule_fields() {
  using S = ScheduleConfig;
  constexpr auto in = &Config::schedule;
  const std::string kind = "schedule.kind";
  return {
      field(kind, in, &S::kind,
            "the learning rate after the warm-up: lr throughout, or down to min_lr in a line or half a cosine")
          .one_of({"constant", "linear", "cosine"}),
      field("schedule.warmup_steps", in, &S::warmup_steps, "steps of linear rise to lr").range(0, kMaxSteps),
      field("schedule.decay_steps", in, &S::decay_steps, "step from which on min_lr is used")
          .range(1, kMaxSteps)
          .only(kind, {"linear", "cosine"})
          .defaults_to("train.steps"),
      field("schedule.min_lr", in, &S::min_lr, "learning rate at the end").at_least(0).only(kind, {"linear", "cosine"}),
  };
}

std::vector<Field> train_fields() {
  using T = TrainConfig;
  constexpr auto in = &Config::train;
  return {
      field("train.steps", in, &T::steps, "parameter updates").range(1, kMaxSteps).changeable(),
      field("train.batch_size", in, &T::batch_size, "sequences a micro-batch")
          .range(1, kMaxLength)
          .defaults_to("12, or the number of window_starts"),
      field("train.grad_accumulation", in, &T::grad_accumulation,
            "micro-batches an update; their losses are averaged over all tokens")
          .range(1, kMaxLength),
      field("train.grad_clip", in, &T::grad_clip, "largest norm of all gradients together; 0 is no clipping").at_least(0),
      field("train.dtype", in, &T::dtype,
            "element type of parameters and arithmetic; float64 starts from the float32 parameters")
          .one_of({"float32", "float64"}),
      field("train.eval_every", in, &T::eval_every, "steps between evaluations; 0 is at the end only")
          .range(0, kMaxSteps)
          .changeable(),
      field("train.eval_batches", in, &T::eval_batches, "batches an evaluation").range(1, kMaxLength).changeable(),
      field("train.log_every", in, &T::log_every, "steps between lines of metrics.jsonl").range(1, kMaxSteps).changeable(),
      field("train.checkpoint_every", in, &T::checkpoint_every, "steps between checkpoints; 0 is at the end only")
          .range(0, kMaxSteps)
          .changeable(),
      field("train.keep_checkpoints", in, &T::keep_checkpoints, "newest checkpoints that are kept")
          .range(1, kMaxLength)
          .changeable(),
  };
}

std::string list_json(const std::vector<std::string>& items) {
  std::string out = "[";
  for (const std::string& item : items) out += (out.size() > 1 ? ", " : "") + item;
  return out + "]";
}

std::string json_string(const std::string& text) { return nlohmann::json(text).dump(); }

}  // namespace

const std::vector<Field>& config_fields() {
  static const std::vector<Field> fields = [] {
    std::vector<Field> all;
    for (auto section : {top_fields, model_fields, data_fields, optimizer_fields, schedule_fields, train_fields}) {
      for (Field& row : section()) all.push_back(std::move(row));
    }
    return all;
  }();
  return fields;
}

const std::vector<std::string>& config_sections() {
  static const std::vector<std::string> sections{"model", "data", "optimizer", "schedule", "train"};
  return sections;
}

const Field* find_field(const std::string& path) {
  const auto& fields = config_fields();
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const Field& row) { return row.path == path; });
  return found == fields.end() ? nullptr : &*found;
}

std::string Field::section() const {
  const size_t dot = path.find('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

std::string Field::key() const { return path.substr(path.find('.') + 1); }

std::string Field::pointer() const {
  const std::string name = section();
  return (name.empty() ? "/" : "/" + name + "/") + key();
}

FieldValue value_of(const Field& field, const Config& config) {
  return field.value(const_cast<Config&>(config));  // one accessor a row serves reading and writing
}

FieldValue default_value(const Field& field) {
  static const Config untouched;
  return value_of(field, untouched);
}

bool holds(const std::vector<When>& conditions, const Config& config) {
  return conditions.empty() || std::any_of(conditions.begin(), conditions.end(), [&](const When& when) {
           const std::string& value = *std::get<std::string*>(value_of(*find_field(when.path), config));
           return std::find(when.values.begin(), when.values.end(), value) != when.values.end();
         });
}

std::string to_json(double value) {
  const bool plain = value == 0 || (std::abs(value) >= 1e-5 && std::abs(value) < 1e15);
  char digits[64];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, value, plain ? std::chars_format::fixed : std::chars_format::scientific)
          .ptr;
  const std::string text(digits, end);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string to_json(const FieldValue& value) {
  return std::visit(
      [](const auto* pointer) -> std::string {
        using T = std::remove_cvref_t<decltype(*pointer)>;
        if constexpr (std::is_same_v<T, bool>) {
          return *pointer ? "true" : "false";
        } else if constexpr (std::is_same_v<T, int64_t>) {
          return std::to_string(*pointer);
        } else if constexpr (std::is_same_v<T, double>) {
          return to_json(*pointer);
        } else if constexpr (std::is_same_v<T, std::string>) {
          return json_string(*pointer);
        } else {
          std::vector<std::string> items;
          for (const auto& item : *pointer) {
            if constexpr (std::is_same_v<T, std::vector<std::string>>) {
              items.push_back(json_string(item));
            } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
              items.push_back(std::to_string(item));
            } else {
              items.push_back(to_json(item));
            }
          }
          return list_json(items);
        }
      },
      value);
}

std::string join_or(const std::vector<std::string>& words) {
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) out += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return out;
}

std::string describe(const std::vector<When>& conditions) {
  std::string out;
  for (const When& when : conditions) out += (out.empty() ? "" : "; or ") + when.path + " = " + join_or(when.values);
  return out;
}

namespace {

// ` from 1 to 9`, ` of at least 0`, or nothing.
std::string range_words(const Field& field) {
  const auto number = [](double value) {
    return std::abs(value) < 1e15 && value == std::floor(value) ? std::to_string(static_cast<int64_t>(value)) : to_json(value);
  };
  if (std::isinf(field.low)) return "";
  if (std::isinf(field.high)) return " of at least " + number(field.low);
  return " from " + number(field.low) + (field.below_high ? " to below " : " to ") + number(field.high);
}

struct ExpectedWords {
  const Field& field;
  std::string operator()(const bool*) const { return "true or false"; }
  std::string operator()(const int64_t*) const {
    return "a whole number" + (std::isinf(field.low) ? " from -2^63 to 2^63 - 1" : range_words(field));
  }
  std::string operator()(const double*) const { return "a number" + range_words(field); }
  std::string operator()(const std::string*) const {
    return field.choices.empty() ? "a string that is not empty" : join_or(field.choices);
  }
  std::string operator()(const std::array<double, 2>*) const { return "a list of two numbers" + range_words(field); }
  std::string operator()(const std::vector<int64_t>*) const { return "a list of whole numbers, not empty"; }
  std::string operator()(const std::vector<std::string>*) const { return "a list of strings, not empty"; }
};

struct ExpectedItemWords {
  const Field& field;
  std::string operator()(const std::array<double, 2>*) const { return "a number" + range_words(field); }
  std::string operator()(const std::vector<int64_t>*) const { return "a whole number" + range_words(field); }
  std::string operator()(const auto*) const { return "a string that is not empty"; }
};

}  // namespace

std::string expected(const Field& field) { return std::visit(ExpectedWords{field}, default_value(field)); }

std::string expected_item(const Field& field) { return std::visit(ExpectedItemWords{field}, default_value(field)); }

std::string default_words(const Field& field) {
  if (!field.required.empty()) return holds(field.required, Config()) ? "required" : "required for " + describe(field.required);
  if (field.optional) return "none";
  if (!field.derived.empty()) return field.derived;
  std::string out = to_json(default_value(field));
  for (const auto& [kind, number] : field.defaults) out += "; for " + kind + " " + to_json(number);
  return out;
}

}  // namespace onestep::train
