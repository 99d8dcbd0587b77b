#pragma once
// What the normalisations share.
#include "autograd/operators.h"
#include "autograd/ops/common.h"
#include "autograd/ops_math.h"

namespace onestep::ops {

/// x over `dims` to mean 0 and variance 1, in recorded ops: h = (x - mean) rstd.
struct Standardized {
  Standardized(const Tensor& x, const Shape& over, double eps) : dims(over) {
    const Tensor centered = x - mean(x, dims, true);
    rstd = rsqrt(mean(centered * centered, dims, true) + eps);
    h = centered * rstd;
  }
  /// The gradient of x where g is that of h: rstd (g - avg(g) - h avg(g h)).
  Tensor grad(const Tensor& g) const { return rstd * (g - mean(g, dims, true) - h * mean(g * h, dims, true)); }

  Shape dims;
  Tensor rstd, h;
};

}  // namespace onestep::ops
