#pragma once
// The gamma function's logarithm and the derivatives of that, as formulas (portable_formulas.h).
#include "autograd/portable_formulas.h"

// NOLINTBEGIN(bugprone-narrowing-conversions)
namespace onestep::portable::formulas {

/// From here on the asymptotic series have all digits.
inline constexpr int kFar = 10;
/// Bernoulli's numbers B(2), B(4), ... of these series.
inline constexpr std::array kBernoulli = {1.0 / 6,  -1.0 / 30,     1.0 / 42, -1.0 / 30,
                                          5.0 / 66, -691.0 / 2730, 7.0 / 6,  -3617.0 / 510};

/// sin(pi x) for 0 <= x <= 1/2: Taylor's series.
ONESTEP_FORMULA double sin_of_half_turns(double x) {
  constexpr auto terms = [] {
    std::array<double, 13> c{};  // -1 / 3!, 1 / 5!, ...
    double factorial = 1;
    for (size_t k = 0; k < c.size(); ++k) c[k] = factorial /= -static_cast<double>((2 * k + 2) * (2 * k + 3));
    return c;
  }();
  const double angle = kPi * x, square = angle * angle;
  return angle + angle * square * polynomial(square, terms);
}
/// sin(pi x) and cos(pi x) for 0 <= x < 1.
struct HalfTurns {
  double sin, cos;
};
ONESTEP_FORMULA HalfTurns half_turns(double x) {
  const bool left = x > 0.5;
  const double near = left ? 1 - x : x, cos = sin_of_half_turns(0.5 - near);
  return {sin_of_half_turns(near), left ? -cos : cos};
}

/// log(gamma(2 + t)) for |t| <= 1/2: Taylor's series, with (zeta(k) - 1) / k.
ONESTEP_FORMULA double lgamma_near_2(double t) {
  constexpr std::array c = {0x1.b0ee6072093cep-2,   0x1.4a34cc4a60fa6p-2,  -0x1.13e001a557607p-4,  0x1.51322ac7d8483p-6,
                            -0x1.e404fc218f5f2p-8,  0x1.7add6eadb6c30p-9,  -0x1.38ac5c2bf8e08p-10, 0x1.0b36af86396e9p-11,
                            -0x1.d3fd4c76d2fc8p-13, 0x1.a127b0f17d65ap-14, -0x1.78de5bd7c81efp-15, 0x1.580dcee66eb02p-16,
                            -0x1.3cbc963ce2243p-17, 0x1.2597a39f34aacp-18, -0x1.11b2eb7679541p-19, 0x1.0064cdeb22f0fp-20,
                            -0x1.e2600d93cfd2fp-22, 0x1.c76bbb3f07a4dp-23, -0x1.af5a6cbbf8a97p-24, 0x1.99b93c2070b0fp-25,
                            -0x1.862c734df3eacp-26, 0x1.7469daccfadcdp-27, -0x1.6434a8447aeadp-28, 0x1.555a877ffd2c3p-29,
                            -0x1.47b1679258d0ep-30, 0x1.3b15d2b2fc10cp-31, -0x1.2f69a9fabe3e0p-32};
  return t * polynomial(t, c);
}

/// log(gamma(a)) for a >= 0. Below `kFar` by the recurrence from where it is near 2, so that it has its digits where it is near
/// 0; beyond by Stirling's series.
ONESTEP_FORMULA double lgamma_of_positive(double a) {
  constexpr double half_log_2pi = 0x1.d67f1c864beb5p-1;
  constexpr auto series = [] {
    std::array<double, kBernoulli.size()> c{};
    for (size_t k = 0; k < c.size(); ++k) c[k] = kBernoulli[k] / static_cast<double>((2 * k + 1) * (2 * k + 2));
    return c;
  }();
  const double near = a < kFar ? a : 2, steps = std::floor(near - 1.5), up = near * (near + 1);
  double product = steps < -1 ? up : steps < 0 ? near : 1;
#pragma GCC unroll 8
  for (int i = 1; i < kFar - 1; ++i) product *= i <= steps ? near - i : 1;
  const double logarithm = log(a < kFar ? product : a);
  const double small = lgamma_near_2(near - (2 + steps)) + (steps < 0 ? -logarithm : logarithm);
  const double far = a < kFar ? kFar : a, inverse = 1 / far;
  const double large = (far - 0.5) * (logarithm - 1) + (half_log_2pi - 0.5) + inverse * polynomial(inverse * inverse, series);
  return a < kFar ? small : a < kInfinity ? large : a;
}

/// log(|gamma(x)|). Below 0 by pi / (sin(pi a) gamma(1 + a)).
ONESTEP_FORMULA double lgamma(double x) {
  constexpr double log_pi = 0x1.250d048e7a1bdp+0;
  const double a = std::fabs(x), y = lgamma_of_positive(x < 0 ? a + 1 : a), part = a - std::floor(a);
  const double reflected = log_pi - log(half_turns(part).sin) - y;
  const double negative = part == 0 ? kInfinity : reflected;
  return x > 0 ? y : a < kInfinity ? negative : a;
}

/// The logarithmic derivative of gamma: gamma'(x) / gamma(x), NaN at -1, -2, ...
ONESTEP_FORMULA double digamma(double x) {
  constexpr auto series = [] {
    std::array<double, kBernoulli.size()> c{};
    for (size_t k = 0; k < c.size(); ++k) c[k] = kBernoulli[k] / static_cast<double>(2 * k + 2);
    return c;
  }();
  const double a = std::fabs(x), positive = x < 0 ? a + 1 : a;
  double far = positive, sum = 0;
#pragma GCC unroll 16
  for (int i = 0; i < kFar; ++i) {
    sum += far < kFar ? 1 / far : 0;
    far += far < kFar ? 1 : 0;
  }
  const double inverse = 1 / far, square = inverse * inverse;
  const double y = log(far) - 0.5 * inverse - square * polynomial(square, series) - sum, part = a - std::floor(a);
  const HalfTurns turns = half_turns(part);
  const double reflected = part == 0 ? kNaN : y + kPi * (turns.cos / turns.sin);
  return x > 0 ? y : x == 0 ? std::copysign(kInfinity, -x) : reflected;
}

/// x^-n for whole n > 0.
ONESTEP_FORMULA double negative_power(double x, int n) {
  double y = 1;
  for (int i = 0; i < n; ++i) y /= x;
  return y;
}

/// Hurwitz's zeta function: the sum of (x + i)^-s over i = 0, 1, ..., for x >= 0 and whole s > 1, by Euler and Maclaurin.
ONESTEP_FORMULA double zeta_of_positive(int s, double x) {
  double sum = 0;
  for (int i = 0; i < kFar; ++i) sum += negative_power(x + i, s);
  const double far = x + kFar, last = negative_power(far, s);
  sum += negative_power(far, s - 1) / (s - 1) + 0.5 * last;
  double term = last / far * s / 2;  // s (s + 1) ... (s + 2 k) far^-(s + 2 k + 1) / (2 k + 2)!
  for (size_t k = 0; k < kBernoulli.size(); ++k) {
    const auto i = static_cast<double>(2 * k);
    sum += kBernoulli[k] * term;
    term *= (s + i + 1) * (s + i + 2) / ((i + 3) * (i + 4)) / (far * far);
  }
  return sum;
}

/// Derivative n >= 1 of digamma. Below 0 by the sum over all whole i, from 0 up and down.
ONESTEP_FORMULA double polygamma(int n, double x) {
  const int s = n + 1;
  const double sign = s % 2 == 0 ? 1 : -1, part = -x - std::floor(-x);
  double y = zeta_of_positive(s, x < 0 ? 1 - part : x);
  if (x < 0) y = part == 0 ? kInfinity : y + sign * (zeta_of_positive(s, part) - zeta_of_positive(s, 1 - x));
  double factorial = sign;
  for (int i = 2; i <= n; ++i) factorial *= i;
  return factorial * y;
}

ONESTEP_FORMULA float lgamma(float x) { return static_cast<float>(lgamma(static_cast<double>(x))); }
ONESTEP_FORMULA float digamma(float x) { return static_cast<float>(digamma(static_cast<double>(x))); }
ONESTEP_FORMULA float polygamma(int n, float x) { return static_cast<float>(polygamma(n, static_cast<double>(x))); }

}  // namespace onestep::portable::formulas
// NOLINTEND(bugprone-narrowing-conversions)
