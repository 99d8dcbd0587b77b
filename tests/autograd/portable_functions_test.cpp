// The functions of portable_functions.cpp against the C library's, which are within an ulp themselves.
#include <doctest/doctest.h>

#include <cmath>
#include <initializer_list>
#include <limits>
#include <string>

#include "autograd/gamma_formulas.h"
#include "autograd/ops/incomplete_gamma.h"
#include "autograd/portable_math.h"
#include "autograd/special_formulas.h"

using namespace onestep;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

/// Equal, both NaN, or at most `ulps` apart; zeros have the same sign.
bool near(double got, double want, double ulps) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (got == want) return std::signbit(got) == std::signbit(want);
  const double size = std::fabs(want);
  return std::fabs(got - want) <= ulps * (std::nextafter(size, kInfinity) - size);
}

void check(const char* name, double (*got)(double), double (*want)(double), double low, double high) {
  CAPTURE(std::string(name));
  for (int i = 0; i <= 20000; ++i) {
    const double x = low + (high - low) * (static_cast<double>(i) / 20000);
    if (!near(got(x), want(x), 8)) FAIL_CHECK(x << " gives " << got(x) << ", not " << want(x));
  }
  for (int power = -1074; power < 1024; power += 7) {
    for (const double x : {std::ldexp(1, power), -1.5 * std::ldexp(1, power)})
      if (!near(got(x), want(x), 8)) FAIL_CHECK(x << " gives " << got(x) << ", not " << want(x));
  }
  for (const double x : {0.0, -0.0, 1.0, -1.0, 2.0, 1000.0, -1000.0, 1e300, kInfinity, -kInfinity, kNaN})
    if (!near(got(x), want(x), 8)) FAIL_CHECK(x << " gives " << got(x) << ", not " << want(x));
}

}  // namespace

TEST_CASE("portable functions: within some ulp of the C library's") {
  check("exp", portable::exp, std::exp, -746, 710);
  check("exp2", portable::exp2, std::exp2, -1075, 1024);
  check("expm1", portable::expm1, std::expm1, -3, 3);
  check("log1p", portable::log1p, std::log1p, -1, 3);
  check("log2", portable::log2, std::log2, 0, 3);
  check("log10", portable::log10, std::log10, 0, 3);
  check("sinh", portable::sinh, std::sinh, -711, 711);
  check("cosh", portable::cosh, std::cosh, -711, 711);
  check("tanh", portable::tanh, std::tanh, -20, 20);
  check("asinh", portable::asinh, std::asinh, -3, 3);
  check("acosh", portable::acosh, std::acosh, 0, 4);
  check("atanh", portable::atanh, std::atanh, -1.1, 1.1);
  check("asin", portable::asin, std::asin, -1.1, 1.1);
  check("acos", portable::acos, std::acos, -1.1, 1.1);
  check("atan", portable::atan, std::atan, -10, 10);
  check("erfc", portable::erfc, std::erfc, -6, 27);
}

TEST_CASE("portable functions: two arguments in all quadrants and at special values") {
  const std::initializer_list<double> values = {-kInfinity, -1e300, -2.5, -1,    -1e-310,   -0.0, 0.0,
                                                1e-310,     1,      0.7,  1e300, kInfinity, kNaN};
  for (const double y : values) {
    for (const double x : values) {
      CAPTURE(y);
      CAPTURE(x);
      CHECK(near(portable::atan2(y, x), std::atan2(y, x), 4));
      CHECK(near(portable::hypot(y, x), std::hypot(y, x), 4));
    }
  }
}

TEST_CASE("portable functions: erfinv is the inverse of erf") {
  for (int i = -1999; i < 2000; ++i) {
    const double x = static_cast<double>(i) / 2000, y = portable::erfinv(x);
    CAPTURE(x);
    CHECK(std::fabs(std::erf(y) - x) <= 1e-15 * std::fabs(x));
  }
  for (const double tail : {1e-3, 1e-6, 1e-10, 1e-15}) {  // of 1 - x
    CAPTURE(tail);
    const double x = 1 - tail;
    CHECK(std::fabs(std::erfc(portable::erfinv(x)) - (1 - x)) <= 1e-13 * (1 - x));
  }
  CHECK(portable::erfinv(1) == kInfinity);
  CHECK(portable::erfinv(-1) == -kInfinity);
  CHECK(std::isnan(portable::erfinv(1.5)));
  CHECK(std::isnan(portable::erfinv(kNaN)));
  CHECK(std::signbit(portable::erfinv(-0.0)));
}

TEST_CASE("portable functions: logarithms of powers are whole") {
  for (int k = -1074; k < 1024; ++k) CHECK(portable::log2(std::ldexp(1, k)) == k);
  double power = 1;
  for (int k = 0; k <= 22; ++k, power *= 10) CHECK(portable::log10(power) == k);
}

TEST_CASE("portable functions: the logarithm of the gamma function and its derivatives, as mpmath gives them with 40 digits") {
  struct Row {
    double x, lgamma, digamma, trigamma, fourth;
  };
  constexpr Row rows[] = {
      {1e-09, 20.723265836369194, -1000000000.5772156, 9.999999999999999e+17, -2.399999999999999e+46},
      {0.3, 1.0957979948180756, -3.502524222200133, 12.245364546107732, -9883.46855549699},
      {1.0000000000009095, -5.249745890076018e-13, -0.5772156649000368, 1.64493406684604, -24.886266123329847},
      {1.5, -0.12078223763524522, 0.03648997397857652, 0.9348022005446793, -3.4742498266672253},
      {1.9999999990686774, -3.9374859519130207e-10, 0.4227843344978255, 0.6449340672245868, -0.8862661253791164},
      {3.75, 1.486815578593417, 1.1825373886117962, 0.3053398526902531, -0.04995784901655511},
      {9.999, 12.799575780077413, 2.2516474172057355, 0.10517738667672887, -0.0007302371934895941},
      {10.0, 12.801827480081469, 2.251752589066721, 0.10516633568168575, -0.0007299311682352867},
      {123.456, 469.6055471299295, 4.811829323828985, 0.008132945834278198, -2.6249945599959745e-08},
      {1e+300, 6.897755278982137e+302, 690.7755278982137, 1e-300, -0.0},
      {-0.25, 1.589575312551186, 2.9141391202135276, 18.541879647671607, 24473.199394184583},
      {-3.4, -1.1211918156538383, 2.384450814118015, 10.656530053957542, 2037.3739248405475},
      {-40.1, -108.37180690974134, 13.372621332038497, 103.33120981333535, 2399973.834754646},
  };
  namespace formulas = portable::formulas;
  for (const Row& row : rows) {
    CAPTURE(row.x);
    CHECK(near(formulas::lgamma(row.x), row.lgamma, 8));
    CHECK(near(formulas::digamma(row.x), row.digamma, row.x == 1.5 ? 64 : 8));  // near its zero
    CHECK(near(formulas::trigamma(row.x), row.trigamma, 8));
    CHECK(near(formulas::polygamma(1, row.x), row.trigamma, 8));
    CHECK(near(formulas::polygamma(4, row.x), row.fourth, 8));
  }
  for (const double x : {0.0, -0.0, -1.0, -7.0, kInfinity, -kInfinity}) CHECK(formulas::lgamma(x) == kInfinity);
  for (const double x : {-1.0, -7.0, -kInfinity, kNaN}) CHECK(std::isnan(formulas::digamma(x)));
  CHECK(formulas::digamma(0.0) == -kInfinity);
  CHECK(formulas::digamma(-0.0) == kInfinity);
  CHECK(formulas::trigamma(-2.0) == kInfinity);
  CHECK(formulas::trigamma(0.0) == kInfinity);
  CHECK(formulas::trigamma(kInfinity) == 0);
  CHECK(formulas::polygamma(1, -2.0) == kInfinity);
  CHECK(formulas::polygamma(1, kInfinity) == 0);
}

TEST_CASE("portable functions: the normal distribution and modified Bessel functions, as mpmath gives them with 60 digits") {
  struct Row {
    double x, erfcx, ndtr, log_ndtr, i0, i0e, i1, i1e;
  };
  constexpr Row rows[] = {
      {1e-09, 0.9999999988716208, 0.5000000003989423, -0.6931471797620608, 1.0, 0.999999999, 5e-10, 4.999999995000001e-10},
      {-0.4, 1.676233956688859, 0.3445782583896758, -1.0654340491895766, 1.0404017822293412, 0.6974021705595331,
       -0.2040267557335706, -0.13676322429582918},
      {0.7, 0.525930337349441, 0.758036347776927, -0.2770239422771313, 1.1263030183068092, 0.5593055265070683,
       0.37187967777700864, 0.18466998276274732},
      {-3.0, 16205.988853999586, 0.0013498980316300946, -6.607726221510349, 4.8807925858650245, 0.2430003541618254,
       -3.9533702174026093, -0.19682671329730086},
      {9.75, 0.05756592336481547, 1.0, -9.223413524939418e-23, 2221.6170531057023, 0.12950841904956065, 2104.404688368433,
       0.12267556366210158},
      {10.25, 0.05478458695295453, 1.0, -5.917176907365617e-25, 3569.87126766818, 0.12622172638243181, 3390.988735673237,
       0.11989688710529715},
      {-25.5, 5.023620838323981e+282, 9.856236518963929e-144, -329.28414898717955, 9425875965.317677, 0.07939852454797063,
       -9239167088.556889, -0.07782578909193857},
      {37.0, 0.015242804051302457, 1.0, -5.725571222524577e-300, 771245522292810.5, 0.06581074772866409, 760750876492641.5,
       0.06491523460438252},
  };
  constexpr double quantiles[][2] = {{5e-324, -38.467405617144344},
                                     {1e-300, -37.0470962993612},
                                     {1e-10, -6.361340902404057},
                                     {0.003, -2.7477813854449926},
                                     {0.0749, -1.4402382675279637},
                                     {0.0751, -1.43882539275254},
                                     {0.25, -0.6744897501960817},
                                     {0.4999999, -2.5066282747031063e-07},
                                     {0.75, 0.6744897501960817},
                                     {0.926, 1.4466320671589787},
                                     {0.9999999999990905, 7.047700256664409}};
  namespace formulas = portable::formulas;
  for (const Row& row : rows) {
    CAPTURE(row.x);
    CHECK(near(formulas::erfcx(row.x), row.erfcx, 5));
    CHECK(near(formulas::ndtr(row.x), row.ndtr, 6));
    CHECK(near(formulas::log_ndtr(row.x), row.log_ndtr, 6));
    CHECK(near(formulas::i0(row.x), row.i0, 5));
    CHECK(near(formulas::i0e(row.x), row.i0e, 5));
    CHECK(near(formulas::i1(row.x), row.i1, 5));
    CHECK(near(formulas::i1e(row.x), row.i1e, 5));
  }
  for (const auto& quantile : quantiles) {
    CAPTURE(quantile[0]);
    CHECK(near(formulas::ndtri(quantile[0]), quantile[1], 5));
  }
  for (const double x : {-kInfinity, -1e300, 1e300, kInfinity}) {
    CHECK(near(formulas::erfcx(x), x < 0 ? kInfinity : 0.5641895835477563 / x, 2));
    CHECK(formulas::ndtr(x) == (x < 0 ? 0 : 1));
    CHECK(formulas::log_ndtr(x) == (x < 0 ? -kInfinity : 0));
    CHECK(formulas::i0(x) == kInfinity);
    CHECK(formulas::i1(x) == std::copysign(kInfinity, x));
    CHECK(near(formulas::i0e(x), std::isinf(x) ? 0 : 3.989422804014327e-151, 1));
    CHECK(near(formulas::i1e(x), std::copysign(formulas::i0e(x), x), 0));
  }
  CHECK(formulas::ndtri(0) == -kInfinity);
  CHECK(formulas::ndtri(1) == kInfinity);
  for (const double x : {-5e-324, 1 + 1e-15, -kInfinity, kInfinity, kNaN}) CHECK(std::isnan(formulas::ndtri(x)));
  CHECK(near(formulas::i0(713.875), 1.6074902465399635e+308, 5));  // near the largest number
  CHECK(std::signbit(formulas::i1(-0.0)));
}

TEST_CASE("how draws of gamma and beta distributions move with a parameter, as mpmath's central differences with 90 digits") {
  constexpr double gamma[][3] = {
      {0.001, 1e-30, 6.8501980858011074e-26}, {0.05, 0.3, 7.6847334012938251},  {0.3, 0.001, 0.022481140914591294},
      {1, 0.7, 0.97321874099238759},          {1, 5.5, 2.4387931907200856},     {2.5, 1.25, 0.73924476626321634},
      {2.5, 12, 2.1104815201820002},          {9, 3, 0.55911742033334981},      {40, 55, 1.1725263475898511},
      {300, 280.5, 0.96730920210011623},      {3000, 3100, 1.0165409787630845}, {20000, 20125.5, 1.003139317364477}};
  const auto slope_of = []<class T>(T /*digits*/, double a, double x) {
    return ops::GammaSlope::of<T>(a, x, ops::GammaSlope::formula<T>(a, x));
  };
  for (const auto& [a, x, slope] : gamma) {
    CHECK(slope_of(0.0, a, x) == doctest::Approx(slope).epsilon(2e-10));
    CHECK(slope_of(0.0f, a, x) == doctest::Approx(slope).epsilon(5e-8));
  }
  constexpr double beta[][4] = {{0.1, 0.2, 1e-05, 0.0016378232761823164}, {0.1, 0.2, 0.75, 40.350535594841364},
                                {0.5, 2.5, 0.125, 0.46023340760049288},   {2, 2.5, 0.96875, 0.55150139015821378},
                                {3, 7, 0.5, 0.17131413750307283},         {30, 31, 0.97, 0.032828256955741432},
                                {1, 31, 0.0625, 0.052547287535748633},    {50, 120, 0.375, 0.0079499087630448553},
                                {300, 300.2, 0.9995, 0.00333694578112873}};
  for (const auto& [a, total, x, slope] : beta) {
    CHECK(ops::dirichlet_slope<double>(a, total, x) == doctest::Approx(slope).epsilon(2e-10));
    CHECK(ops::dirichlet_slope<float>(a, total, x) == doctest::Approx(slope).epsilon(5e-8));
  }
  CHECK(slope_of(0.0, 2, 0) == 0);
}
