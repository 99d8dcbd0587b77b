// The logarithm of the gamma function, its derivatives, and the incomplete gamma function.
#include "autograd/gamma_formulas.h"
#include "autograd/operators.h"
#include "autograd/ops/incomplete_gamma.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops_math.h"
#include "autograd/ops_pointwise.h"

namespace onestep {

namespace formulas = portable::formulas;
using ops::as_floating;
using ops::Vectorized;

namespace {

template <bool ABOVE>
Tensor incomplete_gamma(const char* op, const Tensor& a, const Tensor& x) {
  ops::check_same_dtype(op, a, x);
  const Tensor y = ops::zip_floating(op, a, x, ops::InDouble<ops::IncompleteGamma<ABOVE>>{});
  return record(op, y, {a, x}, {a, x}, [op](const Backward& b) -> Grads {
    const Tensor &p = b.saved(0), &v = b.saved(1);
    const Tensor dy = ABOVE ? neg(b.grad()) : b.grad();
    return {ops::grad_of(b, 0,
                         [&] {
                           const Tensor slope =
                               ops::zip_floating(op, p.values(), v.values(), ops::InDouble<ops::IncompleteGammaSlope>{});
                           return dy * ops::slope_in(b, op, slope, p);
                         }),
            ops::grad_of(b, 1, [&] { return dy * exp((p - 1) * log(v) - v - lgamma(p)); })};
  });
}

}  // namespace

Tensor lgamma(const Tensor& input) {
  const Tensor x = as_floating(input),
               y = ops::map_floating("lgamma", x, Vectorized{[](auto v) { return formulas::lgamma(v); }});
  return record("lgamma", y, {x}, {x}, [](const Backward& b) -> Grads { return {mul(b.grad(), digamma(b.saved(0)))}; });
}

Tensor digamma(const Tensor& input) {
  const Tensor x = as_floating(input),
               y = ops::map_floating("digamma", x, Vectorized{[](auto v) { return formulas::digamma(v); }});
  return record("digamma", y, {x}, {x}, [](const Backward& b) -> Grads { return {mul(b.grad(), polygamma(1, b.saved(0)))}; });
}

Tensor polygamma(int64_t n, const Tensor& input) {
  constexpr int64_t most = 170;  // whose factorial is a double
  ONESTEP_CHECK(Error, n >= 0 && n <= most, "polygamma: n is ", n, ", not one of 0 to ", most);
  if (n == 0) return digamma(input);
  const int order = static_cast<int>(n);
  const Tensor x = as_floating(input),
               y = n == 1 ? ops::map_floating("polygamma", x, Vectorized{[](auto v) { return formulas::trigamma(v); }})
                          : ops::map_floating("polygamma", x,
                                              ops::Loop{[order](auto v) { return formulas::polygamma(order, v); }});
  return record("polygamma", y, {x}, {x},
                [n](const Backward& b) -> Grads { return {mul(b.grad(), polygamma(n + 1, b.saved(0)))}; });
}

Tensor igamma(const Tensor& a, const Tensor& x) { return incomplete_gamma<false>("igamma", a, x); }
Tensor igammac(const Tensor& a, const Tensor& x) { return incomplete_gamma<true>("igammac", a, x); }

}  // namespace onestep
