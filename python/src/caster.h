#pragma once
// Tensors as arguments and results of functions that nanobind binds.
#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "python/src/tensor_type.h"

namespace nanobind::detail {

template <>
struct type_caster<onestep::Tensor> {
  NB_TYPE_CASTER(onestep::Tensor, const_name("Tensor"))
  bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
    if (source.is_none()) return value = onestep::Tensor(), true;
    if (!onestep::python::is_tensor(source.ptr())) return false;
    return value = onestep::python::tensor_of(source.ptr()), true;
  }
  static handle from_cpp(const onestep::Tensor& tensor, rv_policy, cleanup_list*) noexcept {
    return onestep::python::wrap(tensor);
  }
};

}  // namespace nanobind::detail

namespace onestep::python {

/// One of the engine's guards for as long as a Python context lasts.
template <class Guard>
class Switch {
 public:
  void enter(bool on) { guard_ = std::make_unique<Guard>(on); }
  void exit() { guard_.reset(); }

 private:
  std::unique_ptr<Guard> guard_;
};

/// Runs `f` while other Python threads may run.
template <class F>
auto unlocked(F&& f) {
  const nanobind::gil_scoped_release released;
  return f();
}

}  // namespace onestep::python
