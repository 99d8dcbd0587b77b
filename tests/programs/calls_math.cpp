#include "tests/programs/call_forms.h"

namespace onestep::programs {
namespace {

Tensor number_minus(const Tensor& x, Scalar number) { return number - x; }
Tensor number_over(const Tensor& x, Scalar number) { return number / x; }

template <Tensor (*op)(const Tensor&, const Shape&, double, bool)>
Results deviation(const Args& a) {  // torch.var(x, dim, correction=1, keepdim) and the older unbiased=True
  if (a.is_flag(1, "unbiased")) return op(a.x(), {}, a.flag(1, "unbiased") ? 1 : 0, false);
  const double correction = a.has(9, "unbiased") ? (a.flag(9, "unbiased") ? 1 : 0) : a.real(2, "correction", 1);
  return op(a.x(), a.shape(1, "dim"), correction, a.flag(3, "keepdim"));
}

Results pow_of(const Args& a) {
  return a.is_tensor(1, "exponent") ? pow(a.x(), a.tensor(1, "exponent")) : pow(a.x(), a.scalar(1, "exponent"));
}

Results gelu_of(const Args& a) {
  const std::string approximate = a.text(1, "approximate", "none");
  ONESTEP_CHECK(Unsupported, approximate == "none" || approximate == "tanh", "approximate ", approximate);
  return gelu(a.x(), approximate == "tanh" ? GeluApproximation::tanh : GeluApproximation::none);
}

}  // namespace

void add_math_calls(CallTable& table) {
  const CallTable rows = {
      {"add", binary<add, add, add>},
      {"sub", binary<sub, sub, number_minus>},
      {"mul", binary<mul, mul, mul>},
      {"div", binary<div, div, number_over>},
      {"rsub",
       [](const Args& a) -> Results {
         return a.is_tensor(1, "other") ? a.tensor(1, "other") - a.x() : a.scalar(1, "other") - a.x();
       }},
      {"rdiv", [](const Args& a) -> Results { return a.scalar(1, "other") / a.x(); }},
      {"pow", pow_of},
      {"maximum", tensors<maximum>},
      {"minimum", tensors<minimum>},
      {"where",
       [](const Args& a) -> Results { return where(a.tensor(0, "condition"), a.tensor(1, "input"), a.tensor(2, "other")); }},
      {"neg", unary<neg>},
      {"abs", unary<abs>},
      {"exp", unary<exp>},
      {"log", unary<log>},
      {"sqrt", unary<sqrt>},
      {"rsqrt", unary<rsqrt>},
      {"sin", unary<sin>},
      {"cos", unary<cos>},
      {"tanh", unary<tanh>},
      {"sigmoid", unary<sigmoid>},
      {"relu", unary<relu>},
      {"gelu", gelu_of},
      {"silu", unary<silu>},
      {"clamp",
       [](const Args& a) -> Results { return clamp(a.x(), a.optional_scalar(1, "min"), a.optional_scalar(2, "max")); }},
      {"to", [](const Args& a) -> Results { return to(a.x(), a.dtype(1, "dtype")); }},
      {"add_", binary<add_, add_>},
      {"sub_", binary<sub_, sub_>},
      {"mul_", binary<mul_, mul_>},
      {"div_", binary<div_, div_>},
      {"fill_", [](const Args& a) -> Results { return fill_(a.x(), a.scalar(1, "value")); }},
      {"zero_", [](const Args& a) -> Results { return a.x().zero_(); }},
      {"copy_", [](const Args& a) -> Results { return copy_(a.x(), a.tensor(1, "src")); }},
      {"eq", binary<eq, eq>},
      {"ne", binary<ne, ne>},
      {"lt", binary<lt, lt>},
      {"le", binary<le, le>},
      {"gt", binary<gt, gt>},
      {"ge", binary<ge, ge>},
      {"logical_and", tensors<logical_and>},
      {"logical_or", tensors<logical_or>},
      {"logical_xor", tensors<logical_xor>},
      {"logical_not", unary<logical_not>},
      {"any", unary<any>},
      {"all", unary<all>},
      {"isnan", unary<isnan>},
      {"isfinite", unary<isfinite>},
      {"sum", reduction<sum, sum>},
      {"mean", reduction<mean, mean>},
      {"var", deviation<var>},
      {"std", deviation<onestep::std>},
      {"vector_norm",
       [](const Args& a) -> Results { return norm(a.x(), a.real(1, "ord", 2), a.shape(2, "dim"), a.flag(3, "keepdim")); }},
      {"prod", along_dim<prod, prod>},
      {"cumsum", [](const Args& a) -> Results { return cumsum(a.x(), a.integer(1, "dim")); }},
      {"max", extremum<max, max, maximum>},
      {"min", extremum<min, min, minimum>},
      {"amax", over_dims<amax>},
      {"amin", over_dims<amin>},
      {"argmax", along_dim<argmax, argmax>},
      {"argmin", along_dim<argmin, argmin>},
      {"matmul", tensors<matmul>},
      {"dot", tensors<dot>},
      {"einsum", [](const Args& a) -> Results { return einsum(a.text(0, "equation", ""), a.tensors(1, "operands")); }},
  };
  table.insert(rows.begin(), rows.end());
}

}  // namespace onestep::programs
