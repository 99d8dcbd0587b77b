// Python's operators: slots of the type, which cost less than a method call.
#include "autograd/operators.h"

#include <array>

#include "python/src/data.h"

namespace onestep::python {
namespace {

using TT = Tensor (*)(const Tensor&, const Tensor&);
using TS = Tensor (*)(const Tensor&, Scalar);
using ST = Tensor (*)(Scalar, const Tensor&);

bool is_operand(PyObject* object) { return !is_tensor(object) && accepts(Kind::scalar, object); }

/// Where one of the two is a Python complex number, the operator on it as a complex tensor.
PyObject* with_complex(PyObject* a, PyObject* b, binaryfunc again) {
  const bool left = PyComplex_Check(a);
  if (!again || (!left && !PyComplex_Check(b))) Py_RETURN_NOTIMPLEMENTED;
  const nanobind::object operand = nanobind::module_::import_("onestep._complex").attr("operand");
  const nanobind::object number = operand(nanobind::handle(left ? a : b), nanobind::handle(left ? b : a));
  return left ? again(number.ptr(), b) : again(a, number.ptr());
}

/// `kAgain`: the operator of Python's objects, where it has a meaning for complex numbers.
template <TT kBoth, TS kRight, ST kLeft, binaryfunc kAgain = nullptr>
PyObject* binary(PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    if (is_tensor(a)) {
      if (is_tensor(b)) return wrap(kBoth(tensor_of(a), tensor_of(b)));
      if (is_operand(b)) return wrap(kRight(tensor_of(a), scalar_from(b)));
      if (PyObject_CheckBuffer(b)) return wrap(kBoth(tensor_of(a), tensor_over_buffer(b)));
    } else if (!is_tensor(b)) {  // pow(2, 3, tensor)
      Py_RETURN_NOTIMPLEMENTED;
    } else if (is_operand(a)) {
      return wrap(kLeft(scalar_from(a), tensor_of(b)));
    } else if (PyObject_CheckBuffer(a)) {
      return wrap(kBoth(tensor_over_buffer(a), tensor_of(b)));
    }
    return with_complex(a, b, kAgain);
  });
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return binary<pow, pow, pow>(a, b);
}

template <TT kBoth, TS kRight>
PyObject* in_place(PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    if (is_tensor(b)) {
      kBoth(tensor_of(a), tensor_of(b));
    } else if (is_operand(b)) {
      kRight(tensor_of(a), scalar_from(b));
    } else {
      Py_RETURN_NOTIMPLEMENTED;
    }
    return Py_NewRef(a);
  });
}
PyObject* in_place_power(PyObject* a, PyObject* b, PyObject* /*modulus*/) { return in_place<pow_, pow_>(a, b); }

Tensor filled(Scalar value, const Tensor& like) { return full(Shape{}, value, promote_types(value.dtype, like.dtype())); }
Tensor floor_divide_left(Scalar a, const Tensor& b) { return floor_divide(filled(a, b), b); }
Tensor shift_left(Scalar a, const Tensor& b) { return bitwise_left_shift(filled(a, b), b); }
Tensor shift_right(Scalar a, const Tensor& b) { return bitwise_right_shift(filled(a, b), b); }

PyObject* multiply_matrices(PyObject* a, PyObject* b) {
  if (!is_tensor(a) || !is_tensor(b)) Py_RETURN_NOTIMPLEMENTED;
  return guarded([&] {
    const Tensor left = tensor_of(a), right = tensor_of(b);
    Tensor product;
    {
      const nanobind::gil_scoped_release released;
      product = matmul(left, right);
    }
    return wrap(std::move(product));
  });
}

template <Tensor (*kOp)(const Tensor&)>
PyObject* unary(PyObject* a) {
  return guarded([&] { return wrap(kOp(tensor_of(a))); });
}
PyObject* positive(PyObject* a) { return Py_NewRef(a); }

template <class T>
T single(PyObject* a) {
  const Tensor& x = tensor_of(a);
  ONESTEP_CHECK(ConfigError, x.numel() == 1, "only one element tensors can be converted to Python scalars: got ", x.numel(),
                " elements");
  return x.item<T>();
}

int truth(PyObject* a) {
  try {
    const Tensor& x = tensor_of(a);
    ONESTEP_CHECK(Error, x.numel() == 1, "Boolean value of Tensor with ", x.numel() == 0 ? "no" : "more than one",
                  x.numel() == 0 ? " values" : " value", " is ambiguous");
    return x.item<double>() != 0;
  } catch (...) {
    set_error();
    return -1;
  }
}
PyObject* as_float(PyObject* a) {
  return guarded([&] { return PyFloat_FromDouble(single<double>(a)); });
}
PyObject* as_int(PyObject* a) {
  return guarded([&] {
    return tensor_of(a).is_floating() ? PyLong_FromDouble(single<double>(a)) : PyLong_FromLongLong(single<int64_t>(a));
  });
}
PyObject* as_index(PyObject* a) {
  if (tensor_of(a).is_floating() || tensor_of(a).numel() != 1) {
    PyErr_SetString(PyExc_TypeError, "only integer tensors of a single element can be converted to an index");
    return nullptr;
  }
  return as_int(a);
}

template <size_t kOp>
PyObject* compared(PyObject* a, PyObject* b) {
  constexpr std::array<TT, 6> both = {lt, le, eq, ne, gt, ge};
  constexpr std::array<TS, 6> right = {lt, le, eq, ne, gt, ge};
  return guarded([&]() -> PyObject* {
    if (is_tensor(b)) return wrap(both[kOp](tensor_of(a), tensor_of(b)));
    if (is_operand(b)) return wrap(right[kOp](tensor_of(a), scalar_from(b)));
    if (std::string_view(Py_TYPE(b)->tp_name) == "numpy.ndarray")  // which else would be unequal as a whole
      return wrap(both[kOp](tensor_of(a), tensor_from_data(b, {})));
    Py_RETURN_NOTIMPLEMENTED;
  });
}
PyObject* compare(PyObject* a, PyObject* b, int op) {  // Py_LT, Py_LE, Py_EQ, Py_NE, Py_GT, Py_GE
  using Compare = PyObject* (*)(PyObject*, PyObject*);
  static constexpr std::array<Compare, 6> by_op = {compared<0>, compared<1>, compared<2>,
                                                   compared<3>, compared<4>, compared<5>};
  return by_op[static_cast<size_t>(op)](a, b);
}

template <class F>
PyType_Slot slot(int id, F* function) {
  return {id, reinterpret_cast<void*>(function)};
}

}  // namespace

std::span<const PyType_Slot> number_slots() {
  static const std::array slots = {
      slot(Py_nb_add, binary<(operator+), (operator+), (operator+), PyNumber_Add>),
      slot(Py_nb_subtract, binary<(operator-), (operator-), (operator-), PyNumber_Subtract>),
      slot(Py_nb_multiply, binary<(operator*), (operator*), (operator*), PyNumber_Multiply>),
      slot(Py_nb_true_divide, binary<(operator/), (operator/), (operator/), PyNumber_TrueDivide>),
      slot(Py_nb_remainder, binary<(operator%), (operator%), (operator%)>),
      slot(Py_nb_floor_divide, binary<floor_divide, floor_divide, floor_divide_left>),
      slot(Py_nb_and, binary<(operator&), (operator&), (operator&)>),
      slot(Py_nb_or, binary<(operator|), (operator|), (operator|)>),
      slot(Py_nb_xor, binary<(operator^), (operator^), (operator^)>),
      slot(Py_nb_lshift, binary<(operator<<), (operator<<), (shift_left)>),
      slot(Py_nb_rshift, binary<(operator>>), (operator>>), (shift_right)>),
      slot(Py_nb_power, power),
      slot(Py_nb_matrix_multiply, multiply_matrices),
      slot(Py_nb_inplace_add, in_place<add_, add_>),
      slot(Py_nb_inplace_subtract, in_place<sub_, sub_>),
      slot(Py_nb_inplace_multiply, in_place<mul_, mul_>),
      slot(Py_nb_inplace_true_divide, in_place<div_, div_>),
      slot(Py_nb_inplace_remainder, in_place<remainder_, remainder_>),
      slot(Py_nb_inplace_floor_divide, in_place<floor_divide_, floor_divide_>),
      slot(Py_nb_inplace_and, in_place<bitwise_and_, bitwise_and_>),
      slot(Py_nb_inplace_or, in_place<bitwise_or_, bitwise_or_>),
      slot(Py_nb_inplace_xor, in_place<bitwise_xor_, bitwise_xor_>),
      slot(Py_nb_inplace_lshift, in_place<bitwise_left_shift_, bitwise_left_shift_>),
      slot(Py_nb_inplace_rshift, in_place<bitwise_right_shift_, bitwise_right_shift_>),
      slot(Py_nb_inplace_power, in_place_power),
      slot(Py_nb_negative, unary<neg>),
      slot(Py_nb_positive, positive),
      slot(Py_nb_absolute, unary<abs>),
      slot(Py_nb_invert, unary<bitwise_not>),
      slot(Py_nb_bool, truth),
      slot(Py_nb_float, as_float),
      slot(Py_nb_int, as_int),
      slot(Py_nb_index, as_index),
      slot(Py_tp_richcompare, compare),
  };
  return slots;
}

}  // namespace onestep::python
