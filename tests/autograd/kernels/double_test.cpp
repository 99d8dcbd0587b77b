// The kernels in double: elementary functions in ulp against the C library in long double, sums and extrema against plain
// loops, and the bits of vectors against those of one number at a time.
#include <algorithm>
#include <array>
#include <numbers>

#include "autograd/portable_formulas.h"
#include "tests/autograd/kernels/kernel_testing.h"

namespace onestep::kernels {
namespace {

using namespace testing;

constexpr double kInf = std::numeric_limits<double>::infinity(), kNotANumber = std::numeric_limits<double>::quiet_NaN();
constexpr double kLeast = std::numeric_limits<double>::denorm_min(), kMost = std::numeric_limits<double>::max();

/// |got - want| in units in the last place of `want` rounded to double; 0 for equal infinities and for two NaN.
double ulps(double got, long double want) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : kInf;
  const double rounded = static_cast<double>(want), size = std::fabs(rounded);
  if (std::isinf(rounded) || std::isinf(got)) return got == rounded ? 0 : kInf;
  if (rounded == 0 && got == 0 && std::signbit(rounded) != std::signbit(got)) return kInf;
  return static_cast<double>(std::fabs(got - want) / (std::nextafter(size, kInf) - size));
}

using Real = long double;
Real sigmoid_of(Real x) { return 1 / (1 + std::exp(-x)); }
Real gelu_tanh_gate(Real x) { return sigmoid_of(2 * std::sqrt(2 / std::numbers::pi_v<Real>) * (x + 0.044715L * x * x * x)); }
Real normal_cdf(Real x) { return std::erfc(-x / std::numbers::sqrt2_v<Real>) / 2; }

struct ElementaryFunction {
  std::string name;
  void (*kernel)(const double*, double*, int64_t);
  Real (*want)(Real);
  double low, high;
  double limit;             ///< ulp
  double most_special = 0;  ///< beyond it kSpecial is not looked at, where there is one
};

// What sigmoid and GELU lose is what rounding their exponents loses.
const ElementaryFunction kFunctions[] = {
    {"exp", exp, [](Real x) { return std::exp(x); }, -745, 709, 1},
    {"exp", exp, [](Real x) { return std::exp(x); }, -2, 2, 1},
    {"log", log, [](Real x) { return std::log(x); }, 0, 10, 0.8},
    {"sin", sin, [](Real x) { return std::sin(x); }, -1e3, 1e3, 2.1},
    {"sin", sin, [](Real x) { return std::sin(x); }, -2e9, 2e9, 2.1},
    {"cos", cos, [](Real x) { return std::cos(x); }, -1e3, 1e3, 2},
    {"cos", cos, [](Real x) { return std::cos(x); }, -2e9, 2e9, 2},
    {"tan", tan, [](Real x) { return std::tan(x); }, -1e3, 1e3, 3},
    {"tanh", tanh, [](Real x) { return std::tanh(x); }, -20, 20, 2.7},
    {"erf", erf, [](Real x) { return std::erf(x); }, -6, 6, 1.7},
    {"erfc", erfc, [](Real x) { return std::erfc(x); }, -6, 26, 6},
    {"sigmoid", sigmoid, sigmoid_of, -700, 40, 2.5},
    {"silu", silu, [](Real x) { return x * sigmoid_of(x); }, -700, 40, 2.7, 700},
    {"gelu_tanh", gelu_tanh, [](Real x) { return x * gelu_tanh_gate(x); }, -3, 10, 20, 5},
    {"gelu_erf", gelu_erf, [](Real x) { return x * normal_cdf(x); }, -3, 10, 20, 5},
};

Doubles random_doubles(int64_t n, double low, double high, uint32_t seed = 1) {
  std::mt19937_64 engine(seed);
  Doubles x(static_cast<size_t>(n));
  for (double& v : x) v = low + (high - low) * (static_cast<double>(engine() >> 11) * 0x1p-53);
  return x;
}

#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
template <class F>
[[gnu::target("arch=x86-64-v3"), gnu::flatten, gnu::noinline]] void by_avx2(F f, const Doubles& x, Doubles& y) {
  for (size_t i = 0; i < x.size(); ++i) y[i] = f(x[i]);
}
#endif

Doubles values_of(const ElementaryFunction& f, const Doubles& x) {
  Doubles y(x.size());
  f.kernel(x.data(), y.data(), static_cast<int64_t>(x.size()));
  return y;
}

const Doubles kSpecial = {0.0,  -0.0,  kLeast, -kLeast, 0x1p-1030, -0x1p-1030, 1e-300, -1e-300, 1e-20,      -1e-20,
                          1,    -1,    709.5,  709.9,   -708.5,    -745.2,     -746.5, 750,     -1e4,       1e4,
                          1e10, -1e10, 1e300,  -1e300,  kMost,     -kMost,     kInf,   -kInf,   kNotANumber};

/// The numbers nearest to multiples of pi/2, where sin or cos is nearly 0, and their neighbours.
void add_quarter_turns(Doubles& x, double most) {
  for (const double step : {1.0, most / 20000}) {
    for (double k = 1; k < 20000; ++k) {
      const auto turns = static_cast<double>(std::floor(k * step) * std::numbers::pi_v<Real> / 2);
      if (turns <= most) x.insert(x.end(), {turns, -turns, std::nextafter(turns, 0), std::nextafter(turns, kInf)});
    }
  }
}

TEST_CASE("double kernels: elementary functions are within their ulp limits") {
  for (const ElementaryFunction& f : kFunctions) {
    CAPTURE(f.name);
    Doubles x = random_doubles(400000, f.low, f.high);
    if (f.name == "sin" || f.name == "cos" || f.name == "tan") add_quarter_turns(x, f.high);
    const Doubles y = values_of(f, x);
    double worst = 0, at = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double error = ulps(y[i], f.want(x[i]));
      if (error > worst) worst = error, at = x[i];
    }
    CAPTURE(at);
    CHECK(worst <= f.limit);
    const Doubles special = values_of(f, kSpecial);
    for (size_t i = 0; i < special.size(); ++i) {
      CAPTURE(kSpecial[i]);
      CAPTURE(special[i]);
      if (f.most_special != 0 && std::fabs(kSpecial[i]) > f.most_special) continue;
      CHECK(ulps(special[i], f.want(kSpecial[i])) <= f.limit);
    }
  }
}

TEST_CASE("double kernels: gradients of GELU are 1 and 0 far from 0, and the least softplus is not lost") {
  for (const double x : {40.0, 1e3, 1e160, 1e300, kMost}) {
    const double both[] = {x, -x}, dy[] = {1, 1};
    double dx[2];
    gelu_erf_grad(both, dy, dx, 2);
    CHECK(dx[0] == 1);
    CHECK(dx[1] == 0);
  }
  CHECK(portable::formulas::softplus(-744.5) == kLeast);
}

TEST_CASE("double kernels: a number has the same bits alone and in a vector, in place and not") {
  for (const ElementaryFunction& f : kFunctions) {
    CAPTURE(f.name);
    Doubles x = random_doubles(2500, f.low, f.high);
    x.insert(x.begin() + 1100, kSpecial.begin(), kSpecial.end());
    std::fill_n(x.begin() + 300, 16, kNotANumber);
    std::fill_n(x.begin() + 316, 16, 1e300);
    const Doubles y = values_of(f, x);
    Doubles alone(x.size()), in_place = x;
    for (size_t i = 0; i < x.size(); ++i) f.kernel(&x[i], &alone[i], 1);
    f.kernel(in_place.data(), in_place.data(), static_cast<int64_t>(x.size()));
    CHECK(first_difference(y, alone) == -1);
    CHECK(first_difference(y, in_place) == -1);
  }
}

// The kernels take the instructions of the CPU, this file those that every CPU of the architecture has.
TEST_CASE("double kernels: formulas have the bits that any CPU gives") {
  namespace formulas = portable::formulas;
  const auto check = [](const char* name, auto kernel, auto formula, double low, double high) {
    CAPTURE(std::string(name));
    Doubles x = random_doubles(20000, low, high);
    x.insert(x.end(), kSpecial.begin(), kSpecial.end());
    Doubles y(x.size()), want(x.size());
    kernel(x.data(), y.data(), static_cast<int64_t>(x.size()));
    for (size_t i = 0; i < x.size(); ++i) want[i] = formula(x[i]);
    CHECK(first_difference(y, want) == -1);
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    if (!isa_supported(Isa::avx2)) return;
    by_avx2(formula, x, y);
    CHECK(first_difference(y, want) == -1);
#endif
  };
  const auto near = [](double x) { return std::fabs(x) <= formulas::kTrigLimit ? x : 0; };
  const auto near_only = [=](auto kernel) {
    return [=](const double* x, double* y, int64_t n) {
      Doubles z(x, x + n);
      std::ranges::transform(z, z.begin(), near);
      kernel(z.data(), y, n);
    };
  };
  check(
      "exp", exp<double>, [](double x) { return formulas::exp(x); }, -750, 720);
  check(
      "log", log<double>, [](double x) { return formulas::quick_log(x); }, 0, 10);
  check(
      "tanh", tanh<double>, [](double x) { return formulas::tanh(x); }, -20, 20);
  check(
      "erf", erf<double>, [](double x) { return formulas::erf(x); }, -6, 6);
  check(
      "erfc", erfc<double>, [](double x) { return formulas::erfc(x); }, -6, 27);
  check(
      "sin", near_only(sin<double>), [=](double x) { return formulas::sin(near(x)); }, -100, 100);
  check(
      "cos", near_only(cos<double>), [=](double x) { return formulas::cos(near(x)); }, -100, 100);
}

/// 16 lanes, which take four numbers at a time while there are as many, and a tree.
template <class Step>
double folded(const Doubles& x, double start, Step step) {
  std::array<double, 16> lane;
  lane.fill(start);
  size_t i = 0;
  for (; i + 64 <= x.size(); i += 64)
    for (size_t l = 0; l < 16; ++l)
      lane[l] = step(lane[l], step(step(x[i + l], x[i + 16 + l]), step(x[i + 32 + l], x[i + 48 + l])));
  for (; i < x.size(); ++i) lane[i % 16] = step(lane[i % 16], x[i]);
  for (size_t half = 8; half > 0; half /= 2)
    for (size_t l = 0; l < half; ++l) lane[l] = step(lane[l], lane[half + l]);
  return lane[0];
}

TEST_CASE("double kernels: rows are summed in 16 lanes and a tree at every size") {
  for (const int64_t n : sizes()) {
    CAPTURE(n);
    const Doubles x = random_doubles(n, -3, 3), y = random_doubles(n, -1, 1, 8);
    Doubles products(x.size()), centered(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      products[i] = x[i] * y[i];
      centered[i] = (x[i] - 0.5) * (y[i] + 0.25);
    }
    const auto add = [](double a, double b) { return a + b; };
    CHECK(sum(x.data(), n) == folded(x, 0, add));
    CHECK(dot(x.data(), y.data(), n) == folded(products, 0, add));
    CHECK(centered_dot(x.data(), 0.5, y.data(), -0.25, n) == folded(centered, 0, add));
    CHECK(max(x.data(), n) == folded(x, -kInf, [](double a, double b) { return a > b ? a : b; }));
    CHECK(min(x.data(), n) == folded(x, kInf, [](double a, double b) { return a < b ? a : b; }));
  }
}

TEST_CASE("double kernels: max and min find NaN and infinities wherever they are") {
  for (const int64_t n : {1, 5, 16, 17, 64, 81, 1030}) {
    for (int64_t at = 0; at < n; ++at) {
      Doubles x = random_doubles(n, -3, 3);
      x[static_cast<size_t>(at)] = kNotANumber;
      CHECK(std::isnan(max(x.data(), n)));
      CHECK(std::isnan(min(x.data(), n)));
      x[static_cast<size_t>(at)] = kInf;
      CHECK(max(x.data(), n) == kInf);
      x[static_cast<size_t>(at)] = -kInf;
      CHECK(min(x.data(), n) == -kInf);
    }
  }
}

TEST_CASE("double kernels: softmax rows agree with long double at every width") {
  for (const int64_t cols : sizes()) {
    if (cols == 0) continue;
    CAPTURE(cols);
    const Doubles x = random_doubles(cols, -4, 4);
    Doubles y(x.size()), log_y(x.size());
    double all = 0;
    softmax_rows(x.data(), y.data(), 1, cols);
    log_softmax_rows(x.data(), log_y.data(), 1, cols);
    logsumexp_rows(x.data(), &all, 1, cols);
    Real total = 0;
    for (const double v : x) total += std::exp(static_cast<Real>(v));
    CHECK(std::fabs(all - std::log(total)) <= 1e-15 * std::fabs(std::log(total)) + 1e-15);
    double worst = 0, log_worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      worst = std::max(worst, ulps(y[i], std::exp(static_cast<Real>(x[i])) / total));
      log_worst = std::max(log_worst, static_cast<double>(std::fabs(log_y[i] - (x[i] - std::log(total)))));
    }
    CHECK(worst <= 8);  // and what subtracting the largest loses
    CHECK(log_worst <= 4e-15);
  }
}

}  // namespace
}  // namespace onestep::kernels
