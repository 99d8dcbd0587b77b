#pragma once
// The one device, and what else torch has of which there is one here.
#include "python/src/convert.h"

namespace onestep::python {

/// A new reference to device("cpu").
PyObject* cpu_device();
PyObject* strided_layout();
/// The node that made a tensor: an object with a name, or None. A new reference.
PyObject* grad_fn_of(const Tensor& x);

void add_device(nanobind::module_& module);

}  // namespace onestep::python
