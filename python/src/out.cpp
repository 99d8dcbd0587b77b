// The keyword `out` of ops.
#include "autograd/grad_mode.h"
#include "op.h"

namespace onestep::python {
namespace {

/// Whether values of one dtype may be stored as another (torch.can_cast).
bool can_cast(DType from, DType to) {
  if (is_floating(from)) return is_floating(to);
  return from == DType::boolean || to != DType::boolean;
}

void take(std::string_view name, const Tensor& result, Tensor& out) {
  ONESTEP_CHECK(GradError, !result.requires_grad() && !(out.requires_grad() && grad_enabled()), name,
                "(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
                "requires grad.");
  ONESTEP_CHECK(Error, can_cast(result.dtype(), out.dtype()), name, ": a result of dtype ", result.dtype(),
                " cannot be stored in out of dtype ", out.dtype());
  const NoGradGuard no_grad;
  if (out.shape() == result.shape())
    copy_(out, result);
  else
    out.set_data(to(result, out.dtype()));
}

}  // namespace

PyObject* write_out(PyObject* name, PyObject* result, PyObject* out) {
  if (out == Py_None) return Py_NewRef(result);
  const std::string_view op = string_from(name);
  if (is_tensor(result)) {
    if (!is_tensor(out)) fail<DTypeError>(op, ": out must be a tensor");
    take(op, tensor_of(result), tensor_of(out));
    return Py_NewRef(out);
  }
  if (!PyTuple_Check(result)) fail<DTypeError>(op, ": does not take out");
  if (!accepts(Kind::tensors, out) || PySequence_Size(out) != PyTuple_GET_SIZE(result))
    fail<DTypeError>(op, ": out must be a tuple of ", PyTuple_GET_SIZE(result), " tensors");
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result); ++i)
    take(op, tensor_of(PyTuple_GET_ITEM(result, i)), tensor_of(PySequence_Fast_GET_ITEM(out, i)));
  return PyObject_CallOneArg(reinterpret_cast<PyObject*>(Py_TYPE(result)), out);
}

void bind_out() {
  function(
      "_write_out(str name, any result, any out)", +[](PyObject* name, PyObject* result, PyObject* out) {
        return write_out(name, result, out);
      });
}

}  // namespace onestep::python
