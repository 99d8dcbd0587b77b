#pragma once
// What is like a tensor answers for ops itself (PyTorch's `__torch_function__`): values of classes and dtypes that have this
// method, and Python's and NumPy's complex numbers, for which complex tensors answer (onestep/_complex.py).
#include <nanobind/nanobind.h>

namespace onestep::python {

/// Whether the value, or an element of a list that it is, answers for ops.
bool has_protocol(PyObject* value);

/// What the first of the arguments that answers says to the call `op(*args, **keywords)`, which fits none of the op's
/// overloads; null where none does.
PyObject* answer_of(PyObject* op, PyObject* const* args, size_t count, PyObject* keywords);

}  // namespace onestep::python
