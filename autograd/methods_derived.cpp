// The composed ops of ops_shape.h and ops_math.h as methods.
#include "autograd/ops_math.h"
#include "autograd/ops_shape.h"
#include "autograd/tensor.h"

namespace onestep {

Tensor TensorMethods::view_as(const Tensor& other) const { return onestep::view_as(self(), other); }
Tensor TensorMethods::reshape_as(const Tensor& other) const { return onestep::reshape_as(self(), other); }
Tensor TensorMethods::expand_as(const Tensor& other) const { return onestep::expand_as(self(), other); }
Tensor TensorMethods::broadcast_to(const Shape& shape) const { return onestep::broadcast_to(self(), shape); }
Tensor TensorMethods::ravel() const { return onestep::ravel(self()); }
Tensor TensorMethods::unflatten(int64_t dim, const Shape& sizes) const { return onestep::unflatten(self(), dim, sizes); }
Tensor TensorMethods::swapaxes(int64_t axis0, int64_t axis1) const { return onestep::swapaxes(self(), axis0, axis1); }
Tensor TensorMethods::swapdims(int64_t dim0, int64_t dim1) const { return onestep::swapdims(self(), dim0, dim1); }
Tensor TensorMethods::movedim(const Shape& source, const Shape& destination) const {
  return onestep::movedim(self(), source, destination);
}
Tensor TensorMethods::repeat(const Shape& repeats) const { return onestep::repeat(self(), repeats); }
Tensor TensorMethods::tile(const Shape& repeats) const { return onestep::tile(self(), repeats); }
Tensor TensorMethods::repeat_interleave(int64_t repeats, std::optional<int64_t> dim) const {
  return onestep::repeat_interleave(self(), repeats, dim);
}
Tensor TensorMethods::repeat_interleave(const Tensor& repeats, std::optional<int64_t> dim) const {
  return onestep::repeat_interleave(self(), repeats, dim);
}
Tensor TensorMethods::flip(const Shape& dims) const { return onestep::flip(self(), dims); }
Tensor TensorMethods::fliplr() const { return onestep::fliplr(self()); }
Tensor TensorMethods::flipud() const { return onestep::flipud(self()); }
Tensor TensorMethods::roll(const Shape& shifts, const Shape& dims) const { return onestep::roll(self(), shifts, dims); }
Tensor TensorMethods::rot90(int64_t k, const Shape& dims) const { return onestep::rot90(self(), k, dims); }
Tensor TensorMethods::diagonal(int64_t offset, int64_t dim1, int64_t dim2) const {
  return onestep::diagonal(self(), offset, dim1, dim2);
}
Tensor TensorMethods::diag_embed(int64_t offset, int64_t dim1, int64_t dim2) const {
  return onestep::diag_embed(self(), offset, dim1, dim2);
}
Tensor TensorMethods::diag(int64_t diagonal) const { return onestep::diag(self(), diagonal); }
Tensor TensorMethods::unfold(int64_t dimension, int64_t size, int64_t step) const {
  return onestep::unfold(self(), dimension, size, step);
}
std::vector<Tensor> TensorMethods::unbind(int64_t dim) const { return onestep::unbind(self(), dim); }
std::vector<Tensor> TensorMethods::tensor_split(int64_t sections, int64_t dim) const {
  return onestep::tensor_split(self(), sections, dim);
}
std::vector<Tensor> TensorMethods::tensor_split(const std::vector<int64_t>& indices, int64_t dim) const {
  return onestep::tensor_split(self(), indices, dim);
}

Tensor TensorMethods::mm(const Tensor& y) const { return onestep::mm(self(), y); }
Tensor TensorMethods::mv(const Tensor& y) const { return onestep::mv(self(), y); }
Tensor TensorMethods::bmm(const Tensor& y) const { return onestep::bmm(self(), y); }
Tensor TensorMethods::outer(const Tensor& y) const { return onestep::outer(self(), y); }
Tensor TensorMethods::addmm(const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) const {
  return onestep::addmm(self(), a, b, beta, alpha);
}
Tensor TensorMethods::addmv(const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) const {
  return onestep::addmv(self(), a, b, beta, alpha);
}
Tensor TensorMethods::baddbmm(const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) const {
  return onestep::baddbmm(self(), a, b, beta, alpha);
}
Tensor TensorMethods::kron(const Tensor& y) const { return onestep::kron(self(), y); }
Tensor TensorMethods::cross(const Tensor& y, int64_t dim) const { return onestep::cross(self(), y, dim); }
Tensor TensorMethods::trace() const { return onestep::trace(self()); }

Tensor TensorMethods::nansum(const Shape& dims, bool keepdim) const { return onestep::nansum(self(), dims, keepdim); }
Tensor TensorMethods::nanmean(const Shape& dims, bool keepdim) const { return onestep::nanmean(self(), dims, keepdim); }
Tensor TensorMethods::count_nonzero(const Shape& dims) const { return onestep::count_nonzero(self(), dims); }
MinMax TensorMethods::aminmax() const { return onestep::aminmax(self()); }
MinMax TensorMethods::aminmax(int64_t dim, bool keepdim) const { return onestep::aminmax(self(), dim, keepdim); }
Tensor TensorMethods::diff(int64_t n, int64_t dim) const { return onestep::diff(self(), n, dim); }
Tensor TensorMethods::diff(int64_t n, int64_t dim, const Tensor& prepend, const Tensor& append) const {
  return onestep::diff(self(), n, dim, prepend, append);
}
Tensor TensorMethods::dist(const Tensor& y, double p) const { return onestep::dist(self(), y, p); }

}  // namespace onestep
