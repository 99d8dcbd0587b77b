#pragma once
// What the losses share.
#include "autograd/ops/common.h"
#include "autograd/ops_loss.h"
#include "autograd/ops_pointwise.h"
#include "autograd/ops_shape.h"

namespace onestep::ops {

/// Throws ConfigError naming `op` on batchmean, which kl_div alone takes.
inline void check_reduction(std::string_view op, Reduction reduction) {
  ONESTEP_CHECK(ConfigError, reduction != Reduction::batchmean, op, ": batchmean is a reduction of kl_div alone");
}

/// What the reduction makes of the losses. Throws as check_reduction.
inline Tensor reduced(std::string_view op, const Tensor& losses, Reduction reduction) {
  check_reduction(op, reduction);
  return reduction == Reduction::mean ? mean(losses) : reduction == Reduction::sum ? sum(losses) : losses;
}

/// Throws ShapeError or DTypeError naming `op` unless both are floating tensors of one shape.
inline void check_same_shape(std::string_view op, const Tensor& input, const Tensor& target) {
  check_floating(op, input);
  check_same_dtype(op, input, target);
  ONESTEP_CHECK(ShapeError, input.shape() == target.shape(), op, ": input of shape ", input.shape(), " for a target of shape ",
                target.shape());
}

/// x, and `least` where it is smaller; the gradient passes as if nothing had been raised.
inline Tensor raised(const Tensor& x, double least) {
  Tensor y = clone(x);
  const NoGradGuard no_grad;
  return copy_(y, clamp(y, least)), y;
}

}  // namespace onestep::ops
