// onestep._C: the engine in Python.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "autograd/kernels/parallel.h"
#include "autograd/print_options.h"
#include "autograd/random/generator.h"
#include "python/src/device.h"
#include "python/src/op.h"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace onestep::python {

void bind_properties();
void add_properties();
void add_autocast(nb::module_& module);
void add_autograd(nb::module_& module);
void add_optim(nb::module_& module);
void add_dlpack(nb::module_& module);
void add_train(nb::module_& module);

namespace {

PyObject* dtype_repr(DType dtype) { return PyUnicode_FromFormat("torch.%s", std::string(name(dtype)).c_str()); }

void add_dtypes(nb::module_& m) {
  nb::class_<DTypeObject>(m, "dtype", "An element type.")
      .def("__repr__", [](DTypeObject d) { return nb::steal(dtype_repr(d.value)); })
      .def("__eq__",
           [](DTypeObject a, nb::handle b) {
             return nb::isinstance<DTypeObject>(b) && a.value == nb::inst_ptr<DTypeObject>(b)->value;
           })
      .def("__hash__", [](DTypeObject d) { return static_cast<size_t>(d.value); })
      .def("__reduce__", [](DTypeObject d) { return nb::steal(PyUnicode_FromString(std::string(name(d.value)).c_str())); })
      .def_prop_ro("itemsize", [](DTypeObject d) { return size_of(d.value); })
      .def_prop_ro("is_floating_point", [](DTypeObject d) { return is_floating(d.value); })
      .def_prop_ro("is_complex", [](DTypeObject) { return false; })
      .def("to_real", [](DTypeObject d) { return d; })
      .def_prop_ro("is_signed", [](DTypeObject d) { return d.value != DType::boolean && d.value != DType::uint8; });
  for (size_t i = 0; i < kDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    m.attr(std::string(name(dtype)).c_str()) = nb::borrow(dtype_object(dtype));
  }
  for (const auto& [other, dtype] : std::initializer_list<std::pair<const char*, DType>>{{"float", DType::float32},
                                                                                         {"double", DType::float64},
                                                                                         {"half", DType::float16},
                                                                                         {"long", DType::int64},
                                                                                         {"int", DType::int32}})
    m.attr(other) = nb::borrow(dtype_object(dtype));
}

/// A seed from -2^63 to 2^64 - 1, of which only the bits matter.
int64_t seed_from(nb::handle seed) {
  int overflow = 0;
  if (!PyIndex_Check(seed.ptr())) throw nb::type_error("manual_seed: the seed must be an integer");
  const nb::object number = nb::steal(PyNumber_Index(seed.ptr()));
  if (!number.is_valid()) throw nb::python_error();
  const int64_t value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow == 0) return value;
  const unsigned long long bits = overflow < 0 ? ULLONG_MAX : PyLong_AsUnsignedLongLong(number.ptr());
  if (PyErr_Occurred()) PyErr_Clear();
  ONESTEP_CHECK(Error, bits != ULLONG_MAX || PyObject_RichCompareBool(number.ptr(), nb::int_(ULLONG_MAX).ptr(), Py_EQ) == 1,
                "manual_seed: the seed must be from -2^63 to 2^64 - 1");
  return static_cast<int64_t>(bits);
}

void add_generator(nb::module_& m) {
  nb::class_<Generator>(m, "Generator", "PyTorch's CPU random generator, draw for draw.")
      .def(
          "__init__",
          [](Generator* self, nb::handle device) {
            check_device(device.ptr());
            new (self) Generator();
          },
          "device"_a = nb::none())
      .def(
          "manual_seed", [](Generator& self, nb::handle seed) { return self.manual_seed(seed_from(seed)), nb::find(self); },
          "seed"_a)
      .def("initial_seed", &Generator::initial_seed)
      .def("_state",
           [](const Generator& g) {
             const std::string state = g.state();
             return nb::bytes(state.data(), state.size());
           })
      .def("_set_state",
           [](Generator& g, const nb::bytes& state) {
             g.set_state({state.c_str(), state.size()});
           })
      .def_prop_ro("device", [](const Generator&) { return nb::steal(cpu_device()); });
  m.def(
      "manual_seed",
      [](nb::handle seed) { return nb::cast(&current_generator().manual_seed(seed_from(seed)), nb::rv_policy::reference); },
      "seed"_a, "Seeds the default generator.");
  m.def(
      "_current_generator", [] { return &current_generator(); }, nb::rv_policy::reference);
  m.def(
      "_draw_from", [](Generator* generator) { return std::exchange(generator_of_thread(), generator); }, "generator"_a.none(),
      nb::rv_policy::reference,
      "Lets this thread draw from a generator, which must outlive that, or again from the default one; returns the one "
      "before.");
  m.attr("default_generator") = nb::cast(&default_generator(), nb::rv_policy::reference);
}

/// torch.set_printoptions, whose profiles are sets of the other options.
void set_print_options(std::optional<int> precision, std::optional<double> threshold, std::optional<int64_t> edge_items,
                       std::optional<int64_t> line_width, const std::optional<std::string>& profile,
                       std::optional<bool> scientific) {
  ONESTEP_CHECK(ConfigError, precision.value_or(0) >= 0 && precision.value_or(0) <= 64,
                "set_printoptions: precision must be from 0 to 64: got ", *precision);
  ONESTEP_CHECK(ConfigError, !threshold || *threshold >= 0, "set_printoptions: threshold must be a number from 0: got ",
                *threshold);
  ONESTEP_CHECK(ConfigError, edge_items.value_or(1) >= 0 && edge_items.value_or(1) < INT32_MAX,
                "set_printoptions: edgeitems must be from 0 to 2^31: got ", *edge_items);
  ONESTEP_CHECK(ConfigError, line_width.value_or(1) >= 1, "set_printoptions: linewidth must be at least 1: got ", *line_width);
  PrintOptions& options = print_options();
  const auto count = [](double n) { return n < 1e18 ? static_cast<int64_t>(n) : INT64_MAX; };
  if (profile == "default") options = PrintOptions{};
  if (profile == "short") options = PrintOptions{2, 1000, 2, 80, {}};
  if (profile == "full") options = PrintOptions{4, INT64_MAX, 3, 80, {}};
  if (precision) options.precision = *precision;
  if (threshold) options.threshold = count(*threshold);
  if (edge_items) options.edge_items = *edge_items;
  if (line_width) options.line_width = *line_width;
  options.scientific = scientific;
}

void add_settings(nb::module_& m) {
  m.def("_set_printoptions", &set_print_options, "precision"_a.none(), "threshold"_a.none(), "edgeitems"_a.none(),
        "linewidth"_a.none(), "profile"_a.none(), "sci_mode"_a.none());
  m.def("_get_num_threads", &kernels::num_threads);
  m.def("_set_num_threads", &kernels::set_num_threads);
}

}  // namespace

NB_MODULE(_C, m) {
  static auto* const first = nb::detail::internals;  // which a second import has just replaced
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    nb::detail::internals = first;
    throw nb::import_error("onestep works in the main interpreter only, not in a sub-interpreter");
  }
  nb::set_leak_warnings(false);
  add_errors(m.ptr());
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const Error&) {
      set_error();
    } catch (const ErrorSet&) {
    }
  });
  add_dtypes(m);
  add_generator(m);
  add_device(m);
  add_tensor_type(m.ptr());
  add_properties();
  bind_properties();
  bind_pointwise();
  bind_inplace();
  bind_math();
  bind_reduce();
  bind_shape();
  bind_index();
  bind_nn();
  bind_loss();
  bind_conv();
  bind_creation();
  bind_random();
  bind_out();
  add_ops(m.ptr());
  add_autocast(m);
  add_autograd(m);
  add_optim(m);
  add_dlpack(m);
  add_train(m);
  add_settings(m);
}

}  // namespace onestep::python
