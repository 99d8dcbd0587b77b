#pragma once
// Gradients as values: backward passes from several tensors, and gradients that are returned instead of collected.
#include <optional>
#include <vector>

#include "autograd/list_view.h"
#include "autograd/tensor.h"

namespace onestep::autograd {

/// Runs the recorded graph backwards from `tensors`, each with its gradient (undefined, or the list empty: 1 for a single
/// element), adding into the grad() of every leaf, or only of `inputs` where some are given; of those also of results of ops
/// (torch.autograd.backward). Throws GradError on misuse, ShapeError or DTypeError on a gradient that does not fit.
void backward(const ListView<Tensor>& tensors, const ListView<Tensor>& grad_tensors = std::initializer_list<Tensor>{},
              std::optional<bool> retain_graph = {}, bool create_graph = false,
              const ListView<Tensor>& inputs = std::initializer_list<Tensor>{});

/// What torch.autograd.grad takes beside outputs, inputs and grad_outputs.
struct GradOptions {
  std::optional<bool> retain_graph = {};  ///< Whether the graph can be used again; by default as create_graph.
  bool create_graph = false;              ///< Whether the gradients are recorded, so that they can be differentiated.
  bool allow_unused = false;              ///< Whether inputs may be without influence: their gradient is undefined.
  bool materialize_grads = false;         ///< ... or zeros; implies allow_unused.
  bool recordable = false;                ///< Whether the gradients have the bits of those with create_graph, which come from
                                          ///< formulas that can be recorded; implied by it.
};
/// The gradients of sum(outputs * grad_outputs) with respect to `inputs`, leaves or results of ops; no grad() changes. An
/// undefined grad_output, or an empty list, is 1 for a single element (torch.autograd.grad). Throws GradError on an input that
/// does not require grad or has no influence, ShapeError or DTypeError on a grad_output that does not fit.
std::vector<Tensor> grad(const ListView<Tensor>& outputs, const ListView<Tensor>& inputs,
                         const ListView<Tensor>& grad_outputs = std::initializer_list<Tensor>{},
                         const GradOptions& options = {});

}  // namespace onestep::autograd
