#pragma once
// Backward rules against finite differences, for any function of tensors, and the derivatives of backward rules.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "autograd/tensor.h"

namespace onestep {

struct GradcheckOptions {
  double tolerance = 1e-6;       ///< Largest relative error that passes.
  double step = 0x1p-12;         ///< h for elements up to 1; larger elements take it times their power of two.
  int64_t full_jacobian = 4096;  ///< Up to this many derivatives (outputs x elements of an input; a quarter as many elements)
                                 ///< each one is checked ...
  int directions = 8;            ///< ... beyond it, this many random directions.
  int64_t seed = 0;              ///< Of the random directions.
};

/// What gradcheck found. `input`, `element`, `output`, `analytic` and `numeric` belong to the worst derivative.
struct GradcheckResult {
  bool passed = true;
  double worst_error = 0;   ///< Relative; infinite if a derivative is NaN.
  int64_t derivatives = 0;  ///< How many were compared.
  int64_t input = -1;       ///< Its place in the list of inputs.
  int64_t element = -1;     ///< Row-major; -1 for a random direction.
  int64_t output = -1;      ///< Row-major; -1 for a random weighting of all outputs.
  double analytic = 0, numeric = 0;
  std::string message = {};  ///< Why it failed, in one sentence; empty when it passed.
  explicit operator bool() const { return passed; }
};

/// Compares the gradient that backward() computes with central differences of fourth order,
///   df/dx ~ (8 (f(x + h) - f(x - h)) - (f(x + 2h) - f(x - 2h))) / (12 h),
/// for every input that requires grad (the others are passed on as they are). The relative error of a derivative is
/// |analytic - numeric| / max(|analytic|, |numeric|, largest |numeric| of this input, 1e-5 max|f|). Small inputs are checked
/// derivative by derivative, large ones along random directions under random weights of the outputs. `f` must not depend on
/// anything but its inputs: a second call that gives other bits fails the check. `inputs` are not changed.
/// Throws DTypeError unless f's result and the inputs that require grad are float64, GradError if no input requires grad.
/// torch.autograd.gradcheck; its default tolerances are 1e-5 + 1e-3 |numeric|.
GradcheckResult gradcheck(const std::function<Tensor(const std::vector<Tensor>&)>& f, const std::vector<Tensor>& inputs,
                          const GradcheckOptions& options = {});

/// gradcheck of the gradient of f: of sum(f(inputs) * weights) with respect to the inputs that require grad, as a function of
/// all of them and of the weights, which are drawn from [-1, 1). So it checks second derivatives, and that the gradient is
/// linear in the one that arrives. In the result, `input` inputs.size() are the weights, and outputs are the gradients one
/// after the other. Throws as gradcheck. torch.autograd.gradgradcheck.
GradcheckResult gradgradcheck(const std::function<Tensor(const std::vector<Tensor>&)>& f, const std::vector<Tensor>& inputs,
                              const GradcheckOptions& options = {});

}  // namespace onestep
