#pragma once
// Tensors from Python's numbers, lists and arrays, and back.
#include "python/src/convert.h"

namespace onestep::python {

/// A tensor with a copy of the numbers in `data`: a number, nested lists of numbers, an array (buffer protocol) or a tensor.
/// Without a dtype: bool, int64, the default dtype for Python's floats, an array's own.
Tensor tensor_from_data(PyObject* data, std::optional<DType> dtype);
/// Throws unless elements that begin there are at a multiple of their size, as kernels need them.
void check_alignment(const void* first, DType dtype);
/// A tensor over the memory of an object with the buffer protocol, which it keeps alive.
Tensor tensor_over_buffer(PyObject* array);
/// `count` elements (-1: all) of a plain buffer from byte `offset` on, over its memory: a vector.
Tensor tensor_of_bytes(PyObject* buffer, DType dtype, int64_t count, int64_t offset);
/// Numbers in nested lists.
PyObject* list_of(const Tensor& x);
/// A single element as a Python number.
PyObject* number_of(const Tensor& x);
std::span<const PyType_Slot> buffer_slots();

}  // namespace onestep::python
