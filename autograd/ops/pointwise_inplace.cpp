// In-place forms of elementwise ops: x takes over the values of the op's result and, while recording, its place in the graph.
#include "autograd/ops/elementwise.h"
#include "autograd/ops_pointwise.h"
#include "autograd/ops_shape.h"

namespace onestep {
namespace {

/// x = op(x), whose gradient, and those of the other operands, may need x as it was.
template <class F>
Tensor write(const char* name, const Tensor& target, TensorList others, const F& op) {
  Tensor x = target;
  x.check_writable(name);
  const bool recorded = detail::should_record({x}) || detail::should_record(others);
  const auto assign = [&](const Tensor& result) {
    ops::check_result_dtype(name, x, result.dtype());
    return assign_in_place(name, x, to(result, x.dtype()));
  };
  if (recorded) return assign(op(clone(x)));
  const Tensor elements = x.values();  // which `op` may return: x itself would be no view any more
  const Tensor result = [&] {
    const ops::ResultInPlace in_place(name, elements);
    return op(elements);
  }();
  return &result.impl() == &elements.impl() ? x : assign(result);
}

}  // namespace

#define ONESTEP_DEFINE(NAME)                                                 \
  Tensor NAME##_(const Tensor& x) {                                          \
    return write(#NAME "_", x, {}, [](const Tensor& v) { return NAME(v); }); \
  }
ONESTEP_UNARY_OPS(ONESTEP_DEFINE)
#undef ONESTEP_DEFINE
#define ONESTEP_DEFINE(NAME)                                                       \
  Tensor NAME##_(const Tensor& x, const Tensor& y) {                               \
    return write(#NAME "_", x, {y}, [&y](const Tensor& v) { return NAME(v, y); }); \
  }
ONESTEP_BINARY_OPS(ONESTEP_DEFINE)
ONESTEP_SCALAR_OPS(ONESTEP_DEFINE)
#undef ONESTEP_DEFINE
#define ONESTEP_DEFINE(NAME)                                                     \
  Tensor NAME##_(const Tensor& x, Scalar y) {                                    \
    return write(#NAME "_", x, {}, [y](const Tensor& v) { return NAME(v, y); }); \
  }
ONESTEP_SCALAR_OPS(ONESTEP_DEFINE)
#undef ONESTEP_DEFINE

Tensor add_(const Tensor& x, const Tensor& y, Scalar alpha) {
  return write("add_", x, {y}, [&](const Tensor& v) { return add(v, y, alpha); });
}
Tensor sub_(const Tensor& x, const Tensor& y, Scalar alpha) {
  return write("sub_", x, {y}, [&](const Tensor& v) { return sub(v, y, alpha); });
}
Tensor add_product_(const Tensor& x, const Tensor& a, const Tensor& b, Scalar scale) {
  return write("add_product_", x, {a, b}, [&](const Tensor& v) { return add_product(v, a, b, scale); });
}
Tensor add_quotient_(const Tensor& x, const Tensor& a, const Tensor& b, Scalar scale) {
  return write("add_quotient_", x, {a, b}, [&](const Tensor& v) { return add_quotient(v, a, b, scale); });
}
Tensor round_(const Tensor& x, int64_t decimals) {
  return write("round_", x, {}, [=](const Tensor& v) { return round(v, decimals); });
}
Tensor div_(const Tensor& x, const Tensor& y, RoundingMode rounding_mode) {
  return write("div_", x, {y}, [&](const Tensor& v) { return div(v, y, rounding_mode); });
}
Tensor div_(const Tensor& x, Scalar y, RoundingMode rounding_mode) {
  return write("div_", x, {}, [=](const Tensor& v) { return div(v, y, rounding_mode); });
}
Tensor clamp_(const Tensor& x, std::optional<Scalar> low, std::optional<Scalar> high) {
  return write("clamp_", x, {}, [=](const Tensor& v) { return clamp(v, low, high); });
}
Tensor clamp_(const Tensor& x, const Tensor& low, const Tensor& high) {
  return write("clamp_", x, {low, high}, [&](const Tensor& v) { return clamp(v, low, high); });
}
Tensor lerp_(const Tensor& a, const Tensor& b, const Tensor& weight) {
  return write("lerp_", a, {b, weight}, [&](const Tensor& v) { return lerp(v, b, weight); });
}
Tensor lerp_(const Tensor& a, const Tensor& b, double weight) {
  return write("lerp_", a, {b}, [&](const Tensor& v) { return lerp(v, b, weight); });
}
Tensor nan_to_num_(const Tensor& x, double nan, std::optional<double> posinf, std::optional<double> neginf) {
  return write("nan_to_num_", x, {}, [=](const Tensor& v) { return nan_to_num(v, nan, posinf, neginf); });
}
Tensor leaky_relu_(const Tensor& x, double negative_slope) {
  return write("leaky_relu_", x, {}, [=](const Tensor& v) { return leaky_relu(v, negative_slope); });
}
Tensor elu_(const Tensor& x, double alpha) {
  return write("elu_", x, {}, [=](const Tensor& v) { return elu(v, alpha); });
}
Tensor selu_(const Tensor& x) {
  return write("selu_", x, {}, [](const Tensor& v) { return selu(v); });
}
Tensor celu_(const Tensor& x, double alpha) {
  return write("celu_", x, {}, [=](const Tensor& v) { return celu(v, alpha); });
}
Tensor hardtanh_(const Tensor& x, double min_value, double max_value) {
  return write("hardtanh_", x, {}, [=](const Tensor& v) { return hardtanh(v, min_value, max_value); });
}
Tensor threshold_(const Tensor& x, double threshold, double value) {
  return write("threshold_", x, {}, [=](const Tensor& v) { return onestep::threshold(v, threshold, value); });
}
Tensor zero_(const Tensor& x) { return fill_(x, 0); }

}  // namespace onestep
