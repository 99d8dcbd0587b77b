#pragma once
// The ways in which a tensor can lie in memory, for tests that an op does not care.
#include <vector>

#include "autograd/tensor.h"

namespace onestep::testing {

/// `apply` gives a tensor with x's values (with `expanded`, some of them repeated) that is not laid out in rows.
struct Layout {
  const char* name;
  Tensor (*apply)(const Tensor& x);
};

/// Transposed, every second element of a longer last dim, a window of a larger tensor, and stride 0. What lies between the
/// elements is NaN, or a number that no op takes for an index.
const std::vector<Layout>& layouts();

}  // namespace onestep::testing
