// A backward pass, watched: hooks of the engine tell which node is visited with which gradient.
#include "web/engine/backward_steps.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "autograd/node.h"
#include "autograd/ops.h"
#include "base/error.h"
#include "web/engine/arguments.h"
#include "web/engine/evaluate.h"
#include "web/engine/tensor_json.h"

namespace onestep::web {
namespace {

using nlohmann::json;

constexpr size_t kMaxProgram = 4000;
constexpr int64_t kMaxLocal = 400;  // derivatives of one op by one input that the page shows

/// Every node that the roots were computed from, oldest first.
std::vector<Node*> history(const std::vector<std::shared_ptr<Node>>& roots) {
  std::vector<Node*> nodes;
  std::unordered_set<const Node*> seen;
  const auto reach = [&](const std::shared_ptr<Node>& node) {
    if (node && seen.insert(node.get()).second) nodes.push_back(node.get());
  };
  for (const auto& root : roots) reach(root);
  for (size_t next = 0; next < nodes.size();) {  // more come while it runs
    const Node& node = *nodes[next++];
    for (const auto& input : node.inputs) reach(input);
  }
  std::sort(nodes.begin(), nodes.end(), [](const Node* a, const Node* b) { return a->sequence < b->sequence; });
  return nodes;
}

/// What the rule of `node` returns for `gradient`. It may add to gradients that have arrived at its inputs instead, so these
/// are set aside.
Grads gradients_of_inputs(const Node& node, const Tensor& gradient) {
  std::vector<std::pair<Node*, Tensor>> pending;
  const auto restore = [&] {
    for (auto& [input, gradient_so_far] : pending) input->pending = std::move(gradient_so_far);
  };
  for (const auto& input : node.inputs)
    if (input && input->pending.defined()) pending.emplace_back(input.get(), std::exchange(input->pending, Tensor()));
  try {
    Grads grads = node.rule(node, Backward(node, gradient));
    restore();
    return grads;
  } catch (...) {
    restore();
    throw;
  }
}

/// The derivatives of the node's values by those of each input, row by row from the op's own rule.
json local_derivatives(const Node& node, const std::function<size_t(const Node*)>& place) {
  std::vector<std::vector<double>> rows_of(node.inputs.size());
  const int64_t rows = node.shape.numel();
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<double> one(static_cast<size_t>(rows), 0.0);
    one[static_cast<size_t>(row)] = 1;
    const Grads grads = gradients_of_inputs(node, to(from_values(one, node.shape), node.dtype));
    for (size_t i = 0; i < grads.size(); ++i) {
      if (!node.inputs[i] || !grads[i].defined() || rows * grads[i].numel() > kMaxLocal) continue;
      const std::vector<double> derivatives = grads[i].to_vector<double>();
      rows_of[i].insert(rows_of[i].end(), derivatives.begin(), derivatives.end());
    }
  }
  json local = json::array();
  for (size_t i = 0; i < rows_of.size(); ++i) {
    const std::vector<double>& all = rows_of[i];
    if (all.empty()) continue;
    const int64_t columns = static_cast<int64_t>(all.size()) / rows;
    bool diagonal = rows == columns;
    for (size_t at = 0; diagonal && at < all.size(); ++at) diagonal = at % static_cast<size_t>(rows + 1) == 0 || all[at] == 0;
    const Tensor matrix = from_values(all, {rows, columns});
    json values = nested(matrix);
    if (diagonal) {
      values = json::array();
      for (int64_t row = 0; row < rows; ++row) values.push_back(number_or_text(matrix.at({row, row})));
    }
    local.push_back(
        {{"input", place(node.inputs[i].get())}, {"position", i}, {"diagonal", diagonal}, {"values", std::move(values)}});
  }
  return local;
}

/// Records the visits of one backward pass.
class Watched {
 public:
  explicit Watched(const std::vector<Node*>& nodes) {
    for (size_t i = 0; i < nodes.size(); ++i) place_.emplace(nodes[i], i);
  }

  size_t place(const Node* node) const { return place_.at(node); }
  const json& visits() const { return visits_; }
  /// The node whose rule failed.
  std::optional<size_t> failed() const { return failed_; }
  /// The sum of all gradients that have arrived at a node.
  Tensor arrived(const Node* node) const {
    const auto found = arrived_.find(node);
    return found == arrived_.end() ? Tensor() : found->second;
  }
  void arrive(const Node* node, const Tensor& gradient) {
    Tensor& sum = arrived_[node];
    sum = sum.defined() ? add(sum, gradient) : gradient;
  }

  /// A node is visited with the gradient that has arrived at it.
  void visit(const Node& node, const Tensor& gradient) {
    visited_.insert(&node);
    json visit = {{"node", place(&node)}, {"gradient", nested(gradient)}, {"local", json::array()}, {"gives", json::array()}};
    if (!node.is_leaf()) {
      visits_.push_back(visit);  // stays as it is if the rule fails
      failed_ = place(&node);
      run_rule(node, gradient, visit);
      failed_.reset();
      visits_.back() = std::move(visit);
    } else {
      visits_.push_back(std::move(visit));
    }
  }

 private:
  void run_rule(const Node& node, const Tensor& gradient, json& visit) {
    const Grads grads = gradients_of_inputs(node, gradient);
    visit["local"] = local_derivatives(node, [this](const Node* input) { return place(input); });
    for (size_t i = 0; i < grads.size(); ++i) {
      const Node* const input = node.inputs[i].get();
      if (!input || !grads[i].defined()) continue;
      const bool late = !input->is_leaf() && visited_.contains(input);
      arrive(input, grads[i]);
      visit["gives"].push_back({{"input", place(input)},
                                {"position", i},
                                {"gradient", nested(grads[i])},
                                {"sum", nested(arrived(input))},
                                {"late", late}});
    }
  }

  std::unordered_map<const Node*, size_t> place_;
  std::unordered_map<const Node*, Tensor> arrived_;
  std::unordered_set<const Node*> visited_;
  std::optional<size_t> failed_;
  json visits_ = json::array();
};

/// The engine's own pass. A hook sees each node with its whole gradient, just before the op's rule runs.
void run_engine(const Tensor& result, const std::vector<Node*>& nodes, Watched& watched) {
  for (Node* node : nodes) {
    if (!node->extras) node->extras = std::make_unique<Node::Extras>();
    node->extras->hooks.emplace_back(0, [node, &watched](const Tensor& gradient) {
      watched.visit(*node, gradient);
      return Tensor();
    });
  }
  result.backward();
}

/// A pass as one writes it at first: a node is visited once, as soon as it is reached. The rules are the engine's.
void run_depth_first(const Tensor& result, Watched& watched) {
  const NoGradGuard no_grad;
  std::vector<Node*> stack{result.node().get()};
  std::unordered_set<const Node*> visited;
  watched.arrive(result.node().get(), ones(result.shape(), result.dtype()));
  std::vector<const Node*> leaves;
  while (!stack.empty()) {
    Node* const node = stack.back();
    stack.pop_back();
    if (!visited.insert(node).second) continue;
    if (node->is_leaf()) {
      leaves.push_back(node);  // they add up whatever comes
      continue;
    }
    watched.visit(*node, watched.arrived(node));
    for (size_t i = node->inputs.size(); i-- > 0;)
      if (node->inputs[i] && watched.arrived(node->inputs[i].get()).defined()) stack.push_back(node->inputs[i].get());
  }
  for (const Node* leaf : leaves) watched.visit(*leaf, watched.arrived(leaf));
}

// ---- finite differences --------------------------------------------------------------------------------------------------

/// The result with one number of one leaf moved; NaN where the program then fails.
double result_with(std::string_view text, const std::vector<Statement>& program, size_t leaf, size_t element, double by) {
  const NoGradGuard no_grad;
  const Evaluated moved = evaluate(text, program, [&](size_t at, const Tensor& values) {
    if (at != leaf) return values;
    std::vector<double> numbers = values.to_vector<double>();
    numbers[element] += by;
    return from_values(numbers, values.shape());
  });
  const bool usable = !moved.failure && moved.result.defined() && moved.result.numel() == 1;
  return usable ? moved.result.item() : std::numeric_limits<double>::quiet_NaN();
}

/// Central differences of fourth order, as gradcheck takes them.
std::vector<double> differences(std::string_view text, const std::vector<Statement>& program, const Evaluated& evaluated,
                                size_t leaf) {
  constexpr double h = 0x1p-12;
  std::vector<double> derivatives;
  for (size_t element = 0; element < static_cast<size_t>(evaluated.leaves[leaf].tensor.numel()); ++element) {
    const auto f = [&](double by) { return result_with(text, program, leaf, element, by); };
    derivatives.push_back((8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h));
  }
  return derivatives;
}

/// The largest difference between the two, relative to the larger number of either or to 1e-5.
json largest_error(const std::vector<double>& gradient, const std::vector<double>& numeric) {
  double error = 0, largest = 1e-5;
  for (size_t i = 0; i < numeric.size(); ++i) {
    if (!std::isfinite(gradient[i]) || !std::isfinite(numeric[i])) return nullptr;
    largest = std::max({largest, std::abs(gradient[i]), std::abs(numeric[i])});
    error = std::max(error, std::abs(gradient[i] - numeric[i]));
  }
  return error / largest;
}

// ---- the answer ----------------------------------------------------------------------------------------------------------

json span_json(Span span) { return json::array({span.begin, span.end}); }

json describe_nodes(const std::vector<Node*>& nodes, const Evaluated& evaluated, std::string_view text,
                    const Watched& watched) {
  json all = json::array();
  for (const Node* node : nodes) {
    const auto known = std::find_if(evaluated.computed.begin(), evaluated.computed.end(),
                                    [&](const Computed& c) { return c.node.get() == node; });
    json inputs = json::array();
    for (const auto& input : node->inputs) inputs.push_back(input ? json(watched.place(input.get())) : json(nullptr));
    json described = {{"op", node->name},
                      {"leaf", node->is_leaf()},
                      {"shape", std::vector<int64_t>(node->shape.begin(), node->shape.end())},
                      {"inputs", std::move(inputs)},
                      {"name", ""},
                      {"text", ""},
                      {"span", nullptr},
                      {"values", nullptr}};
    if (known != evaluated.computed.end()) {
      described["name"] = known->name;
      described["text"] = text.substr(known->span.begin, known->span.end - known->span.begin);
      described["span"] = span_json(known->span);
      described["values"] = nested(from_values(known->values, node->shape));
    }
    all.push_back(std::move(described));
  }
  return all;
}

/// Gradients of leaves: those that the engine has collected, or in another order those that arrived.
json describe_leaves(const Evaluated& evaluated, std::string_view text, const std::vector<Statement>& program,
                     const Watched& watched, const std::unordered_set<const Node*>& graph, bool engine, bool complete) {
  json leaves = json::array();
  for (size_t i = 0; i < evaluated.leaves.size(); ++i) {
    const Leaf& leaf = evaluated.leaves[i];
    const Node* const node = leaf.tensor.node().get();
    if (!graph.contains(node)) continue;
    const Tensor gradient = engine ? node->grad : watched.arrived(node);
    const std::vector<double> numeric = differences(text, program, evaluated, i);
    const bool both = complete && gradient.defined();
    leaves.push_back({{"node", watched.place(node)},
                      {"name", leaf.name},
                      {"gradient", both ? nested(gradient) : json(nullptr)},
                      {"numeric", nested(from_values(numeric, leaf.tensor.shape()))},
                      {"error", both ? largest_error(gradient.to_vector<double>(), numeric) : json(nullptr)}});
  }
  return leaves;
}

json failure_json(const char* stage, const std::string& type, const std::string& message, json span, json node) {
  return {{"stage", stage}, {"type", type}, {"message", message}, {"span", std::move(span)}, {"node", std::move(node)}};
}

}  // namespace

json backward(const json& arguments) {
  const Arguments given(arguments, {"program", "order"});
  const std::string text = given.text("program", "", kMaxProgram);
  const bool engine = given.choice("order", "newest first", {"newest first", "depth first"}) == "newest first";
  const std::vector<Statement> program = parse_program(text);
  ONESTEP_CHECK(ConfigError, !program.empty(), "expression: there is nothing to compute (try x = 2; x * x)");
  const Evaluated evaluated = evaluate(text, program);

  json failure = nullptr;
  if (evaluated.failure)
    failure = failure_json("forward", evaluated.failure->type, evaluated.failure->message, span_json(evaluated.failure->span),
                           nullptr);
  const bool graph_whole = !evaluated.failure && evaluated.result.defined() && evaluated.result.requires_grad();
  std::vector<std::shared_ptr<Node>> roots;
  if (graph_whole)
    roots = {evaluated.result.node()};
  else  // what was recorded until the error
    for (const Computed& computed : evaluated.computed) roots.push_back(computed.node);
  const std::vector<Node*> nodes = history(roots);
  Watched watched(nodes);
  if (!evaluated.failure) {
    try {
      ONESTEP_CHECK(ConfigError, evaluated.result.defined(), "expression: there is nothing to differentiate (end with x * x)");
      if (engine || !graph_whole || evaluated.result.numel() != 1)
        run_engine(evaluated.result, nodes, watched);
      else
        run_depth_first(evaluated.result, watched);
    } catch (const Error& error) {
      const std::optional<size_t> failed = watched.failed();
      failure = failure_json("backward", std::string(error_type(error)), error.what(), span_json(evaluated.result_span),
                             failed        ? json(*failed)
                             : graph_whole ? json(watched.place(roots[0].get()))
                                           : json(nullptr));
    }
  }
  const std::unordered_set<const Node*> graph(nodes.begin(), nodes.end());
  return {{"nodes", describe_nodes(nodes, evaluated, text, watched)},
          {"root", graph_whole ? json(watched.place(roots[0].get())) : json(nullptr)},
          {"visits", watched.visits()},
          {"leaves", describe_leaves(evaluated, text, program, watched, graph, engine, failure.is_null())},
          {"failure", std::move(failure)}};
}

}  // namespace onestep::web
