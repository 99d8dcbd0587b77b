// Rounding, and division with a whole quotient.
#include <cmath>

#include "autograd/operators.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops_shape.h"
#include "autograd/portable_math.h"

namespace onestep {

using ops::grad_of;

namespace {

void check_not_bool(const char* op, DType dtype) {
  ONESTEP_CHECK(DTypeError, dtype != DType::boolean, op, ": has no meaning for bool operands (convert with to())");
}

/// f(x) for floats; integers are whole already.
template <class F>
Tensor rounded(const char* op, const Tensor& x, const F& f) {
  check_not_bool(op, x.dtype());
  return x.is_floating() ? ops::record_constant(op, ops::map_floating(op, x, ops::Loop{f}), x) : clone(x);
}

/// floor(a / b); exact for floats where a / b is near a whole number, wrapping for integers.
template <class T>
T floor_quotient(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return a;  // refused
  } else if constexpr (std::is_integral_v<T>) {
    if (b == -1) return ops::minus(T(0), a);
    const T quotient = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
  } else {
    if (b == 0) return a / b;
    const T rest = std::fmod(a, b), whole = (a - rest) / b - (rest != 0 && (b < 0) != (rest < 0) ? T(1) : T(0));
    if (whole == 0) return std::copysign(T(0), a / b);
    const T below = std::floor(whole);
    return whole - below > T(0.5) ? below + 1 : below;
  }
}

template <class T>
T trunc_rest(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a;
  else if constexpr (std::is_integral_v<T>)
    return b == -1 ? 0 : a % b;
  else
    return std::fmod(a, b);
}

template <class T>
T floor_rest(T a, T b) {
  const T rest = trunc_rest(a, b);
  if constexpr (std::is_same_v<T, bool>)
    return rest;
  else
    return rest != 0 && (b < 0) != (rest < 0) ? rest + b : rest;
}

constexpr auto kFloorQuotient = [](auto a, auto b) { return floor_quotient(a, b); };
constexpr auto kFloorRest = [](auto a, auto b) { return floor_rest(a, b); };
constexpr auto kTruncRest = [](auto a, auto b) { return trunc_rest(a, b); };

/// Both operands in the dtype in which they meet.
std::pair<Tensor, Tensor> meet(const char* op, const Tensor& a, const Tensor& b) {
  const DType dtype = ops::promote(a, b);
  check_not_bool(op, dtype);
  const bool some = broadcast_shapes(op, a.shape(), b.shape()).numel() > 0;
  ONESTEP_CHECK(Error, is_floating(dtype) || !some || all(b).item<bool>(), op, ": an integer division by zero");
  return {to(a, dtype), to(b, dtype)};
}

/// a / b rounded towards 0: of floats the quotient as it is in their dtype.
Tensor trunc_values(const Tensor& x, const Tensor& y) {
  if (x.is_floating()) return trunc(div(x, y));
  return ops::zip("div", x, y, ops::Loop{[]<class T>(T a, T b) {
                    if constexpr (std::is_same_v<T, int64_t>)
                      return b == -1 ? ops::minus(T(0), a) : a / b;
                    else
                      return a;
                  }});
}

/// The quotient of rounded division; its gradients are what `rule` gives.
template <class Rule>
Tensor quotient(const char* op, const Tensor& a, const Tensor& b, RoundingMode mode, const Rule& rule) {
  const auto [x, y] = meet(op, a, b);
  Tensor values;
  {
    const NoGradGuard no_grad;
    values = mode == RoundingMode::floor ? ops::zip(op, x, y, ops::Loop{kFloorQuotient}) : trunc_values(x, y);
  }
  return record(op, values, {x, y}, {}, rule);
}

/// a - b q with q = round(a / b), so that da = dy and db = -dy q.
template <RoundingMode mode, class F>
Tensor rest(const char* op, const Tensor& a, const Tensor& b, const F& f) {
  const auto [x, y] = meet(op, a, b);
  return record(op, ops::zip(op, x, y, ops::Loop{f}), {x, y}, {x, y}, [](const Backward& back) -> Grads {
    return {grad_of(back, 0, [&] { return back.grad(); }),
            grad_of(back, 1, [&] { return -(back.grad() * div(back.saved(0), back.saved(1), mode)); })};
  });
}

}  // namespace

Tensor floor(const Tensor& x) {
  return rounded("floor", x, [](auto v) { return std::floor(v); });
}
Tensor ceil(const Tensor& x) {
  return rounded("ceil", x, [](auto v) { return std::ceil(v); });
}
Tensor trunc(const Tensor& x) {
  return rounded("trunc", x, [](auto v) { return std::trunc(v); });
}
Tensor round(const Tensor& x) {
  return rounded("round", x, [](auto v) { return std::nearbyint(v); });
}

Tensor round(const Tensor& x, int64_t decimals) {
  if (decimals == 0) return round(x);
  ops::check_floating("round", x);
  return rounded("round", x, [decimals, power = portable::pow(10, std::fabs(static_cast<double>(decimals)))]<class T>(T v) {
    const T p = static_cast<T>(power);
    return decimals > 0 ? std::nearbyint(v * p) / p : std::nearbyint(v / p) * p;
  });
}

Tensor frac(const Tensor& x) {
  return ops::function_of_input("frac", x, ops::Loop{[](auto v) { return v - std::trunc(v); }},
                                [](auto dy, auto /*x*/) { return dy; });
}

Tensor sign(const Tensor& x) {
  return ops::record_constant("sign", ops::map(x, ops::Loop{[]<class T>(T v) { return (v > T(0)) - (v < T(0)); }}), x);
}
Tensor sgn(const Tensor& x) { return sign(x); }

Tensor div(const Tensor& a, const Tensor& b, RoundingMode rounding_mode) {
  if (rounding_mode == RoundingMode::none) return div(a, b);
  return quotient("div", a, b, rounding_mode, [](const Backward& back) -> Grads {
    const auto none = [&](size_t i) { return back.needs(i) ? zeros(back.input_shape(i), back.grad().dtype()) : Tensor(); };
    return {none(0), none(1)};
  });
}
Tensor div(const Tensor& a, Scalar b, RoundingMode rounding_mode) { return div(a, ops::as_operand(a, b), rounding_mode); }

Tensor floor_divide(const Tensor& a, const Tensor& b) {
  return quotient("floor_divide", a, b, RoundingMode::floor, [](const Backward&) -> Grads {
    throw GradError("floor_divide: has no derivative (use div with RoundingMode::floor, whose gradient is 0)");
  });
}
Tensor floor_divide(const Tensor& a, Scalar b) { return floor_divide(a, ops::as_operand(a, b)); }

Tensor remainder(const Tensor& a, const Tensor& b) { return rest<RoundingMode::floor>("remainder", a, b, kFloorRest); }
Tensor remainder(const Tensor& a, Scalar b) { return remainder(a, ops::as_operand(a, b)); }
Tensor remainder(Scalar a, const Tensor& b) { return remainder(ops::as_operand(b, a), b); }
Tensor fmod(const Tensor& a, const Tensor& b) { return rest<RoundingMode::trunc>("fmod", a, b, kTruncRest); }
Tensor fmod(const Tensor& a, Scalar b) { return fmod(a, ops::as_operand(a, b)); }

}  // namespace onestep
