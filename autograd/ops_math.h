#pragma once
// Ops of numbers: elementwise, comparisons, reductions, matrix products.
#include <concepts>
#include <optional>
#include <string_view>

#include "autograd/node.h"
#include "autograd/tensor.h"

namespace onestep {

// ---- elementwise with broadcasting (ops/arithmetic.cpp, ops/math.cpp) ----------------------------------------------------
// Dtypes meet as in PyTorch: bool < int64 < float32 < float64, and a rank-0 tensor or a number does not widen within its kind.

Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
/// True division: integers give default_dtype() (torch.div).
Tensor div(const Tensor& a, const Tensor& b);
/// a + alpha b and a - alpha b (torch.add, torch.sub). Throw DTypeError on a fraction for integers.
Tensor add(const Tensor& a, const Tensor& b, Scalar alpha);
Tensor sub(const Tensor& a, const Tensor& b, Scalar alpha);
/// x + scale a b and x + scale a / b, all broadcast (torch.addcmul, torch.addcdiv). The second throws DTypeError for integers.
Tensor add_product(const Tensor& x, const Tensor& a, const Tensor& b, Scalar scale = 1);
Tensor add_quotient(const Tensor& x, const Tensor& a, const Tensor& b, Scalar scale = 1);
Tensor add(const Tensor& a, Scalar b);
Tensor sub(const Tensor& a, Scalar b);
Tensor mul(const Tensor& a, Scalar b);
Tensor div(const Tensor& a, Scalar b);
/// a^b; the gradient of the base is 0 where b = 0 (torch.pow). 0^negative is inf; negative^fraction is NaN.
Tensor pow(const Tensor& base, const Tensor& exponent);
Tensor pow(const Tensor& base, Scalar exponent);
Tensor pow(Scalar base, const Tensor& exponent);
/// Elementwise larger value; NaN wins; a tie shares the gradient half and half (torch.maximum).
Tensor maximum(const Tensor& a, const Tensor& b);
/// Elementwise smaller value; NaN wins; a tie shares the gradient half and half (torch.minimum).
Tensor minimum(const Tensor& a, const Tensor& b);
/// a where `condition` (bool) is true, b elsewhere; all three broadcast (torch.where).
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
Tensor where(const Tensor& condition, const Tensor& a, Scalar b);
Tensor where(const Tensor& condition, Scalar a, const Tensor& b);
Tensor where(const Tensor& condition, Scalar a, Scalar b);

Tensor neg(const Tensor& x);
/// min(max(x, low), high), each bound optional; NaN stays, and the gradient is 0 where x lies outside (torch.clamp). Throws
/// ConfigError without any bound.
Tensor clamp(const Tensor& x, std::optional<Scalar> low, std::optional<Scalar> high = {});
/// |x|; the gradient at 0 is 0.
Tensor abs(const Tensor& x);
Tensor exp(const Tensor& x);
/// Natural logarithm: log(0) = -inf.
Tensor log(const Tensor& x);
Tensor sqrt(const Tensor& x);
/// 1 / sqrt(x)
Tensor rsqrt(const Tensor& x);
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor tanh(const Tensor& x);
/// 1 / (1 + exp(-x))
Tensor sigmoid(const Tensor& x);
/// max(x, 0); the gradient at 0 is 0.
Tensor relu(const Tensor& x);
enum class GeluApproximation { none, tanh };
/// x * Phi(x), with Phi the normal distribution function by erf, or by its tanh approximation
/// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks and Gimpel 2016; torch.nn.functional.gelu).
Tensor gelu(const Tensor& x, GeluApproximation approximate = GeluApproximation::none);
/// x * sigmoid(x)
Tensor silu(const Tensor& x);

/// A copy in another dtype; to float it is differentiable (the gradient comes back in x's dtype). To int64 truncates.
Tensor to(const Tensor& x, DType dtype);
/// The dtype in which operands meet (torch.result_type): promote_types, but a rank-0 tensor or a number does not widen within
/// its kind (bools, integers, floats).
DType result_type(const Tensor& a, const Tensor& b);
DType result_type(const Tensor& a, Scalar b);

// In place (ops/inplace.cpp): versioned; a leaf that requires grad needs a NoGradGuard. The second operand broadcasts to x. A
// tensor is a handle, so that x may be a temporary view: `fill_(x[0], 0)`. All give the handle back.
Tensor add_(const Tensor& x, const Tensor& y);
Tensor sub_(const Tensor& x, const Tensor& y);
Tensor mul_(const Tensor& x, const Tensor& y);
Tensor div_(const Tensor& x, const Tensor& y);
Tensor add_(const Tensor& x, const Tensor& y, Scalar alpha);
Tensor sub_(const Tensor& x, const Tensor& y, Scalar alpha);
Tensor add_product_(const Tensor& x, const Tensor& a, const Tensor& b, Scalar scale = 1);
Tensor add_quotient_(const Tensor& x, const Tensor& a, const Tensor& b, Scalar scale = 1);
Tensor add_(const Tensor& x, Scalar y);
Tensor sub_(const Tensor& x, Scalar y);
Tensor mul_(const Tensor& x, Scalar y);
Tensor div_(const Tensor& x, Scalar y);
Tensor fill_(const Tensor& x, Scalar value);
/// Copies the values of `source` (broadcast, converted) into x (torch.Tensor.copy_).
Tensor copy_(const Tensor& x, const Tensor& source);

// ---- comparisons and logic: bool results, no gradient (ops/compare.cpp) --------------------------------------------------

Tensor eq(const Tensor& a, const Tensor& b);
Tensor ne(const Tensor& a, const Tensor& b);
Tensor lt(const Tensor& a, const Tensor& b);
Tensor le(const Tensor& a, const Tensor& b);
Tensor gt(const Tensor& a, const Tensor& b);
Tensor ge(const Tensor& a, const Tensor& b);
Tensor eq(const Tensor& a, Scalar b);
Tensor ne(const Tensor& a, Scalar b);
Tensor lt(const Tensor& a, Scalar b);
Tensor le(const Tensor& a, Scalar b);
Tensor gt(const Tensor& a, Scalar b);
Tensor ge(const Tensor& a, Scalar b);
/// Logic on truth values: a number is true unless it is 0.
Tensor logical_and(const Tensor& a, const Tensor& b);
Tensor logical_or(const Tensor& a, const Tensor& b);
Tensor logical_xor(const Tensor& a, const Tensor& b);
Tensor logical_not(const Tensor& x);
/// True when any / every element is true (a rank-0 bool).
Tensor any(const Tensor& x);
Tensor all(const Tensor& x);
/// The same over `dims` (an empty list means all): bool (torch.any, torch.all).
Tensor any(const Tensor& x, const Shape& dims, bool keepdim = false);
Tensor all(const Tensor& x, const Shape& dims, bool keepdim = false);
Tensor isnan(const Tensor& x);
Tensor isfinite(const Tensor& x);
/// Same shape, dtype and elements (torch.equal, which compares values of any dtypes; NaN differs from NaN).
bool equal(const Tensor& a, const Tensor& b);
/// |a - b| <= atol + rtol |b| everywhere (torch.allclose).
bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);

// ---- reductions (ops/reduce.cpp) -----------------------------------------------------------------------------------------
// `dims`: any distinct dims, negative from the end; an empty list means all. `keepdim` leaves size-1 dims.

/// Sum of all elements (rank 0), or over `dims`. bool and int64 sum to int64.
Tensor sum(const Tensor& x);
Tensor sum(const Tensor& x, const Shape& dims, bool keepdim = false);
/// Arithmetic mean; NaN over nothing.
Tensor mean(const Tensor& x);
Tensor mean(const Tensor& x, const Shape& dims, bool keepdim = false);
/// Both in another dtype, to which x is converted first.
template <std::same_as<DType> D>  // not what `{}` means
Tensor sum(const Tensor& x, D dtype) {
  return sum(to(x, dtype));
}
Tensor sum(const Tensor& x, const Shape& dims, bool keepdim, DType dtype);
template <std::same_as<DType> D>
Tensor mean(const Tensor& x, D dtype) {
  return mean(to(x, dtype));
}
Tensor mean(const Tensor& x, const Shape& dims, bool keepdim, DType dtype);
/// Both without the elements that are NaN (torch.nansum, torch.nanmean).
Tensor nansum(const Tensor& x, const Shape& dims = {}, bool keepdim = false);
Tensor nanmean(const Tensor& x, const Shape& dims = {}, bool keepdim = false);
/// How many elements are not 0: int64, no gradient (torch.count_nonzero).
Tensor count_nonzero(const Tensor& x, const Shape& dims = {});
/// Sum of squared deviations from the mean, divided by n - correction (torch.var; 1 = unbiased, 0 = biased).
Tensor var(const Tensor& x, const Shape& dims = {}, double correction = 1, bool keepdim = false);
/// The square root of var; its gradient is 0 where it is 0 (torch.std).
Tensor std(const Tensor& x, const Shape& dims = {}, double correction = 1, bool keepdim = false);
struct VarMean {
  Tensor var, mean;
};
struct StdMean {
  Tensor std, mean;
};
/// Both at once (torch.var_mean, torch.std_mean).
VarMean var_mean(const Tensor& x, const Shape& dims = {}, double correction = 1, bool keepdim = false);
StdMean std_mean(const Tensor& x, const Shape& dims = {}, double correction = 1, bool keepdim = false);
/// (sum |x|^p)^(1/p) over `dims`; p may be infinity (largest |x|), -infinity (least) or 0 (how many are not 0); the gradient at
/// a norm of 0 is 0 (torch.linalg.vector_norm).
Tensor norm(const Tensor& x, double p = 2.0, const Shape& dims = {}, bool keepdim = false);
/// norm(a - b, p) of all elements (torch.dist).
Tensor dist(const Tensor& a, const Tensor& b, double p = 2.0);
/// Product of all elements, or along `dim`; right with zeros, too (torch.prod). bool and int64 give int64.
Tensor prod(const Tensor& x);
Tensor prod(const Tensor& x, int64_t dim, bool keepdim = false);
Tensor prod(const Tensor& x, int64_t dim, bool keepdim, DType dtype);  ///< Of x as `dtype`.

/// y_i = x_0 + ... + x_i along `dim`, in double for float32 (torch.cumsum; ops/cumulative.cpp).
Tensor cumsum(const Tensor& x, int64_t dim);
Tensor cumsum(const Tensor& x, int64_t dim, DType dtype);  ///< Of x as `dtype`.
/// y_i = x_0 ... x_i along `dim`; the gradient is right with zeros, too (torch.cumprod; ops/cumulative.cpp).
Tensor cumprod(const Tensor& x, int64_t dim);
Tensor cumprod(const Tensor& x, int64_t dim, DType dtype);  ///< Of x as `dtype`.
/// y_i = log(exp(x_0) + ... + exp(x_i)) along `dim`, without overflow (torch.logcumsumexp; ops/cumulative.cpp).
Tensor logcumsumexp(const Tensor& x, int64_t dim);
/// y_i = x_{i+1} - x_i along `dim`, n times over, of x between `prepend` and `append` where they are given; of bools where they
/// differ (torch.diff). Throws ShapeError on n < 0 and on a rank-0 tensor. ops/derived.cpp
Tensor diff(const Tensor& x, int64_t n = 1, int64_t dim = -1, const Tensor& prepend = {}, const Tensor& append = {});

// ---- the largest and the least (ops/extrema.cpp) -------------------------------------------------------------------------
// NaN wins in all of them. Throw ShapeError over nothing.

/// The largest / least element; ties, NaN among them, share the gradient evenly (torch.max, torch.min).
Tensor max(const Tensor& x);
Tensor min(const Tensor& x);
/// The largest / least over `dims`; ties share the gradient evenly (torch.amax, torch.amin).
Tensor amax(const Tensor& x, const Shape& dims = {}, bool keepdim = false);
Tensor amin(const Tensor& x, const Shape& dims = {}, bool keepdim = false);
struct MinMax {
  Tensor min, max;
};
/// Both over all elements, or along `dim`; ties share the gradient evenly (torch.aminmax).
MinMax aminmax(const Tensor& x);
MinMax aminmax(const Tensor& x, int64_t dim, bool keepdim = false);
struct ValuesIndices {
  Tensor values, indices;
};
/// The largest / least element along `dim` and where it is first; only that place gets the gradient (torch.max and
/// torch.min with dim).
ValuesIndices max(const Tensor& x, int64_t dim, bool keepdim = false);
ValuesIndices min(const Tensor& x, int64_t dim, bool keepdim = false);
/// The largest / least of x_0 .. x_i along `dim`, and where the last of its equals is; only that place gets the gradient
/// (torch.cummax, torch.cummin; ops/cumulative.cpp).
ValuesIndices cummax(const Tensor& x, int64_t dim);
ValuesIndices cummin(const Tensor& x, int64_t dim);
/// Index of the first largest / least element of the flattened tensor, or along `dim`: int64, no gradient (torch.argmax).
Tensor argmax(const Tensor& x);
Tensor argmin(const Tensor& x);
Tensor argmax(const Tensor& x, int64_t dim, bool keepdim = false);
Tensor argmin(const Tensor& x, int64_t dim, bool keepdim = false);

// ---- matrix products (ops/matmul.cpp) ------------------------------------------------------------------------------------

/// PyTorch's torch.matmul: [n] x [n] -> [], [m, k] x [k, n] -> [m, n], [k] x [k, n] -> [n], [m, k] x [k] -> [m], and batches
/// [..., m, k] x [..., k, n] -> [..., m, n] with broadcasting batch dims, up to rank 8, any strides. Times a vector [k], each
/// float32 element is the dot() of its row. Throws ShapeError.
Tensor matmul(const Tensor& a, const Tensor& b);
/// Sum of products of two vectors: [n] x [n] -> [] (torch.dot).
Tensor dot(const Tensor& a, const Tensor& b);
/// x W^T + b: x [..., in], weight [out, in], bias [out] or undefined -> [..., out] (torch.nn.functional.linear).
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
// Composed of these and of sums (ops/derived.cpp). The first four take exactly the ranks given.

/// [m, k] x [k, n] -> [m, n] (torch.mm)
Tensor mm(const Tensor& a, const Tensor& b);
/// [m, k] x [k] -> [m] (torch.mv)
Tensor mv(const Tensor& a, const Tensor& b);
/// [b, m, k] x [b, k, n] -> [b, m, n] (torch.bmm)
Tensor bmm(const Tensor& a, const Tensor& b);
/// [m] x [n] -> [m, n], all products (torch.outer).
Tensor outer(const Tensor& a, const Tensor& b);
/// beta input + alpha a b, input broadcast; with beta = 0 it is not read (torch.addmm, torch.addmv, torch.baddbmm).
Tensor addmm(const Tensor& input, const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1);
Tensor addmv(const Tensor& input, const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1);
Tensor baddbmm(const Tensor& input, const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1);
/// Sum of products over the last `dims` dims of a and the first of b, or over the dims of a and of b in these lists
/// (torch.tensordot). Throws ShapeError on sizes that do not fit.
Tensor tensordot(const Tensor& a, const Tensor& b, int64_t dims = 2);
Tensor tensordot(const Tensor& a, const Tensor& b, const Shape& a_dims, const Shape& b_dims);
/// The Kronecker product: every element of a times b (torch.kron).
Tensor kron(const Tensor& a, const Tensor& b);
/// The cross product of vectors of 3 along `dim`; the other dims broadcast (torch.linalg.cross).
Tensor cross(const Tensor& a, const Tensor& b, int64_t dim = -1);
/// Sum of the diagonal of a matrix (torch.trace).
Tensor trace(const Tensor& x);

/// Sum of products over named dims (torch.einsum, ops/einsum.cpp): every operand names its dims by letters, elements whose
/// letters agree are multiplied, and letters that the result lacks are summed over: einsum("bthd,bshd->bhts", {q, k}) gives
/// [B, T, H, d] x [B, S, H, d] -> [B, H, T, S]. `...` stands for any dims in front, which broadcast; a letter twice in an
/// operand is its diagonal; without `->` the result has the letters that occur once, in alphabetical order. Throws ConfigError
/// on an equation that cannot be read, ShapeError on sizes that do not fit.
Tensor einsum(std::string_view equation, TensorList operands);

}  // namespace onestep
