#pragma once
// What the normalisations share.
#include "autograd/operators.h"
#include "autograd/ops/common.h"
#include "autograd/ops_math.h"

namespace onestep::ops {

struct NormGrads {
  Tensor dx, dy_h;
};

/// The gradients of h weight + bias in recorded ops, h = (x - mean) rstd over `dims`: with g = dy weight,
/// dx = rstd (g - avg(g) - h avg(g h)), and dy h, whose sums are the gradient of weight. weight may be undefined.
inline NormGrads norm_grads(const Tensor& x, const Tensor& weight, const Tensor& dy, const Shape& dims, double eps) {
  const Tensor centered = x - mean(x, dims, true), rstd = rsqrt(mean(centered * centered, dims, true) + eps);
  const Tensor h = centered * rstd, g = weight.defined() ? dy * weight : dy;
  return {rstd * (g - mean(g, dims, true) - h * mean(g * h, dims, true)), dy * h};
}

}  // namespace onestep::ops
