#include "web/engine/evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "attention/mask.h"
#include "autograd/node.h"
#include "autograd/ops.h"
#include "base/error.h"
#include "base/suggest.h"
#include "web/engine/methods.h"

namespace onestep::web {
namespace {

using Args = std::vector<Tensor>;

constexpr size_t kMaxResults = 200;
constexpr int64_t kMaxElements = 64;

/// A function of programs: the engine's op of that name.
struct Function {
  std::string_view name;
  size_t least, most;
  Tensor (*apply)(const Args& a);
};

/// The argument as an integer: a dim or an index.
int64_t small_integer(const Tensor& x) {
  const double value = x.item();
  ONESTEP_CHECK(ConfigError, std::abs(value) <= kMaxElements && value == std::floor(value),
                "expression: a dim or an index must be a small integer: got ", value);
  return static_cast<int64_t>(value);
}

int64_t dim_or_last(const Args& a) { return a.size() > 1 ? small_integer(a[1]) : -1; }

/// Classes where it can be: a constant that is not one probability for each class.
Tensor as_target(const Tensor& target, const Tensor& logits) {
  return target.requires_grad() || target.shape() == logits.shape() ? target : to(target, DType::int64);
}

Tensor power(const Tensor& base, const Tensor& exponent) {
  return exponent.numel() == 1 && !exponent.requires_grad() ? pow(base, exponent.item()) : pow(base, exponent);
}

Tensor mask_future(const Tensor& scores) {
  return masked_fill(scores, attention::causal_mask(scores.size(-1)), -std::numeric_limits<double>::infinity());
}

Tensor run_backward(const Tensor& x) {
  if (grad_enabled()) x.backward();  // finite differences record nothing
  return x;
}

const std::vector<Function>& functions() {
  static const std::vector<Function> all{
      {"abs", 1, 1, [](const Args& a) { return abs(a[0]); }},
      {"add", 2, 2, [](const Args& a) { return add(a[0], a[1]); }},
      {"add_", 2, 2, [](const Args& a) { return add_(a[0], a[1]); }},
      {"backward", 1, 1, [](const Args& a) { return run_backward(a[0]); }},
      {"clone", 1, 1, [](const Args& a) { return clone(a[0]); }},
      {"constant", 1, 1, [](const Args& a) { return a[0].detach(); }},
      {"copy_", 2, 2, [](const Args& a) { return copy_(a[0], a[1]); }},
      {"cos", 1, 1, [](const Args& a) { return cos(a[0]); }},
      {"cross_entropy", 2, 2, [](const Args& a) { return cross_entropy(a[0], as_target(a[1], a[0])); }},
      {"detach", 1, 1, [](const Args& a) { return a[0].detach(); }},
      {"div", 2, 2, [](const Args& a) { return div(a[0], a[1]); }},
      {"div_", 2, 2, [](const Args& a) { return div_(a[0], a[1]); }},
      {"dot", 2, 2, [](const Args& a) { return dot(a[0], a[1]); }},
      {"exp", 1, 1, [](const Args& a) { return exp(a[0]); }},
      {"gelu", 1, 1, [](const Args& a) { return gelu(a[0]); }},
      {"layer_norm", 1, 1, [](const Args& a) { return layer_norm(a[0], {a[0].size(-1)}); }},
      {"log", 1, 1, [](const Args& a) { return log(a[0]); }},
      {"log_softmax", 1, 2, [](const Args& a) { return log_softmax(a[0], dim_or_last(a)); }},
      {"mask_future", 1, 1, [](const Args& a) { return mask_future(a[0]); }},
      {"matmul", 2, 2, [](const Args& a) { return matmul(a[0], a[1]); }},
      {"max", 1, 1, [](const Args& a) { return max(a[0]); }},
      {"maximum", 2, 2, [](const Args& a) { return maximum(a[0], a[1]); }},
      {"mean", 1, 2, [](const Args& a) { return a.size() > 1 ? mean(a[0], {small_integer(a[1])}) : mean(a[0]); }},
      {"min", 1, 1, [](const Args& a) { return min(a[0]); }},
      {"minimum", 2, 2, [](const Args& a) { return minimum(a[0], a[1]); }},
      {"mul", 2, 2, [](const Args& a) { return mul(a[0], a[1]); }},
      {"mul_", 2, 2, [](const Args& a) { return mul_(a[0], a[1]); }},
      {"neg", 1, 1, [](const Args& a) { return neg(a[0]); }},
      {"pow", 2, 2, [](const Args& a) { return power(a[0], a[1]); }},
      {"relu", 1, 1, [](const Args& a) { return relu(a[0]); }},
      {"sigmoid", 1, 1, [](const Args& a) { return sigmoid(a[0]); }},
      {"silu", 1, 1, [](const Args& a) { return silu(a[0]); }},
      {"sin", 1, 1, [](const Args& a) { return sin(a[0]); }},
      {"softmax", 1, 2, [](const Args& a) { return softmax(a[0], dim_or_last(a)); }},
      {"sqrt", 1, 1, [](const Args& a) { return sqrt(a[0]); }},
      {"sub", 2, 2, [](const Args& a) { return sub(a[0], a[1]); }},
      {"sub_", 2, 2, [](const Args& a) { return sub_(a[0], a[1]); }},
      {"sum", 1, 2, [](const Args& a) { return a.size() > 1 ? sum(a[0], {small_integer(a[1])}) : sum(a[0]); }},
      {"t", 1, 1, [](const Args& a) { return a[0].t(); }},
      {"tanh", 1, 1, [](const Args& a) { return tanh(a[0]); }},
      {"zero_", 1, 1, [](const Args& a) { return a[0].zero_(); }},
  };
  return all;
}

std::vector<std::string> function_names() {
  std::vector<std::string> names;
  for (const Function& function : functions()) names.emplace_back(function.name);
  return names;
}

/// The numbers of a literal, row by row, and its shape.
void read_literal(const Expression& literal, size_t depth, std::vector<int64_t>& shape, std::vector<double>& values) {
  if (literal.kind == Expression::Kind::number) {
    ONESTEP_CHECK(ShapeError, depth == shape.size(), "tensor: rows of a list differ in depth");
    values.push_back(literal.number);
    return;
  }
  const auto size = static_cast<int64_t>(literal.parts.size());
  if (depth == shape.size() && values.empty()) shape.push_back(size);
  ONESTEP_CHECK(ShapeError, depth < shape.size() && shape[depth] == size, "tensor: rows of a list differ in length");
  for (const Expression& part : literal.parts) read_literal(part, depth + 1, shape, values);
}

Tensor tensor_of(const Expression& literal) {
  std::vector<int64_t> shape;
  std::vector<double> values;
  read_literal(literal, 0, shape, values);
  return from_values(values, Shape(shape));
}

class Evaluator {
 public:
  Evaluator(std::string_view text, const ChangeLeaf& change) : text_(text), change_(change) {}

  Evaluated run(const std::vector<Statement>& program) {
    for (const Statement& statement : program) {
      try {
        failed_ = {};
        execute(statement);
      } catch (const Error& error) {
        out_.failure = {std::string(error_type(error)), error.what(), failed_.value_or(statement.span)};
        break;
      }
    }
    return std::move(out_);
  }

 private:
  void execute(const Statement& statement) {
    if (statement.kind == Statement::Kind::assign && statement.value.is_literal()) {
      make_leaf(statement);
      return;
    }
    const Tensor value = evaluate(statement.value);
    if (statement.kind == Statement::Kind::update) {
      update(statement, value);
      return;
    }
    if (statement.kind == Statement::Kind::assign) {
      variables_[statement.target.name] = value;
      for (Computed& computed : out_.computed)
        if (computed.node == value.node() && computed.name.empty()) computed.name = statement.target.name;
    }
    out_.result = value;
    out_.result_span = statement.value.span;
  }

  void make_leaf(const Statement& statement) {
    Tensor values = tensor_of(statement.value);
    if (change_) values = change_(out_.leaves.size(), values);
    if (grad_enabled()) values.requires_grad_();
    variables_[statement.target.name] = values;
    out_.leaves.push_back({statement.target.name, values});
    keep(values, statement.span, statement.target.name);
    if (!out_.result.defined()) out_.result = values;
  }

  /// An in-place op: it moves the variable, and all that share its memory, to new nodes.
  void update(const Statement& statement, const Tensor& value) {
    const Tensor target = evaluate(statement.target);
    kept(function(statement.op, statement.span).apply({target, value}), statement.span);
    for (const auto& [name, variable] : variables_)
      if (variable.shares_storage(target)) keep(variable, statement.span, name);
    if (target.is_view()) keep_write(target, statement.span);
    out_.result = evaluate(statement.target.kind == Expression::Kind::index ? statement.target.parts[0] : statement.target);
    out_.result_span = statement.span;
  }

  /// What was written through a view is in the graph as an op of its own, an input of its base's new node.
  void keep_write(const Tensor& view, Span span) {
    const std::shared_ptr<Node> base = view.base().requires_grad() ? view.base().node() : nullptr;
    if (!base || base->inputs.size() != 2 || !base->inputs[1]) return;
    const bool known =
        std::any_of(out_.computed.begin(), out_.computed.end(), [&](const Computed& c) { return c.node == base->inputs[1]; });
    if (!known) out_.computed.push_back({base->inputs[1], "", span, view.to_vector<double>()});
  }

  Tensor evaluate(const Expression& expression) {
    try {
      return evaluate_parts(expression);
    } catch (const Error&) {
      if (!failed_) failed_ = expression.span;  // of the innermost expression
      throw;
    }
  }

  Tensor evaluate_parts(const Expression& expression) {
    switch (expression.kind) {
      case Expression::Kind::number:
        return from_values(std::vector<double>{expression.number}, Shape{});
      case Expression::Kind::list:
        return list(expression);
      case Expression::Kind::name:
        return variable(expression);
      case Expression::Kind::index:
        return element(expression);
      case Expression::Kind::call:
        break;
    }
    const Function& called = function(expression.name, expression.span);
    ONESTEP_CHECK(ConfigError, expression.parts.size() >= called.least && expression.parts.size() <= called.most,
                  "expression: ", place_in(text_, expression.span.begin), ": ", called.name, " takes ", called.least,
                  called.most > called.least ? " or " + std::to_string(called.most) : "", " arguments, not ",
                  expression.parts.size());
    Args args;
    for (const Expression& part : expression.parts) args.push_back(evaluate(part));
    return kept(called.apply(args), expression.span);
  }

  Tensor list(const Expression& expression) {
    if (expression.is_literal()) return tensor_of(expression);
    std::vector<Tensor> rows;
    for (const Expression& part : expression.parts) rows.push_back(evaluate(part));
    return kept(stack(rows), expression.span);
  }

  Tensor variable(const Expression& expression) {
    const auto found = variables_.find(expression.name);
    ONESTEP_CHECK(ConfigError, found != variables_.end(), "expression: ", place_in(text_, expression.span.begin), ": ",
                  expression.name, " has no value yet (give it one in a line above: ", expression.name, " = 1)");
    return found->second;
  }

  Tensor element(const Expression& expression) {
    Tensor x = evaluate(expression.parts[0]);
    for (size_t i = 1; i < expression.parts.size(); ++i) {
      const int64_t index = small_integer(evaluate(expression.parts[i]));
      // Indices of earlier dims have taken these away.
      x = kept(select(x, 0, index), expression.span);
    }
    return x;
  }

  const Function& function(std::string_view name, Span span) const {
    for (const Function& f : functions())
      if (f.name == name) return f;
    const std::string meant = nearest(std::string(name), function_names());
    fail<ConfigError>("expression: ", place_in(text_, span.begin), ": there is no function ", name, did_you_mean(meant));
  }

  Tensor kept(const Tensor& result, Span span) {
    keep(result, span, "");
    return result;
  }

  void keep(const Tensor& result, Span span, const std::string& name) {
    ONESTEP_CHECK(ConfigError, result.numel() <= kMaxElements, "expression: a result of shape ", result.shape(),
                  " is too large for the page, which shows ", kMaxElements, " numbers");
    ONESTEP_CHECK(ConfigError, out_.computed.size() < kMaxResults, "expression: more than ", kMaxResults, " results");
    const std::shared_ptr<Node> node = result.requires_grad() ? result.node() : nullptr;
    const bool known =
        std::any_of(out_.computed.begin(), out_.computed.end(), [&](const Computed& c) { return c.node == node; });
    if (node && !known) out_.computed.push_back({node, name, span, result.to_vector<double>()});
    if (node && known && !name.empty())
      for (Computed& computed : out_.computed)
        if (computed.node == node && computed.name.empty()) computed.name = name;
  }

  std::string_view text_;
  const ChangeLeaf& change_;
  std::map<std::string, Tensor> variables_;
  std::optional<Span> failed_;
  Evaluated out_;
};

}  // namespace

Evaluated evaluate(std::string_view text, const std::vector<Statement>& program, const ChangeLeaf& change) {
  return Evaluator(text, change).run(program);
}

nlohmann::json expression_functions(const nlohmann::json& /*arguments*/) {
  nlohmann::json all = nlohmann::json::array();
  for (const Function& f : functions()) all.push_back({{"name", f.name}, {"least", f.least}, {"most", f.most}});
  return all;
}

}  // namespace onestep::web
