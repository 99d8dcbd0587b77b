// The ops of one tensor as methods, and assignment to what an expression gives.
#include "autograd/ops_index.h"
#include "autograd/ops_math.h"
#include "autograd/ops_nn.h"
#include "autograd/ops_order.h"
#include "autograd/ops_pointwise.h"
#include "autograd/ops_shape.h"
#include "autograd/tensor.h"
#include "autograd/tensor_index.h"

namespace onestep {
namespace {

void check_seen(const Tensor& x) {
  ONESTEP_CHECK(ShapeError, !x.is_last(), "assignment: to a temporary of shape ", x.shape(),
                " that nothing shares, so that nobody would see it (write with index_put_, or into a view)");
}

}  // namespace

// NOLINTNEXTLINE(bugprone-unhandled-self-assignment): copying a tensor into itself leaves it as it is
Tensor Tensor::operator=(const Tensor& values) && { return check_seen(*this), onestep::copy_(*this, values); }
Tensor Tensor::operator=(Scalar value) && { return check_seen(*this), onestep::fill_(*this, value); }

Tensor Tensor::operator[](const Slice& slice) const { return onestep::index(*this, {slice}); }
Tensor Tensor::index(const IndexList& indices) const { return onestep::index(*this, indices); }
Tensor Tensor::index_put(const IndexList& indices, const Tensor& values, bool accumulate) const {
  return onestep::index_put(*this, indices, values, accumulate);
}
Tensor Tensor::index_put_(const IndexList& indices, const Tensor& values, bool accumulate) const {
  return onestep::index_put_(*this, indices, values, accumulate);
}
Tensor Tensor::index_put_(const IndexList& indices, Scalar value) const { return onestep::index_put_(*this, indices, value); }
Tensor Tensor::index_select(int64_t dim, const Tensor& index) const { return onestep::index_select(*this, dim, index); }
Tensor Tensor::gather(int64_t dim, const Tensor& index) const { return onestep::gather(*this, dim, index); }
Tensor Tensor::take(const Tensor& index) const { return onestep::take(*this, index); }
Tensor Tensor::take_along_dim(const Tensor& index, std::optional<int64_t> dim) const {
  return onestep::take_along_dim(*this, index, dim);
}
Tensor Tensor::masked_select(const Tensor& mask) const { return onestep::masked_select(*this, mask); }
Tensor Tensor::masked_scatter(const Tensor& mask, const Tensor& source) const {
  return onestep::masked_scatter(*this, mask, source);
}
Tensor Tensor::nonzero() const { return onestep::nonzero(*this); }
std::vector<Tensor> Tensor::nonzero_numpy() const { return onestep::nonzero_numpy(*this); }
Tensor Tensor::scatter(int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce) const {
  return onestep::scatter(*this, dim, index, src, reduce);
}
Tensor Tensor::scatter(int64_t dim, const Tensor& index, Scalar value, std::string_view reduce) const {
  return onestep::scatter(*this, dim, index, value, reduce);
}
Tensor Tensor::scatter_add(int64_t dim, const Tensor& index, const Tensor& src) const {
  return onestep::scatter_add(*this, dim, index, src);
}
Tensor Tensor::scatter_reduce(int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                              bool include_self) const {
  return onestep::scatter_reduce(*this, dim, index, src, reduce, include_self);
}
Tensor Tensor::index_add(int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha) const {
  return onestep::index_add(*this, dim, index, source, alpha);
}
Tensor Tensor::index_copy(int64_t dim, const Tensor& index, const Tensor& source) const {
  return onestep::index_copy(*this, dim, index, source);
}
Tensor Tensor::index_fill(int64_t dim, const Tensor& index, Scalar value) const {
  return onestep::index_fill(*this, dim, index, value);
}
Tensor Tensor::index_fill(int64_t dim, const Tensor& index, const Tensor& value) const {
  return onestep::index_fill(*this, dim, index, value);
}
Tensor Tensor::select(int64_t dim, int64_t index) const { return onestep::select(*this, dim, index); }
Tensor Tensor::slice(int64_t dim, int64_t start, int64_t end, int64_t step) const {
  return onestep::slice(*this, dim, start, end, step);
}
Tensor Tensor::narrow(int64_t dim, int64_t start, int64_t length) const { return onestep::narrow(*this, dim, start, length); }

Tensor Tensor::view(const Shape& shape) const { return onestep::view(*this, shape); }
Tensor Tensor::reshape(const Shape& shape) const { return onestep::reshape(*this, shape); }
Tensor Tensor::permute(const Shape& dims) const { return onestep::permute(*this, dims); }
Tensor Tensor::expand(const Shape& shape) const { return onestep::expand(*this, shape); }
Tensor Tensor::as_strided(const Shape& shape, const Shape& strides, std::optional<int64_t> offset) const {
  return onestep::as_strided(*this, shape, strides, offset);
}
Tensor Tensor::flatten(int64_t start_dim, int64_t end_dim) const { return onestep::flatten(*this, start_dim, end_dim); }
Tensor Tensor::transpose(int64_t dim0, int64_t dim1) const { return onestep::transpose(*this, dim0, dim1); }
Tensor Tensor::t() const { return onestep::t(*this); }
Tensor Tensor::squeeze() const { return onestep::squeeze(*this); }
Tensor Tensor::squeeze(int64_t dim) const { return onestep::squeeze(*this, dim); }
Tensor Tensor::unsqueeze(int64_t dim) const { return onestep::unsqueeze(*this, dim); }
Tensor Tensor::contiguous() const { return onestep::contiguous(*this); }
Tensor Tensor::clone() const { return onestep::clone(*this); }
Tensor Tensor::to(DType dtype) const { return onestep::to(*this, dtype); }
std::vector<Tensor> Tensor::split(int64_t split_size, int64_t dim) const { return onestep::split(*this, split_size, dim); }
std::vector<Tensor> Tensor::chunk(int64_t chunks, int64_t dim) const { return onestep::chunk(*this, chunks, dim); }

Tensor Tensor::add(const Tensor& y) const { return onestep::add(*this, y); }
Tensor Tensor::sub(const Tensor& y) const { return onestep::sub(*this, y); }
Tensor Tensor::mul(const Tensor& y) const { return onestep::mul(*this, y); }
Tensor Tensor::div(const Tensor& y) const { return onestep::div(*this, y); }
Tensor Tensor::add(const Tensor& y, Scalar alpha) const { return onestep::add(*this, y, alpha); }
Tensor Tensor::sub(const Tensor& y, Scalar alpha) const { return onestep::sub(*this, y, alpha); }
Tensor Tensor::add(Scalar y) const { return onestep::add(*this, y); }
Tensor Tensor::sub(Scalar y) const { return onestep::sub(*this, y); }
Tensor Tensor::mul(Scalar y) const { return onestep::mul(*this, y); }
Tensor Tensor::div(Scalar y) const { return onestep::div(*this, y); }
Tensor Tensor::eq(const Tensor& y) const { return onestep::eq(*this, y); }
Tensor Tensor::ne(const Tensor& y) const { return onestep::ne(*this, y); }
Tensor Tensor::lt(const Tensor& y) const { return onestep::lt(*this, y); }
Tensor Tensor::le(const Tensor& y) const { return onestep::le(*this, y); }
Tensor Tensor::gt(const Tensor& y) const { return onestep::gt(*this, y); }
Tensor Tensor::ge(const Tensor& y) const { return onestep::ge(*this, y); }
Tensor Tensor::eq(Scalar y) const { return onestep::eq(*this, y); }
Tensor Tensor::ne(Scalar y) const { return onestep::ne(*this, y); }
Tensor Tensor::lt(Scalar y) const { return onestep::lt(*this, y); }
Tensor Tensor::le(Scalar y) const { return onestep::le(*this, y); }
Tensor Tensor::gt(Scalar y) const { return onestep::gt(*this, y); }
Tensor Tensor::ge(Scalar y) const { return onestep::ge(*this, y); }
Tensor Tensor::matmul(const Tensor& y) const { return onestep::matmul(*this, y); }
Tensor Tensor::dot(const Tensor& y) const { return onestep::dot(*this, y); }
Tensor Tensor::clamp(std::optional<Scalar> min, std::optional<Scalar> max) const { return onestep::clamp(*this, min, max); }
Tensor Tensor::masked_fill(const Tensor& mask, Scalar value) const { return onestep::masked_fill(*this, mask, value); }
Tensor Tensor::masked_fill(const Tensor& mask, const Tensor& value) const { return onestep::masked_fill(*this, mask, value); }
Tensor Tensor::where(const Tensor& condition, const Tensor& other) const { return onestep::where(condition, *this, other); }
Tensor Tensor::where(const Tensor& condition, Scalar other) const { return onestep::where(condition, *this, other); }
Tensor Tensor::tril(int64_t diagonal) const { return onestep::tril(*this, diagonal); }
Tensor Tensor::triu(int64_t diagonal) const { return onestep::triu(*this, diagonal); }
Tensor Tensor::softmax(int64_t dim) const { return onestep::softmax(*this, dim); }
Tensor Tensor::log_softmax(int64_t dim) const { return onestep::log_softmax(*this, dim); }
Tensor Tensor::softmax(int64_t dim, DType dtype) const { return onestep::softmax(*this, dim, dtype); }
Tensor Tensor::log_softmax(int64_t dim, DType dtype) const { return onestep::log_softmax(*this, dim, dtype); }

Tensor Tensor::sum() const { return onestep::sum(*this); }
Tensor Tensor::sum(const Shape& dims, bool keepdim) const { return onestep::sum(*this, dims, keepdim); }
Tensor Tensor::mean() const { return onestep::mean(*this); }
Tensor Tensor::mean(const Shape& dims, bool keepdim) const { return onestep::mean(*this, dims, keepdim); }
Tensor Tensor::prod() const { return onestep::prod(*this); }
Tensor Tensor::prod(int64_t dim, bool keepdim) const { return onestep::prod(*this, dim, keepdim); }
Tensor Tensor::prod(int64_t dim, bool keepdim, DType dtype) const { return onestep::prod(*this, dim, keepdim, dtype); }
Tensor Tensor::var(const Shape& dims, double correction, bool keepdim) const {
  return onestep::var(*this, dims, correction, keepdim);
}
Tensor Tensor::std(const Shape& dims, double correction, bool keepdim) const {
  return onestep::std(*this, dims, correction, keepdim);
}
Tensor Tensor::norm(double p, const Shape& dims, bool keepdim) const { return onestep::norm(*this, p, dims, keepdim); }
Tensor Tensor::logsumexp(const Shape& dims, bool keepdim) const { return onestep::logsumexp(*this, dims, keepdim); }
Tensor Tensor::max() const { return onestep::max(*this); }
Tensor Tensor::min() const { return onestep::min(*this); }
ValuesIndices Tensor::max(int64_t dim, bool keepdim) const { return onestep::max(*this, dim, keepdim); }
ValuesIndices Tensor::min(int64_t dim, bool keepdim) const { return onestep::min(*this, dim, keepdim); }
Tensor Tensor::amax(const Shape& dims, bool keepdim) const { return onestep::amax(*this, dims, keepdim); }
Tensor Tensor::amin(const Shape& dims, bool keepdim) const { return onestep::amin(*this, dims, keepdim); }
Tensor Tensor::argmax() const { return onestep::argmax(*this); }
Tensor Tensor::argmin() const { return onestep::argmin(*this); }
Tensor Tensor::argmax(int64_t dim, bool keepdim) const { return onestep::argmax(*this, dim, keepdim); }
Tensor Tensor::argmin(int64_t dim, bool keepdim) const { return onestep::argmin(*this, dim, keepdim); }
Tensor Tensor::cumsum(int64_t dim) const { return onestep::cumsum(*this, dim); }
Tensor Tensor::cumprod(int64_t dim) const { return onestep::cumprod(*this, dim); }
Tensor Tensor::cumsum(int64_t dim, DType dtype) const { return onestep::cumsum(*this, dim, dtype); }
Tensor Tensor::cumprod(int64_t dim, DType dtype) const { return onestep::cumprod(*this, dim, dtype); }
ValuesIndices Tensor::cummax(int64_t dim) const { return onestep::cummax(*this, dim); }
ValuesIndices Tensor::cummin(int64_t dim) const { return onestep::cummin(*this, dim); }
Tensor Tensor::logcumsumexp(int64_t dim) const { return onestep::logcumsumexp(*this, dim); }
ValuesIndices Tensor::sort(int64_t dim, bool descending, bool stable) const {
  return onestep::sort(*this, dim, descending, stable);
}
Tensor Tensor::argsort(int64_t dim, bool descending, bool stable) const {
  return onestep::argsort(*this, dim, descending, stable);
}
ValuesIndices Tensor::topk(int64_t k, int64_t dim, bool largest, bool sorted) const {
  return onestep::topk(*this, k, dim, largest, sorted);
}
ValuesIndices Tensor::kthvalue(int64_t k, int64_t dim, bool keepdim) const { return onestep::kthvalue(*this, k, dim, keepdim); }
Tensor Tensor::median() const { return onestep::median(*this); }
ValuesIndices Tensor::median(int64_t dim, bool keepdim) const { return onestep::median(*this, dim, keepdim); }
UniqueResult Tensor::unique(bool sorted, bool return_inverse, bool return_counts, std::optional<int64_t> dim) const {
  return onestep::unique(*this, sorted, return_inverse, return_counts, dim);
}
Tensor Tensor::bincount(const Tensor& weights, int64_t minlength) const { return onestep::bincount(*this, weights, minlength); }
Tensor Tensor::histc(int64_t bins, double min, double max) const { return onestep::histc(*this, bins, min, max); }
Tensor Tensor::multinomial(int64_t num_samples, bool replacement) const {
  return onestep::multinomial(*this, num_samples, replacement);
}
Tensor Tensor::any() const { return onestep::any(*this); }
Tensor Tensor::all() const { return onestep::all(*this); }
Tensor Tensor::any(const Shape& dims, bool keepdim) const { return onestep::any(*this, dims, keepdim); }
Tensor Tensor::all(const Shape& dims, bool keepdim) const { return onestep::all(*this, dims, keepdim); }
Tensor Tensor::isnan() const { return onestep::isnan(*this); }
Tensor Tensor::isfinite() const { return onestep::isfinite(*this); }

Tensor Tensor::add_(const Tensor& y) const { return onestep::add_(*this, y); }
Tensor Tensor::sub_(const Tensor& y) const { return onestep::sub_(*this, y); }
Tensor Tensor::mul_(const Tensor& y) const { return onestep::mul_(*this, y); }
Tensor Tensor::div_(const Tensor& y) const { return onestep::div_(*this, y); }
Tensor Tensor::add_(const Tensor& y, Scalar alpha) const { return onestep::add_(*this, y, alpha); }
Tensor Tensor::sub_(const Tensor& y, Scalar alpha) const { return onestep::sub_(*this, y, alpha); }
Tensor Tensor::add_(Scalar y) const { return onestep::add_(*this, y); }
Tensor Tensor::sub_(Scalar y) const { return onestep::sub_(*this, y); }
Tensor Tensor::mul_(Scalar y) const { return onestep::mul_(*this, y); }
Tensor Tensor::div_(Scalar y) const { return onestep::div_(*this, y); }
Tensor Tensor::copy_(const Tensor& source) const { return onestep::copy_(*this, source); }
Tensor Tensor::fill_(Scalar value) const { return onestep::fill_(*this, value); }
Tensor Tensor::masked_fill_(const Tensor& mask, Scalar value) const { return onestep::masked_fill_(*this, mask, value); }
Tensor Tensor::masked_fill_(const Tensor& mask, const Tensor& value) const { return onestep::masked_fill_(*this, mask, value); }
Tensor Tensor::masked_scatter_(const Tensor& mask, const Tensor& source) const {
  return onestep::masked_scatter_(*this, mask, source);
}
Tensor Tensor::scatter_(int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce) const {
  return onestep::scatter_(*this, dim, index, src, reduce);
}
Tensor Tensor::scatter_(int64_t dim, const Tensor& index, Scalar value, std::string_view reduce) const {
  return onestep::scatter_(*this, dim, index, value, reduce);
}
Tensor Tensor::scatter_add_(int64_t dim, const Tensor& index, const Tensor& src) const {
  return onestep::scatter_add_(*this, dim, index, src);
}
Tensor Tensor::scatter_reduce_(int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                               bool include_self) const {
  return onestep::scatter_reduce_(*this, dim, index, src, reduce, include_self);
}
Tensor Tensor::index_add_(int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha) const {
  return onestep::index_add_(*this, dim, index, source, alpha);
}
Tensor Tensor::index_copy_(int64_t dim, const Tensor& index, const Tensor& source) const {
  return onestep::index_copy_(*this, dim, index, source);
}
Tensor Tensor::index_fill_(int64_t dim, const Tensor& index, Scalar value) const {
  return onestep::index_fill_(*this, dim, index, value);
}
Tensor Tensor::index_fill_(int64_t dim, const Tensor& index, const Tensor& value) const {
  return onestep::index_fill_(*this, dim, index, value);
}
Tensor Tensor::div(const Tensor& y, RoundingMode rounding_mode) const { return onestep::div(*this, y, rounding_mode); }
Tensor Tensor::div(Scalar y, RoundingMode rounding_mode) const { return onestep::div(*this, y, rounding_mode); }
Tensor Tensor::clamp(const Tensor& min, const Tensor& max) const { return onestep::clamp(*this, min, max); }
Tensor Tensor::div_(const Tensor& y, RoundingMode rounding_mode) const { return onestep::div_(*this, y, rounding_mode); }
Tensor Tensor::div_(Scalar y, RoundingMode rounding_mode) const { return onestep::div_(*this, y, rounding_mode); }
Tensor Tensor::squeeze(const Shape& dims) const { return onestep::squeeze(*this, dims); }
Tensor Tensor::sum(const Shape& dims, bool keepdim, DType dtype) const { return onestep::sum(*this, dims, keepdim, dtype); }
Tensor Tensor::mean(const Shape& dims, bool keepdim, DType dtype) const { return onestep::mean(*this, dims, keepdim, dtype); }

}  // namespace onestep
