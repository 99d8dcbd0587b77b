#include "autograd/pointwise_names.h"
#include "tests/programs/call_forms.h"

namespace onestep::programs {
namespace {

/// An op with one number as its option.
template <Tensor (*op)(const Tensor&, double)>
Results with_option(const Args& a, const char* name, double otherwise) {
  return op(a.x(), a.real(1, name, otherwise));
}

template <Tensor (*op)(const Tensor&, const Tensor&, const Tensor&),
          Tensor (*with_number)(const Tensor&, const Tensor&, double)>
Results lerp_of(const Args& a) {
  if (a.is_tensor(2, "weight")) return op(a.x(), a.tensor(1, "end"), a.tensor(2, "weight"));
  return with_number(a.x(), a.tensor(1, "end"), a.real(2, "weight", 0));
}

std::optional<double> optional_real(const Args& a, size_t i, const char* name) {
  return a.has(i, name) ? std::optional(a.real(i, name, 0)) : std::nullopt;
}

template <Tensor (*op)(const Tensor&, double, std::optional<double>, std::optional<double>)>
Results without_nan(const Args& a) {
  return op(a.x(), a.real(1, "nan", 0), optional_real(a, 2, "posinf"), optional_real(a, 3, "neginf"));
}

Results round_of(const Args& a) {
  if (a.has(kKeywordOnly, "decimals")) return round(a.x(), a.integer(kKeywordOnly, "decimals"));
  return round(a.x());
}

}  // namespace

void add_pointwise_calls(CallTable& table) {
#define ONESTEP_ROW(NAME)             \
  table.insert({#NAME, unary<NAME>}); \
  table.insert({#NAME "_", unary<NAME##_>});
  ONESTEP_UNARY_OPS(ONESTEP_ROW)
#undef ONESTEP_ROW
#define ONESTEP_ROW(NAME)               \
  table.insert({#NAME, tensors<NAME>}); \
  table.insert({#NAME "_", tensors<NAME##_>});
  ONESTEP_BINARY_OPS(ONESTEP_ROW)
#undef ONESTEP_ROW
#define ONESTEP_ROW(NAME)                    \
  table.insert({#NAME, binary<NAME, NAME>}); \
  table.insert({#NAME "_", binary<NAME##_, NAME##_>});
  ONESTEP_SCALAR_OPS(ONESTEP_ROW)
#undef ONESTEP_ROW
  table["round"] = round_of;
  const CallTable rows = {
      {"logaddexp", tensors<logaddexp>},
      {"fmax", tensors<fmax>},
      {"fmin", tensors<fmin>},
      {"lerp", lerp_of<lerp, lerp>},
      {"lerp_", lerp_of<lerp_, lerp_>},
      {"nan_to_num", without_nan<nan_to_num>},
      {"nan_to_num_", without_nan<nan_to_num_>},
      {"rsub", binary<rsub, rsub>},
      {"isinf", unary<isinf>},
      {"isposinf", unary<isposinf>},
      {"isneginf", unary<isneginf>},
      {"isclose",
       [](const Args& a) -> Results {
         return isclose(a.x(), a.tensor(1, "other"), a.real(2, "rtol", 1e-5), a.real(3, "atol", 1e-8), a.flag(4, "equal_nan"));
       }},
      {"softplus", [](const Args& a) -> Results { return softplus(a.x(), a.real(1, "beta", 1), a.real(2, "threshold", 20)); }},
      {"leaky_relu", [](const Args& a) { return with_option<leaky_relu>(a, "negative_slope", 0.01); }},
      {"leaky_relu_", [](const Args& a) { return with_option<leaky_relu_>(a, "negative_slope", 0.01); }},
      {"elu", [](const Args& a) { return with_option<elu>(a, "alpha", 1); }},
      {"elu_", [](const Args& a) { return with_option<elu_>(a, "alpha", 1); }},
      {"celu_", [](const Args& a) { return with_option<celu_>(a, "alpha", 1); }},
      {"hardtanh_",
       [](const Args& a) -> Results { return hardtanh_(a.x(), a.real(1, "min_val", -1), a.real(2, "max_val", 1)); }},
      {"threshold_",
       [](const Args& a) -> Results { return threshold_(a.x(), a.real(1, "threshold", 0), a.real(2, "value", 0)); }},
      {"celu", [](const Args& a) { return with_option<celu>(a, "alpha", 1); }},
      {"selu", unary<selu>},
      {"selu_", unary<selu_>},
      {"prelu", [](const Args& a) -> Results { return prelu(a.x(), a.tensor(1, "weight")); }},
      {"hardtanh", [](const Args& a) -> Results { return hardtanh(a.x(), a.real(1, "min_val", -1), a.real(2, "max_val", 1)); }},
      {"relu6", unary<relu6>},
      {"hardsigmoid", unary<hardsigmoid>},
      {"hardswish", unary<hardswish>},
      {"mish", unary<mish>},
      {"logsigmoid", unary<logsigmoid>},
      {"softsign", unary<softsign>},
      {"tanhshrink", unary<tanhshrink>},
      {"hardshrink", [](const Args& a) { return with_option<hardshrink>(a, "lambd", 0.5); }},
      {"softshrink", [](const Args& a) { return with_option<softshrink>(a, "lambd", 0.5); }},
      {"threshold",
       [](const Args& a) -> Results { return threshold(a.x(), a.real(1, "threshold", 0), a.real(2, "value", 0)); }},
      {"glu", [](const Args& a) -> Results { return glu(a.x(), a.integer(1, "dim", -1)); }},
  };
  for (const auto& [name, call] : rows) table[name] = call;
}

}  // namespace onestep::programs
