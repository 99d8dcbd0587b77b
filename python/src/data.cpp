#include "python/src/data.h"

#include <array>
#include <cmath>

#include "autograd/creation.h"

namespace onestep::python {
namespace {

bool is_list(PyObject* object) { return PyList_Check(object) || PyTuple_Check(object); }
bool is_array(PyObject* object) { return PyObject_CheckBuffer(object) && !is_tensor(object) && !PyBytes_Check(object); }

// ---- nested lists

/// What the numbers are so far: bool < int64 < float.
struct Found {
  Shape shape;
  std::optional<DType> dtype;
  std::vector<double> floats;
  std::vector<int64_t> integers;
};

void meet(Found& found, DType dtype) { found.dtype = found.dtype ? promote_types(*found.dtype, dtype) : dtype; }

void add_number(Found& found, PyObject* object) {
  if (is_tensor(object)) {
    const Tensor& x = tensor_of(object);
    meet(found, x.dtype());
    found.floats.push_back(x.item<double>());
    found.integers.push_back(x.is_floating() ? 0 : x.item<int64_t>());
    return;
  }
  if (!accepts(Kind::scalar, object)) {
    if (PyUnicode_Check(object))
      PyErr_Format(PyExc_TypeError, "new(): invalid data type 'str'");
    else
      PyErr_Format(PyExc_RuntimeError, "Could not infer dtype of %s", Py_TYPE(object)->tp_name);
    throw ErrorSet{};
  }
  const Scalar value = scalar_from(object);
  meet(found, value.dtype == DType::float32 ? default_dtype() : value.dtype);
  found.floats.push_back(value.value);
  found.integers.push_back(value.integer);
}

Shape shape_of(PyObject* object, int depth = 0) {
  if (depth > kMaxRank) {  // also of a list that holds itself
    PyErr_Format(PyExc_ValueError, "too many dimensions: lists are nested more than %d deep", kMaxRank);
    throw ErrorSet{};
  }
  if (is_tensor(object)) return tensor_of(object).shape();
  Shape shape;
  if (is_array(object)) {
    const Tensor x = tensor_over_buffer(object);
    return x.shape();
  }
  if (!is_list(object)) return shape;
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(object);
  if (size > 0) shape = shape_of(PySequence_Fast_GET_ITEM(object, 0), depth + 1);
  shape.insert(0, size);
  return shape;
}

void check_length(const Found& found, int dim, int64_t size) {
  if (size == found.shape[dim]) return;
  PyErr_Format(PyExc_ValueError, "expected sequence of length %lld at dim %d (got %lld)",
               static_cast<long long>(found.shape[dim]), dim, static_cast<long long>(size));
  throw ErrorSet{};
}

/// Those of x, which is at `dim` of the nested lists.
void add_elements(Found& found, const Tensor& x, int dim) {
  ONESTEP_CHECK(ConfigError, x.dim() == found.shape.rank() - dim, "tensor: an element of shape ", x.shape(), " at dim ", dim,
                " of shape ", found.shape);
  for (int i = 0; i < x.dim(); ++i) check_length(found, dim + i, x.shape()[i]);
  meet(found, x.dtype());
  for (const double value : x.to_vector<double>()) found.floats.push_back(value);
  const bool whole = !x.is_floating();
  for (const int64_t value : whole ? x.to_vector<int64_t>() : std::vector<int64_t>(static_cast<size_t>(x.numel())))
    found.integers.push_back(value);
}

void collect(Found& found, PyObject* object, int dim) {
  if (dim == found.shape.rank()) return add_number(found, object);
  if (is_tensor(object)) return add_elements(found, tensor_of(object), dim);
  if (is_array(object)) return add_elements(found, tensor_over_buffer(object), dim);
  if (!is_list(object)) {
    PyErr_Format(PyExc_TypeError, "not a sequence");
    throw ErrorSet{};
  }
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(object);
  check_length(found, dim, size);
  for (Py_ssize_t i = 0; i < size; ++i) collect(found, PySequence_Fast_GET_ITEM(object, i), dim + 1);
}

// ---- buffers

struct Format {
  DType dtype;
  const char* code;
};
constexpr std::array<Format, 7> kFormats = {{{DType::float32, "f"},
                                             {DType::float64, "d"},
                                             {DType::int64, "l"},
                                             {DType::boolean, "?"},
                                             {DType::int32, "i"},
                                             {DType::uint8, "B"},
                                             {DType::float16, "e"}}};

DType dtype_of_format(const Py_buffer& buffer) {
  std::string_view code = buffer.format ? buffer.format : "B";
  if (code.size() == 2 && (code[0] == '<' || code[0] == '=' || code[0] == '@')) code.remove_prefix(1);
  if (code == "q") code = "l";
  for (const auto& [dtype, known] : kFormats)
    if (code == known && size_of(dtype) == buffer.itemsize) return dtype;
  PyErr_Format(PyExc_TypeError,
               "can't convert an array of format '%s'. The only supported types are: float64, float32, float16, int64, int32, "
               "uint8, and bool.",
               buffer.format ? buffer.format : "B");
  throw ErrorSet{};
}

/// A sequence that is no list as one, of the length that it says: its items may never end.
PyObject* list_of_sequence(PyObject* sequence) {
  const Py_ssize_t size = PySequence_Size(sequence);
  PyObject* list = size < 0 ? nullptr : PyList_New(0);
  for (Py_ssize_t i = 0; list && i < size; ++i) {
    PyObject* item = PySequence_GetItem(sequence, i);
    if (!item || PyList_Append(list, item) < 0) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  if (!list) throw ErrorSet{};
  return list;
}

/// A buffer view that is released with the last owner, from whatever thread.
struct Lease {
  Py_buffer buffer{};
  ~Lease() {
    if (!Py_IsInitialized()) return;
    const nanobind::gil_scoped_acquire held;
    PyBuffer_Release(&buffer);
  }
};

}  // namespace

void check_alignment(const void* first, DType dtype) {
  ONESTEP_CHECK(ConfigError, reinterpret_cast<uintptr_t>(first) % static_cast<uintptr_t>(size_of(dtype)) == 0,
                "the elements of this array are not aligned to ", size_of(dtype), " bytes (use a copy of it)");
}

Tensor tensor_over_buffer(PyObject* array) {
  auto lease = std::make_shared<Lease>();
  Py_buffer& buffer = lease->buffer;
  if (PyObject_GetBuffer(array, &buffer, PyBUF_FULL) != 0) {
    PyErr_Clear();
    if (PyObject_GetBuffer(array, &buffer, PyBUF_FULL_RO) != 0) throw ErrorSet{};
  }
  const DType dtype = dtype_of_format(buffer);
  check_alignment(buffer.buf, dtype);
  ONESTEP_CHECK(ConfigError, !buffer.suboffsets, "from_numpy: arrays of pointers are not supported (use a copy of it)");
  Shape shape, strides;
  int64_t last = 0;
  for (int i = 0; !buffer.strides && i < buffer.ndim; ++i) shape.push_back(buffer.shape[i]);  // ctypes gives none
  if (!buffer.strides)
    return Tensor(std::make_shared<Storage>(buffer.buf, buffer.len, lease), dtype, shape, contiguous_strides(shape), 0);
  for (int i = 0; i < buffer.ndim; ++i) {
    ONESTEP_CHECK(
        ConfigError, buffer.strides[i] >= 0,
        "At least one stride in the given numpy array is negative, and tensors with negative strides are not currently "
        "supported. (You can probably work around this by making a copy of your array  with array.copy().)");
    ONESTEP_CHECK(ConfigError, buffer.strides[i] % buffer.itemsize == 0, "from_numpy: a stride of ", buffer.strides[i],
                  " bytes is not a multiple of the element's size ", buffer.itemsize);
    shape.push_back(buffer.shape[i]);
    strides.push_back(buffer.strides[i] / buffer.itemsize);
    last += (buffer.shape[i] - 1) * buffer.strides[i];
  }
  const int64_t bytes = shape.numel() == 0 ? 0 : last + buffer.itemsize;
  return Tensor(std::make_shared<Storage>(buffer.buf, bytes, lease), dtype, shape, strides, 0);
}

Tensor tensor_of_bytes(PyObject* object, DType dtype, int64_t count, int64_t offset) {
  auto lease = std::make_shared<Lease>();
  Py_buffer& buffer = lease->buffer;
  if (PyObject_GetBuffer(object, &buffer, PyBUF_WRITABLE) != 0) {
    PyErr_Clear();
    if (PyObject_GetBuffer(object, &buffer, PyBUF_SIMPLE) != 0) throw ErrorSet{};
  }
  const int64_t size = size_of(dtype), room = offset < 0 ? -1 : buffer.len - offset;
  ONESTEP_CHECK(ConfigError, room >= 0, "frombuffer: offset ", offset, " in a buffer of ", buffer.len, " bytes");
  ONESTEP_CHECK(ConfigError, count >= 0 || room % size == 0, "frombuffer: ", room, " bytes are no whole number of elements of ",
                dtype);
  if (count < 0) count = room / size;
  check_alignment(static_cast<std::byte*>(buffer.buf) + offset, dtype);
  ONESTEP_CHECK(ConfigError, count <= room / size, "frombuffer: ", count, " elements of ", dtype, " need more than ", room,
                " bytes");
  const auto storage = std::make_shared<Storage>(static_cast<std::byte*>(buffer.buf) + offset, count * size, lease);
  return Tensor(storage, dtype, Shape{count}, Shape{1}, 0);
}

Tensor tensor_from_data(PyObject* data, std::optional<DType> dtype) {
  if (is_tensor(data)) {
    const Tensor x = tensor_of(data).detach();
    return dtype && *dtype != x.dtype() ? x.to(*dtype) : x.clone();
  }
  if (is_array(data)) {
    const Tensor x = tensor_over_buffer(data);
    return dtype && *dtype != x.dtype() ? x.to(*dtype) : x.clone();
  }
  PyObject* list = data;
  if (!is_list(data) && !accepts(Kind::scalar, data) && PySequence_Check(data) && !PyUnicode_Check(data)) {
    list = list_of_sequence(data);
  } else {
    Py_INCREF(list);
  }
  const nanobind::object owner = nanobind::steal(list);
  Found found;
  found.shape = shape_of(list);
  collect(found, list, 0);
  const DType natural = found.dtype.value_or(default_dtype());
  const DType wanted = dtype.value_or(natural);
  const NoGradGuard no_grad;
  if (is_floating(natural)) return from_values(found.floats, found.shape).to(wanted);
  return from_values(found.integers, found.shape).to(wanted);
}

PyObject* number_of(const Tensor& x) {
  if (x.is_floating()) return PyFloat_FromDouble(x.item<double>());
  if (x.dtype() == DType::boolean) return PyBool_FromLong(x.item<bool>());
  return PyLong_FromLongLong(x.item<int64_t>());
}

namespace {

template <class T, class F>
PyObject* nested(const std::vector<T>& values, const Shape& shape, int dim, size_t& place, F number) {
  if (dim == shape.rank()) return number(values[place++]);
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(shape[dim]));
  for (int64_t i = 0; i < shape[dim]; ++i)
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), nested(values, shape, dim + 1, place, number));
  return list;
}

/// What an exported buffer needs as long as it is used.
struct Exported {
  Tensor elements;  ///< A handle of its own: the tensor may be given others (x.data = y).
  std::array<Py_ssize_t, kMaxRank> shape, strides;
};

/// Whether the first dim is the one whose elements follow each other.
bool t_is_contiguous(const Tensor& x) {
  int64_t step = 1;
  for (int d = 0; d < x.dim(); ++d) {
    if (x.shape()[d] != 1 && x.strides()[d] != step) return x.numel() == 0;
    step *= x.shape()[d];
  }
  return true;
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  try {
    const Tensor& x = tensor_of(self);
    const char* code = nullptr;
    for (const auto& [dtype, known] : kFormats)
      if (dtype == x.dtype()) code = known;
    const bool strided = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
    const bool rows = !strided || (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS;
    const bool columns = (flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS;
    if (!code || x.requires_grad() || (rows && !x.is_contiguous()) || (columns && !t_is_contiguous(x))) {
      PyErr_SetString(PyExc_BufferError, "this tensor cannot be shown as a buffer (dtype, requires_grad or strides)");
      view->obj = nullptr;
      return -1;
    }
    auto* sizes = new Exported{x.detach(), {}, {}};
    for (int i = 0; i < x.dim(); ++i) {
      sizes->shape[static_cast<size_t>(i)] = static_cast<Py_ssize_t>(x.shape()[i]);
      sizes->strides[static_cast<size_t>(i)] = static_cast<Py_ssize_t>(x.strides()[i] * size_of(x.dtype()));
    }
    view->buf = const_cast<void*>(x.data_ptr());
    view->obj = Py_NewRef(self);
    view->itemsize = static_cast<Py_ssize_t>(size_of(x.dtype()));
    view->len = static_cast<Py_ssize_t>(x.numel()) * view->itemsize;
    view->readonly = 0;
    view->ndim = x.dim();
    view->format = (flags & PyBUF_FORMAT) ? const_cast<char*>(code) : nullptr;
    view->shape = (flags & PyBUF_ND) ? sizes->shape.data() : nullptr;
    view->strides = strided ? sizes->strides.data() : nullptr;
    view->suboffsets = nullptr;
    view->internal = sizes;
    return 0;
  } catch (...) {
    set_error();
    return -1;
  }
}
void release_buffer(PyObject*, Py_buffer* view) { delete static_cast<Exported*>(view->internal); }

}  // namespace

PyObject* list_of(const Tensor& x) {
  size_t place = 0;
  if (x.is_floating())
    return nested(x.detach().to_vector<double>(), x.shape(), 0, place, [](double v) { return PyFloat_FromDouble(v); });
  const bool truth = x.dtype() == DType::boolean;
  return nested(x.to_vector<int64_t>(), x.shape(), 0, place,
                [truth](int64_t v) { return truth ? PyBool_FromLong(v != 0) : PyLong_FromLongLong(v); });
}

std::span<const PyType_Slot> buffer_slots() {
  static const std::array<PyType_Slot, 2> slots = {
      {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)}}};
  return slots;
}

}  // namespace onestep::python
