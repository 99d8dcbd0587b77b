#include "autograd/portable_math.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "autograd/portable_formulas.h"

namespace onestep::portable {
namespace {

/// A number as an unevaluated sum, low being at most half an ulp of high: 106 bits (Dekker 1971).
struct Pair {
  double high, low;
};

Pair quick_two_sum(double a, double b) {  // exact for |a| >= |b|
  const double sum = a + b;
  return {sum, b - (sum - a)};
}
Pair two_sum(double a, double b) {
  const double sum = a + b, b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}
Pair two_product(double a, double b) {
  const double product = a * b;
  return {product, std::fma(a, b, -product)};
}

Pair operator+(Pair a, Pair b) {
  const Pair high = two_sum(a.high, b.high), low = two_sum(a.low, b.low);
  const Pair sum = quick_two_sum(high.high, high.low + low.high);
  return quick_two_sum(sum.high, sum.low + low.low);
}
Pair operator-(Pair a) { return {-a.high, -a.low}; }
Pair operator*(Pair a, Pair b) {
  const Pair p = two_product(a.high, b.high);
  return quick_two_sum(p.high, p.low + (a.high * b.low + a.low * b.high));
}
Pair operator/(Pair a, Pair b) {
  const double first = a.high / b.high;
  const Pair rest = a + -(b * Pair{first, 0});
  const double second = rest.high / b.high;
  const Pair left = rest + -(b * Pair{second, 0});
  return quick_two_sum(first, second) + Pair{left.high / b.high, 0};
}

constexpr Pair kLn2{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
constexpr double kHalfPi[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110};

/// log(x) with all digits of a pair, for x > 0 and finite: of 2^exponent m it is exponent ln 2 + 2 atanh(s), (1 + s) / (1 - s)
/// = m.
Pair log_pair(double x) {
  const auto [exponent, m] = formulas::binary(x);
  const Pair sum = two_sum(m, 1);
  const double high = (m - 1) / sum.high;
  const Pair s{high, (std::fma(-high, sum.high, m - 1) - high * sum.low) / sum.high}, s2 = s * s;
  Pair series{0, 0};
  for (int k = 43; k >= 1; k -= 2) series = series * s2 + Pair{1, 0} / Pair{static_cast<double>(k), 0};
  return Pair{exponent, 0} * kLn2 + s * series * Pair{2, 0};
}

/// exp(x) for |x| < 800: x = n ln 2 + 64 r, Taylor's series in r, then six squares.
double exp_of(Pair x) {
  const double n = std::floor(x.high / kLn2.high + 0.5);
  Pair r = x + -(Pair{n, 0} * kLn2);
  r = {r.high / 64, r.low / 64};
  Pair y{1, 0};
  for (int k = 12; k >= 1; --k) y = y * r / Pair{static_cast<double>(k), 0} + Pair{1, 0};
  for (int i = 0; i < 6; ++i) y = y * y;
  return std::ldexp(y.high, static_cast<int>(n));
}

/// r - r^3/3! + ... (first = 1) or 1 - r^2/2! + ... (first = 0), |r| < 0.79.
Pair taylor(Pair r, int first) {
  const Pair r2 = r * r;
  Pair y{1, 0};
  for (int k = 26 + first; k >= 2 + first; k -= 2) y = Pair{1, 0} + -(r2 * y / Pair{static_cast<double>(k) * (k - 1), 0});
  return first == 1 ? r * y : y;
}

/// sin(x + shift pi/2)
double sin_shifted(double x, int shift) {
  if (!(std::fabs(x) <= 0x1p20)) return std::numeric_limits<double>::quiet_NaN();
  const double n = std::floor(x / kHalfPi[0] + 0.5);
  Pair r{x, 0};
  for (const double part : kHalfPi) r = r + -two_product(n, part);
  const int quadrant = (static_cast<int>(n) + shift) & 3;
  const Pair y = taylor(r, quadrant % 2 == 0 ? 1 : 0);
  return quadrant < 2 ? y.high : -y.high;
}

}  // namespace

double pown(double x, int64_t n) {
  Pair power{1, 0};
  for (Pair square{x, 0}; n > 0; n /= 2) {
    if (n % 2 == 1) power = power * square;
    square = square * square;
  }
  return power.high;
}

double pow(double x, double y) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (y == 0 || x == 1) return 1;
  if (!(x >= 0) || std::isnan(y)) return std::numeric_limits<double>::quiet_NaN();
  const bool grows = (x > 1) == (y > 0);
  if (x == 0 || x == infinity || std::isinf(y)) return grows ? infinity : 0;
  const Pair log_x = log_pair(x);
  const double size = log_x.high * y;
  if (std::fabs(size) > 750) return grows ? infinity : 0;
  return exp_of(log_x * Pair{y, 0});
}

double sin(double x) { return x == 0 ? x : sin_shifted(x, 0); }
double cos(double x) { return sin_shifted(x, 1); }

}  // namespace onestep::portable
