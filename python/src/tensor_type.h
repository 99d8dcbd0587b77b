#pragma once
// The Python type Tensor: an object that holds a handle. One tensor has one object while that lives, so `is` works.
#include <Python.h>

#include <span>
#include <utility>

#include "autograd/tensor.h"

namespace onestep::python {

struct PyTensor {
  PyObject_HEAD Tensor tensor;
  PyObject* dict;
  PyObject* weak_references;
};

extern PyTypeObject* tensor_type;

inline bool is_tensor(PyObject* object) {
  return Py_TYPE(object) == tensor_type || PyType_IsSubtype(Py_TYPE(object), tensor_type);
}
/// The handle in an object for which is_tensor holds.
inline Tensor& tensor_of(PyObject* object) { return reinterpret_cast<PyTensor*>(object)->tensor; }

/// The object of `tensor`: the one that it has, or a new one of `type`. None where it is undefined. A new reference.
PyObject* wrap(Tensor tensor, PyTypeObject* type = nullptr);

/// torch.Size: a tuple. A new reference.
PyObject* size_object(const Shape& shape);
extern PyTypeObject* size_type;

/// Makes the types and puts them into the module. Slots of numbers and subscripts: operators.cpp, subscript.cpp.
void add_tensor_type(PyObject* module);
std::span<const PyType_Slot> number_slots();
std::span<const PyType_Slot> subscript_slots();

/// Sets the Python error of the C++ exception that is being handled; returns nullptr.
PyObject* set_error() noexcept;
void add_errors(PyObject* module);

/// Runs `f` and turns a C++ exception into a Python error.
template <class F>
PyObject* guarded(F&& f) noexcept {
  try {
    return f();
  } catch (...) {
    return set_error();
  }
}

/// A Python error is set: leaves C++ without another one.
struct ErrorSet {};

}  // namespace onestep::python
