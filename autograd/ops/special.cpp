// Entropies, the normal distribution and modified Bessel functions. Those of one operand are computed in double and rounded
// once, as are their gradients, some of which are differences of nearly equal numbers.
#include <cmath>

#include "autograd/operators.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops_math.h"
#include "autograd/ops_pointwise.h"
#include "autograd/ops_shape.h"
#include "autograd/special_formulas.h"

namespace onestep {

namespace formulas = portable::formulas;
using ops::as_floating;
using ops::Vectorized;

namespace {

// What the slopes mean by these names where they are applied to numbers.
using formulas::erfcx;
using formulas::exp;
using formulas::i0;
using formulas::i0e;
using formulas::i1;
using formulas::i1e;
using formulas::kRootHalf;
using formulas::kTwoOverSqrtPi;
using formulas::log;
using formulas::ndtri;
using std::abs;

constexpr double kRootTwoPi = 2 / (formulas::kTwoOverSqrtPi * formulas::kRootHalf);

double in_double(double v) { return v; }
Tensor in_double(const Tensor& v) { return to(v, DType::float64); }
double in_dtype_of(double, double dx) { return dx; }
Tensor in_dtype_of(const Tensor& v, const Tensor& dx) { return to(dx, v.dtype()); }

double sign(double v) { return v == 0 ? 0 : std::copysign(1, v); }

/// exp(-v^2 / 2) / sqrt(2 pi) / ndtr(v): from 0 on as it stands, below by erfcx, since it is nearly -v there.
double normal_ratio(double v) { return 2 / kRootTwoPi / erfcx(-kRootHalf * v); }
Tensor normal_ratio(const Tensor& v) {
  const Tensor below = clamp_max(v, 0.0), above = clamp_min(v, 0.0);
  return where(lt(v, 0), 2 / kRootTwoPi / erfcx(-kRootHalf * below), exp(-0.5 * above * above) / kRootTwoPi / ndtr(above));
}

/// I(1, v) / v near 0, where the quotient and its derivatives are differences of nearly equal numbers.
constexpr double kNearZero = 0.03;
template <class X>
X i1_over_small(const X& v) {
  const X square = v * v;
  return 0.5 + square * (1.0 / 16 + square * (1.0 / 384 + square * (1.0 / 18432)));
}
/// y / v for y = I(1, v), which is `scaled` by exp(-|v|) or not.
double i1_over(double v, double y, bool scaled) {
  return abs(v) < kNearZero ? i1_over_small(v) * (scaled ? exp(-abs(v)) : 1) : y / v;
}
Tensor i1_over(const Tensor& v, const Tensor& y, bool scaled) {
  const Tensor small = lt(abs(v), kNearZero), near = masked_fill(v, logical_not(small), 0);
  const Tensor quotient = i1_over_small(near);
  return where(small, scaled ? quotient * exp(-abs(near)) : quotient, y / masked_fill(v, small, 1));
}

/// y = value(x) and dx = dy slope(x).
template <class F, class Slope>
Tensor special(const char* op, const Tensor& x, const F& value, const Slope& slope) {
  return ops::function_of_input(op, as_floating(x), Vectorized{[value](auto v) { return value(v); }},
                                [slope](auto dy, auto v) { return in_dtype_of(v, in_double(dy) * slope(in_double(v))); });
}

}  // namespace

Tensor entr(const Tensor& x) {
  return special(
      "entr", x, [](double v) { return formulas::entr(v); }, [](const auto& v) { return -1 - log(v); });
}
Tensor erfcx(const Tensor& x) {
  return special(
      "erfcx", x, [](double v) { return erfcx(v); }, [](const auto& v) { return 2 * v * erfcx(v) - kTwoOverSqrtPi; });
}
Tensor ndtr(const Tensor& x) {
  return special(
      "ndtr", x, [](double v) { return formulas::ndtr(v); }, [](const auto& v) { return exp(-0.5 * v * v) / kRootTwoPi; });
}
Tensor log_ndtr(const Tensor& x) {
  return special(
      "log_ndtr", x, [](double v) { return formulas::log_ndtr(v); }, [](const auto& v) { return normal_ratio(v); });
}
Tensor ndtri(const Tensor& p) {
  return special(
      "ndtri", p, [](double v) { return ndtri(v); },
      [](const auto& v) {
        const auto x = ndtri(v);
        return exp(0.5 * x * x) * kRootTwoPi;
      });
}

Tensor i0(const Tensor& x) {
  return special(
      "i0", x, [](auto v) { return i0(v); }, [](const auto& v) { return i1(v); });
}
Tensor i0e(const Tensor& x) {
  return special(
      "i0e", x, [](auto v) { return i0e(v); }, [](const auto& v) { return i1e(v) - sign(v) * i0e(v); });
}
Tensor i1(const Tensor& x) {
  return special(
      "i1", x, [](auto v) { return i1(v); }, [](const auto& v) { return i0(v) - i1_over(v, i1(v), false); });
}
Tensor i1e(const Tensor& x) {
  return special(
      "i1e", x, [](auto v) { return i1e(v); },
      [](const auto& v) {
        const auto y = i1e(v);
        return i0e(v) - abs(y) - i1_over(v, y, true);
      });
}

}  // namespace onestep
