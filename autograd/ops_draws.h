#pragma once
// Draws by parameters in tensors, from PyTorch's streams (random/rejection.h), one after the other in the order of elements.
// float32 or float64; what is not finite or negative is a ConfigError before any draw.
#include "autograd/random/generator.h"
#include "autograd/tensor.h"

namespace onestep {

/// Draws of the gamma distribution of rate 1, alpha >= 0, at least the smallest normal number. The gradient is that of the
/// draw's quantile, -(dF / dalpha) / (dF / dx) with F the cumulative distribution (Figurnov et al. 2018), where PyTorch takes
/// approximations to a thousandth; it has none itself (torch._standard_gamma).
Tensor standard_gamma(const Tensor& alpha, Generator& generator = default_generator());

/// Draws of gamma distributions divided by their sum over the last dim: [..., K] -> [..., K]. The gradient is that of each
/// number's quantile given the others' proportions, whose distribution is beta (torch._sample_dirichlet).
Tensor sample_dirichlet(const Tensor& alpha, Generator& generator = default_generator());

/// How often what happens `rate` times on average happens (torch.poisson). No gradient.
Tensor poisson(const Tensor& rate, Generator& generator = default_generator());

/// How many of `count` events happen that have probability `prob` each, the two broadcast (torch.binomial). No gradient.
Tensor binomial(const Tensor& count, const Tensor& prob, Generator& generator = default_generator());

}  // namespace onestep
