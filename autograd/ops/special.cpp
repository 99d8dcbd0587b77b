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
using ops::grad_of;
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
const Tensor& in_double(const Tensor& v) { return v; }

double sign(double v) { return v == 0 ? 0 : std::copysign(1, v); }

/// v, and instead of 0 a number that is as good and can divide.
double not_0(double v) { return v == 0 ? 1e-30 : v; }
Tensor not_0(const Tensor& v) { return masked_fill(v, eq(v, 0), v.dtype() == DType::float16 ? 0x1p-14 : 1e-30); }

/// y = value(x) and dx = dy slope(x).
template <class F, class Slope>
Tensor special(const char* op, const Tensor& x, const F& value, const Slope& slope) {
  return ops::function_of_input(op, as_floating(x), Vectorized{[value](auto v) { return value(v); }},
                                [slope](auto dy, auto v) { return dy * slope(in_double(v)); });
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
      "log_ndtr", x, [](double v) { return formulas::log_ndtr(v); },
      [](const auto& v) { return 2 / kRootTwoPi / erfcx(-kRootHalf * v); });
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
      "i1", x, [](auto v) { return i1(v); },
      [](const auto& v) {
        const auto u = not_0(v);
        return i0(u) - i1(u) / u;
      });
}
Tensor i1e(const Tensor& x) {
  return special(
      "i1e", x, [](auto v) { return i1e(v); },
      [](const auto& v) {
        const auto u = not_0(v), y = i1e(u);
        return i0e(u) - abs(y) - y / u;
      });
}

Tensor xlog1py(const Tensor& a, const Tensor& b) {
  const DType dtype = ops::floating(result_type(a, b));
  const Tensor x = to(a, dtype), y = to(b, dtype);
  const auto values = []<class T>(T u, T v) {
    const T product = u * formulas::log1p(v);
    return u == 0 && v == v ? 0 : product;
  };
  return record("xlog1py", ops::zip_floating("xlog1py", x, y, Vectorized{values}), {x, y}, {x, y},
                [](const Backward& back) -> Grads {
                  const Tensor &dz = back.grad(), &u = back.saved(0), &v = back.saved(1);
                  const auto by_x = [&] { return masked_fill(xlog1py(dz, v), logical_and(eq(u, 0), le(v, -1)), 0); };
                  return {grad_of(back, 0, by_x), grad_of(back, 1, [&] { return dz * u / (v + 1); })};
                });  // dx = dz log(1 + y), dy = dz x / (1 + y)
}
Tensor xlog1py(const Tensor& x, Scalar y) { return xlog1py(x, ops::as_operand(as_floating(x), y)); }
Tensor xlog1py(Scalar x, const Tensor& y) { return xlog1py(ops::as_operand(as_floating(y), x), y); }

}  // namespace onestep
