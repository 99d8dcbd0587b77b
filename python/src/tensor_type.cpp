#include "python/src/tensor_type.h"

#include <structmember.h>

#include <vector>

#include "python/src/data.h"

namespace onestep::python {

PyTypeObject* tensor_type = nullptr;
PyTypeObject* size_type = nullptr;

namespace {

void forget(PyObject* self) {
  Tensor& tensor = tensor_of(self);
  if (tensor.defined() && tensor.impl().foreign == self) tensor.impl().foreign = nullptr;
}

void tensor_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  auto* object = reinterpret_cast<PyTensor*>(self);
  forget(self);  // first: what runs from here on must not find it again
  if (object->weak_references) PyObject_ClearWeakRefs(self);
  Py_CLEAR(object->dict);
  object->tensor.~Tensor();
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

int tensor_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(reinterpret_cast<PyTensor*>(self)->dict);
  return 0;
}

int tensor_clear(PyObject* self) {
  Py_CLEAR(reinterpret_cast<PyTensor*>(self)->dict);
  return 0;
}

PyObject* tensor_repr(PyObject* self) {
  return guarded([&] { return PyUnicode_FromString(to_string(tensor_of(self)).c_str()); });
}

Py_hash_t tensor_hash(PyObject* self) {
  return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(&tensor_of(self).impl()) >> 4);
}

/// Tensor(*sizes) is uninitialised, Tensor(data) has float elements.
PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    if (keywords && PyDict_GET_SIZE(keywords) > 0) {
      PyErr_SetString(PyExc_TypeError, "Tensor() takes sizes or data, and no keywords (use tensor())");
      throw ErrorSet{};
    }
    const Py_ssize_t count = PyTuple_GET_SIZE(args);
    PyObject* first = count > 0 ? PyTuple_GET_ITEM(args, 0) : nullptr;
    if (count == 1 && is_tensor(first)) {
      const Tensor& x = tensor_of(first);
      return wrap(x.requires_grad() && type == tensor_type ? view(x, x.shape()) : x.detach(), type);
    }
    const bool sizes = count == 0 || PyLong_Check(first) || Py_TYPE(first) == size_type;
    if (!sizes) return wrap(tensor_from_data(first, default_dtype()), type);
    const Shape shape = count == 0 ? Shape{0} : PyTuple_Check(first) ? shape_from(first) : shape_from(args);
    return wrap(empty(shape, default_dtype()), type);
  });
}

/// _make_subclass(cls, data, requires_grad=False): an object of a class derived from Tensor that shares the elements of data.
PyObject* make_subclass(PyObject* /*self*/, PyObject* args) {
  PyObject *type = nullptr, *data = nullptr;
  int requires_grad = 0;
  if (!PyArg_ParseTuple(args, "O!O!|p", &PyType_Type, &type, tensor_type, &data, &requires_grad)) return nullptr;
  if (!PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), tensor_type)) {
    PyErr_Format(PyExc_TypeError, "_make_subclass: %R is not derived from Tensor", type);
    return nullptr;
  }
  return guarded([&] {
    Tensor tensor = tensor_of(data).detach();
    if (requires_grad) tensor.requires_grad_();
    return wrap(std::move(tensor), reinterpret_cast<PyTypeObject*>(type));
  });
}

// ---- Size

PyObject* size_subscript(PyObject* self, PyObject* key) {
  PyObject* part = PyTuple_Type.tp_as_mapping->mp_subscript(self, key);
  if (!part || !PySlice_Check(key)) return part;
  PyObject* size = PyObject_CallOneArg(reinterpret_cast<PyObject*>(size_type), part);
  Py_DECREF(part);
  return size;
}

PyObject* size_concat(PyObject* self, PyObject* other) {
  PyObject* both = PyTuple_Check(other) ? PyTuple_Type.tp_as_sequence->sq_concat(self, other) : nullptr;
  if (!both && !PyErr_Occurred()) Py_RETURN_NOTIMPLEMENTED;
  if (!both) return nullptr;
  PyObject* size = PyObject_CallOneArg(reinterpret_cast<PyObject*>(size_type), both);
  Py_DECREF(both);
  return size;
}

PyObject* size_repr(PyObject* self) {
  PyObject* list = PySequence_List(self);
  PyObject* text = list ? PyUnicode_FromFormat("torch.Size(%R)", list) : nullptr;
  Py_XDECREF(list);
  return text;
}

PyObject* size_numel(PyObject* self, PyObject*) {
  PyObject* count = PyLong_FromLong(1);
  for (Py_ssize_t i = 0; count && i < PyTuple_GET_SIZE(self); ++i)
    Py_SETREF(count, PyNumber_Multiply(count, PyTuple_GET_ITEM(self, i)));
  return count;
}

PyMethodDef size_methods[] = {{"numel", size_numel, METH_NOARGS, "The number of elements of a tensor of this size."}, {}};
PyType_Slot size_slots[] = {{Py_mp_subscript, reinterpret_cast<void*>(size_subscript)},
                            {Py_sq_concat, reinterpret_cast<void*>(size_concat)},
                            {Py_tp_repr, reinterpret_cast<void*>(size_repr)},
                            {Py_tp_str, reinterpret_cast<void*>(size_repr)},
                            {Py_tp_methods, size_methods},
                            {Py_tp_doc, const_cast<char*>("The sizes of a tensor: a tuple (torch.Size).")},
                            {}};
PyType_Spec size_spec = {"onestep.Size", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, size_slots};

}  // namespace

PyObject* wrap(Tensor tensor, PyTypeObject* type) {
  if (!tensor.defined()) Py_RETURN_NONE;
  // Not one that is being deallocated: the slots of a derived class are cleared first, which may run Python.
  if (auto* known = static_cast<PyObject*>(tensor.impl().foreign); known && Py_REFCNT(known) > 0) return Py_NewRef(known);
  if (!type) type = tensor_type;
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  tensor.impl().foreign = self;
  new (&reinterpret_cast<PyTensor*>(self)->tensor) Tensor(std::move(tensor));
  return self;
}

PyObject* size_object(const Shape& shape) {
  PyObject* size = size_type->tp_alloc(size_type, shape.rank());
  if (!size) return nullptr;
  for (int i = 0; i < shape.rank(); ++i) PyTuple_SET_ITEM(size, i, PyLong_FromLongLong(shape[i]));
  return size;
}

void add_tensor_type(PyObject* module) {
  static PyMemberDef members[] = {{"__dictoffset__", T_PYSSIZET, offsetof(PyTensor, dict), READONLY, nullptr},
                                  {"__weaklistoffset__", T_PYSSIZET, offsetof(PyTensor, weak_references), READONLY, nullptr},
                                  {}};
  static PyGetSetDef dict[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr}, {}};
  static PyMethodDef methods[] = {{"_make_subclass", make_subclass, METH_VARARGS | METH_STATIC, nullptr}, {}};
  std::vector<PyType_Slot> slots = {
      {Py_tp_dealloc, reinterpret_cast<void*>(tensor_dealloc)},
      {Py_tp_traverse, reinterpret_cast<void*>(tensor_traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(tensor_clear)},
      {Py_tp_repr, reinterpret_cast<void*>(tensor_repr)},
      {Py_tp_hash, reinterpret_cast<void*>(tensor_hash)},
      {Py_tp_new, reinterpret_cast<void*>(tensor_new)},
      {Py_tp_methods, methods},
      {Py_tp_members, members},
      {Py_tp_getset, dict},
      {Py_tp_doc, const_cast<char*>("An n-dimensional array that records what is computed from it.")}};
  slots.insert(slots.end(), number_slots().begin(), number_slots().end());
  slots.insert(slots.end(), subscript_slots().begin(), subscript_slots().end());
  slots.insert(slots.end(), buffer_slots().begin(), buffer_slots().end());
  slots.push_back({});
  PyType_Spec spec = {"onestep.Tensor", sizeof(PyTensor), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                      slots.data()};
  tensor_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  size_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpecWithBases(&size_spec, reinterpret_cast<PyObject*>(&PyTuple_Type)));
  if (!tensor_type || !size_type) throw ErrorSet{};
  PyModule_AddObjectRef(module, "Tensor", reinterpret_cast<PyObject*>(tensor_type));
  PyModule_AddObjectRef(module, "Size", reinterpret_cast<PyObject*>(size_type));
}

}  // namespace onestep::python
