#pragma once
// The methods of the page's room on the backward pass.
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "web/engine/methods.h"

namespace onestep::web {

/// {program, order: "newest first" or "depth first"} -> the recorded graph of the program's last result, the steps of the
/// backward pass through it, and finite differences:
///   nodes: [{op, leaf, name, text, span: [begin, end], shape, values, inputs: [place in nodes or null]}], oldest first
///   root: the node with which the pass begins
///   visits: [{node, gradient, local: [{input, position, diagonal, values}],
///     gives: [{input, position, gradient, sum, late}]}], position being the input's place among those of the op
///   leaves: [{node, name, gradient, numeric, error}], error being the largest difference relative to the numbers
///   failure: null, or {stage: "forward" or "backward", type, message, span, node}
/// A visit's `local` are the derivatives of the node's values by those of an input: a matrix [values of the node, values of the
/// input], or its diagonal where all else is 0. `gives` are the gradients that the op's rule returns, and what has arrived at
/// the input with them; `late` ones come after the input was visited and go no further. "newest first" is the engine's
/// order; "depth first" visits a node as soon as it is reached, which is wrong where a value is used twice. Throws ConfigError
/// on a program that cannot be read.
nlohmann::json backward(const nlohmann::json& arguments);

/// Programs to begin with: [{name, title, about, program, order}].
nlohmann::json backward_examples(const nlohmann::json& arguments);

/// The two above and expression_functions (evaluate.h).
std::vector<Method> backward_methods();

}  // namespace onestep::web
