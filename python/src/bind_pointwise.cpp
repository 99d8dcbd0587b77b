// Elementwise ops under PyTorch's signatures.
#include <type_traits>

#include "python/src/op.h"

namespace onestep::python {
namespace {

using T = const Tensor&;
using OptionalDType = std::optional<DType>;
using Unary = Tensor (*)(T);
using Binary = Tensor (*)(T, T);
using WithScalar = Tensor (*)(T, Scalar);
using ScalarFirst = Tensor (*)(Scalar, T);

RoundingMode rounding(const std::optional<std::string_view>& mode) {
  if (!mode) return RoundingMode::none;
  if (*mode == "floor") return RoundingMode::floor;
  if (*mode == "trunc") return RoundingMode::trunc;
  fail<Error>("div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '", *mode, "'");
}

/// y times alpha, where that is not 1.
Tensor scaled(T y, Scalar alpha) { return alpha.value == 1 ? y : mul(y, alpha); }
Scalar scaled(Scalar y, Scalar alpha) {
  if (alpha.value == 1) return y;
  if (y.dtype == DType::float32 || alpha.dtype == DType::float32) return y.value * alpha.value;
  return y.integer * alpha.integer;
}

/// Adds alpha y, by halves as by a tensor of them: alpha and y are rounded, their product is not.
template <Tensor (*kOp)(const Tensor&, Scalar), Tensor (*kOfTensors)(const Tensor&, const Tensor&, Scalar)>
Tensor with_number(T x, Scalar y, Scalar alpha) {
  if (alpha.value != 1 && is_half(x.dtype())) return kOfTensors(x, full({}, y, x.dtype()), alpha);
  return kOp(x, scaled(y, alpha));
}

/// lerp, of halves computed in float32 and rounded once.
template <class W>
Tensor interpolated(T a, T b, W weight) {
  if (!is_half(a.dtype()) || a.dtype() != b.dtype()) return lerp(a, b, weight);
  if constexpr (std::is_same_v<W, T>)
    return to(lerp(to(a, DType::float32), to(b, DType::float32), to(weight, DType::float32)), a.dtype());
  else
    return to(lerp(to(a, DType::float32), to(b, DType::float32), weight), a.dtype());
}

/// addcdiv of floating operands.
template <Tensor (*kOp)(T, T, T, Scalar)>
Tensor quotient(T x, T a, T b, Scalar value) {
  if (!x.is_floating() && !a.is_floating() && !b.is_floating())
    fail<Error>("addcdiv needs a floating dtype, but found ", b.dtype(), " (convert with .float())");
  return kOp(x, a, b, value);
}

Tensor gelu_named(T x, std::string_view approximate) {
  if (approximate == "none") return gelu(x);
  if (approximate == "tanh") return gelu(x, GeluApproximation::tanh);
  fail<Error>("approximate argument must be either none or tanh.");
}

/// Writes into x where a module was given inplace=True; x as it was is kept for a gradient that needs it.
template <Unary kOp, bool kSavesInput = true>
Tensor activation(T x, bool in_place) {
  if (!in_place) return kOp(x);
  const Tensor y = kOp(kSavesInput && detail::should_record({x}) ? clone(x) : x);
  return assign_in_place("activation", const_cast<Tensor&>(x), y);
}

/// name_(input, other), with PyTorch's name for the second.
std::string in_place_signature(const std::string& name, const char* kind) {
  const std::string second = name == "pow" ? "exponent" : name == "clamp_min" ? "min" : name == "clamp_max" ? "max" : "other";
  return name + "_(Tensor input, " + kind + " " + second + ")";
}

void bind_binary(const std::string& name, Binary f) { both((name + "(Tensor input, Tensor other)").c_str(), f); }
void bind_scalar(const std::string& name, Binary f, WithScalar g) {
  bind_binary(name, f);
  both((name + "(Tensor input, Scalar other)").c_str(), g);
}

}  // namespace

void bind_pointwise() {
#define ONESTEP_BIND(NAME) both(#NAME "(Tensor input)", Unary(NAME));
  ONESTEP_UNARY_OPS(ONESTEP_BIND)
  ONESTEP_BIND(isnan)
  ONESTEP_BIND(isfinite)
  ONESTEP_BIND(isinf)
  ONESTEP_BIND(isposinf)
  ONESTEP_BIND(isneginf)
  ONESTEP_BIND(signbit)
  ONESTEP_BIND(i0)
#undef ONESTEP_BIND
#define ONESTEP_BIND(NAME) function(#NAME "(Tensor input)", Unary(NAME));
  ONESTEP_BIND(entr)
  ONESTEP_BIND(erfcx)
  ONESTEP_BIND(ndtr)
  ONESTEP_BIND(log_ndtr)
  ONESTEP_BIND(ndtri)
  ONESTEP_BIND(i0e)
  ONESTEP_BIND(i1)
  ONESTEP_BIND(i1e)
#undef ONESTEP_BIND
  both(
      "round(Tensor input, *, int decimals)", +[](T x, int64_t decimals) { return round(x, decimals); });
  function(
      "polygamma(int n, Tensor input)", +[](int64_t n, T x) { return polygamma(n, x); });
  method(
      "polygamma(Tensor input, int n)", +[](T x, int64_t n) { return polygamma(n, x); });
  alias("absolute", "abs");
  alias("negative", "neg");
  alias("fix", "trunc");
  for (const char* f : {"sin", "cos", "tan"}) {
    alias((std::string("arc") + f).c_str(), (std::string("a") + f).c_str());
    alias((std::string("arc") + f + "h").c_str(), (std::string("a") + f + "h").c_str());
  }

  both(
      "add(Tensor input, Tensor other, *, Scalar alpha=1)",
      +[](T x, T y, Scalar a) { return a.value == 1 ? add(x, y) : add(x, y, a); });
  both("add(Tensor input, Scalar other, *, Scalar alpha=1)", with_number<add, add>);
  both(
      "add(Tensor input, Scalar alpha, Tensor other)",
      +[](T x, Scalar a, T y) { return add(x, y, a); });  // PyTorch's before 1.5
  both(
      "sub(Tensor input, Tensor other, *, Scalar alpha=1)",
      +[](T x, T y, Scalar a) { return a.value == 1 ? sub(x, y) : sub(x, y, a); });
  both("sub(Tensor input, Scalar other, *, Scalar alpha=1)", with_number<sub, sub>);
  both(
      "sub(Tensor input, Scalar alpha, Tensor other)", +[](T x, Scalar a, T y) { return sub(x, y, a); });
  bind_scalar("mul", mul, mul);
  both(
      "div(Tensor input, Tensor other, *, str? rounding_mode=None)",
      +[](T x, T y, std::optional<std::string_view> mode) { return div(x, y, rounding(mode)); });
  both(
      "div(Tensor input, Scalar other, *, str? rounding_mode=None)",
      +[](T x, Scalar y, std::optional<std::string_view> mode) { return div(x, y, rounding(mode)); });
  alias("subtract", "sub");
  alias("multiply", "mul");
  alias("divide", "div");
  alias("true_divide", "div");
  both(
      "rsub(Tensor input, Tensor other, *, Scalar alpha=1)", +[](T x, T y, Scalar a) { return rsub(x, y, a); });
  both(
      "rsub(Tensor input, Scalar other, *, Scalar alpha=1)", +[](T x, Scalar y, Scalar a) { return rsub(scaled(x, a), y); });
  both("pow(Tensor input, Tensor exponent)", Binary(pow));
  both("pow(Tensor input, Scalar exponent)", WithScalar(pow));
  function("pow(Scalar input, Tensor exponent)", ScalarFirst(pow));
  both("float_power(Tensor input, Tensor exponent)", Binary(float_power));
  both("float_power(Tensor input, Scalar exponent)", WithScalar(float_power));
  function("float_power(Scalar input, Tensor exponent)", ScalarFirst(float_power));
  bind_scalar("xlogy", xlogy, xlogy);
  bind_scalar("copysign", copysign, copysign);
  both(
      "logit(Tensor input, float? eps=None)", +[](T x, std::optional<double> eps) { return logit(x, eps); });
  function("xlogy(Scalar input, Tensor other)", ScalarFirst(xlogy));
  function("xlog1py(Tensor input, Tensor other)", Binary(xlog1py));
  function("xlog1py(Tensor input, Scalar other)", WithScalar(xlog1py));
  function("xlog1py(Scalar input, Tensor other)", ScalarFirst(xlog1py));
  bind_scalar("floor_divide", floor_divide, floor_divide);
  bind_scalar("remainder", remainder, remainder);
  function("remainder(Scalar input, Tensor other)", ScalarFirst(remainder));
  bind_scalar("fmod", fmod, fmod);
  for (const auto& [name, f] : std::initializer_list<std::pair<const char*, Binary>>{{"atan2", atan2},
                                                                                     {"hypot", hypot},
                                                                                     {"logaddexp", logaddexp},
                                                                                     {"maximum", maximum},
                                                                                     {"minimum", minimum},
                                                                                     {"fmax", fmax},
                                                                                     {"fmin", fmin},
                                                                                     {"logical_and", logical_and},
                                                                                     {"logical_or", logical_or},
                                                                                     {"logical_xor", logical_xor}})
    bind_binary(name, f);
  alias("arctan2", "atan2");
  both("heaviside(Tensor input, Tensor values)", heaviside);
  both("igamma(Tensor input, Tensor other)", igamma);
  both("igammac(Tensor input, Tensor other)", igammac);
  bind_scalar("bitwise_and", bitwise_and, bitwise_and);
  bind_scalar("bitwise_or", bitwise_or, bitwise_or);
  bind_scalar("bitwise_xor", bitwise_xor, bitwise_xor);
  bind_scalar("bitwise_left_shift", bitwise_left_shift, bitwise_left_shift);
  bind_scalar("bitwise_right_shift", bitwise_right_shift, bitwise_right_shift);
  bind_scalar("eq", eq, eq);
  bind_scalar("ne", ne, ne);
  bind_scalar("lt", lt, lt);
  bind_scalar("le", le, le);
  bind_scalar("gt", gt, gt);
  bind_scalar("ge", ge, ge);
  for (const auto& [name, of] : std::initializer_list<std::pair<const char*, const char*>>{
           {"not_equal", "ne"}, {"less", "lt"}, {"less_equal", "le"}, {"greater", "gt"}, {"greater_equal", "ge"}})
    alias(name, of);
  both("isclose(Tensor input, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False)", isclose);
  both("allclose(Tensor input, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False)", allclose);
  both("equal(Tensor input, Tensor other)", equal);

  function(
      "where(Tensor condition, Tensor input, Tensor other)", +[](T c, T a, T b) { return where(c, a, b); });
  function(
      "where(Tensor condition, Tensor input, Scalar other)", +[](T c, T a, Scalar b) { return where(c, a, b); });
  function(
      "where(Tensor condition, Scalar input, Tensor other)", +[](T c, Scalar a, T b) { return where(c, a, b); });
  function(
      "where(Tensor condition, Scalar input, Scalar other)",
      +[](T c, Scalar a, Scalar b) { return where(c, full({}, a, implied_dtype(promote_types(a.dtype, b.dtype))), b); });
  function("where(Tensor condition)", nonzero_numpy);
  method(
      "where(Tensor input, Tensor condition, Tensor other)", +[](T a, T c, T b) { return where(c, a, b); });
  method(
      "where(Tensor input, Tensor condition, Scalar other)", +[](T a, T c, Scalar b) { return where(c, a, b); });
  both(
      "clamp(Tensor input, Scalar? min=None, Scalar? max=None)",
      +[](T x, std::optional<Scalar> low, std::optional<Scalar> high) { return clamp(x, low, high); });
  both(
      "clamp(Tensor input, Tensor? min=None, Tensor? max=None)", +[](T x, T low, T high) { return clamp(x, low, high); });
  both("clamp_min(Tensor input, Scalar min)", WithScalar(clamp_min));
  both("clamp_min(Tensor input, Tensor min)", Binary(clamp_min));
  both("clamp_max(Tensor input, Scalar max)", WithScalar(clamp_max));
  both("clamp_max(Tensor input, Tensor max)", Binary(clamp_max));
  alias("clip", "clamp");
  both(
      "lerp(Tensor input, Tensor end, float weight)", +[](T a, T b, double w) { return interpolated<double>(a, b, w); });
  both(
      "lerp(Tensor input, Tensor end, Tensor weight)", +[](T a, T b, T w) { return interpolated<T>(a, b, w); });
  both("nan_to_num(Tensor input, float nan=0.0, float? posinf=None, float? neginf=None)", nan_to_num);
  both("addcmul(Tensor input, Tensor tensor1, Tensor tensor2, *, Scalar value=1)", add_product);
  both(
      "addcmul(Tensor input, Scalar value, Tensor tensor1, Tensor tensor2)",
      +[](T x, Scalar value, T a, T b) { return add_product(x, a, b, value); });
  both("addcdiv(Tensor input, Tensor tensor1, Tensor tensor2, *, Scalar value=1)", quotient<add_quotient>);
  both(
      "addcdiv(Tensor input, Scalar value, Tensor tensor1, Tensor tensor2)",
      +[](T x, Scalar value, T a, T b) { return quotient<add_quotient>(x, a, b, value); });

  // Activations; those of torch.nn.functional alone take `inplace` there.
  function("relu(Tensor input, bool inplace=False)", activation<relu, /*kSavesInput=*/false>);
  function("silu(Tensor input, bool inplace=False)", activation<silu>);
  function("mish(Tensor input, bool inplace=False)", activation<mish>);
  function("hardsigmoid(Tensor input, bool inplace=False)", activation<hardsigmoid>);
  function("hardswish(Tensor input, bool inplace=False)", activation<hardswish>);
  function("relu6(Tensor input, bool inplace=False)", activation<relu6>);
  function("selu(Tensor input, bool inplace=False)", activation<selu>);
  function("gelu(Tensor input, *, str approximate=\"none\")", gelu_named);
  function("logsigmoid(Tensor input)", logsigmoid);
  function("softsign(Tensor input)", softsign);
  function("tanhshrink(Tensor input)", tanhshrink);
  function("glu(Tensor input, int dim=-1)", glu);
  function("hardshrink(Tensor input, float lambd=0.5)", hardshrink);
  function("softshrink(Tensor input, float lambd=0.5)", softshrink);
  function("softplus(Tensor input, float beta=1.0, float threshold=20.0)", softplus);
  both("prelu(Tensor input, Tensor weight)", prelu);
  function(
      "leaky_relu(Tensor input, float negative_slope=0.01, bool inplace=False)",
      +[](T x, double slope, bool in_place) { return in_place ? leaky_relu_(x, slope) : leaky_relu(x, slope); });
  function(
      "elu(Tensor input, float alpha=1.0, bool inplace=False)",
      +[](T x, double alpha, bool in_place) { return in_place ? elu_(x, alpha) : elu(x, alpha); });
  function(
      "celu(Tensor input, float alpha=1.0, bool inplace=False)",
      +[](T x, double alpha, bool in_place) { return in_place ? celu_(x, alpha) : celu(x, alpha); });
  function(
      "hardtanh(Tensor input, float min_val=-1.0, float max_val=1.0, bool inplace=False)",
      +[](T x, double low, double high, bool in_place) { return in_place ? hardtanh_(x, low, high) : hardtanh(x, low, high); });
  function(
      "threshold(Tensor input, float threshold, float value, bool inplace=False)",
      +[](T x, double t, double v, bool in_place) { return in_place ? threshold_(x, t, v) : threshold(x, t, v); });
}

void bind_inplace() {
#define ONESTEP_BIND(NAME) both(#NAME "_(Tensor input)", Unary(NAME##_));
  ONESTEP_UNARY_OPS(ONESTEP_BIND)
  ONESTEP_BIND(zero)
#undef ONESTEP_BIND
#define ONESTEP_BIND(NAME) method(in_place_signature(#NAME, "Tensor").c_str(), Binary(NAME##_));
  ONESTEP_BINARY_OPS(ONESTEP_BIND)
  ONESTEP_SCALAR_OPS(ONESTEP_BIND)
  ONESTEP_BIND(mul)
#undef ONESTEP_BIND
#define ONESTEP_BIND(NAME) method(in_place_signature(#NAME, "Scalar").c_str(), WithScalar(NAME##_));
  ONESTEP_SCALAR_OPS(ONESTEP_BIND)
  ONESTEP_BIND(mul)
#undef ONESTEP_BIND
  method(
      "add_(Tensor input, Tensor other, *, Scalar alpha=1)",
      +[](T x, T y, Scalar a) { return a.value == 1 ? add_(x, y) : add_(x, y, a); });
  method("add_(Tensor input, Scalar other, *, Scalar alpha=1)", with_number<add_, add_>);
  method(
      "add_(Tensor input, Scalar alpha, Tensor other)", +[](T x, Scalar a, T y) { return add_(x, y, a); });
  method(
      "sub_(Tensor input, Tensor other, *, Scalar alpha=1)",
      +[](T x, T y, Scalar a) { return a.value == 1 ? sub_(x, y) : sub_(x, y, a); });
  method("sub_(Tensor input, Scalar other, *, Scalar alpha=1)", with_number<sub_, sub_>);
  method(
      "sub_(Tensor input, Scalar alpha, Tensor other)", +[](T x, Scalar a, T y) { return sub_(x, y, a); });
  method(
      "div_(Tensor input, Tensor other, *, str? rounding_mode=None)",
      +[](T x, T y, std::optional<std::string_view> mode) { return mode ? div_(x, y, rounding(mode)) : div_(x, y); });
  method(
      "div_(Tensor input, Scalar other, *, str? rounding_mode=None)",
      +[](T x, Scalar y, std::optional<std::string_view> mode) { return mode ? div_(x, y, rounding(mode)) : div_(x, y); });
  method("addcmul_(Tensor input, Tensor tensor1, Tensor tensor2, *, Scalar value=1)", add_product_);
  method(
      "addcmul_(Tensor input, Scalar value, Tensor tensor1, Tensor tensor2)",
      +[](T x, Scalar value, T a, T b) { return add_product_(x, a, b, value); });
  method("addcdiv_(Tensor input, Tensor tensor1, Tensor tensor2, *, Scalar value=1)", quotient<add_quotient_>);
  method(
      "addcdiv_(Tensor input, Scalar value, Tensor tensor1, Tensor tensor2)",
      +[](T x, Scalar value, T a, T b) { return quotient<add_quotient_>(x, a, b, value); });
  method(
      "clamp_(Tensor input, Scalar? min=None, Scalar? max=None)",
      +[](T x, std::optional<Scalar> low, std::optional<Scalar> high) { return clamp_(x, low, high); });
  method(
      "clamp_(Tensor input, Tensor? min=None, Tensor? max=None)", +[](T x, T low, T high) { return clamp_(x, low, high); });
  method(
      "lerp_(Tensor input, Tensor end, float weight)",
      +[](T a, T b, double w) { return is_half(a.dtype()) ? copy_(a, interpolated<double>(a, b, w)) : lerp_(a, b, w); });
  method(
      "lerp_(Tensor input, Tensor end, Tensor weight)",
      +[](T a, T b, T w) { return is_half(a.dtype()) ? copy_(a, interpolated<T>(a, b, w)) : lerp_(a, b, w); });
  method("nan_to_num_(Tensor input, float nan=0.0, float? posinf=None, float? neginf=None)", nan_to_num_);
  method(
      "round_(Tensor input, *, int decimals)", +[](T x, int64_t decimals) { return round_(x, decimals); });
  both("fill_(Tensor input, Scalar value)", fill_);
  method("fill_(Tensor input, Tensor value)", copy_);
  method(
      "copy_(Tensor input, Tensor src, bool non_blocking=False)", +[](T x, T source, bool) { return copy_(x, source); });
  for (const char* name : {"tril", "triu"})
    method((std::string(name) + "_(Tensor input, int diagonal=0)").c_str(),
           name[3] == 'l' ? +[](T x, int64_t d) { return copy_(x, tril(x, d)); }
                          : +[](T x, int64_t d) { return copy_(x, triu(x, d)); });
  alias("multiply_", "mul_");
  alias("subtract_", "sub_");
  alias("divide_", "div_");
  alias("clip_", "clamp_");
}

}  // namespace onestep::python
