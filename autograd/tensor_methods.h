#pragma once
// Methods of Tensor for ops that are declared in ops_pointwise.h and for those composed of others in ops_shape.h and
// ops_math.h.
#include <optional>
#include <vector>

#include "autograd/pointwise_names.h"
#include "autograd/scalar.h"
#include "autograd/shape.h"

namespace onestep {

class Tensor;
struct MinMax;
enum class RoundingMode;

/// x.erf() is erf(x), and so on.
class TensorMethods {
 public:
  Tensor lerp(const Tensor& end, const Tensor& weight) const;
  Tensor lerp(const Tensor& end, double weight) const;
  Tensor nan_to_num(double nan = 0.0, std::optional<double> posinf = {}, std::optional<double> neginf = {}) const;
  Tensor round(int64_t decimals) const;
  Tensor maximum(const Tensor& y) const;
  Tensor minimum(const Tensor& y) const;
  Tensor fmax(const Tensor& y) const;
  Tensor fmin(const Tensor& y) const;
  Tensor logaddexp(const Tensor& y) const;
  Tensor isclose(const Tensor& y, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false) const;
  bool allclose(const Tensor& y, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false) const;
  bool equal(const Tensor& y) const;
  Tensor prelu(const Tensor& weight) const;
  Tensor hardshrink(double lambd = 0.5) const;
#define ONESTEP_METHODS(NAME) \
  Tensor NAME() const;        \
  Tensor NAME##_() const;
  ONESTEP_UNARY_OPS(ONESTEP_METHODS)
#undef ONESTEP_METHODS
#define ONESTEP_METHODS(NAME)         \
  Tensor NAME(const Tensor& y) const; \
  Tensor NAME##_(const Tensor& y) const;
  ONESTEP_BINARY_OPS(ONESTEP_METHODS)
  ONESTEP_SCALAR_OPS(ONESTEP_METHODS)
#undef ONESTEP_METHODS
#define ONESTEP_METHODS(NAME)  \
  Tensor NAME(Scalar y) const; \
  Tensor NAME##_(Scalar y) const;
  ONESTEP_SCALAR_OPS(ONESTEP_METHODS)
#undef ONESTEP_METHODS
  Tensor isinf() const;
  Tensor isposinf() const;
  Tensor isneginf() const;
  Tensor round_(int64_t decimals) const;
  Tensor lerp_(const Tensor& end, const Tensor& weight) const;
  Tensor lerp_(const Tensor& end, double weight) const;
  Tensor nan_to_num_(double nan = 0.0, std::optional<double> posinf = {}, std::optional<double> neginf = {}) const;
  Tensor clamp_(std::optional<Scalar> min, std::optional<Scalar> max = {}) const;
  Tensor clamp_(const Tensor& min, const Tensor& max) const;

  Tensor view_as(const Tensor& other) const;
  Tensor reshape_as(const Tensor& other) const;
  Tensor expand_as(const Tensor& other) const;
  Tensor broadcast_to(const Shape& shape) const;
  Tensor ravel() const;
  Tensor unflatten(int64_t dim, const Shape& sizes) const;
  Tensor swapaxes(int64_t axis0, int64_t axis1) const;
  Tensor swapdims(int64_t dim0, int64_t dim1) const;
  Tensor movedim(const Shape& source, const Shape& destination) const;
  Tensor repeat(const Shape& repeats) const;
  Tensor tile(const Shape& repeats) const;
  template <class... I>
  requires Sizes<I...> Tensor repeat(I... repeats)
  const;
  template <class... I>
  requires Sizes<I...> Tensor tile(I... repeats)
  const;
  Tensor repeat_interleave(int64_t repeats, std::optional<int64_t> dim = {}) const;
  Tensor repeat_interleave(const Tensor& repeats, std::optional<int64_t> dim = {}) const;
  Tensor flip(const Shape& dims) const;
  Tensor fliplr() const;
  Tensor flipud() const;
  Tensor roll(const Shape& shifts, const Shape& dims = {}) const;
  Tensor rot90(int64_t k = 1, const Shape& dims = {0, 1}) const;
  Tensor diagonal(int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1) const;
  Tensor diag_embed(int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1) const;
  Tensor diag(int64_t diagonal = 0) const;
  Tensor unfold(int64_t dimension, int64_t size, int64_t step) const;
  std::vector<Tensor> unbind(int64_t dim = 0) const;
  std::vector<Tensor> tensor_split(int64_t sections, int64_t dim = 0) const;
  std::vector<Tensor> tensor_split(const std::vector<int64_t>& indices, int64_t dim = 0) const;

  Tensor mm(const Tensor& y) const;
  Tensor mv(const Tensor& y) const;
  Tensor bmm(const Tensor& y) const;
  Tensor outer(const Tensor& y) const;
  Tensor addmm(const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1) const;
  Tensor addmv(const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1) const;
  Tensor baddbmm(const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1) const;
  Tensor kron(const Tensor& y) const;
  Tensor cross(const Tensor& y, int64_t dim = -1) const;
  Tensor trace() const;

  Tensor nansum(const Shape& dims = {}, bool keepdim = false) const;
  Tensor nanmean(const Shape& dims = {}, bool keepdim = false) const;
  Tensor count_nonzero(const Shape& dims = {}) const;
  MinMax aminmax() const;
  MinMax aminmax(int64_t dim, bool keepdim = false) const;
  Tensor diff(int64_t n = 1, int64_t dim = -1) const;
  Tensor diff(int64_t n, int64_t dim, const Tensor& prepend, const Tensor& append) const;
  Tensor dist(const Tensor& y, double p = 2.0) const;

 private:
  const Tensor& self() const;
};

}  // namespace onestep
