#pragma once
// Functions of one or two operands, element by element, beside those of ops_math.h. Two operands broadcast and meet in one
// dtype.
#include <optional>

#include "autograd/pointwise_names.h"
#include "autograd/tensor.h"

namespace onestep {

// ---- elementary functions (ops/pointwise.cpp): integers and bools are taken as default_dtype() -------------------------

Tensor exp2(const Tensor& x);
/// exp(x) - 1, with all digits near 0.
Tensor expm1(const Tensor& x);
/// log(1 + x), with all digits near 0.
Tensor log1p(const Tensor& x);
Tensor log2(const Tensor& x);
Tensor log10(const Tensor& x);
Tensor tan(const Tensor& x);
Tensor asin(const Tensor& x);
Tensor acos(const Tensor& x);
Tensor atan(const Tensor& x);
Tensor sinh(const Tensor& x);
Tensor cosh(const Tensor& x);
Tensor asinh(const Tensor& x);
Tensor acosh(const Tensor& x);
Tensor atanh(const Tensor& x);
/// 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x.
Tensor erf(const Tensor& x);
/// 1 - erf(x), with all digits where that is small.
Tensor erfc(const Tensor& x);
/// The y with erf(y) = x; NaN outside [-1, 1].
Tensor erfinv(const Tensor& x);
/// log(|gamma(x)|) (torch.lgamma; ops/gamma.cpp).
Tensor lgamma(const Tensor& x);
/// The derivative of lgamma (torch.digamma); NaN at -1, -2, ..., infinite at 0.
Tensor digamma(const Tensor& x);
/// Derivative n of digamma, 0 <= n <= 170 (torch.polygamma).
Tensor polygamma(int64_t n, const Tensor& x);
/// The integral of t^(a - 1) exp(-t) / gamma(a) from 0 to x, for a >= 0 and x >= 0, broadcast; NaN elsewhere. The gradient by
/// a, which PyTorch's has not, has no derivative (torch.igamma, torch.special.gammainc). Throws DTypeError unless dtypes agree.
Tensor igamma(const Tensor& a, const Tensor& x);
/// The same from x on: 1 - igamma(a, x) with all its digits (torch.igammac, torch.special.gammaincc).
Tensor igammac(const Tensor& a, const Tensor& x);
/// sin(pi x) / (pi x), 1 at 0.
Tensor sinc(const Tensor& x);
Tensor reciprocal(const Tensor& x);
/// x^2; integers stay integers.
Tensor square(const Tensor& x);
Tensor deg2rad(const Tensor& x);
Tensor rad2deg(const Tensor& x);

/// The angle of the point (x, y) in (-pi, pi] (torch.atan2); its gradient at (0, 0) is 0.
Tensor atan2(const Tensor& y, const Tensor& x);
/// sqrt(a^2 + b^2) without overflow.
Tensor hypot(const Tensor& a, const Tensor& b);
/// |a| with the sign of b, whose gradient is 0 (torch.copysign).
Tensor copysign(const Tensor& a, const Tensor& b);
Tensor copysign(const Tensor& a, Scalar b);
/// log(x / (1 - x)), with eps of x between eps and 1 - eps; NaN outside [0, 1], as its gradient (torch.logit).
Tensor logit(const Tensor& x, std::optional<double> eps = {});
/// log(exp(a) + exp(b)) without overflow.
Tensor logaddexp(const Tensor& a, const Tensor& b);
/// x log(y), and 0 where x is 0 unless y is NaN (torch.xlogy).
Tensor xlogy(const Tensor& x, const Tensor& y);
Tensor xlogy(const Tensor& x, Scalar y);
Tensor xlogy(Scalar x, const Tensor& y);
/// x log(1 + y), and 0 where x is 0 unless y is NaN (torch.special.xlog1py).
Tensor xlog1py(const Tensor& x, const Tensor& y);
Tensor xlog1py(const Tensor& x, Scalar y);
Tensor xlog1py(Scalar x, const Tensor& y);
/// base^exponent in float64 (torch.float_power).
Tensor float_power(const Tensor& base, const Tensor& exponent);
Tensor float_power(const Tensor& base, Scalar exponent);
Tensor float_power(Scalar base, const Tensor& exponent);

// ---- special functions (ops/special.cpp) ---------------------------------------------------------------------------------

/// -x log(x); 0 for 0, -inf below (torch.special.entr).
Tensor entr(const Tensor& x);
/// exp(x^2) erfc(x) (torch.special.erfcx).
Tensor erfcx(const Tensor& x);
/// The part of the standard normal distribution below x (torch.special.ndtr).
Tensor ndtr(const Tensor& x);
/// log(ndtr(x)), with all digits far below 0 (torch.special.log_ndtr).
Tensor log_ndtr(const Tensor& x);
/// The x with ndtr(x) = p; NaN outside [0, 1] (torch.special.ndtri).
Tensor ndtri(const Tensor& p);
/// The modified Bessel functions of the first kind of orders 0 and 1, and times exp(-|x|) (torch.special.i0e, ...).
Tensor i0(const Tensor& x);
Tensor i0e(const Tensor& x);
Tensor i1(const Tensor& x);
Tensor i1e(const Tensor& x);

// ---- rounding and remainders (ops/rounding.cpp): gradients are 0 where the result is locally constant ---------------------

/// The next whole number below / above / towards 0. Integers stay as they are.
Tensor floor(const Tensor& x);
Tensor ceil(const Tensor& x);
Tensor trunc(const Tensor& x);
/// The nearest whole number, ties to the even one; with `decimals`, the nearest multiple of 10^-decimals (torch.round). Throws
/// DTypeError on integers with decimals.
Tensor round(const Tensor& x);
Tensor round(const Tensor& x, int64_t decimals);
/// x - trunc(x)
Tensor frac(const Tensor& x);
/// -1, 0 or 1; 0 at NaN.
Tensor sign(const Tensor& x);
Tensor sgn(const Tensor& x);
enum class RoundingMode { none, trunc, floor };
/// a / b rounded towards 0 or downwards, integers staying integers; with `none` true division (torch.div with rounding_mode).
/// Throws Error on a division of integers by 0, as floor_divide, remainder and fmod do.
Tensor div(const Tensor& a, const Tensor& b, RoundingMode rounding_mode);
Tensor div(const Tensor& a, Scalar b, RoundingMode rounding_mode);
/// a / b rounded downwards, of which a backward pass is refused (torch.floor_divide).
Tensor floor_divide(const Tensor& a, const Tensor& b);
Tensor floor_divide(const Tensor& a, Scalar b);
/// a - b floor(a / b): the remainder with the sign of b, Python's % (torch.remainder).
Tensor remainder(const Tensor& a, const Tensor& b);
Tensor remainder(const Tensor& a, Scalar b);
Tensor remainder(Scalar a, const Tensor& b);
/// a - b trunc(a / b): the remainder with the sign of a, C's fmod (torch.fmod).
Tensor fmod(const Tensor& a, const Tensor& b);
Tensor fmod(const Tensor& a, Scalar b);

// ---- choices (ops/choices.cpp) -------------------------------------------------------------------------------------------

/// clamp with tensors for bounds; an undefined one is no bound. Where they cross the upper one counts. A bound gets the
/// gradient where it was taken (torch.clamp).
Tensor clamp(const Tensor& x, const Tensor& low, const Tensor& high);
/// clamp with one bound.
Tensor clamp_min(const Tensor& x, const Tensor& low);
Tensor clamp_max(const Tensor& x, const Tensor& high);
Tensor clamp_min(const Tensor& x, Scalar low);
Tensor clamp_max(const Tensor& x, Scalar high);
/// The larger / smaller value; a number beats NaN, and in a tie a gets the gradient (torch.fmax, torch.fmin).
Tensor fmax(const Tensor& a, const Tensor& b);
Tensor fmin(const Tensor& a, const Tensor& b);
/// 0 where x < 0, 1 where x > 0, `values` where x is 0; no gradient (torch.heaviside). Throws DTypeError unless dtypes agree.
Tensor heaviside(const Tensor& x, const Tensor& values);
/// a + weight (b - a) (torch.lerp). Throws DTypeError unless all have the same floating dtype.
Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight);
Tensor lerp(const Tensor& a, const Tensor& b, double weight);
/// x with NaN, infinity and -infinity replaced, by default by the largest and the least finite number; the gradient is 0 there
/// (torch.nan_to_num).
Tensor nan_to_num(const Tensor& x, double nan = 0.0, std::optional<double> posinf = {}, std::optional<double> neginf = {});
/// b - a, or b - alpha a (torch.rsub)
Tensor rsub(const Tensor& a, const Tensor& b);
Tensor rsub(const Tensor& a, const Tensor& b, Scalar alpha);
Tensor rsub(const Tensor& a, Scalar b);
Tensor isinf(const Tensor& x);
Tensor isposinf(const Tensor& x);
Tensor isneginf(const Tensor& x);
/// Whether the sign is minus, also that of -0.0 and of NaN (torch.signbit).
Tensor signbit(const Tensor& x);
/// |a - b| <= atol + rtol |b| elementwise; equal infinities are close (torch.isclose).
Tensor isclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);

// ---- bits of integers and bools (ops/bitwise.cpp): no gradient; throw DTypeError on floats -------------------------------

Tensor bitwise_and(const Tensor& a, const Tensor& b);
Tensor bitwise_or(const Tensor& a, const Tensor& b);
Tensor bitwise_xor(const Tensor& a, const Tensor& b);
Tensor bitwise_and(const Tensor& a, Scalar b);
Tensor bitwise_or(const Tensor& a, Scalar b);
Tensor bitwise_xor(const Tensor& a, Scalar b);
Tensor bitwise_not(const Tensor& x);
/// a 2^b, bits beyond the first being lost; 0 for b < 0 and b >= 64. Throws DTypeError on two bools, too.
Tensor bitwise_left_shift(const Tensor& a, const Tensor& b);
Tensor bitwise_left_shift(const Tensor& a, Scalar b);
/// a / 2^b rounded downwards; for b < 0 and b >= 64 as for 63. Throws DTypeError on two bools, too.
Tensor bitwise_right_shift(const Tensor& a, const Tensor& b);
Tensor bitwise_right_shift(const Tensor& a, Scalar b);

// ---- activations (ops/activations.cpp), those of torch.nn.functional -----------------------------------------------------
// Of floats; hardtanh, relu6 and threshold also of integers, and softsign and tanhshrink take integers as default_dtype().

/// log(1 + exp(beta x)) / beta, and x where beta x > threshold.
Tensor softplus(const Tensor& x, double beta = 1.0, double threshold = 20.0);
/// x where x > 0, else negative_slope x.
Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01);
/// As leaky_relu with a learnt slope: one number, or one for each place of dim 1. Throws ShapeError unless it fits.
Tensor prelu(const Tensor& x, const Tensor& weight);
/// x where x > 0, else alpha (exp(x) - 1) (Clevert et al. 2016).
Tensor elu(const Tensor& x, double alpha = 1.0);
/// scale elu(x, alpha) with the constants of Klambauer et al. 2017.
Tensor selu(const Tensor& x);
/// x where x > 0, else alpha (exp(x / alpha) - 1) (Barron 2017).
Tensor celu(const Tensor& x, double alpha = 1.0);
/// min(max(x, min_value), max_value); the gradient at both bounds is 0.
Tensor hardtanh(const Tensor& x, double min_value = -1.0, double max_value = 1.0);
/// hardtanh from 0 to 6.
Tensor relu6(const Tensor& x);
/// min(max(x + 3, 0), 6) / 6
Tensor hardsigmoid(const Tensor& x);
/// x hardsigmoid(x)
Tensor hardswish(const Tensor& x);
/// x tanh(softplus(x)) (Misra 2019).
Tensor mish(const Tensor& x);
/// log(sigmoid(x)) without overflow.
Tensor logsigmoid(const Tensor& x);
/// x / (1 + |x|)
Tensor softsign(const Tensor& x);
/// x - tanh(x)
Tensor tanhshrink(const Tensor& x);
/// x where |x| > lambd, else 0.
Tensor hardshrink(const Tensor& x, double lambd = 0.5);
/// x - lambd above lambd, x + lambd below -lambd, else 0. Throws ConfigError on a negative lambd.
Tensor softshrink(const Tensor& x, double lambd = 0.5);
/// x where x > threshold, else value.
Tensor threshold(const Tensor& x, double threshold, double value);
/// a sigmoid(b) for the halves a and b of x along `dim` (Dauphin et al. 2017). Throws ShapeError on an odd size.
Tensor glu(const Tensor& x, int64_t dim = -1);

// ---- in place (ops/pointwise_inplace.cpp): x takes the values of the op without trailing _, as in ops_math.h -------------

#define ONESTEP_DECLARE(NAME) Tensor NAME##_(const Tensor& x);
ONESTEP_UNARY_OPS(ONESTEP_DECLARE)
#undef ONESTEP_DECLARE
#define ONESTEP_DECLARE(NAME) Tensor NAME##_(const Tensor& x, const Tensor& y);
ONESTEP_BINARY_OPS(ONESTEP_DECLARE)
ONESTEP_SCALAR_OPS(ONESTEP_DECLARE)
#undef ONESTEP_DECLARE
#define ONESTEP_DECLARE(NAME) Tensor NAME##_(const Tensor& x, Scalar y);
ONESTEP_SCALAR_OPS(ONESTEP_DECLARE)
#undef ONESTEP_DECLARE
Tensor round_(const Tensor& x, int64_t decimals);
Tensor div_(const Tensor& x, const Tensor& y, RoundingMode rounding_mode);
Tensor div_(const Tensor& x, Scalar y, RoundingMode rounding_mode);
Tensor clamp_(const Tensor& x, std::optional<Scalar> low, std::optional<Scalar> high = {});
Tensor clamp_(const Tensor& x, const Tensor& low, const Tensor& high);
Tensor lerp_(const Tensor& a, const Tensor& b, const Tensor& weight);
Tensor lerp_(const Tensor& a, const Tensor& b, double weight);
Tensor nan_to_num_(const Tensor& x, double nan = 0.0, std::optional<double> posinf = {}, std::optional<double> neginf = {});
Tensor leaky_relu_(const Tensor& x, double negative_slope = 0.01);
Tensor elu_(const Tensor& x, double alpha = 1.0);
Tensor selu_(const Tensor& x);
Tensor celu_(const Tensor& x, double alpha = 1.0);
Tensor hardtanh_(const Tensor& x, double min_value = -1.0, double max_value = 1.0);
Tensor threshold_(const Tensor& x, double threshold, double value);
Tensor zero_(const Tensor& x);

}  // namespace onestep
