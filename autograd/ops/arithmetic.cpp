// Arithmetic of two operands with broadcasting and PyTorch's type promotion.
#include <optional>
#include <utility>

#include "autograd/operators.h"
#include "autograd/ops/vectorized.h"
#include "autograd/ops_shape.h"

namespace onestep {

using ops::grad_of;

namespace {

/// Both operands in the dtype in which they meet (recorded where that is a conversion).
std::pair<Tensor, Tensor> meet(const Tensor& a, const Tensor& b) {
  const DType dtype = result_type(a, b);
  return {to(a, dtype), to(b, dtype)};
}

void check_not_bool(const char* op, const Tensor& x, const char* instead) {
  ONESTEP_CHECK(DTypeError, x.dtype() != DType::boolean, op, ": has no meaning for bool operands (", instead, ")");
}

Tensor saved_if(bool needed, const Tensor& x) { return needed ? x : Tensor(); }

constexpr ops::KernelOrLoop kAdd{[](auto... p) { kernels::add(p...); }, [](auto a, auto b) { return ops::plus(a, b); }};
constexpr ops::KernelOrLoop kSub{[](auto... p) { kernels::sub(p...); }, [](auto a, auto b) { return ops::minus(a, b); }};
constexpr ops::KernelOrLoop kMul{[](auto... p) { kernels::mul(p...); }, [](auto a, auto b) { return ops::times(a, b); }};
/// kernels::div; its callers bring floating operands only.
constexpr ops::KernelOrLoop kDiv{[](auto... p) { kernels::div(p...); }, [](auto a, auto) { return a; }};
constexpr ops::KernelOrLoop kMaximum{[](auto... p) { kernels::maximum(p...); }, [](auto a, auto b) { return a > b ? a : b; }};
constexpr ops::KernelOrLoop kMinimum{[](auto... p) { kernels::minimum(p...); }, [](auto a, auto b) { return a < b ? a : b; }};

/// d(a/b)/db = -(a/b) / b if it will be asked for: computed with the quotient, so that that, a and b may be written to. Only a
/// recorded pass reads a and b again.
Tensor saved_derivative(const Tensor& quotient, const Tensor& b) {
  if (!detail::should_record({b})) return {};
  return ops::zip("div", quotient, b, ops::Loop{[](auto v, auto w) { return -(v / w); }});
}

/// The part of the gradient that goes to `self`: all where it won, half in a tie, nothing where it lost.
Tensor winner_grad(const Tensor& dy, const Tensor& self, const Tensor& other, const Tensor& lost) {
  return masked_fill(where(eq(self, other), mul(dy, 0.5), dy), lost, 0);
}

/// base^exponent in wrapping integers; a negative exponent truncates the fraction towards 0 (torch.pow).
int64_t integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? 1 - 2 * (exponent & 1) : 0;
  uint64_t power = 1, square = static_cast<uint64_t>(base);
  for (; exponent > 0; exponent /= 2, square *= square) {
    if (exponent % 2 != 0) power *= square;
  }
  return static_cast<int64_t>(power);
}

constexpr ops::KernelOrLoop kPow{[](auto... p) { kernels::pow(p...); }, [](auto a, auto b) { return integer_power(a, b); }};

/// The gradient of the base of u^v: dy v u^(v-1), 0 where v is 0.
Tensor base_grad(const Tensor& dy, const Tensor& u, const Tensor& v) {
  const Tensor none = eq(v, 0);
  if (!detail::should_record({u, v})) return masked_fill(dy * (v * pow(u, v - 1)), none, 0);
  const Tensor singular = logical_and(none, logical_not(logical_and(isfinite(u), ne(u, 0))));
  const Tensor grad = dy * (v * pow(masked_fill(u, singular, 1), v - 1));
  return masked_fill(grad, v.requires_grad() ? singular : none, 0);  // its derivative by v is not 0 where v is: u^(v-1)
}

/// The gradient of the exponent of u^v = w: dy w log(u), 0 where u is 0 and v is not negative.
Tensor exponent_grad(const Tensor& dy, const Tensor& u, const Tensor& v, const Tensor& w) {
  const Tensor none = logical_and(eq(u, 0), ge(v, 0));
  return dy * masked_fill(w * log(detail::should_record({u}) ? masked_fill(u, none, 1) : u), none, 0);
}

/// row(x, number) elementwise in x's dtype; with `number_first`, row(number, x).
template <class Row>
Tensor map_number(const char* op, const Tensor& x, Scalar number, const Row& row, bool number_first = false) {
  return ops::map(op, x, [&]<class T>(const T* from, T* to, int64_t n) {
    const T value = ops::element<T>(number);
    if (number_first)
      row(&value, 0, from, 1, to, n);
    else
      row(from, 1, &value, 0, to, n);
  });
}

}  // namespace

DType result_type(const Tensor& a, const Tensor& b) {
  if (a.dtype() == b.dtype()) return a.dtype();
  const auto kind = [](const Tensor& x) { return x.is_floating() ? 2 : x.dtype() != DType::boolean ? 1 : 0; };
  const bool a_decides = kind(a) >= kind(b), b_decides = kind(b) >= kind(a);
  if (a.dim() > 0 && b.dim() == 0 && a_decides) return a.dtype();
  if (b.dim() > 0 && a.dim() == 0 && b_decides) return b.dtype();
  return promote_types(a.dtype(), b.dtype());
}

DType result_type(const Tensor& a, Scalar b) {
  if (a.is_floating()) return a.dtype();
  if (is_floating(b.dtype)) return default_dtype();
  return a.dtype() == DType::boolean ? b.dtype : a.dtype();
}

Tensor add(const Tensor& a, const Tensor& b) {
  const auto [x, y] = meet(a, b);
  return record("add", ops::zip("add", x, y, kAdd), {x, y}, {}, [](const Backward& back) -> Grads {
    const auto dy = [&] { return back.grad(); };
    return {grad_of(back, 0, dy), grad_of(back, 1, dy)};
  });
}

Tensor add(const Tensor& a, Scalar b) {
  const Tensor x = to(a, result_type(a, b));
  return record("add", map_number("add", x, ops::rounded(b, x.dtype()), kAdd), {x}, {},
                [](const Backward& back) -> Grads { return {back.grad()}; });
}

Tensor sub(const Tensor& a, const Tensor& b) {
  const auto [x, y] = meet(a, b);
  check_not_bool("sub", x, "use logical_xor");
  return record("sub", ops::zip("sub", x, y, kSub), {x, y}, {}, [](const Backward& back) -> Grads {
    return {grad_of(back, 0, [&] { return back.grad(); }),
            grad_of(back, 1, [&] { return neg(ops::sum_to(back.grad(), back.input_shape(1))); })};
  });
}

namespace {

/// a + alpha b, or a - alpha b, in their compute type; alpha is a number of their dtype.
Tensor add_scaled(const char* op, const Tensor& a, const Tensor& b, Scalar alpha, bool negative) {
  const auto [x, y] = meet(a, b);
  const DType dtype = x.dtype();
  ONESTEP_CHECK(DTypeError, is_floating(dtype) || !is_floating(alpha.dtype), op, ": a fraction, alpha ", alpha.value,
                ", for operands of dtype ", dtype);
  const Scalar number = ops::rounded(alpha, dtype);
  if (dtype == DType::boolean) return to(negative ? sub(x, mul(y, number)) : add(x, mul(y, number)), dtype);
  const auto sum = [=]<class T>(T v, T w) {
    const T scaled = ops::times(w, ops::element<T>(number));
    return negative ? ops::minus(v, scaled) : ops::plus(v, scaled);
  };
  return record(op, ops::zip(op, x, y, ops::Vectorized{sum}), {x, y}, {}, [=](const Backward& back) -> Grads {
    return {grad_of(back, 0, [&] { return back.grad(); }), grad_of(back, 1, [&] {
              const Tensor dy = back.grad() * number;
              return negative ? neg(dy) : dy;
            })};
  });
}

Tensor scaled(const Tensor& x, Scalar number) { return number.value == 1 ? x : x * number; }

/// The dtype in which three operands meet: that of those with dims, unless one without is of a higher kind.
DType result_type(const Tensor& a, const Tensor& b, const Tensor& c) {
  std::optional<DType> with_dims, without;
  for (const Tensor* x : {&a, &b, &c}) {
    std::optional<DType>& met = x->dim() > 0 ? with_dims : without;
    met = met ? promote_types(*met, x->dtype()) : x->dtype();
  }
  if (!with_dims || !without) return with_dims.value_or(without.value_or(a.dtype()));
  return result_type(zeros({1}, *with_dims), zeros({}, *without));
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b, Scalar alpha) { return add_scaled("add", a, b, alpha, false); }
Tensor sub(const Tensor& a, const Tensor& b, Scalar alpha) { return add_scaled("sub", a, b, alpha, true); }

Tensor add_product(const Tensor& x, const Tensor& a, const Tensor& b, Scalar scale) {
  const DType dtype = result_type(x, a, b);
  const Tensor u = to(x, dtype), v = to(a, dtype), w = to(b, dtype);
  if (!is_floating(dtype)) {
    const Scalar whole = is_floating(scale.dtype) ? Scalar(ops::element<int64_t>(scale.value)) : scale;
    return to(add(u, mul(to(mul(v, whole), dtype), w)), dtype);
  }
  const auto sum = [by = scale.value]<class T>(T e, T f, T g) { return e + static_cast<T>(by) * f * g; };
  const Tensor y = ops::zip_three("add_product", u, v, w, ops::Vectorized{sum});
  return record("add_product", y, {u, v, w}, {v, w}, [scale](const Backward& back) -> Grads {
    return {grad_of(back, 0, [&] { return back.grad(); }),
            grad_of(back, 1, [&] { return back.grad() * scaled(back.saved(1), scale); }),
            grad_of(back, 2, [&] { return back.grad() * scaled(back.saved(0), scale); })};
  });
}

Tensor add_quotient(const Tensor& x, const Tensor& a, const Tensor& b, Scalar scale) {
  const DType dtype = result_type(x, a, b);
  const Tensor u = to(x, dtype), v = to(a, dtype), w = to(b, dtype);
  ops::check_floating("add_quotient", u);
  const auto sum = [by = scale.value]<class T>(T e, T f, T g) { return e + static_cast<T>(by) * f / g; };
  const Tensor y = ops::zip_three("add_quotient", u, v, w, ops::Vectorized{sum});
  return record("add_quotient", y, {u, v, w}, {v, w}, [scale](const Backward& back) -> Grads {
    const auto slope = [&] { return scale / back.saved(1); };
    return {grad_of(back, 0, [&] { return back.grad(); }), grad_of(back, 1, [&] { return back.grad() * slope(); }),
            grad_of(back, 2, [&] { return neg(back.grad() * (slope() * back.saved(0) / back.saved(1))); })};
  });
}

Tensor sub(const Tensor& a, Scalar b) {
  const Tensor x = to(a, result_type(a, b));
  check_not_bool("sub", x, "use logical_xor");
  return record("sub", map_number("sub", x, ops::rounded(b, x.dtype()), kSub), {x}, {},
                [](const Backward& back) -> Grads { return {back.grad()}; });
}

Tensor operator-(Scalar a, const Tensor& b) {
  const Tensor x = to(b, result_type(b, a));
  check_not_bool("sub", x, "use logical_xor");
  return record("sub", map_number("sub", x, ops::rounded(a, x.dtype()), kSub, true), {x}, {},
                [](const Backward& back) -> Grads { return {neg(back.grad())}; });
}

namespace {

/// The number that b is, where a consists of halves: these are multiplied and divided by it as it is, as in PyTorch.
std::optional<Scalar> number_beside_halves(const Tensor& a, const Tensor& b) {
  const bool halves = is_half(a.dtype()) && a.dim() > 0;
  if (!halves || b.dim() > 0 || !b.is_floating() || b.dtype() == a.dtype() || b.requires_grad()) return {};
  return b.item();
}

}  // namespace

Tensor mul(const Tensor& a, const Tensor& b) {
  if (const auto number = number_beside_halves(a, b)) return mul(a, *number);
  if (const auto number = number_beside_halves(b, a)) return mul(b, *number);
  const auto [x, y] = meet(a, b);
  return record("mul", ops::zip("mul", x, y, kMul), {x, y}, {saved_if(y.requires_grad(), x), saved_if(x.requires_grad(), y)},
                [](const Backward& back) -> Grads {
                  return {grad_of(back, 0, [&] { return mul(back.grad(), back.saved(1)); }),   // da = dy b
                          grad_of(back, 1, [&] { return mul(back.grad(), back.saved(0)); })};  // db = dy a
                });
}

Tensor mul(const Tensor& a, Scalar b) {
  const Tensor x = to(a, result_type(a, b));
  return record("mul", map_number("mul", x, b, kMul), {x}, {},
                [b](const Backward& back) -> Grads { return {mul(back.grad(), b)}; });
}

Tensor div(const Tensor& a, const Tensor& b) {
  if (const auto number = number_beside_halves(a, b)) return div(a, *number);
  const DType dtype = ops::floating(result_type(a, b));
  const Tensor x = to(a, dtype), y = to(b, dtype), quotient = ops::zip("div", x, y, kDiv);
  return record("div", quotient, {x, y}, {y, saved_derivative(quotient, y), saved_if(y.requires_grad(), x)},
                [](const Backward& back) -> Grads {
                  const auto derivative = [&] {
                    return back.recording() ? -(back.saved(2) / back.saved(0) / back.saved(0)) : back.saved(1);
                  };
                  return {grad_of(back, 0, [&] { return div(back.grad(), back.saved(0)); }),  // da = dy / b
                          grad_of(back, 1, [&] { return mul(back.grad(), derivative()); })};
                });
}

Tensor div(const Tensor& a, Scalar b) {
  const Tensor x = to(a, ops::floating(a.dtype()));
  return record("div", map_number("div", x, b, kDiv), {x}, {},
                [b](const Backward& back) -> Grads { return {div(back.grad(), b)}; });
}

Tensor operator/(Scalar a, const Tensor& b) {
  const Tensor x = to(b, ops::floating(b.dtype())), y = map_number("div", x, a, kDiv, true);
  // A copy, so that x may be written to, as in PyTorch, which keeps 1 / x.
  return record("div", y, {x}, {detail::should_record({x}) ? clone(x.values()) : Tensor()}, [a](const Backward& back) -> Grads {
    return {ops::chain(back, back.input(0, back.saved(0)),
                       [a](auto dy, auto v) { return dy * -(ops::number_like(v, a) / v / v); })};
  });  // dx = -dy a / x^2
}

Tensor neg(const Tensor& x) {
  check_not_bool("neg", x, "use logical_not");
  return record("neg", map_number("neg", x, -1, kMul), {x}, {},
                [](const Backward& back) -> Grads { return {neg(back.grad())}; });
}

Tensor pow(const Tensor& base, Scalar exponent) {
  const Tensor x = to(base, result_type(base, exponent));
  const double p = exponent.value;
  check_not_bool("pow", x, "convert with x.to(DType::int64)");
  ONESTEP_CHECK(DTypeError, x.is_floating() || p >= 0, "pow: an ", x.dtype(), " tensor to the negative integer power ", p,
                " (convert with x.to(DType::float32))");
  const bool root = std::abs(p) == 0.5 && x.is_floating() && x.dtype() != DType::float16;  // as in PyTorch NaN at -infinity
  const Tensor y = !root ? map_number("pow", x, ops::rounded(exponent, x.dtype()), kPow) : (p > 0 ? sqrt : rsqrt)(x.values());
  return record("pow", y, {x}, {saved_if(p != 0, x)}, [p](const Backward& back) -> Grads {
    if (p == 0) return {zeros_like(back.grad())};
    const Tensor power = p == 2 ? back.saved(0) : pow(back.saved(0), p - 1);
    return {ops::chain(back, power, [p](auto dy, auto v) { return dy * (ops::number_like(v, p) * v); })};
  });  // dx = dy p x^(p-1)
}

Tensor pow(const Tensor& base, const Tensor& exponent) {
  const auto [x, p] = meet(base, exponent);
  check_not_bool("pow", x, "convert with x.to(DType::int64)");
  const Tensor y = ops::zip("pow", x, p, kPow);
  return record("pow", y, {x, p}, {x, p, saved_if(p.requires_grad(), y)}, [](const Backward& back) -> Grads {
    const Tensor &dy = back.grad(), &u = back.saved(0), &v = back.saved(1), &w = back.saved(2);
    return {grad_of(back, 0, [&] { return base_grad(dy, u, v); }),
            grad_of(back, 1, [&] { return exponent_grad(dy, u, v, w); })};
  });
}

Tensor pow(Scalar base, const Tensor& exponent) { return pow(ops::as_operand(exponent, base), exponent); }

Tensor maximum(const Tensor& a, const Tensor& b) {
  const auto [x, y] = meet(a, b);
  return record("maximum", ops::zip("maximum", x, y, kMaximum), {x, y}, {x, y}, [](const Backward& back) -> Grads {
    const Tensor &u = back.saved(0), &v = back.saved(1);
    return {grad_of(back, 0, [&] { return winner_grad(back.grad(), u, v, lt(u, v)); }),
            grad_of(back, 1, [&] { return winner_grad(back.grad(), v, u, lt(v, u)); })};
  });
}

Tensor minimum(const Tensor& a, const Tensor& b) {
  const auto [x, y] = meet(a, b);
  return record("minimum", ops::zip("minimum", x, y, kMinimum), {x, y}, {x, y}, [](const Backward& back) -> Grads {
    const Tensor &u = back.saved(0), &v = back.saved(1);
    return {grad_of(back, 0, [&] { return winner_grad(back.grad(), u, v, gt(u, v)); }),
            grad_of(back, 1, [&] { return winner_grad(back.grad(), v, u, gt(v, u)); })};
  });
}

}  // namespace onestep
