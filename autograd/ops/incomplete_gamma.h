#pragma once
// The cumulative distribution F of gamma, and how a draw x of gamma or beta moves with a parameter while its quantile stays:
// -(dF / da) / (dF / dx) (Figurnov et al. 2018). F = exp(l) f with a simple l and a series or continued fraction f, which is
// computed together with its derivative.
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "autograd/gamma_formulas.h"
#include "autograd/node.h"
#include "autograd/ops/elementwise.h"
#include "autograd/vector_loop.h"

namespace onestep::ops {

namespace formulas = portable::formulas;

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

/// Whether `term` counts in a sum.
inline bool counts(double term, double precision, double sum) { return std::fabs(term) > precision * std::fabs(sum); }
inline bool counts(Dual term, double precision, Dual sum) {
  return counts(term.value, precision, sum.value) || counts(term.slope, precision, sum.slope);
}
/// Of terms that get smaller slowly near the middle of a distribution, where what is left is about a root of `size` times a
/// term.
template <class T>
double precision_of(double size) {
  return (formulas::kFewer<T> ? 1e-9 : 1e-16) / (1 + std::sqrt(size));
}

/// 1 / (b + n(1) / (d(1) + n(2) / (d(2) + ...))) of pairs [n(i), d(i)] = next(i), by Steed's algorithm; cut after as many as
/// parameters of 1e12 need.
template <class T, class N, class F>
N continued_fraction(N one, N b, F next, double size) {
  const double precision = precision_of<T>(size);
  const auto most = static_cast<int>(10000 + 12 * std::sqrt(std::min(size, 1e12)));
  N inverse = one / b, term = inverse, sum = inverse;
  for (int i = 1; i < most && counts(term, precision, sum); ++i) {
    const auto [above, below] = next(static_cast<double>(i));
    inverse = one / (below + above * inverse);
    term = term * (below * inverse - one);
    sum = sum + term;
  }
  return sum;
}

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
/// N is double or Dual, `number` makes one of a constant. Cut where all digits of Below or Above are there.
template <class Below, class Above, class N, class F>
GammaPart<N> gamma_part(N a, double x, F number) {
  const N one = number(1);
  if (x <= value_of(a) + 1) {  // 1 + x / (a + 1) + x^2 / (a + 1) / (a + 2) + ...
    const double precision = precision_of<Below>(value_of(a));
    N term = one, f = one;
    for (double n = 1; counts(term, precision, f); ++n) {
      term = term * (number(x) / (a + number(n)));
      f = f + term;
    }
    return {false, f};
  }
  const auto next = [=](double n) { return std::pair(number(n) * (a - number(n)), number(x + 2 * n + 1) - a); };
  return {true, continued_fraction<Above>(one, number(x + 1) - a, next, value_of(a))};
}

/// The derivative of the simple part's logarithm, which is near 0 in the middle.
ONESTEP_FORMULA double log_slope_of(double a, double x) { return formulas::log(x) - formulas::digamma(x <= a + 1 ? a + 1 : a); }

/// dx / da of a draw x of the gamma distribution with parameter a > 0 and rate 1; 0 for x = 0.
struct GammaSlope {
  /// Terms of the series below that a float needs near 0, all of which vector instructions compute.
  static constexpr int few = 20;
  template <class T>
  ONESTEP_FORMULA static bool is_near(double a, double x) {
    const double beyond = x - a - 1, large = a - 3;
    return formulas::kFewer<T> && (beyond > large ? beyond : large) <= 0;
  }
  /// All of it where that is so, else log_slope_of.
  template <class T>
  ONESTEP_FORMULA static double formula(double a, double x) {
    const double log_slope = log_slope_of(a, x);
    if constexpr (!formulas::kFewer<T>) return log_slope;
    // The series 1 + x / (a + 1) (1 + x / (a + 2) (1 + ...)) as a fraction above / below, and both derivatives by a.
    double above = 1, below = 1, above_slope = 0, below_slope = 0;
#pragma GCC unroll 20
    for (int n = few; n > 0; --n) {
      const double d = a + n;
      below_slope = below + d * below_slope;
      below = d * below;
      above_slope = below_slope + x * above_slope;
      above = below + x * above;
    }
    const double inverse = 1 / below, f = above * inverse;
    const double slope = -x / a * (log_slope * f + (above_slope - f * below_slope) * inverse);
    return is_near<T>(a, x) ? slope : log_slope;
  }
  template <class T>
  static double of(double a, double x, double prepared) {
    constexpr double far = 1e4;  // from here on the expansion has the digits
    if (!(x > 0)) return 0;
    if (is_near<T>(a, x)) return prepared;
    if (a >= far) {
      const double z = normal_of_gamma(a, x), z2 = z * z, root = std::sqrt(a);
      return 1 + z / (2 * root) - z * (z2 - 7) / (72 * a * root) + ((3 * z2 + 7) * z2 - 16) / (810 * a * a);
    }
    const auto part = gamma_part<T, T>(Dual{a, 1}, x, constant);
    return (part.above ? x : -x / a) * (prepared * part.f.value + part.f.slope);
  }
};

/// log(x^a exp(-x) / gamma(a)). Far from 0 by the distance of x from a, so that what is large cancels before it is rounded.
template <class T>
ONESTEP_FORMULA double log_scale(double a, double x) {
  const bool near = a < 10;
  const double distance = (x - a) / a, far = near ? 10 : a;
  const double logarithm = formulas::log1p_or_log(distance, near, x) - (near ? formulas::kLn2 : 0);
  const double small = a * logarithm - x - formulas::lgamma_of_positive<T>(near ? a : 1);
  const double large = a * (logarithm - distance) + 0.5 * formulas::log_of_positive<T>(far) - formulas::kHalfLog2Pi -
                       formulas::stirling_rest(far);
  return near ? small : large;
}

/// igamma from a = 1e8 on: the normal distribution's and the first term of what it lacks (Temme 1979).
inline double igamma_far(double a, double x, bool above) {
  const double distance = (x - a) / a, eta = std::copysign(std::sqrt(2 * (distance - formulas::log1p(distance))), distance);
  const double z = eta * std::sqrt(a), density = formulas::exp(-0.5 * z * z) / std::sqrt(2 * formulas::kPi * a);
  const double rest = density * (-1.0 / 3 + eta * (1.0 / 12 - eta * 2 / 135));
  return 0.5 * formulas::erfc((above ? z : -z) * std::sqrt(0.5)) + (above ? rest : -rest);
}

/// The part of the gamma distribution with parameter a >= 0 below x >= 0, or above (torch.special.gammainc, gammaincc).
template <bool ABOVE>
struct IncompleteGamma {
  /// For a near 0 the part above is 1 minus nearly 1.
  template <class T>
  using Digits = std::conditional_t<ABOVE, double, T>;

  template <class T>
  ONESTEP_FORMULA static double formula(double a, double x) {
    return formulas::exp(log_scale<Digits<T>>(a, x));
  }
  template <class T>
  static double of(double a, double x, double scale) {
    constexpr double far = 1e8;
    constexpr double below_all = ABOVE ? 1 : 0, above_all = 1 - below_all;
    if (!(a >= 0 && x >= 0) || (a == 0 && x == 0) || (std::isinf(a) && std::isinf(x))) return formulas::kNaN;
    if (x == 0 || std::isinf(a)) return below_all;
    if (a == 0 || std::isinf(x)) return above_all;
    if (a >= far) return igamma_far(a, x, ABOVE);
    const auto part = gamma_part<Digits<T>, T>(a, x, [](double n) { return n; });
    const double y = scale / (part.above ? 1 : a) * part.f;
    return part.above == ABOVE ? y : 1 - y;
  }
};

/// The derivative of the part below by `a`.
struct IncompleteGammaSlope : GammaSlope {
  template <class T>
  static double of(double a, double x, double prepared) {
    if (!(a > 0 && x > 0 && x < formulas::kInfinity)) return 0;
    return -GammaSlope::of<T>(a, x, prepared) * formulas::exp(log_scale<T>(a, x)) / x;
  }
};

/// The continued fraction of the incomplete beta function at x with parameters a and b (Abramowitz and Stegun 26.5.8).
template <class T>
Dual beta_fraction(double x, Dual a, Dual b) {
  const Dual one = constant(1);
  const auto next = [=](double i) {
    const double m = std::floor(i / 2);
    const Dual at = a + constant(i), whole = constant(m);
    const Dual above = i > 2 * m ? (a + whole) * (a + b + whole) * constant(-x) : whole * (b - whole) * constant(x);
    return std::pair(above / (at * (at - one)), one);
  };
  return continued_fraction<T>(one, one, next, std::max(a.value, b.value));
}

/// (dx / da) / (1 - x) of a draw x of the beta distribution with parameters a and total - a.
template <class T>
double dirichlet_slope(double a, double total, double x) {
  const double b = total - a, digamma_total = formulas::digamma(total);
  if (x <= a / total || x < 1e-8) {  // F = x^a (1 - x)^b gamma(total) / (gamma(a + 1) gamma(b)) f
    const Dual f = beta_fraction<T>(x, {a, 1}, constant(b));
    return -x / a * ((formulas::log(x) - formulas::digamma(a + 1) + digamma_total) * f.value + f.slope);
  }
  const Dual f = beta_fraction<T>(1 - x, constant(b), {a, 1});  // of 1 - F
  return x / b * ((formulas::log(x) - formulas::digamma(a) + digamma_total) * f.value + f.slope);
}

/// The row function y = F::of<T>(a, x, F::formula<T>(a, x)), in double: the formula by vector instructions, a block at a time.
template <class F>
struct InDouble {
  template <class T>
  void operator()(const T* a, int64_t a_step, const T* x, int64_t x_step, T* y, int64_t n) const {
    constexpr int64_t block = 64;
    constexpr double cost = 50;  // nanoseconds of an element
    kernels::parallel_for(n, cost, [=](int64_t i, int64_t end) {
      double p[block], v[block], g[block];
      for (; i < end; i += block) {
        const int64_t m = std::min(block, end - i);
        for (int64_t j = 0; j < m; ++j) p[j] = static_cast<double>(a[(i + j) * a_step]);
        for (int64_t j = 0; j < m; ++j) v[j] = static_cast<double>(x[(i + j) * x_step]);
        vector_loop([](double r, double s) { return F::template formula<T>(r, s); }, g, m, p, v);
        vector_loop([](double r, double s, double t) { return F::template of<T>(r, s, t); }, y + i, m, p, v, g);
      }
    });
  }
};

/// A slope by x for the rule of an op; in a recorded pass it has no derivative.
inline Tensor slope_in(const Backward& b, const char* op, const Tensor& slope, const Tensor& x) {
  if (!b.recording()) return slope;
  return record(op, slope, {x}, {},
                [op](const Backward&) -> Grads { fail<GradError>(op, ": its gradient has no derivative"); });
}

}  // namespace onestep::ops
