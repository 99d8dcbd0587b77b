// What ops do under autocast that the engine does not do by itself: PyTorch's lists for the CPU, as far as the ops are there
// (aten/src/ATen/autocast_mode.cpp).
#include "autograd/autocast.h"

#include <map>
#include <optional>
#include <string>

#include "base/enum_names.h"
#include "base/error.h"
#include "python/src/caster.h"
#include "python/src/op.h"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace onestep::python {
namespace {

/// By name, that of a Python function marked @casts, too. The engine rounds the operands of other products, and widens those of
/// other losses.
const std::map<std::string_view, AutocastRule>& rules() {
  static const AutocastRule rounded{DType::bfloat16}, widened{DType::float32}, outside{};
  static const std::map<std::string_view, AutocastRule> table = {
      {"prelu", rounded},
      {"vecdot", rounded},
      {"adaptive_avg_pool3d", widened},
      {"adaptive_max_pool3d", widened},
      {"avg_pool3d", widened},
      {"cdist", widened},
      {"cosine_embedding_loss", widened},
      {"ctc_loss", widened},
      {"grid_sample", widened},
      {"hinge_embedding_loss", widened},
      {"local_response_norm", widened},  // by its avg_pool3d
      {"lp_pool3d", widened},            // as well
      {"margin_ranking_loss", widened},
      {"max_pool3d", widened},
      {"max_unpool2d", widened},
      {"max_unpool3d", widened},
      {"nanquantile", widened},
      {"poisson_nll_loss", widened},
      {"prod", widened},
      {"quantile", widened},
      {"soft_margin_loss", widened},
      {"trace", widened},
      {"triplet_margin_loss", widened},
      {"addmv", outside},  // products that no list of PyTorch's has
      {"addr", outside},
      {"mv", outside},
      {"_einsum_without_sums", outside},
  };
  return table;
}

/// The argument, or what a listed op gets in its place: float64 and what is no floating tensor stay.
nb::object operand(const AutocastRule& rule, PyObject* argument) {
  if (rule.operands && is_tensor(argument)) {
    const Tensor& x = tensor_of(argument);
    if (x.is_floating() && x.dtype() != DType::float64 && x.dtype() != *rule.operands)
      return nb::steal(wrap(to(x, *rule.operands)));
  }
  return nb::borrow(argument);
}

}  // namespace

const AutocastRule* autocast_rule(std::string_view op) {
  const auto found = rules().find(op);
  return found == rules().end() ? nullptr : &found->second;
}

PyObject* call(const Overload& overload, PyObject* const* arguments) {
  if (!overload.autocast || !autocast_enabled()) return overload.thunk(overload.function, arguments, overload.name.c_str());
  std::vector<nb::object> held;
  std::vector<PyObject*> values;
  for (size_t i = 0; i < overload.parameters.size(); ++i) {
    held.push_back(operand(*overload.autocast, arguments[i]));
    values.push_back(held.back().ptr());
  }
  const AutocastGuard off(false);
  return overload.thunk(overload.function, values.data(), overload.name.c_str());
}

void add_autocast(nb::module_& m) {
  m.def(
      "is_autocast_enabled", [](const std::string& device) { return device == "cpu" && autocast_enabled(); },
      "device_type"_a = "cuda", "Whether products of float32 tensors are computed in bfloat16 (amp.autocast).");
  m.def("_get_bf16_order", [] { return std::string(name_of(bf16_order())); });
  m.def("_fastest_bf16_order", [] { return std::string(name_of(fastest_bf16_order())); });
  m.def(
      "_set_bf16_order",
      [](const std::string& name) {
        const std::optional<Bf16Order> order = value_named<Bf16Order>(name);
        ONESTEP_CHECK(ConfigError, order.has_value(), "set_bf16_order: must be avx512 or amx: got ", name);
        set_bf16_order(*order);
      },
      "order"_a);
  nb::class_<Switch<AutocastGuard>>(m, "_AutocastSwitch")
      .def(nb::init<>())
      .def("enter", &Switch<AutocastGuard>::enter)
      .def("exit", &Switch<AutocastGuard>::exit);
  m.def(
      "_call_as_listed",
      [](const std::string& name, const nb::callable& function, const nb::tuple& args, const nb::dict& keywords) {
        const AutocastRule* const rule = autocast_rule(name);
        if (!rule) fail<Error>(name + ": autocast has no rule for it");
        nb::list values;
        for (nb::handle value : args) values.append(operand(*rule, value.ptr()));
        nb::dict named;
        for (auto [key, value] : keywords) named[key] = operand(*rule, value.ptr());
        const AutocastGuard off(false);
        return function(*nb::tuple(values), **named);
      },
      "name"_a, "function"_a, "args"_a, "keywords"_a, "The function as autocast's rule for the name has it.");
}

}  // namespace onestep::python
