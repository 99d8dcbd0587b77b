// The keyword `out` of ops.
#include <set>

#include "autograd/grad_mode.h"
#include "python/src/op.h"

namespace onestep::python {
namespace {

/// Whether values of one dtype may be stored as another (torch.can_cast).
bool can_cast(DType from, DType to) {
  if (is_floating(from)) return is_floating(to);
  return from == DType::boolean || to != DType::boolean;
}

/// Ops that read while they write: out may not be an input, nor have another dtype than the result.
bool is_strict(std::string_view name) {
  static const std::set<std::string_view> names = {"aminmax", "gather", "index_select", "kthvalue", "masked_select",
                                                   "median",  "mode",   "sort",         "take",     "topk"};
  return names.count(name) == 1;
}

/// The bytes from the first element to one past the last.
std::pair<const char*, const char*> bytes_of(const Tensor& x) {
  const auto* first = static_cast<const char*>(x.data_ptr());
  int64_t last = x.numel() > 0 ? 1 : 0;
  for (int d = 0; x.numel() > 0 && d < x.dim(); ++d) last += (x.shape()[d] - 1) * x.strides()[d];
  return {first, first + last * size_of(x.dtype())};
}

bool joins(std::string_view name) { return name == "cat" || name == "concat" || name == "concatenate"; }

void check_memory(std::string_view name, const Tensor& out, std::span<PyObject* const> inputs) {
  for (int d = 0; d < out.dim(); ++d)
    ONESTEP_CHECK(Error, out.strides()[d] != 0 || out.shape()[d] < 2, name,
                  ": more than one element of out refers to a single memory location (clone it first)");
  const auto [begin, end] = bytes_of(out);
  for (PyObject* const input : inputs) {
    if (PyList_Check(input) || PyTuple_Check(input))
      check_memory(name, out, {PySequence_Fast_ITEMS(input), static_cast<size_t>(PySequence_Fast_GET_SIZE(input))});
    if (!is_tensor(input)) continue;
    const Tensor& x = tensor_of(input);
    ONESTEP_CHECK(Error, !joins(name) || &x != &out, name, ": out is one of the inputs (clone it first)");  // an empty one, too
    if (!x.shares_storage(out)) continue;
    const auto [from, to] = bytes_of(x);
    const bool same = x.data_ptr() == out.data_ptr() && x.shape() == out.shape() && x.strides() == out.strides();
    const bool dense = x.is_contiguous() && out.is_contiguous(), apart = from >= end || begin >= to;
    ONESTEP_CHECK(Error, apart ? !is_strict(name) : !is_strict(name) && !joins(name) && (same || !dense), name,
                  ": some elements of an input and out refer to a single memory location (clone it first)");
  }
}

void take(std::string_view name, const Tensor& result, Tensor& out, std::span<PyObject* const> inputs) {
  check_memory(name, out, inputs);
  ONESTEP_CHECK(Error, !is_strict(name) || result.dtype() == out.dtype(), name, ": out must have dtype ", result.dtype(),
                ": got ", out.dtype());
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

PyObject* write_out(PyObject* name, PyObject* result, PyObject* out, std::span<PyObject* const> inputs) {
  if (out == Py_None) return Py_NewRef(result);
  const std::string_view op = string_from(name);
  if (is_tensor(result)) {
    if (!is_tensor(out)) fail<DTypeError>(op, ": out must be a tensor");
    take(op, tensor_of(result), tensor_of(out), inputs);
    return Py_NewRef(out);
  }
  if (!PyTuple_Check(result)) fail<DTypeError>(op, ": does not take out");
  if (!accepts(Kind::tensors, out) || PySequence_Size(out) != PyTuple_GET_SIZE(result))
    fail<DTypeError>(op, ": out must be a tuple of ", PyTuple_GET_SIZE(result), " tensors");
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result); ++i)
    take(op, tensor_of(PyTuple_GET_ITEM(result, i)), tensor_of(PySequence_Fast_GET_ITEM(out, i)), inputs);
  return PyObject_CallOneArg(reinterpret_cast<PyObject*>(Py_TYPE(result)), out);
}

void bind_out() {
  function(
      "_write_out(str name, any result, any out)",
      +[](PyObject* name, PyObject* result, PyObject* out) { return write_out(name, result, out); });
}

}  // namespace onestep::python
