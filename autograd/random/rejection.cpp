#include "autograd/random/rejection.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "autograd/gamma_formulas.h"
#include "autograd/vector_loop.h"

namespace onestep {
namespace {

namespace formulas = portable::formulas;

/// From 1 on.
double stirling_rest(double n) {
  if (n >= 10) return formulas::stirling_rest(n);
  return formulas::lgamma_of_positive<double>(n) - ((n - 0.5) * formulas::log(n) - n + formulas::kHalfLog2Pi);
}

/// A uniform u - 1/2 is accepted by a second one, at once where `us` = 1/2 - |u - 1/2| and v are within a rectangle.
struct Proposal {
  double u, us, v;
};
Proposal propose(Generator& g) {
  const double u = g.d53() - 0.5;
  return {u, 0.5 - std::fabs(u), g.d53()};
}

/// For count p >= 10 and p <= 1/2. Of float arguments PyTorch computes in float what takes no double.
template <class T>
double binomial_by_rejection(T count, T p, Generator& g) {
  const double spread = std::sqrt(count * p * (1 - p)), b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double center = count * p + 0.5, accepted = 0.92 - 4.2 / b, odds = p / (1 - p), alpha = (2.83 + 5.1 / b) * spread;
  const double mode = std::floor((count + 1) * p);
  for (;;) {
    const Proposal x = propose(g);
    const double k = std::floor((2 * a / x.us + b) * x.u + center);
    if (x.us >= 0.07 && x.v <= accepted) return k;
    if (k < 0 || k > count) continue;
    const double v = formulas::log(x.v * alpha / (a / (x.us * x.us) + b));
    const double most = (mode + 0.5) * formulas::log((mode + 1) / (odds * (count - mode + 1))) +
                        (count + 1) * formulas::log((count - mode + 1) / (count - k + 1)) +
                        (k + 0.5) * formulas::log(odds * (count - k + 1) / (k + 1)) + stirling_rest(mode + 1) +
                        stirling_rest(count - mode + 1) - stirling_rest(k + 1) - stirling_rest(count - k + 1);
    if (v <= most) return k;
  }
}

/// From one event to the next there are geometrically many.
template <class T>
double binomial_by_distances(T count, T p, Generator& g) {
  const double never = formulas::log1p(-p);
  double passed = 0, happened = 0;
  for (;; ++happened) {
    passed += std::ceil(formulas::log(g.d53()) / never);
    if (passed > count) return happened;
  }
}

/// As Generator::normal but for a few units in the last place, in a twentieth of its time.
std::pair<double, double> box_muller(double u1, double u2) {
  const double r = std::sqrt(-2.0 * formulas::log(1 - u2)), turns = 2 * u1, sign = turns < 1 ? r : -r;
  const formulas::HalfTurns half = formulas::half_turns<double>(turns < 1 ? turns : turns - 1);
  return {sign * half.cos, sign * half.sin};
}

/// A draw of the gamma distribution with parameter alpha is d cube, below 1 times uniform^(1 / alpha).
struct GammaParts {
  double uniform, cube;
};
template <class T>
ONESTEP_FORMULA double d_of(T alpha) {
  return (alpha < 1 ? alpha + 1 : alpha) - T(1.0f / 3);
}
template <class T>
GammaParts gamma_parts(T alpha, Generator& g) {
  if (alpha == 0) return {1, 0};
  constexpr double squeeze = 0.0331f;
  const double uniform = alpha < 1 ? 1 - g.d53() : 1;
  const double d = d_of(alpha), c = 1 / std::sqrt(9 * d);
  for (;;) {
    double x = 0, y = 0;
    do {
      x = g.normal_by(box_muller);
      y = 1 + c * x;
    } while (y <= 0);
    const double v = y * y * y, u = 1 - g.d53(), square = x * x;
    if (u < 1 - squeeze * square * square || formulas::log(u) < 0.5 * square + d * (1 - v + formulas::log(v)))
      return {uniform, v};
  }
}
template <class T>
ONESTEP_FORMULA T gamma_of(T alpha, GammaParts parts) {
  const double power = formulas::exp(formulas::log(parts.uniform) * static_cast<double>(T(1) / alpha));
  const double y = (alpha < 1 ? power : 1) * d_of(alpha) * parts.cube;
  return static_cast<T>(alpha == 0 ? 0 : y);
}

/// `zero` is the probability of 0.
double poisson(double rate, double zero, Generator& g) {
  if (rate == 0) return 0;
  if (rate < 10) {
    double product = g.d53();
    double k = 0;
    for (; product > zero; ++k) product *= g.d53();
    return k;
  }
  const double b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b, accepted = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const Proposal x = propose(g);
    const double k = std::floor((2 * a / x.us + b) * x.u + rate + 0.43);
    if (x.us >= 0.07 && x.v <= accepted) return k;
    if (k < 0 || (x.us < 0.013 && x.v > x.us)) continue;
    const double log_alpha = formulas::log(1.1239 + 1.1328 / (b - 3.4));
    const double v = formulas::log(x.v) + log_alpha - formulas::log(a / (x.us * x.us) + b);
    if (v <= -rate + k * formulas::log(rate) - formulas::lgamma_of_positive<double>(k + 1)) return k;
  }
}

template <class T>
T binomial(T count, T p, Generator& g) {
  if (std::isnan(p)) return p;
  if (count <= 0 || p <= 0) return 0;
  if (p >= 1) return count;
  const T rarer = p <= T(0.5) ? p : 1 - p;
  const double k = count * rarer >= 10 ? binomial_by_rejection(count, rarer, g) : binomial_by_distances(count, rarer, g);
  return static_cast<T>(p <= T(0.5) ? k : count - k);
}

}  // namespace

template <class T>
void draw_gamma(const T* alpha, T* y, int64_t n, Generator& g) {
  // The powers of a block are computed by vector instructions.
  std::array<GammaParts, 256> parts;
  for (int64_t i = 0; i < n; i += parts.size()) {
    const int64_t m = std::min<int64_t>(parts.size(), n - i);
    vector_loop([&g](T a) { return gamma_parts(a, g); }, parts.data(), m, alpha + i);
    vector_loop([](T a, GammaParts p) { return gamma_of(a, p); }, y + i, m, alpha + i, parts.data());
  }
}
template <class T>
void draw_poisson(const T* rate, T* y, int64_t n, Generator& g) {
  // Whether another uniform is drawn waits for an exp; a block of them is computed by vector instructions.
  std::array<double, 256> zero;
  for (int64_t i = 0; i < n; i += zero.size()) {
    const int64_t m = std::min<int64_t>(zero.size(), n - i);
    vector_loop([](T r) { return formulas::exp(-static_cast<double>(r)); }, zero.data(), m, rate + i);
    vector_loop([&g](T r, double p) { return poisson(static_cast<double>(r), p, g); }, y + i, m, rate + i, zero.data());
  }
}
template <class T>
void draw_binomial(const T* count, const T* p, T* y, int64_t n, Generator& g) {
  vector_loop([&g](T of, T each) { return binomial(of, each, g); }, y, n, count, p);
}

template void draw_gamma(const float*, float*, int64_t, Generator&);
template void draw_gamma(const double*, double*, int64_t, Generator&);
template void draw_poisson(const float*, float*, int64_t, Generator&);
template void draw_poisson(const double*, double*, int64_t, Generator&);
template void draw_binomial(const float*, const float*, float*, int64_t, Generator&);
template void draw_binomial(const double*, const double*, double*, int64_t, Generator&);

}  // namespace onestep
