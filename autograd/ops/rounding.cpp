// Rounding, and division with a whole quotient.
#include <cmath>
#include <limits>

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
  return x.is_floating() ? ops::record_constant(op, ops::map_floating(op, x, ops::Vectorized{f}), x) : clone(x);
}

/// a - b trunc(a / b)
template <class T>
T trunc_rest(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a;  // refused
  else if constexpr (std::is_integral_v<T>)
    return b == -1 ? 0 : a % b;
  else
    return std::fmod(a, b);
}

/// Whether the quotient of floor division is one less than that of truncating division, which leaves `rest`.
template <class T>
bool is_one_less(T b, T rest) {
  return rest != T(0) && (b < T(0)) != (rest < T(0));
}

/// floor(a / b); exact for floats where a / b is near a whole number, wrapping for integers.
constexpr auto kFloorQuotient = []<class T>(T a, T b, T rest) {
  if constexpr (std::is_same_v<T, bool>) {
    return a;
  } else if constexpr (std::is_integral_v<T>) {
    if (b == -1) return ops::minus(T(0), a);
    return a / b - (is_one_less(b, rest) ? 1 : 0);
  } else {
    const T near = a / b, whole = (a - rest) / b - (is_one_less(b, rest) ? T(1) : T(0)), below = std::floor(whole);
    const T nearest = whole - below > T(0.5) ? below + 1 : below, y = whole == 0 ? std::copysign(T(0), near) : nearest;
    return b == 0 ? near : y;
  }
};
constexpr auto kFloorRest = []<class T>(T /*a*/, T b, T rest) {
  const T above = ops::plus(rest, b);
  return is_one_less(b, rest) ? above : rest;
};
constexpr auto kTruncRest = []<class T>(T /*a*/, T /*b*/, T rest) { return rest; };

/// A row function from a formula f(a, b, rest) with rest = fmod(a, b). For floats that is computed in double, of which the
/// quotient's whole part has exact products with b below 2^28; what is not below it takes the C library's fmod. Block by block,
/// because y may be a.
template <class F>
struct WithRest {
  F f;

  template <class T>
  void operator()(const T* a, int64_t a_step, const T* b, int64_t b_step, T* y, int64_t n) const {
    const auto slow = [f = f](T u, T v) { return f(u, v, trunc_rest(u, v)); };
    if constexpr (std::is_same_v<T, float>) {
      const auto fast = [f = f](float u, float v) {
        const double left = u, right = v, quotient = std::trunc(left / right);
        const float rest = static_cast<float>(std::copysign(left - quotient * right, left)), result = f(u, v, rest);
        return std::fabs(quotient) < 0x1p28 ? result : std::numeric_limits<float>::quiet_NaN();
      };
      kernels::parallel_for(n, ops::Vectorized<decltype(fast)>::kCost, [=](int64_t i, int64_t end) {
        constexpr int64_t block = 1024;
        float results[block];
        for (int64_t count; i < end; i += count) {
          count = std::min(block, end - i);
          ops::Vectorized{fast}(a + i * a_step, a_step, b + i * b_step, b_step, results, count);
          for (int64_t j = 0; j < count; ++j)
            if (results[j] != results[j]) results[j] = slow(a[(i + j) * a_step], b[(i + j) * b_step]);
          std::copy_n(results, count, y + i);
        }
      });
    } else {
      ops::Loop{slow}(a, a_step, b, b_step, y, n);
    }
  }
};
template <class F>
WithRest(F) -> WithRest<F>;

/// Both operands in the dtype in which they meet.
std::pair<Tensor, Tensor> meet(const char* op, const Tensor& a, const Tensor& b) {
  const DType dtype = result_type(a, b);
  check_not_bool(op, dtype);
  const bool some = broadcast_shapes(op, a.shape(), b.shape()).numel() > 0;
  ONESTEP_CHECK(Error, is_floating(dtype) || !some || all(b).item<bool>(), op, ": an integer division by zero");
  return {to(a, dtype), to(b, dtype)};
}

/// a / b rounded towards 0: of floats the quotient as it is in their dtype.
Tensor trunc_values(const Tensor& x, const Tensor& y) {
  if (x.is_floating()) {
    const ops::ResultInPlace apart("_", x);  // the quotient is not yet what an in-place op may write
    return trunc(div(x, y));
  }
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
    values = mode == RoundingMode::floor ? ops::zip(op, x, y, WithRest{kFloorQuotient}) : trunc_values(x, y);
  }
  return record(op, values, {x, y}, {}, rule);
}

/// a - b q with q = round(a / b), so that da = dy and db = -dy q.
template <RoundingMode mode, class F>
Tensor rest(const char* op, const Tensor& a, const Tensor& b, const F& f) {
  const auto [x, y] = meet(op, a, b);
  return record(op, ops::zip(op, x, y, WithRest{f}), {x, y}, {x, y}, [](const Backward& back) -> Grads {
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
  return ops::function_of_input("frac", x, ops::Vectorized{[](auto v) { return v - std::trunc(v); }},
                                [](auto dy, auto /*x*/) { return dy; });
}

Tensor sign(const Tensor& x) {
  return ops::record_constant(
      "sign", ops::map("sign", x, ops::Vectorized{[]<class T>(T v) { return v > T(0)   ? T(1)
                                                                            : v < T(0) ? T(-1)
                                                                                       : T(0); }}), x);
}
Tensor sgn(const Tensor& x) { return sign(x); }

Tensor div(const Tensor& a, const Tensor& b, RoundingMode rounding_mode) {
  if (rounding_mode == RoundingMode::none) return div(a, b);
  return quotient("div", a, b, rounding_mode, [](const Backward& back) -> Grads {
    const auto none = [&](size_t i) { return back.needs(i) ? zeros(back.input_shape(i), back.grad().dtype()) : Tensor(); };
    return {none(0), none(1)};
  });
}
Tensor div(const Tensor& a, Scalar b, RoundingMode rounding_mode) {
  if (is_half(a.dtype())) return to(div(ops::wide(a), b, rounding_mode), a.dtype());  // by the number as it is
  return rounding_mode == RoundingMode::none ? div(a, b) : div(a, ops::as_operand(a, b), rounding_mode);
}

Tensor floor_divide(const Tensor& a, const Tensor& b) {
  return quotient("floor_divide", a, b, RoundingMode::floor, [](const Backward&) -> Grads {
    throw GradError("floor_divide: has no derivative (use div with RoundingMode::floor, whose gradient is 0)");
  });
}
Tensor floor_divide(const Tensor& a, Scalar b) {
  if (is_half(a.dtype())) return to(floor_divide(ops::wide(a), b), a.dtype());
  return floor_divide(a, ops::as_operand(a, b));
}

Tensor remainder(const Tensor& a, const Tensor& b) { return rest<RoundingMode::floor>("remainder", a, b, kFloorRest); }
Tensor remainder(const Tensor& a, Scalar b) { return remainder(a, ops::as_operand(a, b)); }
Tensor remainder(Scalar a, const Tensor& b) { return remainder(ops::as_operand(b, a), b); }
Tensor fmod(const Tensor& a, const Tensor& b) { return rest<RoundingMode::trunc>("fmod", a, b, kTruncRest); }
Tensor fmod(const Tensor& a, Scalar b) { return fmod(a, ops::as_operand(a, b)); }

}  // namespace onestep
