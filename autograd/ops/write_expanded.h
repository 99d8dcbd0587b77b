#pragma once
// Recorded in-place ops on tensors whose elements share memory.
#include <functional>

#include "autograd/node.h"

namespace onestep::ops {

/// assign_in_place where `write` changes `self`, of which `result` may not be a copy: elements that expand has repeated hold
/// what was written last. As in PyTorch no gradient of the base passes such a write.
Tensor& write_recorded(const char* name, Tensor& self, const Tensor& result, const std::function<void()>& write);

}  // namespace onestep::ops
