// C++ exceptions as Python's: every class of base/error.h has one, which is what PyTorch raises in that case, too.
#include <nanobind/nanobind.h>

#include <new>

#include "autograd/anomaly.h"
#include "base/error.h"
#include "python/src/tensor_type.h"

namespace onestep::python {
namespace {

PyObject *error, *shape_error, *index_error, *dtype_error, *grad_error, *config_error, *io_error, *diverged_error;

PyObject* add(PyObject* module, const char* name, PyObject* base, PyObject* second = nullptr) {
  PyObject* bases = second ? PyTuple_Pack(2, base, second) : PyTuple_Pack(1, base);
  PyObject* type = PyErr_NewException((std::string("onestep.") + name).c_str(), bases, nullptr);
  Py_DECREF(bases);
  if (!type) throw ErrorSet{};
  PyModule_AddObjectRef(module, name, type);
  return type;
}

}  // namespace

void add_errors(PyObject* module) {
  error = add(module, "Error", PyExc_RuntimeError);
  shape_error = add(module, "ShapeError", error, PyExc_ValueError);
  index_error = add(module, "IndexError", shape_error, PyExc_IndexError);
  dtype_error = add(module, "DTypeError", error, PyExc_TypeError);
  grad_error = add(module, "GradError", error);
  config_error = add(module, "ConfigError", error, PyExc_ValueError);
  io_error = add(module, "IoError", error, PyExc_OSError);
  diverged_error = add(module, "DivergedError", error, PyExc_ArithmeticError);
}

PyObject* set_error() noexcept {
  try {
    throw;
  } catch (const ErrorSet&) {
  } catch (nanobind::python_error& e) {
    e.restore();
  } catch (const IndexError& e) {
    PyErr_SetString(index_error, e.what());
  } catch (const ShapeError& e) {
    PyErr_SetString(shape_error, e.what());
  } catch (const DTypeError& e) {
    PyErr_SetString(dtype_error, e.what());
  } catch (const GradError& e) {
    PyErr_SetString(grad_error, e.what());
  } catch (const ConfigError& e) {
    PyErr_SetString(config_error, e.what());
  } catch (const IoError& e) {
    PyErr_SetString(io_error, e.what());
  } catch (const DivergedError& e) {
    PyErr_SetString(diverged_error, e.what());
  } catch (const Error& e) {
    PyErr_SetString(error, e.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  return nullptr;
}

}  // namespace onestep::python
