#pragma once
// Runs a program of expression.h with the engine's tensors and keeps what every step computed.
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/node.h"
#include "autograd/tensor.h"
#include "web/engine/expression.h"

namespace onestep::web {

/// A recorded result, as it was when it was computed: an in-place op may change it later.
struct Computed {
  std::shared_ptr<Node> node;
  std::string name;  ///< The name that the program gave to it, or "".
  Span span;         ///< The text that computed it.
  std::vector<double> values;
};

/// A name with a literal: `x = [1, 2]`. Its gradient is asked for.
struct Leaf {
  std::string name;
  Tensor tensor;
};

/// What went wrong in a program, and where.
struct Failure {
  std::string type, message;
  Span span;
};

struct Evaluated {
  std::vector<Computed> computed;  ///< In the order of the program.
  std::vector<Leaf> leaves;
  Tensor result;  ///< Of the last statement that gives one; undefined if there is none.
  Span result_span;
  std::optional<Failure> failure;  ///< The error with which an op or a name stopped the program.
};

/// Gives the literal of leaf number `leaf` other values.
using ChangeLeaf = std::function<Tensor(size_t leaf, const Tensor& values)>;

/// All numbers are float64. Throws ConfigError on a program that is too large for the page; what else goes wrong is a Failure.
Evaluated evaluate(std::string_view text, const std::vector<Statement>& program, const ChangeLeaf& change = {});

/// The functions of programs: [{name, least, most}], the last two being how many arguments it takes.
nlohmann::json expression_functions(const nlohmann::json& arguments);

}  // namespace onestep::web
