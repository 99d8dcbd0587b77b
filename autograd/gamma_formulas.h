#pragma once
// The gamma function's logarithm and the derivatives of that, as formulas (portable_formulas.h).
#include <array>
#include <cmath>
#include <type_traits>

#include "autograd/portable_formulas.h"

// NOLINTBEGIN(bugprone-narrowing-conversions)
namespace onestep::portable::formulas {

/// What a result of type T needs of terms and steps: all is computed in double, a float is as good as rounded once.
template <class T>
inline constexpr bool kFewer = std::is_same_v<T, float>;
/// From here on the asymptotic series have all digits.
template <class T>
inline constexpr int kFar = kFewer<T> ? 6 : 10;
inline constexpr double kHalfLog2Pi = 0x1.d67f1c864beb5p-1;  // log(2 pi) / 2
/// Bernoulli's numbers B(2), B(4), ... of these series.
inline constexpr std::array kBernoulli = {1.0 / 6,  -1.0 / 30,     1.0 / 42, -1.0 / 30,
                                          5.0 / 66, -691.0 / 2730, 7.0 / 6,  -3617.0 / 510};

/// The first N terms of c[0] + c[1] x + c[2] x^2 + ...: even and odd powers apart, so that each waits for half of them.
template <size_t N, size_t ALL>
ONESTEP_FORMULA double first_terms(double x, const std::array<double, ALL>& c) {
  const double square = x * x;
  double even = c[(N - 1) / 2 * 2], odd = c[N / 2 * 2 - 1];
#pragma GCC unroll 16
  for (size_t i = (N - 1) / 2 * 2; i > 0; i -= 2) even = std::fma(even, square, c[i - 2]);
#pragma GCC unroll 16
  for (size_t i = N / 2 * 2 - 1; i > 1; i -= 2) odd = std::fma(odd, square, c[i - 2]);
  return std::fma(odd, x, even);
}

/// log(x) for 0 < x < infinity.
template <class T>
ONESTEP_FORMULA double log_of_positive(double x) {
  constexpr std::array terms = {2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15};
  const Binary b = binary(x);
  if constexpr (!kFewer<T>) return log(b);
  const double s = (b.m - 1) / (b.m + 1), square = s * s;
  return b.exponent * kLn2 + (2 * s + s * square * first_terms<terms.size()>(square, terms));
}

/// sin(pi x) for 0 <= x <= 1/2: Taylor's series.
template <class T>
ONESTEP_FORMULA double sin_of_half_turns(double x) {
  constexpr auto terms = [] {
    std::array<double, 13> c{};  // -1 / 3!, 1 / 5!, ...
    double factorial = 1;
    for (size_t k = 0; k < c.size(); ++k) c[k] = factorial /= -static_cast<double>((2 * k + 2) * (2 * k + 3));
    return c;
  }();
  const double angle = kPi * x, square = angle * angle;
  constexpr size_t needed = kFewer<T> ? 8 : terms.size();
  return angle + angle * square * first_terms<needed>(square, terms);
}
/// sin(pi x) and cos(pi x) for 0 <= x < 1.
struct HalfTurns {
  double sin, cos;
};
template <class T>
ONESTEP_FORMULA HalfTurns half_turns(double x) {
  const bool left = x > 0.5;
  const double near = left ? 1 - x : x, cos = sin_of_half_turns<T>(0.5 - near);
  return {sin_of_half_turns<T>(near), left ? -cos : cos};
}

/// log(gamma(2 + t)) for |t| <= 1/2: Taylor's series, with (zeta(k) - 1) / k.
template <class T>
ONESTEP_FORMULA double lgamma_near_2(double t) {
  constexpr std::array c = {0x1.b0ee6072093cep-2,   0x1.4a34cc4a60fa6p-2,  -0x1.13e001a557607p-4,  0x1.51322ac7d8483p-6,
                            -0x1.e404fc218f5f2p-8,  0x1.7add6eadb6c30p-9,  -0x1.38ac5c2bf8e08p-10, 0x1.0b36af86396e9p-11,
                            -0x1.d3fd4c76d2fc8p-13, 0x1.a127b0f17d65ap-14, -0x1.78de5bd7c81efp-15, 0x1.580dcee66eb02p-16,
                            -0x1.3cbc963ce2243p-17, 0x1.2597a39f34aacp-18, -0x1.11b2eb7679541p-19, 0x1.0064cdeb22f0fp-20,
                            -0x1.e2600d93cfd2fp-22, 0x1.c76bbb3f07a4dp-23, -0x1.af5a6cbbf8a97p-24, 0x1.99b93c2070b0fp-25,
                            -0x1.862c734df3eacp-26, 0x1.7469daccfadcdp-27, -0x1.6434a8447aeadp-28, 0x1.555a877ffd2c3p-29,
                            -0x1.47b1679258d0ep-30, 0x1.3b15d2b2fc10cp-31, -0x1.2f69a9fabe3e0p-32};
  constexpr size_t needed = kFewer<T> ? 16 : c.size();
  return t * first_terms<needed>(t, c);
}

/// log(gamma(a)) for a >= 0. Below `kFar` by the recurrence from where it is near 2, so that it has its digits where it is near
/// 0; beyond by Stirling's series.
template <class T>
ONESTEP_FORMULA double lgamma_of_positive(double a) {
  constexpr auto series = [] {
    std::array<double, kBernoulli.size()> c{};
    for (size_t k = 0; k < c.size(); ++k) c[k] = kBernoulli[k] / static_cast<double>((2 * k + 1) * (2 * k + 2));
    return c;
  }();
  const double near = a < kFar<T> ? a : 2, steps = std::floor(near - 1.5), up = near * (near + 1);
  double product = steps < -1 ? up : steps < 0 ? near : 1;
#pragma GCC unroll 8
  for (int i = 1; i < kFar<T> - 1; ++i) product *= i <= steps ? near - i : 1;
  const double logarithm = log_of_positive<T>(a < kFar<T> ? product : a);
  const double small = lgamma_near_2<T>(near - (2 + steps)) + (steps < 0 ? -logarithm : logarithm);
  const double far = a < kFar<T> ? kFar<T> : a, inverse = 1 / far;
  constexpr size_t needed = kFewer<T> ? 6 : series.size();
  const double rest = inverse * first_terms<needed>(inverse * inverse, series);
  const double large = (far - 0.5) * (logarithm - 1) + (kHalfLog2Pi - 0.5) + rest;
  return a < kFar<T> ? small : a < kInfinity ? large : a;
}

/// log(gamma(n)) minus Stirling's (n - 1/2) log(n) - n + log(2 pi) / 2, for n >= 10.
ONESTEP_FORMULA double stirling_rest(double n) {
  const double square = n * n;
  return (1.0 / 12 - (1.0 / 360 - (1.0 / 1260 - 1.0 / 1680 / square) / square) / square) / n;
}

/// log(|gamma(x)|). Below 0 by pi / (sin(pi a) gamma(1 + a)).
template <class T>
ONESTEP_FORMULA T lgamma(T argument) {
  constexpr double log_pi = 0x1.250d048e7a1bdp+0;
  const double x = argument, a = std::fabs(x), y = lgamma_of_positive<T>(x < 0 ? a + 1 : a), part = a - std::floor(a);
  const double reflected = log_pi - log_of_positive<T>(half_turns<T>(part).sin) - y;
  const double negative = part == 0 ? kInfinity : reflected;
  return static_cast<T>(x > 0 ? y : a < kInfinity ? negative : a);
}

/// x + 0, x + 1, ... up to `kFar` in pairs from both ends, which have one sum and the products `first` and `first` plus
/// constants: sums of their inverses and of the squares of these have half as many terms, added as fractions, which divide
/// once.
template <class T>
struct Pairs {
  static constexpr int last = kFar<T> - 1;
  static constexpr double added(int i) { return i * (last - i); }
  double sum, first;
};
template <class T>
ONESTEP_FORMULA Pairs<T> pairs(double x) {
  return {x + x + Pairs<T>::last, x * (x + Pairs<T>::last)};
}
/// 1 / x + 1 / (x + 1) + ...
template <class T>
ONESTEP_FORMULA double sum_of_inverses(double x) {
  const Pairs<T> pair = pairs<T>(x);
  double above = 1, below = pair.first;
#pragma GCC unroll 8
  for (int i = 1; i < kFar<T> / 2; ++i) {
    const double product = pair.first + Pairs<T>::added(i);
    above = std::fma(above, product, below);
    below *= product;
  }
  return pair.sum * above / below;
}
/// 1 / x^2 + 1 / (x + 1)^2 + ...
template <class T>
ONESTEP_FORMULA double sum_of_squared_inverses(double x) {
  const Pairs<T> pair = pairs<T>(x);
  const double square = pair.sum * pair.sum;
  double above = 0, below = 1;
#pragma GCC unroll 8
  for (int i = 0; i < kFar<T> / 2; ++i) {
    const double product = pair.first + Pairs<T>::added(i), squared = product * product;
    above = std::fma(above, squared, below * std::fma(-2, product, square));
    below *= squared;
  }
  return above / below;
}

/// The logarithmic derivative of gamma: gamma'(x) / gamma(x), NaN at -1, -2, ...
template <class T>
ONESTEP_FORMULA T digamma(T argument) {
  constexpr auto series = [] {
    std::array<double, kBernoulli.size()> c{};
    for (size_t k = 0; k < c.size(); ++k) c[k] = kBernoulli[k] / static_cast<double>(2 * k + 2);
    return c;
  }();
  const double x = argument, a = std::fabs(x), positive = x < 0 ? a + 1 : a, part = a - std::floor(a);
  const bool near = positive < kFar<T>;
  const double sum = sum_of_inverses<T>(near ? positive : 1), far = near ? positive + kFar<T> : positive;
  const double inverse = 1 / far, square = inverse * inverse;
  constexpr size_t needed = kFewer<T> ? 5 : series.size();
  const double large = log_of_positive<T>(far) - 0.5 * inverse - square * first_terms<needed>(square, series);
  const double y = far < kInfinity ? large - (near ? sum : 0) : far;
  const HalfTurns turns = half_turns<T>(part);
  const double reflected = part == 0 ? kNaN : y + kPi * (turns.cos / turns.sin);
  return static_cast<T>(x > 0 ? y : x == 0 ? std::copysign(kInfinity, -x) : reflected);
}

/// The derivative of digamma. Below 0 by (pi / sin(pi x))^2 - trigamma(1 - x).
template <class T>
ONESTEP_FORMULA T trigamma(T argument) {
  const double x = argument, a = std::fabs(x), positive = x < 0 ? a + 1 : a;
  const bool near = positive < kFar<T>;
  const double sum = sum_of_squared_inverses<T>(near ? positive : 1), far = near ? positive + kFar<T> : positive;
  const double inverse = 1 / far, square = inverse * inverse;
  constexpr size_t needed = kFewer<T> ? 5 : kBernoulli.size();
  const double large = inverse + (0.5 * square + inverse * square * first_terms<needed>(square, kBernoulli));
  const double y = large + (near ? sum : 0), ratio = kPi / half_turns<T>(a - std::floor(a)).sin;
  return static_cast<T>(x < 0 ? ratio * ratio - y : y);
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
  for (int i = 0; i < kFar<double>; ++i) sum += negative_power(x + i, s);
  const double far = x + kFar<double>, last = negative_power(far, s);
  sum += negative_power(far, s - 1) / (s - 1) + 0.5 * last;
  double term = last / far * s / 2;  // s (s + 1) ... (s + 2 k) far^-(s + 2 k + 1) / (2 k + 2)!
  for (size_t k = 0; k < kBernoulli.size(); ++k) {
    const auto i = static_cast<double>(2 * k);
    sum += kBernoulli[k] * term;
    term *= (s + i + 1) * (s + i + 2) / ((i + 3) * (i + 4)) / (far * far);
  }
  return sum;
}

/// Derivative n >= 1 of digamma (the first by trigamma is faster). Below 0 by the sum over all whole i, from 0 up and down.
ONESTEP_FORMULA double polygamma(int n, double x) {
  const int s = n + 1;
  const double sign = s % 2 == 0 ? 1 : -1, part = -x - std::floor(-x);
  double y = zeta_of_positive(s, x < 0 ? 1 - part : x);
  if (x < 0) y = part == 0 ? kInfinity : y + sign * (zeta_of_positive(s, part) - zeta_of_positive(s, 1 - x));
  double factorial = sign;
  for (int i = 2; i <= n; ++i) factorial *= i;
  return factorial * y;
}

ONESTEP_FORMULA float polygamma(int n, float x) { return static_cast<float>(polygamma(n, static_cast<double>(x))); }

}  // namespace onestep::portable::formulas
// NOLINTEND(bugprone-narrowing-conversions)
