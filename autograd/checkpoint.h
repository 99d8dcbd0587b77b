#pragma once
// Less memory for more time: what a function's backward pass needs is computed again when it is needed.
#include <functional>
#include <vector>

#include "autograd/random/generator.h"
#include "autograd/tensor.h"

namespace onestep::autograd {

/// fn(inputs), of which only the inputs are kept for the backward pass: that runs `fn` again, with the random draws of the
/// first time, and continues with what its ops then save. The gradients have the same bits as without (Chen et al. 2016;
/// torch.utils.checkpoint.checkpoint with use_reentrant=False). `fn` must do the same both times, must draw from `generator`
/// alone, and lives as long as the graph. Throws GradError in the backward pass where it did something else, or where an input
/// was written to.
std::vector<Tensor> checkpoint(std::function<std::vector<Tensor>(const std::vector<Tensor>&)> fn,
                               const std::vector<Tensor>& inputs, Generator& generator = default_generator());
/// The same for one tensor.
Tensor checkpoint(std::function<Tensor(const Tensor&)> fn, const Tensor& input, Generator& generator = default_generator());

}  // namespace onestep::autograd
