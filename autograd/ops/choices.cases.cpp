#include <algorithm>
#include <cmath>

#include "autograd/ops/pointwise_cases.h"
#include "autograd/ops_pointwise.h"

namespace onestep {
namespace {

using namespace pointwise;

double clamped(double x, double low, double high) {
  if (x != x || low != low || high != high) return kNan;
  return std::min(std::max(x, low), high);
}
double larger(double a, double b) { return a != a ? b : b != b ? a : std::max(a, b); }
double smaller(double a, double b) { return a != a ? b : b != b ? a : std::min(a, b); }
double step(double x, double at_0) { return x == 0 ? at_0 : x > 0 ? 1 : 0; }
double below(double x, double low) { return clamped(x, low, kInf); }
double above(double x, double high) { return clamped(x, -kInf, high); }
double finite(double x) { return x != x ? 0.5 : std::min(std::max(x, -9.0), 8.0); }

OpSample three(const char* label, InputSpec a, InputSpec b, InputSpec c,
               Tensor (*op)(const Tensor&, const Tensor&, const Tensor&), double (*f)(double, double, double),
               bool differentiable = true) {
  return {label,
          {std::move(a), std::move(b), std::move(c)},
          [op](const std::vector<Tensor>& in) { return op(in[0], in[1], in[2]); },
          [f](const std::vector<Values>& in) {
            Values y(naive::broadcast(naive::broadcast(in[0].shape, in[1].shape), in[2].shape));
            for (int64_t i = 0; i < y.shape.numel(); ++i)
              y[i] =
                  f(naive::value_at(in[0], y.shape, i), naive::value_at(in[1], y.shape, i), naive::value_at(in[2], y.shape, i));
            return y;
          },
          differentiable};
}

double mixed(double a, double b, double weight) { return a + weight * (b - a); }
Tensor lerp_copy(const Tensor& a, const Tensor& b, const Tensor& weight) { return lerp_(clone(a), b, weight); }
Tensor clamp_copy(const Tensor& a, const Tensor& b, const Tensor& c) { return clamp_(clone(a), b, c); }

Tensor add_product_half(const Tensor& x, const Tensor& a, const Tensor& b) { return add_product(x, a, b, -0.5); }
Tensor add_product_copy(const Tensor& x, const Tensor& a, const Tensor& b) { return add_product_(clone(x), a, b, -0.5); }
Tensor add_quotient_half(const Tensor& x, const Tensor& a, const Tensor& b) { return add_quotient(x, a, b, -0.5); }
Tensor add_quotient_copy(const Tensor& x, const Tensor& a, const Tensor& b) { return add_quotient_(clone(x), a, b, -0.5); }
double minus_half_product(double x, double a, double b) { return x - 0.5 * a * b; }
double minus_half_quotient(double x, double a, double b) { return x - 0.5 * a / b; }

/// x + -0.5 f(a, b) where b is not small.
std::vector<OpSample> sums(Tensor (*op)(const Tensor&, const Tensor&, const Tensor&), double (*f)(double, double, double)) {
  return {three("same shape", {{3, 4}}, {{3, 4}}, {{3, 4}, 1, 2}, op, f),
          three("broadcast", {{2, 3, 4}}, {{4}}, {{3, 1}, 1, 2}, op, f), three("empty", {{0, 4}}, {{4}}, {{}}, op, f)};
}

std::vector<OpSample> mixtures(Tensor (*op)(const Tensor&, const Tensor&, const Tensor&)) {
  return {three("same shape", {{3, 4}}, {{3, 4}}, {{3, 4}, -1, 2}, op, mixed),
          three("broadcast", {{2, 3, 4}}, {{4}}, {{3, 1}, -1, 2}, op, mixed), three("empty", {{0, 4}}, {{4}}, {{}}, op, mixed)};
}

template <Tensor (*F)(const Tensor&)>
OpCase tested(const char* name, bool (*f)(double)) {
  const auto truth = [f](double x) { return f(x) ? 1.0 : 0.0; };
  return {name,
          {one("floats", values({-kInf, -1, -0.0, 0, 1, kInf, kNan}), function<F>, truth, false),
           one("int64", integers({3, 2}), function<F>, truth, false), one("bool", truths({4}), function<F>, truth, false),
           one("empty", {{0, 3}}, function<F>, truth, false)},
          {}};
}

InputSpec drawn(const Shape& shape) { return {shape}; }

const std::vector<double> kSpecial = {-kInf, -1, 0, 1, kInf, kNan};
const Domain kNotHalf = {-2, 2, {0.5}}, kHalf = {0.5, 0.5};  // so that no pair is at the kink

const RegisterOpCases registered([] {
  const auto close = [](bool equal_nan) {
    return [equal_nan](double a, double b) {
      if (a != a || b != b) return equal_nan && a != a && b != b ? 1.0 : 0.0;
      return a == b || (std::isfinite(b) && std::abs(a - b) <= 0.25 + 0.5 * std::abs(b)) ? 1.0 : 0.0;
    };
  };
  const auto isclose_op = [](bool equal_nan) {
    return [equal_nan](const Tensor& a, const Tensor& b) { return isclose(a, b, 0.5, 0.25, equal_nan); };
  };
  const auto replace = [](const Tensor& x) { return nan_to_num(x, 0.5, 8, -9); };
  const auto dtypes = [](const char* op) {
    return std::string(op) + ": dtypes differ: float32 and float64 (convert one with to())";
  };
  const Tensor f32 = zeros({2}), f64 = zeros({2}, DType::float64), i64 = zeros({2}, DType::int64);
  return OpCases{
      {"clamp",
       {three("rows", {{3, 4}, -2, 2, {-1, 1}}, {{3, 4}, -1, -1}, {{1, 4}, 1, 1}, clamp, clamped),
        three("crossing bounds", {{3, 4}, -2, 2, {-0.5, 0.5}}, {{3, 4}, 0.5, 0.5}, {{1, 4}, -0.5, -0.5}, clamp, clamped),
        three("broadcast", {{2, 3, 4}, -2, 2, {-1, 1}}, {{4}, -1, -1}, {{3, 1}, 1, 1}, clamp, clamped),
        three("empty", {{0, 4}}, {{4}, -2, 0}, {{}, 0, 2}, clamp, clamped),
        three("special values", values({-kInf, kInf, kNan, 1, 1}), values({-1, -1, -1, kNan, -kInf}),
              values({1, 1, 1, 1, kNan}), clamp, clamped, false),
        three("int64", integers({6}), integers({6}), integers({6}), clamp, clamped, false)},
       {error(
           "no bound", [f32] { clamp(f32, Tensor(), Tensor()); }, "clamp: needs a least or a largest value")}},
      {"clamp_",
       {three("rows", {{3, 4}, -2, 2, {-1, 1}}, {{3, 4}, -1, -1}, {{1, 4}, 1, 1}, clamp_copy, clamped),
        three("empty", {{0, 4}}, {{4}, -2, 0}, {{}, 0, 2}, clamp_copy, clamped),
        one(
            "numbers", {{3, 4}, -2, 2, {-0.5, 1}}, [](const Tensor& x) { return clamp_(clone(x), -0.5, 1); },
            [](double x) { return clamped(x, -0.5, 1); })},
       {}},
      {"clamp_min",
       joined(pairs(function2<clamp_min>, below, kNotHalf, kHalf, kSpecial),
              {one(
                  "a number", {{3, 4}, -2, 2, {0.5}}, [](const Tensor& x) { return clamp_min(x, 0.5); },
                  [](double x) { return below(x, 0.5); })}),
       {}},
      {"clamp_min_", in_place_pairs(function2<clamp_min_>, below, drawn), {}},
      {"clamp_max",
       joined(pairs(function2<clamp_max>, above, kNotHalf, kHalf, kSpecial),
              {one(
                  "a number", {{3, 4}, -2, 2, {0.5}}, [](const Tensor& x) { return clamp_max(x, 0.5); },
                  [](double x) { return above(x, 0.5); })}),
       {}},
      {"clamp_max_", in_place_pairs(function2<clamp_max_>, above, drawn), {}},
      {"fmax",
       joined(pairs(function2<fmax>, larger, kNotHalf, kHalf, kSpecial),
              {two("int64", integers({6}), integers({6}), function2<fmax>, larger, false)}),
       {}},
      {"fmin",
       joined(pairs(function2<fmin>, smaller, kNotHalf, kHalf, kSpecial),
              {two("int64", integers({6}), integers({6}), function2<fmin>, smaller, false)}),
       {}},
      {"heaviside",
       joined(pairs(function2<heaviside>, step, {-2, 2, {0}}, {}, kSpecial, false),
              {two("int64", values({-1, 0, 3, 0}, DType::int64), integers({4}), function2<heaviside>, step, false)}),
       {error(
           "dtypes", [=] { heaviside(f32, f64); }, dtypes("heaviside"))}},
      {"heaviside_", in_place_pairs(function2<heaviside_>, step, drawn, false), {}},
      {"add_product",
       joined(sums(add_product_half, minus_half_product),
              {three("broadcast x", {{4}}, {{2, 1}}, {{2, 4}}, add_product_half, minus_half_product),
               three(
                   "int64", integers({3, 4}), integers({4}), integers({3, 1}),
                   [](const Tensor& x, const Tensor& a, const Tensor& b) { return add_product(x, a, b, 3); },
                   [](double x, double a, double b) { return x + 3 * a * b; }, false)}),
       {}},
      {"add_product_", sums(add_product_copy, minus_half_product), {}},
      {"add_quotient",
       sums(add_quotient_half, minus_half_quotient),
       {error(
           "integers", [i64] { add_quotient(i64, i64, i64); },
           "add_quotient: needs a floating dtype: got int64 (convert with x.to(DType::float32))")}},
      {"add_quotient_", sums(add_quotient_copy, minus_half_quotient), {}},
      {"lerp",
       joined(mixtures(lerp),
              {two(
                  "a number", {{3, 4}}, {{4}}, [](const Tensor& a, const Tensor& b) { return lerp(a, b, 0.75); },
                  [](double a, double b) { return mixed(a, b, 0.75); })}),
       {error(
            "dtypes", [=] { lerp(f32, f64, 0.5); }, dtypes("lerp")),
        error(
            "weight", [=] { lerp(f32, f32, f64); }, dtypes("lerp"))}},
      {"lerp_",
       joined(mixtures(lerp_copy),
              {two(
                  "a number", {{3, 4}}, {{4}}, [](const Tensor& a, const Tensor& b) { return lerp_(clone(a), b, 0.25); },
                  [](double a, double b) { return mixed(a, b, 0.25); })}),
       {}},
      {"nan_to_num",
       joined(samples(replace, finite, {}, kSpecial),
              {one(
                  "int64", integers({5}), [](const Tensor& x) { return nan_to_num(x); }, [](double x) { return x; }, false)}),
       {}},
      {"nan_to_num_", in_place([](const Tensor& x) { return nan_to_num_(x, 0.5, 8, -9); }, finite, {}), {}},
      {"rsub",
       joined(pairs(function2<rsub>, [](double a, double b) { return b - a; }, {}, {}, {0, 1}),
              {one(
                  "a number", {{3, 4}}, [](const Tensor& x) { return rsub(x, 2.5); }, [](double x) { return 2.5 - x; })}),
       {}},
      {"rsub",
       {two(
           "alpha", {{3, 4}}, {{4}}, [](const Tensor& a, const Tensor& b) { return rsub(a, b, -0.5); },
           [](double a, double b) { return b + 0.5 * a; })},
       {}},
      {"add",
       {two(
            "alpha", {{3, 4}}, {{4}}, [](const Tensor& a, const Tensor& b) { return add(a, b, 2.5); },
            [](double a, double b) { return a + 2.5 * b; }),
        two(
            "alpha of int64", integers({3, 4}), integers({4}), [](const Tensor& a, const Tensor& b) { return a.add(b, 3); },
            [](double a, double b) { return a + 3 * b; }, false)},
       {error(
           "a fraction", [] { add(zeros({2}, DType::int64), zeros({2}, DType::int64), 0.5); },
           "add: a fraction, alpha 0.5, for operands of dtype int64")}},
      {"sub",
       {two(
           "alpha", {{3, 4}}, {{4}}, [](const Tensor& a, const Tensor& b) { return a.sub(b, 2.5); },
           [](double a, double b) { return a - 2.5 * b; })},
       {error(
           "a fraction", [] { sub(zeros({2}, DType::int64), zeros({2}, DType::int64), 0.5); },
           "sub: a fraction, alpha 0.5, for operands of dtype int64")}},
      {"add_",
       {two(
           "alpha", {{3, 4}}, {{4}}, [](const Tensor& a, const Tensor& b) { return clone(a).add_(b, 2.5); },
           [](double a, double b) { return a + 2.5 * b; })},
       {}},
      {"sub_",
       {two(
           "alpha", {{3, 4}}, {{4}}, [](const Tensor& a, const Tensor& b) { return sub_(clone(a), b, 2.5); },
           [](double a, double b) { return a - 2.5 * b; })},
       {}},
      tested<isinf>("isinf", [](double x) { return std::isinf(x); }),
      tested<isposinf>("isposinf", [](double x) { return x == kInf; }),
      tested<isneginf>("isneginf", [](double x) { return x == -kInf; }),
      tested<signbit>("signbit", [](double x) { return std::signbit(x); }),
      {"isclose",
       joined(joined(pairs(isclose_op(false), close(false), {}, {}, kSpecial, false),
                     pairs(isclose_op(true), close(true), {}, {}, kSpecial, false)),
              {two("int64", integers({8}), integers({8}), isclose_op(false), close(false), false)}),
       {error(
            "dtypes", [=] { isclose(f32, f64); }, dtypes("isclose")),
        error(
            "tolerance", [=] { isclose(f32, f32, -1.0); }, "isclose: a negative tolerance: rtol -1, atol 1e-08")}},
      {"logical_and_",
       in_place_pairs(
           function2<logical_and_>, [](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; }, drawn, false),
       {}},
      {"logical_or_",
       in_place_pairs(
           function2<logical_or_>, [](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; }, drawn, false),
       {}},
      {"logical_xor_",
       in_place_pairs(
           function2<logical_xor_>, [](double a, double b) { return (a != 0) != (b != 0) ? 1.0 : 0.0; }, drawn, false),
       {}},
      {"logical_not_",
       {one(
            "int64", integers({3, 4}), [](const Tensor& x) { return logical_not_(clone(x)); },
            [](double x) { return x == 0 ? 1.0 : 0.0; }, false),
        one(
            "empty", integers({0, 4}), [](const Tensor& x) { return logical_not_(clone(x)); },
            [](double x) { return x == 0 ? 1.0 : 0.0; }, false)},
       {}},
      {"zero_", in_place(function<zero_>, [](double) { return 0.0; }, {}), {}},
  };
});

}  // namespace
}  // namespace onestep
