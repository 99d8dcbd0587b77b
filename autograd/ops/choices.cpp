// Functions that choose between their operands, or between an operand and a number.
#include <array>
#include <limits>

#include "autograd/operators.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops_shape.h"

namespace onestep {

using ops::grad_of;

namespace {

/// `dy` where the condition holds, else 0.
Tensor chosen(const Tensor& condition, const Tensor& dy) { return where(condition, dy, zeros({}, dy.dtype())); }

/// f(a, b), of which a gets the gradient where wins(a, b), b elsewhere.
template <class F, class Wins>
Tensor choice(const char* op, const Tensor& a, const Tensor& b, const F& f, const Wins& wins) {
  const DType dtype = result_type(a, b);
  const Tensor x = to(a, dtype), y = to(b, dtype);
  return record(op, ops::zip(op, x, y, ops::Loop{f}), {x, y}, {x, y}, [wins](const Backward& back) -> Grads {
    const Tensor first = wins(back.saved(0), back.saved(1));
    return {grad_of(back, 0, [&] { return chosen(first, back.grad()); }),
            grad_of(back, 1, [&] { return chosen(logical_not(first), back.grad()); })};
  });
}

/// The largest finite number of a floating dtype.
double largest_of(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return 65504;
    case DType::bfloat16:
      return 0x1.fep+127;
    case DType::float32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

}  // namespace

Tensor clamp(const Tensor& input, const Tensor& low, const Tensor& high) {
  ONESTEP_CHECK(ConfigError, low.defined() || high.defined(), "clamp: needs a least or a largest value");
  DType dtype = input.dtype();
  for (const Tensor& bound : {low, high})
    if (bound.defined()) dtype = result_type(to(input, dtype), bound);
  const auto in_dtype = [dtype](const Tensor& bound) { return bound.defined() ? to(bound, dtype) : bound; };
  const Tensor x = to(input, dtype), least = in_dtype(low), most = in_dtype(high);
  Tensor y = x;
  {
    const NoGradGuard no_grad;
    if (least.defined()) y = maximum(y, least);
    if (most.defined()) y = minimum(y, most);
  }
  return record("clamp", y, {x, least, most}, {x, least, most}, [](const Backward& back) -> Grads {
    const Tensor &dy = back.grad(), &v = back.saved(0), &l = back.saved(1), &h = back.saved(2);
    const bool both = l.defined() && h.defined();
    const auto within = [&] { return both ? logical_and(ge(v, l), le(v, h)) : l.defined() ? ge(v, l) : le(v, h); };
    return {grad_of(back, 0, [&] { return chosen(within(), dy); }),
            grad_of(back, 1, [&] { return chosen(both ? logical_and(lt(v, l), lt(l, h)) : lt(v, l), dy); }),
            grad_of(back, 2, [&] { return chosen(both ? logical_or(gt(v, h), lt(h, l)) : gt(v, h), dy); })};
  });  // dy goes to what was chosen, to x in a tie
}

Tensor clamp_min(const Tensor& x, const Tensor& low) { return clamp(x, low, Tensor()); }
Tensor clamp_max(const Tensor& x, const Tensor& high) { return clamp(x, Tensor(), high); }
Tensor clamp_min(const Tensor& x, Scalar low) { return clamp(x, low); }
Tensor clamp_max(const Tensor& x, Scalar high) { return clamp(x, std::nullopt, high); }

Tensor fmax(const Tensor& a, const Tensor& b) {
  return choice(
      "fmax", a, b, [](auto u, auto v) { return u >= v || v != v ? u : v; },
      [](const Tensor& u, const Tensor& v) { return logical_or(ge(u, v), isnan(v)); });
}
Tensor fmin(const Tensor& a, const Tensor& b) {
  return choice(
      "fmin", a, b, [](auto u, auto v) { return u <= v || v != v ? u : v; },
      [](const Tensor& u, const Tensor& v) { return logical_or(le(u, v), isnan(v)); });
}

Tensor heaviside(const Tensor& x, const Tensor& values) {
  ops::check_same_dtype("heaviside", x, values);
  return ops::zip("heaviside", x, values,
                  ops::Loop{[]<class T>(T u, T v) { return u == T(0) ? v : static_cast<T>(u > T(0)); }});
}

namespace {

/// The values of lerp for tensors of one wide dtype.
Tensor lerp_values(const Tensor& a, const Tensor& b, const Tensor& weight) {
  const auto between = []<class T>(T from, T up_to, T w) {
    const T distance = up_to - from;
    return std::abs(w) < T(0.5) ? from + w * distance : up_to - distance * (1 - w);
  };
  return ops::zip_three("lerp", a, b, weight, ops::Vectorized{between});
}

}  // namespace

Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight) {
  ops::check_floating("lerp", a);
  ops::check_same_dtype("lerp", a, b);
  ops::check_same_dtype("lerp", a, weight);
  if (is_narrow(a.dtype())) return to(lerp(ops::wide(a), ops::wide(b), ops::wide(weight)), a.dtype());
  return record("lerp", lerp_values(a, b, weight), {a, b, weight}, {a, b, weight}, [](const Backward& back) -> Grads {
    const Tensor &dy = back.grad(), &w = back.saved(2);
    return {grad_of(back, 0, [&] { return dy * (1 - w); }), grad_of(back, 1, [&] { return dy * w; }),
            grad_of(back, 2, [&] { return dy * (back.saved(1) - back.saved(0)); })};
  });
}
Tensor lerp(const Tensor& a, const Tensor& b, double weight) {
  ops::check_floating("lerp", a);
  return lerp(a, b, full({}, weight, a.dtype()));
}

Tensor nan_to_num(const Tensor& x, double nan, std::optional<double> posinf, std::optional<double> neginf) {
  if (!x.is_floating()) return clone(x);
  const double largest = largest_of(x.dtype()), high = posinf.value_or(largest), low = neginf.value_or(-largest);
  const auto replaced = [=]<class T>(T v) {
    const T end = v > 0 ? static_cast<T>(high) : static_cast<T>(low), number = v - v == 0 ? v : end;
    return v == v ? number : static_cast<T>(nan);
  };
  return record("nan_to_num", ops::map_floating("nan_to_num", x, ops::Vectorized{replaced}), {x}, {x},
                [](const Backward& b) -> Grads { return {chosen(isfinite(b.saved(0)), b.grad())}; });
}

Tensor rsub(const Tensor& a, const Tensor& b) { return sub(b, a); }
Tensor rsub(const Tensor& a, const Tensor& b, Scalar alpha) { return sub(b, a, alpha); }
Tensor rsub(const Tensor& a, Scalar b) { return b - a; }

}  // namespace onestep
