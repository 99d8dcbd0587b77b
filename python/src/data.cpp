#include "python/src/data.h"

#include <array>
#include <map>

#include "autograd/creation.h"
#include "python/src/protocol.h"

namespace onestep::python {
namespace {

bool is_array(PyObject* object) { return PyObject_CheckBuffer(object) && !is_tensor(object) && !PyBytes_Check(object); }

[[noreturn]] void raise(PyObject* type, const char* message) {
  PyErr_SetString(type, message);
  throw ErrorSet{};
}

// ---- nested lists

/// What the numbers are so far: bool < int64 < float.
struct Found {
  std::optional<DType> wanted;
  Shape shape;
  std::optional<DType> dtype;
  std::vector<double> floats;
  std::vector<int64_t> integers;
};

/// A list, a tuple or another sequence as one of these, of the length that it says, since its items may never end; none of what
/// is no sequence.
nanobind::object as_list(PyObject* object) {
  if (PyList_Check(object) || PyTuple_Check(object)) return nanobind::borrow(object);
  if (is_tensor(object) || accepts(Kind::scalar, object) || !PySequence_Check(object) || PyUnicode_Check(object) ||
      PyBytes_Check(object))
    return {};
  const Py_ssize_t size = PySequence_Size(object);
  auto list = nanobind::steal(size < 0 ? nullptr : PyList_New(0));
  for (Py_ssize_t i = 0; list.is_valid() && i < size; ++i) {
    const auto item = nanobind::steal(PySequence_GetItem(object, i));
    if (!item.is_valid() || PyList_Append(list.ptr(), item.ptr()) < 0) list.reset();
  }
  if (!list.is_valid()) throw ErrorSet{};
  return list;
}

void meet(Found& found, DType dtype) { found.dtype = found.dtype ? promote_types(*found.dtype, dtype) : dtype; }

void add_elements(Found& found, const Tensor& x) {
  meet(found, x.dtype());
  for (const double value : x.to_vector<double>()) found.floats.push_back(value);
  const bool whole = !x.is_floating();
  for (const int64_t value : whole ? x.to_vector<int64_t>() : std::vector<int64_t>(static_cast<size_t>(x.numel())))
    found.integers.push_back(value);
}

/// The dtype that NumPy's numbers have, where there is one.
std::optional<DType> dtype_of_numpy(PyObject* number) {
  static const std::map<std::string_view, DType> dtypes = {{"numpy.float64", DType::float64},
                                                           {"numpy.float32", DType::float32},
                                                           {"numpy.float16", DType::float16},
                                                           {"numpy.int32", DType::int32},
                                                           {"numpy.uint8", DType::uint8}};
  if (PyFloat_CheckExact(number) || PyLong_CheckExact(number)) return {};
  const auto dtype = dtypes.find(Py_TYPE(number)->tp_name);
  return dtype == dtypes.end() ? std::nullopt : std::optional(dtype->second);
}

/// An integer of more than 64 bits is taken where floats are wanted.
bool add_large_integer(Found& found, PyObject* object) {
  int overflow = 0;
  if (PyLong_Check(object)) PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow == 0) return false;
  if (!found.wanted || !is_floating(*found.wanted)) raise(PyExc_ValueError, "Overflow when unpacking long long");
  meet(found, *found.wanted);
  found.floats.push_back(number_from(object));
  found.integers.push_back(0);
  return true;
}

void add_number(Found& found, PyObject* object) {
  if (is_tensor(object)) {
    if (tensor_of(object).numel() != 1)
      raise(PyExc_ValueError,
            "only one element tensors can be converted to Python scalars (stack makes one of several tensors)");
    return add_elements(found, tensor_of(object).detach());
  }
  if (!accepts(Kind::scalar, object)) {
    const char* name = Py_TYPE(object)->tp_name;
    if (PyUnicode_Check(object) || PyBytes_Check(object))
      PyErr_Format(PyExc_TypeError, "new(): invalid data type '%s'", name);
    else
      throw UnknownNumber(object, std::string("Could not infer dtype of ") + name);
    throw ErrorSet{};
  }
  if (add_large_integer(found, object)) return;
  const Scalar value = scalar_from(object);
  meet(found, dtype_of_numpy(object).value_or(implied_dtype(value.dtype)));
  found.floats.push_back(value.value);
  found.integers.push_back(value.integer);
}

/// Tensors within lists are numbers.
Shape shape_of(PyObject* object, int depth = 0) {
  if (depth > kMaxRank) {  // also of a list that holds itself
    PyErr_Format(PyExc_ValueError, "too many dimensions: lists are nested more than %d deep", kMaxRank);
    throw ErrorSet{};
  }
  if (is_array(object)) return tensor_over_buffer(object).shape();
  Shape shape;
  const nanobind::object list = as_list(object);
  if (!list.is_valid()) return shape;
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(list.ptr());
  if (size > 0) shape = shape_of(PySequence_Fast_GET_ITEM(list.ptr(), 0), depth + 1);
  shape.insert(0, size);
  return shape;
}

void check_length(const Found& found, int dim, int64_t size) {
  if (size == found.shape[dim]) return;
  PyErr_Format(PyExc_ValueError, "expected sequence of length %lld at dim %d (got %lld)",
               static_cast<long long>(found.shape[dim]), dim, static_cast<long long>(size));
  throw ErrorSet{};
}

/// Those of an array, which is at `dim` of the nested lists.
void add_array(Found& found, const Tensor& x, int dim) {
  ONESTEP_CHECK(ConfigError, x.dim() == found.shape.rank() - dim, "tensor: an element of shape ", x.shape(), " at dim ", dim,
                " of shape ", found.shape);
  for (int i = 0; i < x.dim(); ++i) check_length(found, dim + i, x.shape()[i]);
  add_elements(found, x);
}

void collect(Found& found, PyObject* object, int dim) {
  if (is_array(object) && !accepts(Kind::scalar, object)) return add_array(found, tensor_over_buffer(object), dim);
  if (dim == found.shape.rank()) return add_number(found, object);
  const nanobind::object list = as_list(object);
  if (!list.is_valid()) raise(PyExc_TypeError, "not a sequence");
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(list.ptr());
  check_length(found, dim, size);
  for (Py_ssize_t i = 0; i < size; ++i) collect(found, PySequence_Fast_GET_ITEM(list.ptr(), i), dim + 1);
}

/// Numbers beyond a dtype of integers are refused; those below 0 wrap in uint8, as in PyTorch.
template <class T>
void check_range(const std::vector<T>& values, DType dtype) {
  const double high = dtype == DType::uint8 ? 255.0 : dtype == DType::int32 ? 0x1p31 - 1 : 0x1p63;
  const double low = dtype == DType::int32 ? -0x1p31 : -high;
  for (const T value : values)
    ONESTEP_CHECK(ConfigError, static_cast<double>(value) >= low && static_cast<double>(value) <= high,
                  "value cannot be converted to type ", dtype, " without overflow");
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

DType dtype_of_format(PyObject* array, const Py_buffer& buffer) {
  std::string_view code = buffer.format ? buffer.format : "B";
  if (code.size() == 2 && (code[0] == '<' || code[0] == '=' || code[0] == '@')) code.remove_prefix(1);
  if (code == "q") code = "l";
  for (const auto& [dtype, known] : kFormats)
    if (code == known && size_of(dtype) == buffer.itemsize) return dtype;
  throw UnknownNumber(array, std::string("can't convert an array of format '") + (buffer.format ? buffer.format : "B") +
                                 "'. The only supported types are: float64, float32, float16, int64, int32, uint8, and bool.");
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
  const DType dtype = dtype_of_format(array, buffer);
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
  Found found;
  found.wanted = dtype;
  const nanobind::object list = as_list(data);
  PyObject* const numbers = list.is_valid() ? list.ptr() : data;
  found.shape = shape_of(numbers);
  collect(found, numbers, 0);
  const DType natural = found.dtype.value_or(default_dtype()), wanted = dtype.value_or(natural);
  const bool floats = is_floating(natural) || is_floating(wanted);
  if (!is_floating(wanted) && wanted != DType::boolean)
    floats ? check_range(found.floats, wanted) : check_range(found.integers, wanted);
  const NoGradGuard no_grad;
  return floats ? from_values(found.floats, found.shape).to(wanted) : from_values(found.integers, found.shape).to(wanted);
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
