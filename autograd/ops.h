#pragma once
// Every public op: declaration and meaning, grouped. Forward, backward and cases of a group live together in ops/NAME.cpp and
// ops/NAME.cases.cpp. Names, argument order and defaults are PyTorch's. All ops are differentiable where that makes sense,
// take any strides and zero-size tensors, and throw ShapeError / DTypeError / GradError / ConfigError with the op's name first.
//
// Shapes in brackets, outermost dim first; B = batch, T = tokens, d = features, V = vocabulary.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/creation.h"
#include "autograd/node.h"
#include "autograd/random/generator.h"
#include "autograd/tensor.h"
#include "autograd/tensor_index.h"

namespace onestep {

// ---- elementwise with broadcasting (ops/arithmetic.cpp, ops/math.cpp) ----------------------------------------------------
// Dtypes meet as in PyTorch: bool < int64 < float32 < float64, and a rank-0 tensor or a number does not widen within its kind.

Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
/// True division: int64 operands give float32 (torch.div).
Tensor div(const Tensor& a, const Tensor& b);
Tensor add(const Tensor& a, Scalar b);
Tensor sub(const Tensor& a, Scalar b);
Tensor mul(const Tensor& a, Scalar b);
Tensor div(const Tensor& a, Scalar b);
/// a^b; the gradient of the base is 0 where b = 0 (torch.pow). 0^negative is inf; negative^fraction is NaN.
Tensor pow(const Tensor& base, const Tensor& exponent);
Tensor pow(const Tensor& base, Scalar exponent);
/// Elementwise larger value; NaN wins; a tie shares the gradient half and half (torch.maximum).
Tensor maximum(const Tensor& a, const Tensor& b);
/// Elementwise smaller value; NaN wins; a tie shares the gradient half and half (torch.minimum).
Tensor minimum(const Tensor& a, const Tensor& b);
/// a where `condition` (bool) is true, b elsewhere; all three broadcast (torch.where).
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);

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

// In place (ops/inplace.cpp): versioned; a leaf that requires grad needs a NoGradGuard. The second operand broadcasts to x. A
// tensor is a handle, so that x may be a temporary view: `fill_(x[0], 0)`. All give the handle back.
Tensor add_(const Tensor& x, const Tensor& y);
Tensor sub_(const Tensor& x, const Tensor& y);
Tensor mul_(const Tensor& x, const Tensor& y);
Tensor div_(const Tensor& x, const Tensor& y);
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
/// Sum of squared deviations from the mean, divided by n - correction (torch.var; 1 = unbiased, 0 = biased).
Tensor var(const Tensor& x, const Shape& dims = {}, int64_t correction = 1, bool keepdim = false);
/// The square root of var; its gradient is 0 where it is 0 (torch.std).
Tensor std(const Tensor& x, const Shape& dims = {}, int64_t correction = 1, bool keepdim = false);
/// (sum |x|^p)^(1/p) over `dims`; p may be infinity (largest |x|), -infinity (least) or 0 (how many are not 0); the gradient at
/// a norm of 0 is 0 (torch.linalg.vector_norm).
Tensor norm(const Tensor& x, double p = 2.0, const Shape& dims = {}, bool keepdim = false);
/// Product of all elements, or along `dim`; right with zeros, too (torch.prod). bool and int64 give int64.
Tensor prod(const Tensor& x);
Tensor prod(const Tensor& x, int64_t dim, bool keepdim = false);

/// y_i = x_0 + ... + x_i along `dim`.
Tensor cumsum(const Tensor& x, int64_t dim);

// ---- the largest and the least (ops/extrema.cpp) -------------------------------------------------------------------------
// NaN wins in all of them. Throw ShapeError over nothing.

/// The largest / least element; ties, NaN among them, share the gradient evenly (torch.max, torch.min).
Tensor max(const Tensor& x);
Tensor min(const Tensor& x);
/// The largest / least over `dims`; ties share the gradient evenly (torch.amax, torch.amin).
Tensor amax(const Tensor& x, const Shape& dims, bool keepdim = false);
Tensor amin(const Tensor& x, const Shape& dims, bool keepdim = false);
struct ValuesIndices {
  Tensor values, indices;
};
/// The largest / least element along `dim` and where it stands first; only that place gets the gradient (torch.max and
/// torch.min with dim).
ValuesIndices max(const Tensor& x, int64_t dim, bool keepdim = false);
ValuesIndices min(const Tensor& x, int64_t dim, bool keepdim = false);
/// Index of the first largest / least element of the flattened tensor, or along `dim`: int64, no gradient (torch.argmax).
Tensor argmax(const Tensor& x);
Tensor argmin(const Tensor& x);
Tensor argmax(const Tensor& x, int64_t dim, bool keepdim = false);
Tensor argmin(const Tensor& x, int64_t dim, bool keepdim = false);

// ---- matrix products (ops/matmul.cpp) ------------------------------------------------------------------------------------

/// PyTorch's torch.matmul: [n] x [n] -> [], [m, k] x [k, n] -> [m, n], [k] x [k, n] -> [n], [m, k] x [k] -> [m], and batches
/// [..., m, k] x [..., k, n] -> [..., m, n] with broadcasting batch dims, up to rank 6, any strides. Throws ShapeError.
Tensor matmul(const Tensor& a, const Tensor& b);
/// Sum of products of two vectors: [n] x [n] -> [] (torch.dot).
Tensor dot(const Tensor& a, const Tensor& b);
/// x W^T + b: x [..., in], weight [out, in], bias [out] or undefined -> [..., out] (torch.nn.functional.linear).
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
/// Sum of products over named dims (torch.einsum, ops/einsum.cpp): every operand names its dims by letters, elements whose
/// letters agree are multiplied, and letters that the result lacks are summed over: einsum("bthd,bshd->bhts", {q, k}) gives
/// [B, T, H, d] x [B, S, H, d] -> [B, H, T, S]. `...` stands for any dims in front, which broadcast; a letter twice in an
/// operand is its diagonal; without `->` the result has the letters that occur once, in alphabetical order. Throws ConfigError
/// on an equation that cannot be read, ShapeError on sizes that do not fit.
Tensor einsum(std::string_view equation, TensorList operands);

// ---- softmax family (ops/softmax.cpp) ------------------------------------------------------------------------------------

/// exp(x_i - max) / sum_j exp(x_j - max) along `dim`; a slice that is all -inf is NaN, as in PyTorch.
Tensor softmax(const Tensor& x, int64_t dim);
/// x_i - logsumexp(x) along `dim`.
Tensor log_softmax(const Tensor& x, int64_t dim);
/// log(sum(exp(x))) over `dims`, without overflow; -inf over nothing or where all is -inf; of integers float32.
Tensor logsumexp(const Tensor& x, const Shape& dims, bool keepdim = false);

// ---- masks (ops/mask.cpp) ------------------------------------------------------------------------------------------------

/// x with `value` and gradient 0 where `mask` (bool) is true; both broadcast, in place only mask (torch.Tensor.masked_fill).
Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value);
Tensor masked_fill_(const Tensor& x, const Tensor& mask, Scalar value);
/// The lower triangle of the last two dims: keeps column - row <= diagonal, else 0.
Tensor tril(const Tensor& x, int64_t diagonal = 0);
/// The upper triangle of the last two dims: keeps column - row >= diagonal, else 0.
Tensor triu(const Tensor& x, int64_t diagonal = 0);

// ---- shape (ops/shape.cpp): views share storage where they can ----------------------------------------------------------

/// The same elements in another shape without a copy; one size may be -1. Throws ShapeError where strides do not allow it.
Tensor view(const Tensor& x, const Shape& shape);
/// view where possible, else a copy.
Tensor reshape(const Tensor& x, const Shape& shape);
/// Dims start_dim .. end_dim become one.
Tensor flatten(const Tensor& x, int64_t start_dim = 0, int64_t end_dim = -1);
/// Swaps two dims (a view).
Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1);
/// Swaps the dims of a matrix; a vector stays (torch.t).
Tensor t(const Tensor& x);
/// Reorders all dims (a view).
Tensor permute(const Tensor& x, const Shape& dims);
/// x itself if its rows are in order, else a row-major copy.
Tensor contiguous(const Tensor& x);
/// A row-major copy; differentiable.
Tensor clone(const Tensor& x);
/// Drops every size-1 dim, or the given one if its size is 1 (a view).
Tensor squeeze(const Tensor& x);
Tensor squeeze(const Tensor& x, int64_t dim);
/// Inserts a size-1 dim (a view).
Tensor unsqueeze(const Tensor& x, int64_t dim);
/// Repeats size-1 dims without a copy (stride 0); -1 keeps a size; new leading dims may be added.
Tensor expand(const Tensor& x, const Shape& shape);
/// x[start:end:step] along `dim`, with Python's clamping and negative indices; step >= 1 (a view).
Tensor slice(const Tensor& x, int64_t dim, int64_t start, int64_t end, int64_t step = 1);
/// x[index] along `dim`, which disappears (a view).
Tensor select(const Tensor& x, int64_t dim, int64_t index);
/// `length` places from `start` along `dim` (a view).
Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length);
/// Joins along an existing dim (torch.cat).
Tensor cat(TensorList tensors, int64_t dim = 0);
/// Joins along a new dim (torch.stack).
Tensor stack(TensorList tensors, int64_t dim = 0);
/// Views of `split_size` places (0 only of none) along `dim`, the last one smaller (torch.split); or of the given sizes.
std::vector<Tensor> split(const Tensor& x, int64_t split_size, int64_t dim = 0);
std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int64_t dim = 0);
/// At most `chunks` equal views along `dim`, the last one smaller; of an empty dim all `chunks` (torch.chunk).
std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int64_t dim = 0);

// ---- indexing (ops/indexing.cpp, ops/index.cpp) ---------------------------------------------------------------------------

/// Python's x[...] (autograd/tensor_index.h): `index(x, {0, Slice(1, 3), Ellipsis, mask})`. Positions, slices, None and
/// Ellipsis give a view. Index tensors broadcast and give a copy; their dims stand where the first of them stood, or in front
/// where others came between, as in PyTorch (torch.Tensor.index). Throws ShapeError on a position outside or too many indices.
Tensor index(const Tensor& x, const IndexList& indices);
/// x[...] = values, or += with `accumulate`, which adds repeated positions in ascending order; without it the last of them
/// stays (torch.Tensor.index_put_).
Tensor index_put_(const Tensor& x, const IndexList& indices, const Tensor& values, bool accumulate = false);
Tensor index_put_(const Tensor& x, const IndexList& indices, Scalar value);
/// The positions of all elements that are not 0, in row-major order: int64 [N, rank] (torch.nonzero).
Tensor nonzero(const Tensor& x);
/// Rows along `dim` picked by a rank-1 int64 index; repeated rows add their gradients (torch.index_select).
Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index);
/// out[i][j] = x[i][index[i][j]] for dim 1, and so on: index has x's rank (torch.gather).
Tensor gather(const Tensor& x, int64_t dim, const Tensor& index);

// ---- layers as functions -------------------------------------------------------------------------------------------------

/// Zeroes each element with probability p and scales the others by 1 / (1 - p); identity when not training or p = 0
/// (Srivastava et al. 2014; torch.nn.functional.dropout). Draws from `generator`, in its dialect, in memory order.
/// ops/dropout.cpp
Tensor dropout(const Tensor& x, double p, bool training = true, Generator& generator = default_generator());
/// Rows of weight [V, d] by int64 index [...] -> [..., d]; row `padding_idx` (negative from the end) gets no gradient.
/// ops/embedding.cpp (torch.nn.functional.embedding). Throws ShapeError on an index outside the vocabulary.
Tensor embedding(const Tensor& index, const Tensor& weight, std::optional<int64_t> padding_idx = {});
/// (x - mean) / sqrt(var + eps) * weight + bias over the last dims `normalized_shape`, biased variance; weight and bias may be
/// undefined (Ba et al. 2016; torch.nn.functional.layer_norm). ops/layer_norm.cpp
Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5);

// ---- losses (ops/loss.cpp) -----------------------------------------------------------------------------------------------

enum class Reduction { none, mean, sum };
struct CrossEntropyOptions {
  Reduction reduction = Reduction::mean;
  int64_t ignore_index = -100;
  double label_smoothing = 0.0;
};
/// -log softmax(logits)[target]: logits [V], [N, V] or [N, V, ...] (the class dim is dim 1, as in PyTorch) and int64 targets
/// [], [N] or [N, ...] -> [] or, unreduced, the targets' shape. The mean is over targets that are not ignored (NaN if all are).
/// Throws ShapeError on a target that is no class (torch.nn.functional.cross_entropy).
Tensor cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& options = {});
/// -log_probabilities[target] (torch.nn.functional.nll_loss); shapes as in cross_entropy.
Tensor nll_loss(const Tensor& log_probabilities, const Tensor& target, Reduction reduction = Reduction::mean,
                int64_t ignore_index = -100);
/// (prediction - target)^2, reduced (torch.nn.functional.mse_loss).
Tensor mse_loss(const Tensor& prediction, const Tensor& target, Reduction reduction = Reduction::mean);

// ---- attention (ops/attention.cpp) ---------------------------------------------------------------------------------------

struct AttentionOptions {
  Tensor mask = {};                  ///< bool, broadcast to [..., T, S]: true = may attend. Not together with is_causal.
  bool is_causal = false;            ///< Query i sees keys 0..i (aligned top left, as in PyTorch).
  int64_t query_offset = 0;          ///< With is_causal: query i stands at position query_offset + i, after remembered keys.
  int64_t window = 0;                ///< With is_causal: only the last `window` keys up to its own position; 0 = all of them.
  bool enable_gqa = false;           ///< Groups of H / H_kv neighbouring heads of q [..., H, T, d] share a head of k and v
                                     ///< [..., H_kv, S, d] (Ainslie et al. 2023).
  std::optional<double> scale = {};  ///< Default 1 / sqrt(d).
  double dropout_p = 0.0;            ///< On the attention weights; draws from `generator`.
  Generator* generator = nullptr;    ///< Default: default_generator().
};
/// softmax(q k^T * scale, masked) v: q [..., T, d], k [..., S, d], v [..., S, e] -> [..., T, e]. A fully masked row gives 0 and
/// gradient 0. The weights [T, S] are never all in memory (Vaswani et al. 2017; Dao et al. 2022;
/// torch.nn.functional.scaled_dot_product_attention).
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options = {});
/// scaled_dot_product_attention of heads that lie side by side, as one projection makes them, and its result likewise:
/// [..., T, (H + 2 H_kv) d] -> [..., T, H d]; groups of H / H_kv heads of the query share one of key and value. The bits are
/// those of splitting, attending and merging; the gradient is written as one tensor.
Tensor packed_attention(const Tensor& qkv, int64_t num_heads, int64_t num_kv_heads, const AttentionOptions& options = {});

/// Rotary position embedding of x [..., T, d], d even: the pair (x_i, x_{i + d/2}) of token t is turned by the angle
/// (first_position + t) theta^(-2i/d). Pairs are half a row apart as in GPT-NeoX and LLaMA, not neighbours as in the paper
/// (Su et al. 2021). ops/rotary.cpp
Tensor rotary_embedding(const Tensor& x, int64_t first_position = 0, double theta = 10000.0);

// ---- operators -----------------------------------------------------------------------------------------------------------

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator+(const Tensor& a, Scalar b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, Scalar b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, Scalar b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, Scalar b) { return div(a, b); }
inline Tensor operator+(Scalar a, const Tensor& b) { return add(b, a); }
inline Tensor operator*(Scalar a, const Tensor& b) { return mul(b, a); }
Tensor operator-(Scalar a, const Tensor& b);
Tensor operator/(Scalar a, const Tensor& b);
inline Tensor operator-(const Tensor& x) { return neg(x); }

// In place, as Python's: the memory of x changes, and every tensor that shares it.
inline const Tensor& operator+=(const Tensor& x, const Tensor& y) { return add_(x, y), x; }
inline const Tensor& operator-=(const Tensor& x, const Tensor& y) { return sub_(x, y), x; }
inline const Tensor& operator*=(const Tensor& x, const Tensor& y) { return mul_(x, y), x; }
inline const Tensor& operator/=(const Tensor& x, const Tensor& y) { return div_(x, y), x; }
inline const Tensor& operator+=(const Tensor& x, Scalar y) { return add_(x, y), x; }
inline const Tensor& operator-=(const Tensor& x, Scalar y) { return sub_(x, y), x; }
inline const Tensor& operator*=(const Tensor& x, Scalar y) { return mul_(x, y), x; }
inline const Tensor& operator/=(const Tensor& x, Scalar y) { return div_(x, y), x; }

// Elementwise: a bool tensor, no truth value (ask equal(), all() or item()).
inline Tensor operator==(const Tensor& a, const Tensor& b) { return eq(a, b); }
inline Tensor operator!=(const Tensor& a, const Tensor& b) { return ne(a, b); }
inline Tensor operator<(const Tensor& a, const Tensor& b) { return lt(a, b); }
inline Tensor operator<=(const Tensor& a, const Tensor& b) { return le(a, b); }
inline Tensor operator>(const Tensor& a, const Tensor& b) { return gt(a, b); }
inline Tensor operator>=(const Tensor& a, const Tensor& b) { return ge(a, b); }
inline Tensor operator==(const Tensor& a, Scalar b) { return eq(a, b); }
inline Tensor operator!=(const Tensor& a, Scalar b) { return ne(a, b); }
inline Tensor operator<(const Tensor& a, Scalar b) { return lt(a, b); }
inline Tensor operator<=(const Tensor& a, Scalar b) { return le(a, b); }
inline Tensor operator>(const Tensor& a, Scalar b) { return gt(a, b); }
inline Tensor operator>=(const Tensor& a, Scalar b) { return ge(a, b); }
inline Tensor operator==(Scalar a, const Tensor& b) { return eq(b, a); }
inline Tensor operator!=(Scalar a, const Tensor& b) { return ne(b, a); }
inline Tensor operator<(Scalar a, const Tensor& b) { return gt(b, a); }
inline Tensor operator<=(Scalar a, const Tensor& b) { return ge(b, a); }
inline Tensor operator>(Scalar a, const Tensor& b) { return lt(b, a); }
inline Tensor operator>=(Scalar a, const Tensor& b) { return le(b, a); }

}  // namespace onestep
