#pragma once
// What is like a tensor answers for ops itself (PyTorch's `__torch_function__`): values of classes and dtypes that have this
// method, and Python's and NumPy's complex numbers, for which complex tensors answer (onestep/_complex.py).
#include <nanobind/nanobind.h>

#include <span>
#include <string>

#include "base/error.h"

namespace onestep::python {

/// Whether the value answers for ops.
bool has_protocol(PyObject* value);

/// The first of the values, and of the elements of lists among them, that answers for ops; null where none does.
PyObject* answering(std::span<PyObject* const> values);

/// What a value that answers for ops says to the call `op(*args, **keywords)`.
PyObject* ask(PyObject* value, PyObject* op, PyObject* const* args, size_t count, PyObject* keywords);

/// Thrown by the conversion of data that hold something else than numbers, which may answer for the op.
class UnknownNumber : public DTypeError {
 public:
  UnknownNumber(PyObject* value, const std::string& what) : DTypeError(what), value_(nanobind::borrow(value)) {}
  PyObject* value() const { return value_.ptr(); }

 private:
  nanobind::object value_;
};

}  // namespace onestep::python
