// The ops of ops_pointwise.h as methods.
#include "autograd/ops_math.h"
#include "autograd/ops_pointwise.h"
#include "autograd/tensor.h"

namespace onestep {

#define ONESTEP_METHODS(NAME)                                          \
  Tensor TensorMethods::NAME() const { return onestep::NAME(self()); } \
  Tensor TensorMethods::NAME##_() const { return onestep::NAME##_(self()); }
ONESTEP_UNARY_OPS(ONESTEP_METHODS)
#undef ONESTEP_METHODS
#define ONESTEP_METHODS(NAME)                                                            \
  Tensor TensorMethods::NAME(const Tensor& y) const { return onestep::NAME(self(), y); } \
  Tensor TensorMethods::NAME##_(const Tensor& y) const { return onestep::NAME##_(self(), y); }
ONESTEP_BINARY_OPS(ONESTEP_METHODS)
ONESTEP_SCALAR_OPS(ONESTEP_METHODS)
#undef ONESTEP_METHODS
#define ONESTEP_METHODS(NAME)                                                     \
  Tensor TensorMethods::NAME(Scalar y) const { return onestep::NAME(self(), y); } \
  Tensor TensorMethods::NAME##_(Scalar y) const { return onestep::NAME##_(self(), y); }
ONESTEP_SCALAR_OPS(ONESTEP_METHODS)
#undef ONESTEP_METHODS

Tensor TensorMethods::lerp(const Tensor& end, const Tensor& weight) const { return onestep::lerp(self(), end, weight); }
Tensor TensorMethods::lerp(const Tensor& end, double weight) const { return onestep::lerp(self(), end, weight); }
Tensor TensorMethods::nan_to_num(double nan, std::optional<double> posinf, std::optional<double> neginf) const {
  return onestep::nan_to_num(self(), nan, posinf, neginf);
}
Tensor TensorMethods::round(int64_t decimals) const { return onestep::round(self(), decimals); }
Tensor TensorMethods::maximum(const Tensor& y) const { return onestep::maximum(self(), y); }
Tensor TensorMethods::minimum(const Tensor& y) const { return onestep::minimum(self(), y); }
Tensor TensorMethods::fmax(const Tensor& y) const { return onestep::fmax(self(), y); }
Tensor TensorMethods::fmin(const Tensor& y) const { return onestep::fmin(self(), y); }
Tensor TensorMethods::logaddexp(const Tensor& y) const { return onestep::logaddexp(self(), y); }
Tensor TensorMethods::isclose(const Tensor& y, double rtol, double atol, bool equal_nan) const {
  return onestep::isclose(self(), y, rtol, atol, equal_nan);
}
bool TensorMethods::allclose(const Tensor& y, double rtol, double atol, bool equal_nan) const {
  return onestep::allclose(self(), y, rtol, atol, equal_nan);
}
bool TensorMethods::equal(const Tensor& y) const { return onestep::equal(self(), y); }
Tensor TensorMethods::prelu(const Tensor& weight) const { return onestep::prelu(self(), weight); }
Tensor TensorMethods::hardshrink(double lambd) const { return onestep::hardshrink(self(), lambd); }
Tensor TensorMethods::isinf() const { return onestep::isinf(self()); }
Tensor TensorMethods::isposinf() const { return onestep::isposinf(self()); }
Tensor TensorMethods::isneginf() const { return onestep::isneginf(self()); }

Tensor TensorMethods::round_(int64_t decimals) const { return onestep::round_(self(), decimals); }
Tensor TensorMethods::clamp_(std::optional<Scalar> min, std::optional<Scalar> max) const {
  return onestep::clamp_(self(), min, max);
}
Tensor TensorMethods::clamp_(const Tensor& min, const Tensor& max) const { return onestep::clamp_(self(), min, max); }
Tensor TensorMethods::lerp_(const Tensor& end, const Tensor& weight) const { return onestep::lerp_(self(), end, weight); }
Tensor TensorMethods::lerp_(const Tensor& end, double weight) const { return onestep::lerp_(self(), end, weight); }
Tensor TensorMethods::nan_to_num_(double nan, std::optional<double> posinf, std::optional<double> neginf) const {
  return onestep::nan_to_num_(self(), nan, posinf, neginf);
}

}  // namespace onestep
