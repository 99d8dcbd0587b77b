// x[...], x[...] = y, len(x) and iteration.
#include <array>

#include "autograd/tensor_index.h"
#include "python/src/convert.h"
#include "python/src/data.h"

namespace onestep::python {
namespace {

std::optional<int64_t> bound_from(PyObject* object) {
  if (object == Py_None) return {};
  if (!PyIndex_Check(object)) {
    PyErr_SetString(PyExc_TypeError, "slice indices must be integers or None or have an __index__ method");
    throw ErrorSet{};
  }
  PyObject* number = PyNumber_Index(object);
  if (!number) throw ErrorSet{};
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  Py_DECREF(number);
  return overflow > 0 ? INT64_MAX : overflow < 0 ? INT64_MIN + 1 : value;
}

Slice slice_from(PyObject* object) {
  const auto* slice = reinterpret_cast<PySliceObject*>(object);
  const int64_t step = bound_from(slice->step).value_or(1);
  ONESTEP_CHECK(ConfigError, step > 0, "step must be greater than zero");
  return Slice(bound_from(slice->start), bound_from(slice->stop), step);
}

/// A list, a NumPy array or a tensor as an index tensor.
Tensor index_tensor(PyObject* object) {
  Tensor index = is_tensor(object) ? tensor_of(object) : tensor_from_data(object, {});
  if (index.numel() == 0 && index.is_floating()) return index.to(DType::int64);  // of an empty list
  if (index.dtype() == DType::int32) return index.to(DType::int64);
  return index.dtype() == DType::uint8 ? index.to(DType::boolean) : index;
}

TensorIndex entry_from(PyObject* object) {
  if (object == Py_True) return std::nullopt;
  if (object == Py_False) fail<Error>("index: False as an index is not supported (use x[None, :0])");
  if (PyLong_Check(object)) return integer_from(object);
  if (PySlice_Check(object)) return slice_from(object);
  if (object == Py_None) return std::nullopt;
  if (object == Py_Ellipsis) return Ellipsis;
  if (is_tensor(object)) {
    const Tensor& x = tensor_of(object);
    if (x.dim() == 0 && !x.is_floating() && x.dtype() != DType::boolean) return x.item<int64_t>();
    return index_tensor(object);
  }
  if (PyIndex_Check(object) && !PySequence_Check(object)) return *bound_from(object);
  if (PySequence_Check(object) && !PyUnicode_Check(object)) return index_tensor(object);
  PyErr_Format(PyExc_TypeError, "index: a tensor takes integers, slices, ellipses, None, tensors and lists: got %s",
               Py_TYPE(object)->tp_name);
  throw ErrorSet{};
}

}  // namespace

std::vector<TensorIndex> entries_from(PyObject* key) {
  std::vector<TensorIndex> entries;
  if (!PyTuple_Check(key)) return entries.push_back(entry_from(key)), entries;
  entries.reserve(static_cast<size_t>(PyTuple_GET_SIZE(key)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i) entries.push_back(entry_from(PyTuple_GET_ITEM(key, i)));
  return entries;
}

namespace {

PyObject* subscript(PyObject* self, PyObject* key) {
  return guarded([&] {
    const Tensor& x = tensor_of(self);
    if (PyLong_CheckExact(key) && x.dim() > 0) return wrap(select(x, 0, integer_from(key)));
    return wrap(index(x, entries_from(key)));
  });
}

PyObject* item(PyObject* self, Py_ssize_t i) {
  return guarded([&] { return wrap(select(tensor_of(self), 0, i)); });
}

/// Without the dims of size 1 in front, of which the place that it is written to may have fewer, as in PyTorch.
Tensor without_leading_ones(Tensor x) {
  while (x.dim() > 0 && x.size(0) == 1) x = squeeze(x, 0);
  return x;
}

int assign(PyObject* self, PyObject* key, PyObject* value) {
  try {
    if (!value) fail<Error>("Tensor does not support deleting items");
    const std::vector<TensorIndex> entries = entries_from(key);
    if (is_tensor(value)) {
      index_put_(tensor_of(self), entries, without_leading_ones(tensor_of(value)));
    } else if (accepts(Kind::scalar, value)) {
      index_put_(tensor_of(self), entries, scalar_from(value));
    } else {
      index_put_(tensor_of(self), entries, without_leading_ones(tensor_from_data(value, tensor_of(self).dtype())));
    }
    return 0;
  } catch (...) {
    set_error();
    return -1;
  }
}

Py_ssize_t length(PyObject* self) {
  const Tensor& x = tensor_of(self);
  if (x.dim() > 0) return static_cast<Py_ssize_t>(x.shape()[0]);
  PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
  return -1;
}

PyObject* iterate(PyObject* self) {
  return guarded([&]() -> PyObject* {
    const Tensor& x = tensor_of(self);
    if (x.dim() == 0) {
      PyErr_SetString(PyExc_TypeError, "iteration over a 0-d tensor");
      throw ErrorSet{};
    }
    PyObject* parts = to_python(unbind(x, 0), "");
    PyObject* iterator = PyObject_GetIter(parts);
    Py_DECREF(parts);
    return iterator;
  });
}

template <class F>
PyType_Slot slot(int id, F* function) {
  return {id, reinterpret_cast<void*>(function)};
}

}  // namespace

std::span<const PyType_Slot> subscript_slots() {
  static const std::array slots = {slot(Py_mp_subscript, subscript), slot(Py_mp_ass_subscript, assign),
                                   slot(Py_mp_length, length),       slot(Py_sq_item, item),
                                   slot(Py_sq_length, length),       slot(Py_tp_iter, iterate)};
  return slots;
}

}  // namespace onestep::python
