#pragma once
// The recorded graph as text that Graphviz draws.
#include <string>
#include <utility>
#include <vector>

#include "autograd/tensor.h"

namespace onestep {

/// The graph that `result` was computed by, in the DOT language: a box a leaf, an ellipse an op, each with the shape of its
/// values, arrows from inputs to results. Leaves found in `names` (as Module::named_parameters() gives them) show their name.
/// Equal graphs give equal text. Throws GradError if `result` does not require grad: nothing was recorded then.
std::string to_dot(const Tensor& result, const std::vector<std::pair<std::string, Tensor>>& names = {});

/// What PyTorch's print calls the op that made a tensor: masked_fill_ gives MaskedFillBackward0; AccumulateGrad for a leaf.
std::string grad_fn_name(const Node& node);

}  // namespace onestep
