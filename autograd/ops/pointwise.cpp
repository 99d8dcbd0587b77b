// Elementary functions: each is one formula for its values and one for its gradient.
#include "autograd/ops/pointwise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "autograd/operators.h"
#include "autograd/ops_shape.h"

namespace onestep {

namespace formulas = portable::formulas;
using ops::as_floating;
using ops::function_of_input;
using ops::function_of_output;
using ops::grad_of;
using ops::number_like;
using ops::select_if;
using ops::Vectorized;

namespace {

// What the formulas mean by these names where they are applied to numbers.
using formulas::exp;
using std::sqrt;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = std::numbers::pi, kLn2 = std::numbers::ln2, kLn10 = std::numbers::ln10;
constexpr double kTwoOverSqrtPi = 2 * std::numbers::inv_sqrtpi;

/// 1 / x, and 0 where x is 0.
Tensor inverse(const Tensor& x) { return masked_fill(reciprocal(x), eq(x, 0), 0); }

}  // namespace

Tensor exp2(const Tensor& x) {
  return function_of_output("exp2", as_floating(x), Vectorized{[](auto v) { return formulas::exp2(v); }},
                            [](auto dy, auto y) { return dy * y * number_like(y, kLn2); });
}
Tensor expm1(const Tensor& x) {
  return function_of_output("expm1", as_floating(x), Vectorized{[](auto v) { return formulas::expm1(v); }},
                            [](auto dy, auto y) { return dy * (y + 1); });
}
Tensor log1p(const Tensor& x) {
  return function_of_input("log1p", as_floating(x), Vectorized{[](auto v) { return formulas::log1p(v); }},
                           [](auto dy, auto v) { return dy / (v + 1); });
}
Tensor log2(const Tensor& x) {
  return function_of_input(
      "log2", as_floating(x), [](auto... p) { kernels::log2(p...); },
      [](auto dy, auto v) { return dy / (v * number_like(v, kLn2)); });
}
Tensor log10(const Tensor& x) {
  return function_of_input(
      "log10", as_floating(x), [](auto... p) { kernels::log10(p...); },
      [](auto dy, auto v) { return dy / (v * number_like(v, kLn10)); });
}

Tensor tan(const Tensor& input) {
  const Tensor x = as_floating(input), y = ops::map_floating("tan", x, [](auto... p) { kernels::tan(p...); });
  return record("tan", y, {x}, {y}, [](const Backward& b) -> Grads {
    return {ops::chain<Vectorized>(b, b.saved(0), [](auto dy, auto v) { return dy * (1 + v * v); })};
  });
}
Tensor asin(const Tensor& x) {
  return function_of_input("asin", as_floating(x), Vectorized{[](auto v) { return formulas::asin(v); }},
                           [](auto dy, auto v) { return dy / sqrt(1 - v * v); });
}
Tensor acos(const Tensor& x) {
  return function_of_input("acos", as_floating(x), Vectorized{[](auto v) { return formulas::acos(v); }},
                           [](auto dy, auto v) { return -dy / sqrt(1 - v * v); });
}
Tensor atan(const Tensor& x) {
  return function_of_input("atan", as_floating(x), Vectorized{[](auto v) { return formulas::atan(v); }},
                           [](auto dy, auto v) { return dy / (v * v + 1); });
}
Tensor sinh(const Tensor& input) {
  const Tensor x = as_floating(input), y = ops::map_floating("sinh", x, Vectorized{[](auto v) { return formulas::sinh(v); }});
  return record("sinh", y, {x}, {x}, [](const Backward& b) -> Grads { return {mul(b.grad(), cosh(b.saved(0)))}; });
}
Tensor cosh(const Tensor& input) {
  const Tensor x = as_floating(input), y = ops::map_floating("cosh", x, Vectorized{[](auto v) { return formulas::cosh(v); }});
  return record("cosh", y, {x}, {x}, [](const Backward& b) -> Grads { return {mul(b.grad(), sinh(b.saved(0)))}; });
}
Tensor asinh(const Tensor& x) {
  return function_of_input("asinh", as_floating(x), Vectorized{[](auto v) { return formulas::asinh(v); }},
                           [](auto dy, auto v) { return dy / sqrt(v * v + 1); });
}
Tensor acosh(const Tensor& x) {
  return function_of_input("acosh", as_floating(x), Vectorized{[](auto v) { return formulas::acosh(v); }},
                           [](auto dy, auto v) { return dy / sqrt(v * v - 1); });
}
Tensor atanh(const Tensor& x) {
  return function_of_input("atanh", as_floating(x), Vectorized{[](auto v) { return formulas::atanh(v); }},
                           [](auto dy, auto v) { return dy / (1 - v * v); });
}

Tensor erf(const Tensor& x) {
  return function_of_input(
      "erf", as_floating(x), [](auto... p) { kernels::erf(p...); },
      [](auto dy, auto v) { return dy * (exp(-(v * v)) * number_like(v, kTwoOverSqrtPi)); });
}
Tensor erfc(const Tensor& x) {
  return function_of_input(
      "erfc", as_floating(x), [](auto... p) { kernels::erfc(p...); },
      [](auto dy, auto v) { return dy * (exp(-(v * v)) * number_like(v, -kTwoOverSqrtPi)); });
}
Tensor erfinv(const Tensor& x) {
  return function_of_output("erfinv", as_floating(x), Vectorized{[](auto v) { return formulas::erfinv(v); }},
                            [](auto dy, auto y) { return dy * (exp(y * y) * number_like(y, 1 / kTwoOverSqrtPi)); });
}

Tensor sinc(const Tensor& input) {
  const Tensor x = as_floating(input);
  Tensor y;
  {
    const NoGradGuard no_grad;
    const Tensor angle = ops::widened(x) * kPi;
    y = ops::rounded(masked_fill(sin(angle) / angle, eq(x, 0), 1), x.dtype());
  }
  return record("sinc", y, {x}, {x}, [](const Backward& b) -> Grads {  // dx = dy (a cos(a) - sin(a)) / (a x), a = pi x
    const Tensor &v = b.saved(0), at_0 = eq(v, 0), u = masked_fill(v, at_0, 1), angle = u * kPi;
    const Tensor dx = b.grad() * ((angle * cos(angle) - sin(angle)) / angle / u);
    // 0 at 0; a recorded pass takes its series, -a^2 / 3 x, for the second derivative there.
    return {b.recording() ? where(at_0, b.grad() * (v * (-kPi * kPi / 3)), dx) : masked_fill(dx, at_0, 0)};
  });
}
Tensor reciprocal(const Tensor& x) {
  return function_of_output("reciprocal", as_floating(x), Vectorized{[](auto v) { return 1 / v; }},
                            [](auto dy, auto y) { return -dy * (y * y); });
}
Tensor square(const Tensor& x) { return pow(x.dtype() == DType::boolean ? to(x, DType::int64) : x, 2); }
Tensor deg2rad(const Tensor& x) { return mul(as_floating(x), kPi / 180); }
Tensor rad2deg(const Tensor& x) { return mul(as_floating(x), 180 / kPi); }

Tensor atan2(const Tensor& a, const Tensor& b) {
  const DType dtype = ops::floating(result_type(a, b));
  const Tensor y = to(a, dtype), x = to(b, dtype);
  return record(
      "atan2", ops::zip_floating("atan2", y, x, Vectorized{[](auto u, auto v) { return formulas::atan2(u, v); }}), {y, x},
      {y, x}, [](const Backward& back) -> Grads {
        const Tensor &dy = back.grad(), &v = back.saved(0), &u = back.saved(1), scale = inverse(v * v + u * u);
        return {grad_of(back, 0, [&] { return dy * (scale * u); }), grad_of(back, 1, [&] { return dy * (scale * -v); })};
      });  // dy = d x / (x^2 + y^2), dx = -d y / (x^2 + y^2)
}

Tensor hypot(const Tensor& a, const Tensor& b) {
  const DType dtype = result_type(a, b);
  const Tensor x = to(a, dtype), y = to(b, dtype);
  const Tensor z = ops::zip_floating("hypot", x, y, Vectorized{[](double u, double v) { return formulas::hypot(u, v); }});
  return record("hypot", z, {x, y}, {x, y, z}, [](const Backward& back) -> Grads {
    const auto grad = [&back](size_t i) {
      return grad_of(back, i, [&] { return back.grad() * (back.saved(i) / back.saved(2)); });
    };
    return {grad(0), grad(1)};
  });  // da = dy a / hypot(a, b)
}

Tensor copysign(const Tensor& a, const Tensor& b) {
  const DType dtype = ops::floating(result_type(a, b));
  const Tensor x = to(a, dtype), sign = to(b, dtype);
  const Tensor y = ops::zip_floating("copysign", x, sign, Vectorized{[]<class T>(T u, T v) { return std::copysign(u, v); }});
  return record("copysign", y, {x, sign}, {x, y}, [](const Backward& back) -> Grads {  // dx = dy y / x, 0 where x is 0
    const Tensor& v = back.saved(0);
    return {grad_of(back, 0, [&] { return back.grad() * masked_fill(back.saved(1) / v, eq(v, 0), 0); }),
            grad_of(back, 1, [&] { return zeros_like(back.grad()); })};
  });
}
Tensor copysign(const Tensor& a, Scalar b) { return copysign(a, ops::as_operand(as_floating(a), b)); }

Tensor logit(const Tensor& input, std::optional<double> eps) {
  const Tensor x = as_floating(input);
  if (is_narrow(x.dtype())) return to(logit(ops::wide(x), eps), x.dtype());
  if (eps) return logit(clamp(x, *eps, 1 - *eps));
  const auto row = []<class T>(const T* from, T* to, int64_t n) {
    kernels::parallel_for(n, 2 * kernels::kTranscendental, [=](int64_t i, int64_t end) {
      constexpr int64_t block = 1024;
      for (; i < end; i += block) {
        const int64_t count = std::min(block, end - i);
        vector_loop([](T v) { return v / (1 - v); }, to + i, count, from + i);
        kernels::log(to + i, to + i, count);
      }
    });
  };
  return function_of_input(
      "logit", x, row, [](auto dy, auto v) { return select_if(v < 0, kNaN, select_if(v > 1, kNaN, dy / v + dy / (1 - v))); });
}

Tensor logaddexp(const Tensor& a, const Tensor& b) {
  const DType dtype = result_type(a, b);
  const Tensor x = to(a, dtype), y = to(b, dtype);
  const auto values = []<class T>(T u, T v) {
    const T sum = (u > v ? u : v) + formulas::softplus(-std::fabs(u - v));
    return u == v ? u + static_cast<T>(kLn2) : sum;  // infinities, too
  };
  return record("logaddexp", ops::zip_floating("logaddexp", x, y, Vectorized{values}), {x, y}, {x, y},
                [](const Backward& back) -> Grads {
                  const auto grad = [&back](size_t i) {
                    return grad_of(back, i, [&] { return back.grad() * sigmoid(back.saved(i) - back.saved(1 - i)); });
                  };
                  return {grad(0), grad(1)};
                });  // da = dy exp(a) / (exp(a) + exp(b))
}

namespace {

/// x log(y + shift) by `log`, a formula of y, and 0 where x is 0 unless y is NaN; `op` is the function itself.
template <class Log>
Tensor times_log(const char* name, Tensor (*op)(const Tensor&, const Tensor&), double shift, const Log& log, const Tensor& a,
                 const Tensor& b) {
  const DType dtype = ops::floating(result_type(a, b));
  const Tensor x = to(a, dtype), y = to(b, dtype);
  const auto values = [log]<class T>(T u, T v) {
    const T product = u * log(v);
    return u == 0 && v == v ? 0 : product;
  };
  return record(name, ops::zip_floating(name, x, y, Vectorized{values}), {x, y}, {x, y},
                [op, shift](const Backward& back) -> Grads {
                  const Tensor &dz = back.grad(), &u = back.saved(0), &v = back.saved(1);
                  const auto by_x = [&] { return masked_fill(op(dz, v), logical_and(eq(u, 0), le(v, -shift)), 0); };
                  return {grad_of(back, 0, by_x), grad_of(back, 1, [&] { return dz * u / (shift == 0 ? v : v + shift); })};
                });  // dx = dz log(y + shift), dy = dz x / (y + shift)
}

}  // namespace

Tensor xlogy(const Tensor& x, const Tensor& y) {
  return times_log(
      "xlogy", xlogy, 0, [](auto v) { return formulas::log(v); }, x, y);
}
Tensor xlogy(const Tensor& x, Scalar y) { return xlogy(x, ops::as_operand(ops::as_floating(x), y)); }
Tensor xlogy(Scalar x, const Tensor& y) { return xlogy(ops::as_operand(ops::as_floating(y), x), y); }

Tensor xlog1py(const Tensor& x, const Tensor& y) {
  return times_log(
      "xlog1py", xlog1py, 1, [](auto v) { return formulas::log1p(v); }, x, y);
}
Tensor xlog1py(const Tensor& x, Scalar y) { return xlog1py(x, ops::as_operand(ops::as_floating(x), y)); }
Tensor xlog1py(Scalar x, const Tensor& y) { return xlog1py(ops::as_operand(ops::as_floating(y), x), y); }

Tensor float_power(const Tensor& base, const Tensor& exponent) {
  return pow(to(base, DType::float64), to(exponent, DType::float64));
}
Tensor float_power(const Tensor& base, Scalar exponent) { return pow(to(base, DType::float64), exponent.value); }
Tensor float_power(Scalar base, const Tensor& exponent) { return pow(base.value, to(exponent, DType::float64)); }

}  // namespace onestep
