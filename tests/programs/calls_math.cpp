#include "tests/programs/call_forms.h"

namespace onestep::programs {
namespace {

Tensor number_minus(const Tensor& x, Scalar number) { return number - x; }
Tensor number_over(const Tensor& x, Scalar number) { return number / x; }

/// torch.var(x, dim, correction=1, keepdim), and the older unbiased=True.
template <class F>
auto deviation(const Args& a, F op) {
  if (a.is_flag(1, "unbiased")) return op(a.x(), Shape(), a.flag(1, "unbiased") ? 1.0 : 0.0, false);
  const double correction = a.has(9, "unbiased") ? (a.flag(9, "unbiased") ? 1 : 0) : a.real(2, "correction", 1);
  return op(a.x(), a.shape(1, "dim"), correction, a.flag(3, "keepdim"));
}

Results allclose_of(const Args& a) {
  return tensor(
      allclose(a.x(), a.tensor(1, "other"), a.real(2, "rtol", 1e-5), a.real(3, "atol", 1e-8), a.flag(4, "equal_nan")));
}

template <class Both>
Results two(const Both& both) {
  const auto& [first, second] = both;
  return std::vector<Tensor>{first, second};
}

Results pow_of(const Args& a) {
  if (!a.is_tensor(0, "input")) return pow(full({}, a.scalar(0, "input"), a.scalar(0, "input").dtype), a.tensor(1, "exponent"));
  return a.is_tensor(1, "exponent") ? pow(a.x(), a.tensor(1, "exponent")) : pow(a.x(), a.scalar(1, "exponent"));
}

template <Tensor (*op)(const Tensor&, const Tensor&), Tensor (*with_number)(const Tensor&, Scalar),
          Tensor (*rounded)(const Tensor&, const Tensor&, RoundingMode),
          Tensor (*by_number)(const Tensor&, Scalar, RoundingMode), Tensor (*mirrored)(const Tensor&, Scalar)>
Results quotient(const Args& a) {
  if (!a.has(kKeywordOnly, "rounding_mode")) return binary<op, with_number, mirrored>(a);
  const RoundingMode mode = a.text(kKeywordOnly, "rounding_mode", "") == "floor" ? RoundingMode::floor : RoundingMode::trunc;
  return a.is_tensor(1, "other") ? rounded(a.x(), a.tensor(1, "other"), mode) : by_number(a.x(), a.scalar(1, "other"), mode);
}

template <Tensor (*op)(const Tensor&, std::optional<Scalar>, std::optional<Scalar>),
          Tensor (*by_tensors)(const Tensor&, const Tensor&, const Tensor&)>
Results clamped(const Args& a) {
  if (a.is_tensor(1, "min") || a.is_tensor(2, "max")) return by_tensors(a.x(), a.tensor(1, "min"), a.tensor(2, "max"));
  return op(a.x(), a.optional_scalar(1, "min"), a.optional_scalar(2, "max"));
}

Results where_of(const Args& a) {
  const Tensor condition = a.tensor(0, "condition");
  if (a.is_tensor(1, "input") && a.is_tensor(2, "other")) return where(condition, a.tensor(1, "input"), a.tensor(2, "other"));
  if (a.is_tensor(1, "input")) return where(condition, a.tensor(1, "input"), a.scalar(2, "other"));
  if (a.is_tensor(2, "other")) return where(condition, a.scalar(1, "input"), a.tensor(2, "other"));
  return where(condition, a.scalar(1, "input"), a.scalar(2, "other"));
}

/// add, sub: with alpha, or without.
template <Tensor (*scaled)(const Tensor&, const Tensor&, Scalar), Tensor (*op)(const Tensor&, const Tensor&),
          Tensor (*with_number)(const Tensor&, Scalar), Tensor (*... mirrored)(const Tensor&, Scalar)>
Results sum_with(const Args& a) {
  if (!a.has(kKeywordOnly, "alpha")) return binary<op, with_number, mirrored...>(a);
  return scaled(a.x(), a.tensor(1, "other"), a.scalar(kKeywordOnly, "alpha"));
}

Results prod_of(const Args& a) {
  if (!a.has(kKeywordOnly, "dtype")) return along_dim<prod, prod>(a);
  const DType dtype = a.dtype(kKeywordOnly, "dtype");
  if (!a.has(1, "dim")) return to(prod(to(a.x(), dtype)), dtype);
  return prod(a.x(), a.integer(1, "dim"), a.flag(2, "keepdim"), dtype);
}

Results aminmax_of(const Args& a) {
  const std::optional<int64_t> dim = optional_dim(a, kKeywordOnly, "dim");
  return two(dim ? aminmax(a.x(), *dim, a.flag(kKeywordOnly, "keepdim")) : aminmax(a.x()));
}

Results gelu_of(const Args& a) {
  const std::string approximate = a.text(1, "approximate", "none");
  ONESTEP_CHECK(Unsupported, approximate == "none" || approximate == "tanh", "approximate ", approximate);
  return gelu(a.x(), approximate == "tanh" ? GeluApproximation::tanh : GeluApproximation::none);
}

}  // namespace

void add_math_calls(CallTable& table) {
  const CallTable rows = {
      {"add", sum_with<add, add, add, add>},
      {"sub", sum_with<sub, sub, sub, number_minus>},
      {"mul", binary<mul, mul, mul>},
      {"div", quotient<div, div, div, div, number_over>},
      {"rdiv", [](const Args& a) -> Results { return a.scalar(1, "other") / a.x(); }},
      {"pow", pow_of},
      {"maximum", tensors<maximum>},
      {"minimum", tensors<minimum>},
      {"where", where_of},
      {"gelu", gelu_of},
      {"silu", unary<silu>},
      {"clamp", clamped<clamp, clamp>},
      {"clamp_", clamped<clamp_, clamp_>},
      {"to", [](const Args& a) -> Results { return to(a.x(), a.dtype(1, "dtype")); }},
      {"add_", sum_with<add_, add_, add_>},
      {"sub_", sum_with<sub_, sub_, sub_>},
      {"mul_", binary<mul_, mul_>},
      {"div_", quotient<div_, div_, div_, div_, nullptr>},
      {"fill_", [](const Args& a) -> Results { return fill_(a.x(), a.scalar(1, "value")); }},
      {"zero_", [](const Args& a) -> Results { return a.x().zero_(); }},
      {"copy_", [](const Args& a) -> Results { return copy_(a.x(), a.tensor(1, "src")); }},
      {"eq", binary<eq, eq>},
      {"ne", binary<ne, ne>},
      {"lt", binary<lt, lt>},
      {"le", binary<le, le>},
      {"gt", binary<gt, gt>},
      {"ge", binary<ge, ge>},
      {"any", reduction<any, any>},
      {"all", reduction<all, all>},
      {"equal", [](const Args& a) -> Results { return tensor(equal(a.x(), a.tensor(1, "other"))); }},
      {"allclose", allclose_of},
      {"isnan", unary<isnan>},
      {"isfinite", unary<isfinite>},
      {"sum", reduction_in<sum, sum, sum>},
      {"mean", reduction_in<mean, mean, mean>},
      {"var", [](const Args& a) -> Results { return deviation(a, var); }},
      {"std", [](const Args& a) -> Results { return deviation(a, onestep::std); }},
      {"var_mean", [](const Args& a) { return two(deviation(a, var_mean)); }},
      {"std_mean", [](const Args& a) { return two(deviation(a, std_mean)); }},
      {"vector_norm",
       [](const Args& a) -> Results { return norm(a.x(), a.real(1, "ord", 2), a.shape(2, "dim"), a.flag(3, "keepdim")); }},
      {"prod", prod_of},
      {"cumsum", along_dim_in<cumsum, cumsum>},
      {"max", extremum<max, max, maximum>},
      {"min", extremum<min, min, minimum>},
      {"amax", over_dims<amax>},
      {"amin", over_dims<amin>},
      {"aminmax", aminmax_of},
      {"argmax", along_dim<argmax, argmax>},
      {"argmin", along_dim<argmin, argmin>},
      {"matmul", tensors<matmul>},
      {"dot", tensors<dot>},
      {"einsum", [](const Args& a) -> Results { return einsum(a.text(0, "equation", ""), a.tensors(1, "operands")); }},
  };
  table.insert(rows.begin(), rows.end());
}

}  // namespace onestep::programs
