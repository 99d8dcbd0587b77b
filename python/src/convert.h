#pragma once
// Python objects as the arguments of ops, and results as Python objects.
#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/ops.h"
#include "python/src/tensor_type.h"

namespace onestep::python {

/// A kind of argument in a signature.
enum class Kind : uint8_t {
  tensor,
  scalar,
  integer,
  number,
  boolean,
  integers,
  numbers,
  sizes,
  tensors,
  dtype,
  string,
  generator,
  any
};

/// What an error calls an argument: its type's name, or that of a dtype which is not here.
std::string kind_of(PyObject* object);

/// Whether `object` (not None) can stand for an argument of this kind.
bool accepts(Kind kind, PyObject* object);

/// That of a number, or of one that bool, int64 and float32 (any float) stand for: default_dtype() of floats.
inline DType implied_dtype(DType kind) { return is_floating(kind) ? default_dtype() : kind; }

/// The dtypes are objects, one each.
struct DTypeObject {
  DType value;
};
PyObject* dtype_object(DType dtype);
bool is_dtype(PyObject* object);
DType dtype_from(PyObject* object);

/// Throws Error unless it is the CPU.
void check_device(PyObject* device);

/// None in a list of sizes.
inline constexpr int64_t kNoSize = INT64_MIN;

/// What stands between the brackets of a subscript.
std::vector<TensorIndex> entries_from(PyObject* key);

Scalar scalar_from(PyObject* object);
int64_t integer_from(PyObject* object);
double number_from(PyObject* object);
Shape shape_from(PyObject* object);
std::vector<int64_t> integers_from(PyObject* object);
std::vector<double> numbers_from(PyObject* object);
std::vector<Tensor> tensors_from(PyObject* object);
std::string_view string_from(PyObject* object);
/// Null, or the generator that a data loader's worker draws from instead of the default one.
Generator*& generator_of_thread();
/// That of this thread, else the default one.
Generator& current_generator();
Generator& generator_from(PyObject* object);
Reduction reduction_from(PyObject* object);

inline const Tensor& tensor_from(PyObject* object) {
  static const Tensor undefined;
  return object == Py_None ? undefined : tensor_of(object);
}

/// From<T>::get(object) is the C++ value of an argument that was accepted.
template <class T>
struct From;
#define ONESTEP_FROM(TYPE, FUNCTION)                               \
  template <>                                                      \
  struct From<TYPE> {                                              \
    static TYPE get(PyObject* object) { return FUNCTION(object); } \
  };
ONESTEP_FROM(const Tensor&, tensor_from)
ONESTEP_FROM(Scalar, scalar_from)
ONESTEP_FROM(int64_t, integer_from)
ONESTEP_FROM(double, number_from)
ONESTEP_FROM(bool, PyObject_IsTrue)
ONESTEP_FROM(Shape, shape_from)
ONESTEP_FROM(std::vector<int64_t>, integers_from)
ONESTEP_FROM(std::vector<double>, numbers_from)
ONESTEP_FROM(std::vector<Tensor>, tensors_from)
ONESTEP_FROM(DType, dtype_from)
ONESTEP_FROM(std::string_view, string_from)
ONESTEP_FROM(Generator&, generator_from)
ONESTEP_FROM(Reduction, reduction_from)
ONESTEP_FROM(PyObject*, )
#undef ONESTEP_FROM
template <>
struct From<const Shape&> : From<Shape> {};
template <>
struct From<const std::vector<int64_t>&> : From<std::vector<int64_t>> {};
template <>
struct From<const std::vector<Tensor>&> : From<std::vector<Tensor>> {};
template <>
struct From<TensorList> : From<std::vector<Tensor>> {};
template <class T>
struct From<std::optional<T>> {
  static std::optional<T> get(PyObject* object) {
    if (object == Py_None) return {};
    return From<T>::get(object);
  }
};

// What an op returns: a new reference. `name` names the type of a result with several parts.
PyObject* to_python(bool value, const char* name);
PyObject* to_python(int64_t value, const char* name);
PyObject* to_python(double value, const char* name);
PyObject* to_python(Tensor value, const char* name);
PyObject* to_python(const std::vector<Tensor>& values, const char* name);
PyObject* to_python(const ValuesIndices& pair, const char* name);
PyObject* to_python(const MinMax& pair, const char* name);
PyObject* to_python(const VarMean& pair, const char* name);
PyObject* to_python(const StdMean& pair, const char* name);
PyObject* to_python(const UniqueResult& found, const char* name);
PyObject* to_python(DType value, const char* name);
inline PyObject* to_python(PyObject* object, const char* /*name*/) { return object; }

}  // namespace onestep::python
