#pragma once
// The cumulative distribution F of gamma, and how a draw x of gamma or beta moves with a parameter while its quantile stays:
// -(dF / da) / (dF / dx) (Figurnov et al. 2018). F = exp(l) f with a simple l and a series or continued fraction f, which is
// computed together with its derivative.
#include <algorithm>
#include <cmath>

#include "autograd/gamma_formulas.h"
#include "autograd/node.h"
#include "autograd/ops/elementwise.h"
#include "autograd/portable_math.h"

namespace onestep::ops {

/// A number and its derivative by the parameter.
struct Dual {
  double value, slope;

  friend Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.slope + b.slope}; }
  friend Dual operator-(Dual a, Dual b) { return {a.value - b.value, a.slope - b.slope}; }
  friend Dual operator*(Dual a, Dual b) { return {a.value * b.value, a.slope * b.value + a.value * b.slope}; }
  friend Dual operator/(Dual a, Dual b) {
    const double inverse = 1 / b.value, y = a.value * inverse;
    return {y, (a.slope - y * b.slope) * inverse};
  }
};
inline Dual constant(double x) { return {x, 0}; }
inline double value_of(Dual x) { return x.value; }
inline double value_of(double x) { return x; }

/// The standard normal number of the same quantile as x of the gamma distribution with parameter `a`, by the expansion of
/// Cornish and Fisher: z + (z^2 - 1) / (3 root) + ... = (x - a) / root with root = sqrt(a), to about a^(-3/2).
inline double normal_of_gamma(double a, double x) {
  const double root = std::sqrt(a), wanted = (x - a) / root;
  double z = wanted;
  for (int i = 0; i < 4; ++i) {
    const double z2 = z * z, y = z + (z2 - 1) / (3 * root) + z * (z2 - 7) / (36 * a);
    z -= (y - wanted) / (1 + 2 * z / (3 * root) + (3 * z2 - 7) / (36 * a));
  }
  return z;
}

/// The part of the gamma distribution with parameter a > 0 below x > 0, or where `above` that above, is
/// x^a exp(-x) / gamma(above ? a : a + 1) f.
template <class N>
struct GammaPart {
  bool above;
  N f;
};
/// N is double or Dual, `number` makes one of a constant. Cut where all digits are there.
template <class N, class F>
GammaPart<N> gamma_part(N a, double x, F number) {
  N f = number(1);
  if (x <= value_of(a) + 1) {  // 1 + x / (a + 1) + x^2 / (a + 1) / (a + 2) + ...
    N term = f;
    for (double n = 1; value_of(term) > 1e-17 * value_of(f); ++n) {
      term = term * (number(x) / (a + number(n)));
      f = f + term;
    }
    return {false, f};
  }
  // 1 / (x + 1 - a - (1 - a) / (x + 3 - a - 2 (2 - a) / ...))
  const int terms = static_cast<int>(8 + 85 / x + 3 * std::sqrt(value_of(a)));
  f = number(x + 2 * terms + 1) - a;
  for (int n = terms; n > 0; --n) f = number(x + 2 * n - 1) - a - number(n) * (number(n) - a) / f;
  return {true, number(1) / f};
}

/// dx / da of a draw x of the gamma distribution with parameter a > 0 and rate 1; 0 for x = 0.
inline double gamma_slope(double a, double x) {
  constexpr double far = 1e4;  // from here on the expansion has the digits
  if (!(x > 0)) return 0;
  if (a >= far) {
    const double z = normal_of_gamma(a, x), z2 = z * z, root = std::sqrt(a);
    return 1 + z / (2 * root) - z * (z2 - 7) / (72 * a * root) + ((3 * z2 + 7) * z2 - 16) / (810 * a * a);
  }
  const auto part = gamma_part(Dual{a, 1}, x, constant);
  const double log_slope = portable::log(x) - portable::formulas::digamma(part.above ? a : a + 1);
  return (part.above ? x : -x / a) * (log_slope * part.f.value + part.f.slope);
}

/// log(x^a exp(-x) / gamma(a)). Far from 0 by the distance of x from a, so that what is large cancels before it is rounded.
inline double log_scale(double a, double x) {
  if (a < 10) return a * portable::log(x) - x - portable::formulas::lgamma(a);
  const double distance = (x - a) / a;
  return a * (portable::log1p(distance) - distance) + 0.5 * portable::log(a) - portable::formulas::kHalfLog2Pi -
         portable::formulas::stirling_rest(a);
}

/// The derivative of igamma below by `a`.
inline double igamma_slope(double a, double x) {
  if (!(a > 0 && x > 0 && x < portable::formulas::kInfinity)) return 0;
  return -gamma_slope(a, x) * portable::exp(log_scale(a, x)) / x;
}

/// igamma from a = 1e8 on: the normal distribution's and the first term of what it lacks (Temme 1979).
inline double igamma_far(double a, double x, bool above) {
  const double distance = (x - a) / a, eta = std::copysign(std::sqrt(2 * (distance - portable::log1p(distance))), distance);
  const double z = eta * std::sqrt(a), density = portable::exp(-0.5 * z * z) / std::sqrt(2 * portable::formulas::kPi * a);
  const double rest = density * (-1.0 / 3 + eta * (1.0 / 12 - eta * 2 / 135));
  return 0.5 * portable::erfc((above ? z : -z) * std::sqrt(0.5)) + (above ? rest : -rest);
}

/// The part of the gamma distribution with parameter a >= 0 below x >= 0, or above (torch.special.gammainc, gammaincc).
inline double igamma(double a, double x, bool above) {
  constexpr double far = 1e8;
  const double below_all = above ? 1 : 0, above_all = 1 - below_all;
  if (!(a >= 0 && x >= 0) || (a == 0 && x == 0) || (std::isinf(a) && std::isinf(x))) return portable::formulas::kNaN;
  if (x == 0 || std::isinf(a)) return below_all;
  if (a == 0 || std::isinf(x)) return above_all;
  if (a >= far) return igamma_far(a, x, above);
  const auto part = gamma_part(a, x, [](double n) { return n; });
  const double y = portable::exp(log_scale(a, x)) / (part.above ? 1 : a) * part.f;
  return part.above == above ? y : 1 - y;
}

/// The continued fraction of the incomplete beta function at x with parameters a and b (Abramowitz and Stegun 26.5.8).
inline Dual beta_fraction(double x, Dual a, Dual b) {
  const auto terms = static_cast<int>(60 + 6 * std::sqrt(std::min(std::max(a.value, b.value), 1e12)));
  Dual f = constant(1);
  for (int m = terms; m >= 0; --m) {
    const Dual at = a + constant(2.0 * m);
    const Dual even = (a + constant(m)) * (a + b + constant(m)) * constant(-x) / (at * (at + constant(1)));
    if (m < terms) {
      const Dual next = at + constant(2);
      const Dual odd = constant((m + 1.0) * x) * (b - constant(m + 1.0)) / ((next - constant(1)) * next);
      f = constant(1) + odd / f;
    }
    f = constant(1) + even / f;
  }
  return constant(1) / f;
}

/// (dx / da) / (1 - x) of a draw x of the beta distribution with parameters a and total - a.
inline double dirichlet_slope(double a, double total, double x) {
  const double b = total - a, digamma_total = portable::formulas::digamma(total);
  if (x <= a / total) {  // F = x^a (1 - x)^b gamma(total) / (gamma(a + 1) gamma(b)) f
    const Dual f = beta_fraction(x, {a, 1}, constant(b));
    return -x / a * ((portable::log(x) - portable::formulas::digamma(a + 1) + digamma_total) * f.value + f.slope);
  }
  const Dual f = beta_fraction(1 - x, constant(b), {a, 1});  // of 1 - F
  return x / b * ((portable::log(x) - portable::formulas::digamma(a) + digamma_total) * f.value + f.slope);
}

/// f(a, x) of two tensors, in double.
template <class F>
Tensor in_double(const char* op, const Tensor& a, const Tensor& x, F f) {
  return zip_floating(
      op, a, x, Loop{[f]<class T>(T p, T v) { return static_cast<T>(f(static_cast<double>(p), static_cast<double>(v))); }});
}

/// A slope by x for the rule of an op; in a recorded pass it has no derivative.
inline Tensor slope_in(const Backward& b, const char* op, const Tensor& slope, const Tensor& x) {
  if (!b.recording()) return slope;
  return record(op, slope, {x}, {},
                [op](const Backward&) -> Grads { fail<GradError>(op, ": its gradient has no derivative"); });
}

}  // namespace onestep::ops
