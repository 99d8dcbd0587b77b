// Reductions and products that are compositions of others.
#include <algorithm>
#include <vector>

#include "autograd/autocast.h"
#include "autograd/operators.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops_nn.h"
#include "autograd/ops_shape.h"

namespace onestep {

// Integers are computed with in int64, whose last bits are those of a narrower type.
Tensor sum(const Tensor& x, const Shape& dims, bool keepdim, DType dtype) {
  return to(sum(to(x, dtype), dims, keepdim), dtype);
}
Tensor prod(const Tensor& x, int64_t dim, bool keepdim, DType dtype) { return to(prod(to(x, dtype), dim, keepdim), dtype); }
Tensor cumsum(const Tensor& x, int64_t dim, DType dtype) { return to(cumsum(to(x, dtype), dim), dtype); }
Tensor cumprod(const Tensor& x, int64_t dim, DType dtype) { return to(cumprod(to(x, dtype), dim), dtype); }
Tensor softmax(const Tensor& x, int64_t dim, DType dtype) { return softmax(to(x, dtype), dim); }
Tensor log_softmax(const Tensor& x, int64_t dim, DType dtype) { return log_softmax(to(x, dtype), dim); }
Tensor mean(const Tensor& x, const Shape& dims, bool keepdim, DType dtype) { return mean(to(x, dtype), dims, keepdim); }

Tensor nansum(const Tensor& x, const Shape& dims, bool keepdim) {
  const Tensor y = sum(x, dims, keepdim);
  if (!x.is_floating() || !any(isnan(y)).item<bool>()) return y;  // a sum that is a number is one of numbers
  return sum(masked_fill(x, isnan(x), 0), dims, keepdim);
}

Tensor nanmean(const Tensor& x, const Shape& dims, bool keepdim) {
  ops::check_floating("nanmean", x);
  return nansum(x, dims, keepdim) / sum(logical_not(isnan(x)), dims, keepdim);
}

Tensor count_nonzero(const Tensor& x, const Shape& dims) { return sum(ne(x, 0), dims); }

VarMean var_mean(const Tensor& x, const Shape& dims, double correction, bool keepdim) {
  return {var(x, dims, correction, keepdim), mean(x, dims, keepdim)};
}
StdMean std_mean(const Tensor& x, const Shape& dims, double correction, bool keepdim) {
  return {std(x, dims, correction, keepdim), mean(x, dims, keepdim)};
}

Tensor dist(const Tensor& a, const Tensor& b, double p) { return norm(a - b, p); }

MinMax aminmax(const Tensor& x) {
  ONESTEP_CHECK(ShapeError, x.numel() != 0, "aminmax: no elements to choose from in shape ", x.shape());
  return {amin(x, {}), amax(x, {})};
}
MinMax aminmax(const Tensor& x, int64_t dim, bool keepdim) {
  const int d = normalize_dim("aminmax", dim, x.dim());
  ONESTEP_CHECK(IndexError, x.dim() == 0 || x.shape()[d] != 0, "aminmax: no elements to choose from in dim ", dim, " of shape ",
                x.shape());
  return {amin(x, dim, keepdim), amax(x, dim, keepdim)};
}

Tensor diff(const Tensor& x, int64_t n, int64_t dim, const Tensor& prepend, const Tensor& append) {
  ONESTEP_CHECK(ShapeError, x.dim() > 0, "diff: a rank-0 tensor has no neighbours");
  ONESTEP_CHECK(ShapeError, n >= 0, "diff: n must not be negative: ", n);
  const int d = normalize_dim("diff", dim, x.dim());
  if (n == 0) return clone(x);
  std::vector<Tensor> parts;
  for (const Tensor& part : {prepend, x, append})
    if (part.defined()) parts.push_back(part);
  Tensor y = parts.size() == 1 ? x : cat(parts, d);
  for (int64_t i = 0; i < n && y.size(d) > 0; ++i) {
    const int64_t size = y.size(d) - 1;
    const Tensor next = narrow(y, d, 1, size), here = narrow(y, d, 0, size);
    y = y.dtype() == DType::boolean ? ne(next, here) : next - here;
  }
  return y;
}

namespace {

void check_ranks(const char* op, const Tensor& a, int a_rank, const Tensor& b, int b_rank) {
  ONESTEP_CHECK(ShapeError, a.dim() == a_rank && b.dim() == b_rank, op, ": needs tensors of rank ", a_rank, " and ", b_rank,
                ": got shapes ", a.shape(), " and ", b.shape());
}

/// beta input + alpha product
template <class Product>
Tensor combined(const char* op, const Tensor& input, const Tensor& a, const Tensor& b, Product multiply, Scalar beta,
                Scalar alpha) {
  if (autocast_enabled()) {
    const Tensor added = ops::autocast_operand(input), left = ops::autocast_operand(a), right = ops::autocast_operand(b);
    const AutocastGuard as_they_are(false);
    return combined(op, added, left, right, multiply, beta, alpha);
  }
  ops::check_same_dtype(op, input, a);
  if (is_narrow(a.dtype()))
    return to(combined(op, ops::wide(input), ops::wide(a), ops::wide(b), multiply, beta, alpha), a.dtype());
  const Tensor product = multiply(a, b);
  if (!product.is_floating()) beta = static_cast<int64_t>(beta.value), alpha = static_cast<int64_t>(alpha.value);
  const Tensor scaled = alpha.value == 1 ? product : product * alpha;
  ops::expand_values(op, input, product.shape());  // refuses one that does not fit
  if (beta.value == 0) return scaled;
  const Tensor base = expand(input, product.shape());
  return (beta.value == 1 ? base : base * beta) + scaled;
}

}  // namespace

Tensor mm(const Tensor& a, const Tensor& b) { return check_ranks("mm", a, 2, b, 2), matmul(a, b); }
Tensor mv(const Tensor& a, const Tensor& b) { return check_ranks("mv", a, 2, b, 1), matmul(a, b); }

Tensor bmm(const Tensor& a, const Tensor& b) {
  check_ranks("bmm", a, 3, b, 3);
  ONESTEP_CHECK(ShapeError, a.size(0) == b.size(0), "bmm: numbers of matrices differ: ", a.shape(), " x ", b.shape());
  return matmul(a, b);
}

Tensor outer(const Tensor& a, const Tensor& b) { return check_ranks("outer", a, 1, b, 1), mul(unsqueeze(a, 1), b); }

Tensor addmm(const Tensor& input, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
  check_ranks("addmm", a, 2, b, 2);
  return combined("addmm", input, a, b, matmul, beta, alpha);
}
Tensor addmv(const Tensor& input, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
  check_ranks("addmv", a, 2, b, 1);
  return combined("addmv", input, a, b, matmul, beta, alpha);
}
Tensor baddbmm(const Tensor& input, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
  check_ranks("baddbmm", a, 3, b, 3);
  return combined("baddbmm", input, a, b, bmm, beta, alpha);
}

namespace {

/// x as a matrix: the chosen dims in this order as columns (or, with `first`, rows), the others as the other dim.
Tensor contracted_last(const Tensor& x, const Shape& dims, bool first) {
  Shape order, chosen;
  int64_t rest = 1, contracted = 1;
  for (const int64_t d : dims) chosen.push_back(normalize_dim("tensordot", d, x.dim()));
  for (int d = 0; d < x.dim(); ++d)
    if (std::find(chosen.begin(), chosen.end(), d) == chosen.end()) order.push_back(d), rest *= x.shape()[d];
  for (int i = 0; i < chosen.rank(); ++i) {
    order.insert(first ? i : order.rank(), chosen[i]);
    contracted *= x.shape()[static_cast<int>(chosen[i])];
  }
  return reshape(permute(x, order), first ? Shape{contracted, rest} : Shape{rest, contracted});
}

}  // namespace

Tensor tensordot(const Tensor& a, const Tensor& b, const Shape& a_dims, const Shape& b_dims) {
  ONESTEP_CHECK(ShapeError, a_dims.rank() == b_dims.rank(), "tensordot: lists of dims differ in length: ", a_dims, " and ",
                b_dims);
  Shape shape;
  const Shape left = a_dims.empty() ? Shape() : normalize_dims("tensordot", a_dims, a.dim());
  const Shape right = b_dims.empty() ? Shape() : normalize_dims("tensordot", b_dims, b.dim());
  Tensor x = a, y = b;
  for (int i = 0; i < a_dims.rank(); ++i) {
    const int64_t size = x.size(a_dims[i]), other = y.size(b_dims[i]);
    if (size == 1 && other != 1) y = sum(y, b_dims[i], true, y.dtype());  // a size of 1 broadcasts
    if (other == 1 && size != 1) x = sum(x, a_dims[i], true, x.dtype());
    ONESTEP_CHECK(ShapeError, size == other || size == 1 || other == 1, "tensordot: sizes differ in dims ", a_dims, " of ",
                  a.shape(), " and ", b_dims, " of ", b.shape());
  }
  for (const int64_t size : reduced_shape(a.shape(), left, false)) shape.push_back(size);
  for (const int64_t size : reduced_shape(b.shape(), right, false)) shape.push_back(size);
  return reshape(matmul(contracted_last(x, a_dims, false), contracted_last(y, b_dims, true)), shape);
}

Tensor tensordot(const Tensor& a, const Tensor& b, int64_t dims) {
  ONESTEP_CHECK(ShapeError, dims >= 0 && dims <= a.dim() && dims <= b.dim(), "tensordot: ", dims, " dims of shapes ", a.shape(),
                " and ", b.shape());
  Shape last, first;
  for (int64_t d = 0; d < dims; ++d) last.push_back(a.dim() - dims + d), first.push_back(d);
  return tensordot(a, b, last, first);
}

Tensor kron(const Tensor& a, const Tensor& b) {
  const int rank = std::max(a.dim(), b.dim());
  const auto padded = [rank](const Tensor& x) {
    Shape shape = x.shape();
    while (shape.rank() < rank) shape.insert(0, 1);
    return shape;
  };
  const Shape left = padded(a), right = padded(b);
  Shape shape;
  for (int d = 0; d < rank; ++d) shape.push_back(left[d] * right[d]);
  // All products as [a's dims, b's dims], taken apart dim by dim from the last: [a, b] of a dim move in front of what is
  // joined.
  Tensor y = mul(reshape(a, {-1, 1}), reshape(b, {1, -1}));
  int64_t a_rest = a.numel(), b_rest = b.numel(), joined = 1;
  for (int d = rank; d-- > 0; joined *= left[d] * right[d]) {
    a_rest = left[d] == 0 ? 0 : a_rest / left[d];
    b_rest = right[d] == 0 ? 0 : b_rest / right[d];
    y = permute(reshape(y, {a_rest, left[d], b_rest, right[d], joined}), {0, 2, 1, 3, 4});
  }
  return reshape(y, shape);
}

Tensor cross(const Tensor& a, const Tensor& b, int64_t dim) {
  const Shape shape = broadcast_shapes("cross", a.shape(), b.shape());
  const int d = normalize_dim("cross", dim, shape.rank());
  const Tensor x = expand(a, shape), y = expand(b, shape);
  ONESTEP_CHECK(ShapeError, shape.rank() > 0 && a.dim() == b.dim() && shape[d] == 3 && a.size(d) == 3 && b.size(d) == 3,
                "cross: needs vectors of 3 in dim ", dim, ": got shapes ", a.shape(), " and ", b.shape());
  return roll(x, -1, d) * roll(y, -2, d) - roll(x, -2, d) * roll(y, -1, d);
}

Tensor trace(const Tensor& x) {
  ONESTEP_CHECK(ShapeError, x.dim() == 2, "trace: needs a matrix: got shape ", x.shape());
  return sum(diagonal(x));
}

}  // namespace onestep
