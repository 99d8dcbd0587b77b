// What a tensor is: its properties, and the methods that ask for or change what is no op.
#include "autograd/grad.h"
#include "autograd/node.h"
#include "python/src/data.h"
#include "python/src/device.h"
#include "python/src/op.h"

namespace nb = nanobind;

namespace onestep::python {
namespace {

using T = const Tensor&;

template <auto kGet>
PyObject* get(PyObject* self, void*) {
  return guarded([&]() -> PyObject* { return kGet(tensor_of(self)); });
}
template <auto kSet>
int set(PyObject* self, PyObject* value, void*) {
  try {
    kSet(tensor_of(self), value);
    return 0;
  } catch (...) {
    set_error();
    return -1;
  }
}

PyObject* text(std::string_view value) {
  return PyUnicode_FromStringAndSize(value.data(), static_cast<Py_ssize_t>(value.size()));
}

/// A value that is set, which is null where an attribute is deleted.
bool truth_of(PyObject* value) {
  if (!value) PyErr_SetString(PyExc_AttributeError, "requires_grad cannot be deleted");
  const int truth = value ? PyObject_IsTrue(value) : -1;
  if (truth < 0) throw ErrorSet{};
  return truth == 1;
}

void set_grad_object(Tensor& x, PyObject* value) {
  if (value && value != Py_None && !is_tensor(value)) {
    PyErr_Format(PyExc_TypeError, "assigned grad expected to be a Tensor or None but got grad of type %s",
                 Py_TYPE(value)->tp_name);
    throw ErrorSet{};
  }
  if (value && value != Py_None) return x.set_grad(tensor_of(value));
  x.zero_grad();
}

void set_data_object(Tensor& x, PyObject* value) {
  if (!value || !is_tensor(value)) {
    PyErr_SetString(PyExc_TypeError, "Variable data has to be a tensor");
    throw ErrorSet{};
  }
  x.set_data(tensor_of(value));
}

/// Keeps the storage whose elements another one shows.
struct AliasOf {
  std::shared_ptr<Storage> storage;
  void operator()(void* /*storage*/) const {}
};

/// The same elements with a count of writes of its own, so that writes to it pass unseen, as in PyTorch.
PyObject* data_of(T x) {
  const std::shared_ptr<Storage>& storage = x.impl().storage;
  const bool alias = std::get_deleter<AliasOf>(storage->owner) != nullptr;
  const std::shared_ptr<void> root = alias ? storage->owner : std::shared_ptr<void>(storage.get(), AliasOf{storage});
  return wrap(
      Tensor(std::make_shared<Storage>(storage->data, storage->bytes, root), x.dtype(), x.shape(), x.strides(), x.offset()));
}

PyObject* grad_of(T x) {
  const bool has = x.is_leaf() || x.retains_grad() || x.node()->grad.defined();
  return has ? wrap(x.grad()) : Py_NewRef(Py_None);
}
PyObject* transposed(T x) {
  return wrap(x.dim() == 2 ? t(x) : permute(x, [&] {
    Shape dims;
    for (int d = x.dim() - 1; d >= 0; --d) dims.push_back(d);
    return dims;
  }()));
}
PyObject* bool_of(bool value) { return PyBool_FromLong(value); }

PyGetSetDef properties[] = {
    {"shape", get<[](T x) { return size_object(x.shape()); }>, nullptr, "The sizes (torch.Size).", nullptr},
    {"dtype", get<[](T x) { return Py_NewRef(dtype_object(x.dtype())); }>, nullptr, "The element type.", nullptr},
    {"device", get<[](T) { return cpu_device(); }>, nullptr, "Always the CPU.", nullptr},
    {"layout", get<[](T) { return strided_layout(); }>, nullptr, "Always strided.", nullptr},
    {"ndim", get<[](T x) { return PyLong_FromLong(x.dim()); }>, nullptr, "The number of dims.", nullptr},
    {"itemsize", get<[](T x) { return PyLong_FromLongLong(size_of(x.dtype())); }>, nullptr, "Bytes of an element.", nullptr},
    {"nbytes", get<[](T x) { return PyLong_FromLongLong(x.numel() * size_of(x.dtype())); }>, nullptr, "Bytes of all elements.",
     nullptr},
    {"requires_grad", get<[](T x) { return bool_of(x.requires_grad()); }>,
     set<[](Tensor& x, PyObject* on) { x.requires_grad_(truth_of(on)); }>, "Whether gradients are computed.", nullptr},
    {"grad", get<grad_of>, set<set_grad_object>, "The collected gradient, or None.", nullptr},
    {"_grad", get<grad_of>, set<set_grad_object>, "grad.", nullptr},
    {"data", get<data_of>, set<set_data_object>, "The same elements without graph; can be set.", nullptr},
    {"is_leaf", get<[](T x) { return bool_of(x.is_leaf()); }>, nullptr, "Whether no recorded op made it.", nullptr},
    {"retains_grad", get<[](T x) { return bool_of(x.retains_grad()); }>, nullptr, nullptr, nullptr},
    {"grad_fn", get<[](T x) { return grad_fn_of(x); }>, nullptr, "The recorded op that made it, or None.", nullptr},
    {"_version", get<[](T x) { return PyLong_FromUnsignedLong(x.version()); }>, nullptr, "Writes so far.", nullptr},
    {"_base", get<[](T x) { return x.is_view() ? wrap(x.base()) : Py_NewRef(Py_None); }>, nullptr, nullptr, nullptr},
    {"T", get<transposed>, nullptr, "All dims in opposite order.", nullptr},
    {"mT", get<[](T x) { return wrap(transpose(x, -2, -1)); }>, nullptr, "The last two dims swapped.", nullptr},
    {"H", get<transposed>, nullptr, "The transposed matrix.", nullptr},
    {"mH", get<[](T x) { return wrap(transpose(x, -2, -1)); }>, nullptr, nullptr, nullptr},
    {"real", get<[](T x) { return wrap(x); }>, nullptr, nullptr, nullptr},
    {"is_cuda", get<[](T) { return bool_of(false); }>, nullptr, nullptr, nullptr},
    {"is_cpu", get<[](T) { return bool_of(true); }>, nullptr, nullptr, nullptr},
    {"is_mps", get<[](T) { return bool_of(false); }>, nullptr, nullptr, nullptr},
    {"is_sparse", get<[](T) { return bool_of(false); }>, nullptr, nullptr, nullptr},
    {"is_quantized", get<[](T) { return bool_of(false); }>, nullptr, nullptr, nullptr},
    {"is_nested", get<[](T) { return bool_of(false); }>, nullptr, nullptr, nullptr},
    {"is_meta", get<[](T) { return bool_of(false); }>, nullptr, nullptr, nullptr},
    {}};

/// A list of sizes or strides, or the one of `dim`.
template <class All>
PyObject* one_or_all(T x, const Shape& values, std::optional<int64_t> dim, const char* op, All all) {
  if (!dim) return all(values);
  return PyLong_FromLongLong(values[normalize_dim(op, *dim, x.dim())]);
}
PyObject* plain_tuple(const Shape& values) {
  PyObject* tuple = PyTuple_New(values.rank());
  for (int i = 0; i < values.rank(); ++i) PyTuple_SET_ITEM(tuple, i, PyLong_FromLongLong(values[i]));
  return tuple;
}

template <DType kType>
Tensor as(T x, PyObject*) {
  return to(x, kType);
}

Tensor make_leaf(T x, bool on) {
  Tensor handle = x;
  handle.requires_grad_(on);
  return handle;
}

/// None, a tensor or a list of them.
std::vector<Tensor> leaves_from(PyObject* inputs) {
  if (inputs == Py_None) return {};
  if (accepts(Kind::tensor, inputs) || accepts(Kind::tensors, inputs)) return tensors_from(inputs);
  PyErr_SetString(PyExc_TypeError, "backward: inputs must be a tensor or a list of tensors");
  throw ErrorSet{};
}

Tensor convert(T x, std::optional<DType> dtype, bool copy) {
  if (dtype && *dtype != x.dtype()) return to(x, *dtype);
  return copy ? clone(x) : x;
}

}  // namespace

void bind_properties() {
  method(
      "size(Tensor input, int? dim=None)",
      +[](T x, std::optional<int64_t> dim) { return one_or_all(x, x.shape(), dim, "size", size_object); });
  method(
      "stride(Tensor input, int? dim=None)",
      +[](T x, std::optional<int64_t> dim) { return one_or_all(x, x.strides(), dim, "stride", plain_tuple); });
  both(
      "numel(Tensor input)", +[](T x) { return x.numel(); });
  method(
      "nelement(Tensor input)", +[](T x) { return x.numel(); });
  method(
      "dim(Tensor input)", +[](T x) { return static_cast<int64_t>(x.dim()); });
  alias("ndimension", "dim");
  method(
      "storage_offset(Tensor input)", +[](T x) { return x.offset(); });
  method(
      "element_size(Tensor input)", +[](T x) { return size_of(x.dtype()); });
  method(
      "data_ptr(Tensor input)", +[](T x) { return static_cast<int64_t>(reinterpret_cast<intptr_t>(x.data_ptr())); });
  method(
      "is_contiguous(Tensor input, *, any memory_format=None)", +[](T x, PyObject*) { return x.is_contiguous(); });
  both(
      "is_floating_point(Tensor input)", +[](T x) { return x.is_floating(); });
  both(
      "is_complex(Tensor input)", +[](T) { return false; });
  both(
      "is_inference(Tensor input)", +[](T x) { return x.is_inference(); });
  both(
      "is_nonzero(Tensor input)", +[](T x) { return x.item<double>() != 0; });
  method(
      "is_set_to(Tensor input, Tensor tensor)",
      +[](T x, T y) { return x.data_ptr() == y.data_ptr() && x.shape() == y.shape() && x.strides() == y.strides(); });
  method(
      "_of_storage(Tensor input)", +[](T x) {  // all elements of the memory that x and its views share
        const std::shared_ptr<Storage>& storage = x.impl().storage;
        return Tensor(storage, x.dtype(), {storage->bytes / size_of(x.dtype())}, {1}, 0);
      });
  method(
      "_shares_storage(Tensor input, Tensor other)", +[](T x, T y) { return x.shares_storage(y); });
  method(
      "get_device(Tensor input)", +[](T) { return int64_t{-1}; });
  method(
      "is_pinned(Tensor input)", +[](T) { return false; });
  method(
      "pin_memory(Tensor input, any device=None)", +[](T x, PyObject*) { return x; });
  method(
      "item(Tensor input)", +[](T x) {
        ONESTEP_CHECK(Error, x.numel() == 1, "a Tensor with ", x.numel(), " elements cannot be converted to Scalar");
        return number_of(x);
      });
  method(
      "tolist(Tensor input)", +[](T x) { return list_of(x); });

  method("requires_grad_(Tensor input, bool requires_grad=True)", make_leaf);
  both(
      "detach(Tensor input)", +[](T x) { return x.detach(); });
  method(
      "retain_grad(Tensor input)", +[](T x) -> PyObject* {
        Tensor handle = x;
        handle.retain_grad();
        Py_RETURN_NONE;
      });
  method(
      "backward(Tensor input, Tensor? gradient=None, bool? retain_graph=None, bool create_graph=False, any inputs=None)",
      +[](T x, T gradient, std::optional<bool> retain, bool create, PyObject* inputs) -> PyObject* {
        const std::vector<Tensor> only = leaves_from(inputs), kept{x, gradient};  // whatever other threads do meanwhile
        {
          const nb::gil_scoped_release released;
          kept[0].backward(kept[1], retain, create, only);
        }
        Py_RETURN_NONE;
      });

  method("float(Tensor input, any memory_format=None)", as<DType::float32>);
  method("double(Tensor input, any memory_format=None)", as<DType::float64>);
  method("half(Tensor input, any memory_format=None)", as<DType::float16>);
  method("bfloat16(Tensor input, any memory_format=None)", as<DType::bfloat16>);
  method("long(Tensor input, any memory_format=None)", as<DType::int64>);
  method("int(Tensor input, any memory_format=None)", as<DType::int32>);
  method("byte(Tensor input, any memory_format=None)", as<DType::uint8>);
  method("bool(Tensor input, any memory_format=None)", as<DType::boolean>);
  method(
      "to(Tensor input, dtype dtype, bool non_blocking=False, bool copy=False, *, any memory_format=None)",
      +[](T x, DType dtype, bool, bool copy, PyObject*) { return convert(x, dtype, copy); });
  method(
      "to(Tensor input, Tensor other, bool non_blocking=False, bool copy=False, *, any memory_format=None)",
      +[](T x, T other, bool, bool copy, PyObject*) { return convert(x, other.dtype(), copy); });
  method(
      "to(Tensor input, any device=None, dtype? dtype=None, bool non_blocking=False, bool copy=False, *, "
      "any memory_format=None)",
      +[](T x, PyObject* device, std::optional<DType> dtype, bool, bool copy, PyObject*) {
        check_device(device);
        return convert(x, dtype, copy);
      });
  method(
      "type_as(Tensor input, Tensor other)", +[](T x, T other) { return to(x, other.dtype()); });
  method(
      "cpu(Tensor input, any memory_format=None)", +[](T x, PyObject*) { return x; });
  method(
      "new_tensor(Tensor input, any data, *, dtype? dtype=None, any device=None, bool requires_grad=False)",
      +[](T x, PyObject* data, std::optional<DType> dtype, PyObject* device, bool grad) {
        check_device(device);
        return make_leaf(tensor_from_data(data, dtype.value_or(x.dtype())), grad);
      });

  function(
      "tensor(any data, *, dtype? dtype=None, any device=None, bool requires_grad=False, bool pin_memory=False)",
      +[](PyObject* data, std::optional<DType> dtype, PyObject* device, bool grad, bool) {
        check_device(device);
        return make_leaf(tensor_from_data(data, dtype), grad);
      });
  function(
      "as_tensor(any data, dtype? dtype=None, any device=None)",
      +[](PyObject* data, std::optional<DType> dtype, PyObject* device) {
        check_device(device);
        if (is_tensor(data)) return convert(tensor_of(data), dtype, false);
        if (PyObject_CheckBuffer(data)) return convert(tensor_over_buffer(data), dtype, false);
        return tensor_from_data(data, dtype);
      });
  function(
      "from_numpy(any ndarray)", +[](PyObject* array) { return tensor_over_buffer(array); });
  function(
      "frombuffer(any buffer, *, dtype dtype, int count=-1, int offset=0, bool requires_grad=False)",
      +[](PyObject* buffer, DType dtype, int64_t count, int64_t offset, bool grad) {
        return make_leaf(tensor_of_bytes(buffer, dtype, count, offset), grad);
      });
  method(
      "_leave_graph(Tensor input)", +[](T x) {
        Tensor self = x;
        detail::set_node(self, nullptr);
        return self;
      });
  method(
      "_bytes(Tensor input)", +[](T x) {
        return PyBytes_FromStringAndSize(static_cast<const char*>(contiguous(x).data_ptr()),
                                         static_cast<Py_ssize_t>(x.numel() * size_of(x.dtype())));
      });
  function("promote_types(dtype type1, dtype type2)", promote_types);
  function(
      "result_type(Tensor tensor1, Tensor tensor2)", +[](T a, T b) { return result_type(a, b); });
  function(
      "result_type(Tensor tensor, Scalar scalar)", +[](T a, Scalar b) { return result_type(a, b); });
  function(
      "result_type(Scalar scalar, Tensor tensor)", +[](Scalar a, T b) { return result_type(b, a); });
  function(
      "result_type(Scalar scalar1, Scalar scalar2)",
      +[](Scalar a, Scalar b) { return implied_dtype(promote_types(a.dtype, b.dtype)); });
  function("get_default_dtype()", default_dtype);
  function(
      "set_default_dtype(dtype d)", +[](DType dtype) -> PyObject* {
        set_default_dtype(dtype);
        Py_RETURN_NONE;
      });
  function(
      "is_tensor(any obj)", +[](PyObject* object) { return is_tensor(object); });
  function(
      "_repr(Tensor input)", +[](T x) { return text(to_string(x)); });
}

void add_properties() {
  auto* type = reinterpret_cast<PyObject*>(tensor_type);
  for (PyGetSetDef* property = properties; property->name; ++property) {
    PyObject* descriptor = PyDescr_NewGetSet(tensor_type, property);
    if (!descriptor || PyObject_SetAttrString(type, property->name, descriptor) < 0) throw ErrorSet{};
    Py_DECREF(descriptor);
  }
}

}  // namespace onestep::python
