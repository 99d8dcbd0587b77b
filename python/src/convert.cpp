#include "python/src/convert.h"

#include <map>

namespace nb = nanobind;

namespace onestep::python {
namespace {

bool is_number(PyObject* object) {
  if (PyFloat_Check(object) || PyLong_Check(object)) return true;
  if (is_tensor(object)) return tensor_of(object).numel() == 1;
  const PyNumberMethods* numbers = Py_TYPE(object)->tp_as_number;
  return numbers && (numbers->nb_float || numbers->nb_index) && !Py_TYPE(object)->tp_as_sequence;
}

bool is_integer(PyObject* object) {
  if (PyLong_Check(object)) return true;
  if (is_tensor(object)) return tensor_of(object).numel() == 1 && !tensor_of(object).is_floating();
  return PyIndex_Check(object);
}

bool is_numpy_bool(PyObject* object) {
  const std::string_view name = Py_TYPE(object)->tp_name;
  return name == "numpy.bool" || name == "numpy.bool_";
}

template <class F>
bool all_of(PyObject* object, F&& f) {
  if (!PyTuple_Check(object) && !PyList_Check(object)) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
    if (!f(PySequence_Fast_GET_ITEM(object, i))) return false;
  return true;
}

template <class T, class F>
std::vector<T> list_from(PyObject* object, F&& f) {
  std::vector<T> list;
  if (!PyTuple_Check(object) && !PyList_Check(object)) return {f(object)};
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) list.push_back(f(PySequence_Fast_GET_ITEM(object, i)));
  return list;
}

}  // namespace

std::string kind_of(PyObject* object) {
  const std::string type = Py_TYPE(object)->tp_name;
  if (type != "MissingDType") return type;
  const nb::str dtype = nb::repr(nb::handle(object));
  return std::string(dtype.c_str()) + " (dtypes here are float32, float64, float16, bfloat16, int64, int32, uint8 and bool)";
}

bool accepts(Kind kind, PyObject* object) {
  switch (kind) {
    case Kind::tensor:
      return is_tensor(object);
    case Kind::scalar:
    case Kind::number:
      return is_number(object);
    case Kind::integer:
      return is_integer(object);
    case Kind::boolean:
      return PyBool_Check(object) || is_numpy_bool(object);
    case Kind::integers:
      return all_of(object, is_integer) || (is_integer(object) && !PyBool_Check(object));
    case Kind::sizes:
      return all_of(object, [](PyObject* size) { return size == Py_None || is_integer(size); }) || is_integer(object);
    case Kind::numbers:
      return all_of(object, is_number) || is_number(object);
    case Kind::tensors:
      return all_of(object, is_tensor);
    case Kind::dtype:
      return is_dtype(object);
    case Kind::string:
      return PyUnicode_Check(object);
    case Kind::generator:  // ready: unless a derived class left out super().__init__()
      return nb::isinstance<Generator>(object) && nb::inst_ready(object);
    case Kind::any:
      return true;
  }
  return false;
}

Scalar scalar_from(PyObject* object) {
  if (PyBool_Check(object)) return object == Py_True;
  if (PyFloat_Check(object)) return PyFloat_AS_DOUBLE(object);
  if (PyLong_Check(object)) return integer_from(object);
  if (is_tensor(object)) {
    const Tensor& x = tensor_of(object);
    if (x.is_floating()) return x.item<double>();
    return x.dtype() == DType::boolean ? Scalar(x.item<bool>()) : Scalar(x.item<int64_t>());
  }
  if (is_numpy_bool(object)) return PyObject_IsTrue(object) == 1;
  return PyIndex_Check(object) ? Scalar(integer_from(object)) : Scalar(number_from(object));
}

int64_t integer_from(PyObject* object) {
  if (is_tensor(object)) return tensor_of(object).item<int64_t>();
  const int64_t value = PyLong_AsLongLong(object);
  if (value == -1 && PyErr_Occurred()) throw ErrorSet{};
  return value;
}

double number_from(PyObject* object) {
  if (is_tensor(object)) return tensor_of(object).item<double>();
  const double value = PyFloat_AsDouble(object);
  if (value == -1 && PyErr_Occurred()) throw ErrorSet{};
  return value;
}

Shape shape_from(PyObject* object) {
  if (PyTuple_Check(object) || PyList_Check(object)) {
    Shape shape;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
      PyObject* size = PySequence_Fast_GET_ITEM(object, i);
      shape.push_back(size == Py_None ? kNoSize : integer_from(size));
    }
    return shape;
  }
  return integer_from(object);
}

std::vector<int64_t> integers_from(PyObject* object) { return list_from<int64_t>(object, integer_from); }
std::vector<double> numbers_from(PyObject* object) { return list_from<double>(object, number_from); }
std::vector<Tensor> tensors_from(PyObject* object) {
  return list_from<Tensor>(object, [](PyObject* part) -> const Tensor& {
    if (is_tensor(part)) return tensor_of(part);
    PyErr_Format(PyExc_TypeError, "expected a list of tensors, found %s", Py_TYPE(part)->tp_name);
    throw ErrorSet{};  // another argument's __index__ changed the list after it was looked at
  });
}

std::string_view string_from(PyObject* object) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(object, &size);
  if (!text) throw ErrorSet{};
  return {text, static_cast<size_t>(size)};
}

Generator*& generator_of_thread() {
  thread_local Generator* generator = nullptr;
  return generator;
}
Generator& current_generator() { return generator_of_thread() ? *generator_of_thread() : default_generator(); }

Generator& generator_from(PyObject* object) {
  return object == Py_None ? current_generator() : *nb::inst_ptr<Generator>(object);
}

Reduction reduction_from(PyObject* object) {
  const std::string_view name = string_from(object);
  if (name == "none") return Reduction::none;
  if (name == "mean") return Reduction::mean;
  if (name == "sum") return Reduction::sum;
  if (name == "batchmean") return Reduction::batchmean;
  fail<ConfigError>(name, " is not a valid value for reduction");
}

// ---- dtypes

PyObject* dtype_object(DType dtype) {
  static std::array<PyObject*, kDTypes> objects{};
  PyObject*& object = objects[static_cast<size_t>(dtype)];
  if (!object) object = nb::cast(DTypeObject{dtype}).release().ptr();
  return object;
}

bool is_dtype(PyObject* object) {
  const auto* type = reinterpret_cast<PyTypeObject*>(object);
  return (nb::isinstance<DTypeObject>(object) && nb::inst_ready(object)) || type == &PyFloat_Type || type == &PyLong_Type ||
         type == &PyBool_Type;
}

DType dtype_from(PyObject* object) {
  const auto* type = reinterpret_cast<PyTypeObject*>(object);
  if (type == &PyFloat_Type) return DType::float64;
  if (type == &PyLong_Type) return DType::int64;
  if (type == &PyBool_Type) return DType::boolean;
  return nb::inst_ptr<DTypeObject>(object)->value;
}

// ---- results

namespace {

/// torch.return_types.NAME: a tuple whose parts have names.
PyTypeObject* pair_type(const char* name, const char* first, const char* second) {
  static std::map<std::string, PyTypeObject*> types;
  PyTypeObject*& type = types[name];
  if (type) return type;
  static std::vector<std::unique_ptr<std::string>> names;  // the descriptor keeps pointers
  names.push_back(std::make_unique<std::string>(std::string("torch.return_types.") + name));
  PyStructSequence_Field fields[] = {{first, nullptr}, {second, nullptr}, {}};
  PyStructSequence_Desc description{names.back()->c_str(), nullptr, fields, 2};
  type = PyStructSequence_NewType(&description);
  if (!type) throw ErrorSet{};
  type->tp_repr = [](PyObject* self) {
    PyObject* names_of = PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(self)), "__match_args__");
    PyObject* text =
        names_of ? PyUnicode_FromFormat("%s(\n%U=%R,\n%U=%R)", Py_TYPE(self)->tp_name, PyTuple_GET_ITEM(names_of, 0),
                                        PyTuple_GET_ITEM(self, 0), PyTuple_GET_ITEM(names_of, 1), PyTuple_GET_ITEM(self, 1))
                 : nullptr;
    Py_XDECREF(names_of);
    return text;
  };
  return type;
}

PyObject* make_pair(PyTypeObject* type, const Tensor& first, const Tensor& second) {
  PyObject* pair = PyStructSequence_New(type);
  PyStructSequence_SetItem(pair, 0, wrap(first));
  PyStructSequence_SetItem(pair, 1, wrap(second));
  return pair;
}

PyObject* tuple_of(const std::vector<Tensor>& values) {
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(values.size()));
  for (size_t i = 0; i < values.size(); ++i) PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), wrap(values[i]));
  return tuple;
}

}  // namespace

PyObject* to_python(bool value, const char* /*name*/) { return PyBool_FromLong(value); }
PyObject* to_python(int64_t value, const char* /*name*/) { return PyLong_FromLongLong(value); }
PyObject* to_python(double value, const char* /*name*/) { return PyFloat_FromDouble(value); }
PyObject* to_python(Tensor value, const char* /*name*/) { return wrap(std::move(value)); }
PyObject* to_python(const std::vector<Tensor>& values, const char* /*name*/) { return tuple_of(values); }
PyObject* to_python(const ValuesIndices& pair, const char* name) {
  return make_pair(pair_type(name, "values", "indices"), pair.values, pair.indices);
}
PyObject* to_python(const MinMax& pair, const char* name) {
  return make_pair(pair_type(name, "min", "max"), pair.min, pair.max);
}
PyObject* to_python(const VarMean& pair, const char* /*name*/) { return tuple_of({pair.var, pair.mean}); }
PyObject* to_python(const StdMean& pair, const char* /*name*/) { return tuple_of({pair.std, pair.mean}); }
PyObject* to_python(const UniqueResult& found, const char* /*name*/) {
  if (!found.inverse.defined() && !found.counts.defined()) return wrap(found.values);
  std::vector<Tensor> parts{found.values};
  if (found.inverse.defined()) parts.push_back(found.inverse);
  if (found.counts.defined()) parts.push_back(found.counts);
  return tuple_of(parts);
}
PyObject* to_python(DType value, const char* /*name*/) { return Py_NewRef(dtype_object(value)); }

}  // namespace onestep::python
