#include "python/src/device.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "autograd/dot.h"
#include "autograd/node.h"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace onestep::python {
namespace {

struct Device {
  std::string type;
  std::optional<int> index;
  bool operator==(const Device& other) const { return type == other.type && index == other.index; }
};

Device device_named(std::string_view name) {
  const size_t colon = name.find(':');
  Device device{std::string(name.substr(0, colon)), {}};
  if (colon != std::string_view::npos) {
    const std::string_view digits = name.substr(colon + 1);
    int index = -1;
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    ONESTEP_CHECK(Error, problem == std::errc() && end == digits.data() + digits.size() && index >= 0,
                  "Invalid device string: '", name, "' (the index must be a number from 0)");
    device.index = index;
  }
  static constexpr std::array<std::string_view, 5> known = {"cpu", "cuda", "mps", "meta", "xpu"};
  ONESTEP_CHECK(Error, std::find(known.begin(), known.end(), device.type) != known.end(),
                "Expected one of cpu, cuda, mps, xpu, meta device type at start of device string: ", device.type);
  return device;
}

struct Layout {};

struct GradFn {
  std::shared_ptr<Node> node;
  std::string name() const { return grad_fn_name(*node); }
};

PyObject *cpu = nullptr, *strided = nullptr;

}  // namespace

PyObject* cpu_device() { return Py_NewRef(cpu); }
PyObject* strided_layout() { return Py_NewRef(strided); }

void check_device(PyObject* object) {
  if (object == Py_None) return;
  std::string type;
  if (PyUnicode_Check(object)) {
    type = device_named(string_from(object)).type;
  } else if (nb::isinstance<Device>(object) && nb::inst_ready(object)) {
    type = nb::inst_ptr<Device>(object)->type;
  } else {
    PyErr_Format(PyExc_TypeError, "argument 'device' must be a device or a string, not %s", kind_of(object).c_str());
    throw ErrorSet{};
  }
  ONESTEP_CHECK(Error, type == "cpu", "device: there is no ", type, " here, only the CPU (use device(\"cpu\"))");
}

PyObject* grad_fn_of(const Tensor& x) {
  if (!x.requires_grad() || x.is_leaf()) Py_RETURN_NONE;
  return nb::cast(GradFn{x.node()}).release().ptr();
}

void add_device(nb::module_& m) {
  nb::class_<Device>(m, "device", "Where tensors live: the CPU.")
      .def(nb::new_([](nb::handle type, nb::handle index) {
             const bool given = nb::isinstance<Device>(type) && nb::inst_ready(type);
             if (!given && !PyUnicode_Check(type.ptr())) throw nb::type_error("device: the type must be a string or a device");
             Device device = given ? *nb::inst_ptr<Device>(type) : device_named(string_from(type.ptr()));
             if (!index.is_none()) device.index = nb::cast<int>(index);
             ONESTEP_CHECK(Error, !device.index || *device.index >= 0, "Device index must not be negative: got ",
                           *device.index);
             return device;
           }),
           "type"_a, "index"_a = nb::none())
      .def_prop_ro("type", [](const Device& d) { return nb::steal(PyUnicode_FromString(d.type.c_str())); })
      .def_prop_ro("index", [](const Device& d) { return d.index ? nb::object(nb::int_(*d.index)) : nb::object(nb::none()); })
      .def("__eq__", [](const Device& a, nb::handle b) { return nb::isinstance<Device>(b) && a == *nb::inst_ptr<Device>(b); })
      .def("__hash__",
           [](const Device& d) { return std::hash<std::string>()(d.type) + static_cast<size_t>(d.index.value_or(-1)); })
      .def("__str__",
           [](const Device& d) {
             const std::string text = d.type + (d.index ? ":" + std::to_string(*d.index) : "");
             return nb::steal(PyUnicode_FromString(text.c_str()));
           })
      .def("__repr__",
           [](const Device& d) {
             const std::string text =
                 "device(type='" + d.type + "'" + (d.index ? ", index=" + std::to_string(*d.index) : "") + ")";
             return nb::steal(PyUnicode_FromString(text.c_str()));
           })
      .def("__reduce__",
           [](nb::handle self) { return nb::make_tuple(self.type(), nb::make_tuple(self.attr("type"), self.attr("index"))); })
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__exit__", [](nb::handle, const nb::args&) {});
  nb::class_<Layout>(m, "layout").def("__repr__", [](const Layout&) { return nb::str("torch.strided"); });
  nb::class_<GradFn>(m, "_GradFn", "A recorded op.")
      .def("name", [](const GradFn& f) { return nb::steal(PyUnicode_FromString(f.name().c_str())); })
      .def_prop_ro("next_functions",
                   [](const GradFn& f) {
                     nb::list inputs;
                     for (const std::shared_ptr<Node>& input : f.node->inputs)
                       inputs.append(nb::make_tuple(input ? nb::cast(GradFn{input}) : nb::object(nb::none()), 0));
                     return nb::tuple(inputs);
                   })
      .def("__eq__",
           [](const GradFn& a, nb::handle b) { return nb::isinstance<GradFn>(b) && a.node == nb::inst_ptr<GradFn>(b)->node; })
      .def("__hash__", [](const GradFn& f) { return std::hash<Node*>()(f.node.get()); })
      .def("__repr__", [](const GradFn& f) {
        return nb::steal(PyUnicode_FromFormat("<%s object at %p>", f.name().c_str(), static_cast<void*>(f.node.get())));
      });
  nb::object device = nb::cast(Device{"cpu", {}}), layout = nb::cast(Layout{});
  cpu = device.release().ptr();
  m.attr("strided") = layout;
  strided = layout.release().ptr();
}

}  // namespace onestep::python
