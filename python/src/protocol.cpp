#include "python/src/protocol.h"

#include "python/src/tensor_type.h"

namespace nb = nanobind;

namespace onestep::python {
namespace {

constexpr const char* kProtocol = "__torch_function__";

/// A complex number of Python, or an array of such of NumPy.
bool is_complex(PyObject* value) {
  if (PyComplex_Check(value)) return true;
  if (is_tensor(value) || !PyObject_CheckBuffer(value)) return false;
  Py_buffer buffer;
  if (PyObject_GetBuffer(value, &buffer, PyBUF_FULL_RO) != 0) return PyErr_Clear(), false;
  const bool found = buffer.format && buffer.format[0] == 'Z';
  PyBuffer_Release(&buffer);
  return found;
}

}  // namespace

bool has_protocol(PyObject* value) {
  if (value == Py_None || PyFloat_CheckExact(value) || PyLong_CheckExact(value) || PyUnicode_CheckExact(value) ||
      PyList_CheckExact(value) || PyTuple_CheckExact(value) || is_tensor(value))
    return false;
  return is_complex(value) || nb::hasattr(nb::handle(value).type(), kProtocol);
}

PyObject* answering(std::span<PyObject* const> values) {
  for (PyObject* const value : values) {
    if (has_protocol(value)) return value;
    if (!PyList_Check(value) && !PyTuple_Check(value)) continue;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i)
      if (PyObject* const element = PySequence_Fast_GET_ITEM(value, i); has_protocol(element)) return element;
  }
  return nullptr;
}

PyObject* ask(PyObject* value, PyObject* op, PyObject* const* args, size_t count, PyObject* keywords) {
  const size_t all = count + static_cast<size_t>(keywords ? PyTuple_GET_SIZE(keywords) : 0);
  nb::list given;
  nb::dict named;
  for (size_t k = 0; k < count; ++k) given.append(nb::handle(args[k]));
  for (size_t k = count; k < all; ++k)
    named[nb::handle(PyTuple_GET_ITEM(keywords, static_cast<Py_ssize_t>(k - count)))] = nb::handle(args[k]);
  const nb::object asked =
      is_complex(value) ? nb::module_::import_("onestep._complex").attr("ComplexTensor") : nb::borrow(value);
  const nb::object types = nb::make_tuple(nb::handle(value).type());
  return asked.attr(kProtocol)(nb::handle(op), types, nb::tuple(given), named).release().ptr();
}

}  // namespace onestep::python
