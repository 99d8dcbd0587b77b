// The kernels in double: plain loops over portable formulas, of which the compiler makes vector instructions. They are the
// float64 implementation and what the float32 kernels are tested against. Meanings are in kernels.h.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numbers>

#include "autograd/kernels/table.h"
#include "autograd/portable_formulas.h"
#include "autograd/portable_math.h"
#include "autograd/vector_loop.h"

namespace onestep::kernels {
namespace {

namespace formulas = portable::formulas;

constexpr int64_t kBlock = 1024;  ///< Numbers that are on the stack at a time.

template <auto F>
void map(const double* x, double* y, int64_t n) {
  vector_loop(F, y, n, x);
}

template <auto F>
void zip(const double* a, int64_t a_step, const double* b, int64_t b_step, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = F(a[i * a_step], b[i * b_step]);
}

/// y = exp(x - m): what exponentials of a row or of all numbers come from.
void exp_minus(const double* x, double m, double* y, int64_t n) {
  vector_loop([m](double v) { return formulas::exp(v - m); }, y, n, x);
}
void exp(const double* x, double* y, int64_t n) { exp_minus(x, 0, y, n); }

ONESTEP_FORMULA double sigmoid(double x) { return 1 / (1 + formulas::exp(-x)); }
constexpr double kSqrtHalf = std::numbers::sqrt2 / 2;
constexpr double kSqrt2OverPi = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
ONESTEP_FORMULA double gelu_inner(double x) { return kSqrt2OverPi * (x + 0.044715 * x * x * x); }
ONESTEP_FORMULA double normal_cdf(double x) { return 0.5 * formulas::erfc(-kSqrtHalf * x); }

ONESTEP_FORMULA double silu_derivative(double x) {
  const double s = sigmoid(x);
  return s * (1 + x * (1 - s));
}

// (1 + tanh u) / 2 = sigmoid(2u)
ONESTEP_FORMULA double gelu_tanh_derivative(double x) {
  const double s = sigmoid(2 * gelu_inner(x));
  return s + x * s * (1 - s) * 2 * kSqrt2OverPi * (1 + 3 * 0.044715 * x * x);
}

ONESTEP_FORMULA double gelu_erf_derivative(double x) {
  constexpr double inv_sqrt_2pi = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  const double a = std::fabs(kSqrtHalf * x), near = a < 40 ? a : 40;  // from where on it is 0
  return normal_cdf(x) + x * inv_sqrt_2pi * formulas::gauss(near);
}

template <auto DERIVATIVE>
void map_grad(const double* x, const double* dy, double* dx, int64_t n) {
  vector_loop([](double v, double d) { return d * DERIVATIVE(v); }, dx, n, x, dy);
}

ONESTEP_FORMULA double larger(double u, double v) { return u != u || u > v ? u : v; }
ONESTEP_FORMULA double smaller(double u, double v) { return u != u || u < v ? u : v; }

/// `step` over term(0), ..., term(n - 1) in 16 lanes (lane l takes terms l, l + 16, ..., four at a time while there are as
/// many), then over these in one fixed tree. Loops that are not unrolled become vector instructions.
template <class Step, class Term>
ONESTEP_FORMULA double fold(int64_t n, double start, Step step, Term term) {
  constexpr int64_t lanes = 16;
  double lane[lanes];
  for (double& each : lane) each = start;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
#pragma GCC unroll 1
    for (int64_t l = 0; l < lanes; ++l)
      lane[l] =
          step(lane[l], step(step(term(i + l), term(i + l + lanes)), step(term(i + l + 2 * lanes), term(i + l + 3 * lanes))));
  }
  for (; i + lanes <= n; i += lanes) {
#pragma GCC unroll 1
    for (int64_t l = 0; l < lanes; ++l) lane[l] = step(lane[l], term(i + l));
  }
  for (int64_t l = 0; i < n; ++i, ++l) lane[l] = step(lane[l], term(i));
  for (int64_t half = lanes / 2; half > 0; half /= 2)
    for (int64_t l = 0; l < half; ++l) lane[l] = step(lane[l], lane[l + half]);
  return lane[0];
}
template <class Term>
ONESTEP_FORMULA double sum_of(int64_t n, Term term) {
  return fold(n, 0, std::plus(), term);
}

ONESTEP_EACH_ISA double sum(const double* x, int64_t n) {
  return sum_of(n, [=](int64_t i) { return x[i]; });
}

ONESTEP_EACH_ISA double dot(const double* a, const double* b, int64_t n) {
  return sum_of(n, [=](int64_t i) { return a[i] * b[i]; });
}

ONESTEP_EACH_ISA double centered_dot(const double* a, double a_center, const double* b, double b_center, int64_t n) {
  return sum_of(n, [=](int64_t i) { return (a[i] - a_center) * (b[i] - b_center); });
}

double sum_squares(const double* x, int64_t n) { return dot(x, x, n); }

template <class Predicate>
ONESTEP_FORMULA bool any_of(const double* x, int64_t n, Predicate is) {
  int64_t any = 0;
  for (int64_t i = 0; i < n; ++i) any |= is(x[i]);
  return any != 0;
}

/// The `better` of start and all of x, or NaN where there is one: looked for apart, since choices with it become branches.
template <class Better>
ONESTEP_FORMULA double extremum(const double* x, int64_t n, double start, Better better) {
  for (; n > 0; n -= kBlock, x += kBlock) {
    const int64_t count = std::min(kBlock, n);
    if (any_of(x, count, [](double v) { return v != v; })) return formulas::kNaN;
    start = fold(count, start, better, [=](int64_t i) { return x[i]; });
  }
  return start;
}
ONESTEP_EACH_ISA double max(const double* x, int64_t n) {
  return extremum(x, n, -formulas::kInfinity, [](double u, double v) { return u > v ? u : v; });
}
ONESTEP_EACH_ISA double min(const double* x, int64_t n) {
  return extremum(x, n, formulas::kInfinity, [](double u, double v) { return u < v ? u : v; });
}

template <auto F>
void each_row(const double* x, double* y, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r) y[r] = F(x + r * n, n);
}

int64_t argmax(const double* x, int64_t n) {
  int64_t best = 0;
  for (int64_t i = 1; i < n && x[best] == x[best]; ++i) {
    if (x[i] > x[best] || x[i] != x[i]) best = i;
  }
  return best;
}

ONESTEP_FORMULA bool is_far(double x) { return std::fabs(x) > formulas::kTrigLimit; }
ONESTEP_EACH_ISA bool any_far(const double* x, int64_t n) { return any_of(x, n, is_far); }

/// By a formula up to kTrigLimit, beyond by the C library.
template <auto F, auto FAR>
void trigonometric(const double* x, double* y, int64_t n) {
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t count = std::min(kBlock, n - i);
    double far[kBlock];  // x, which y may be
    const bool some = any_far(x + i, count);
    if (some) std::copy_n(x + i, count, far);
    vector_loop(F, y + i, count, x + i);
    for (int64_t j = 0; some && j < count; ++j)
      if (is_far(far[j])) y[i + j] = FAR(far[j]);
  }
}

void sum_rows(const double* x, double* y, int64_t rows, int64_t cols, int64_t ld) {
  for (int64_t c = 0; c < cols; ++c) y[c] = 0;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) y[c] += x[r * ld + c];
  }
}

/// log(sum(exp(x - m)))
double log_sum_exp(const double* x, double m, int64_t n) {
  double total = 0, part[kBlock];
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t count = std::min(kBlock, n - i);
    exp_minus(x + i, m, part, count);
    total += sum(part, count);
  }
  return portable::log(total);
}

void softmax_rows(const double* x, double* y, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    exp_minus(x, max(x, cols), y, cols);
    vector_loop([scale = 1 / sum(y, cols)](double e) { return e * scale; }, y, cols, static_cast<const double*>(y));
  }
}

void softmax_grad_rows(const double* y, const double* dy, double* dx, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, y += cols, dy += cols, dx += cols)
    vector_loop([mean = dot(y, dy, cols)](double v, double d) { return v * (d - mean); }, dx, cols, y, dy);
}

void logsumexp_rows(const double* x, double* y, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, x += cols) {
    const double largest = max(x, cols), m = std::isinf(largest) ? 0 : largest;  // as torch: inf - inf would be NaN
    y[r] = m + log_sum_exp(x, m, cols);
  }
}

void softmax_spans(double* x, int64_t ld, const Span* spans, int64_t rows, double scale, Span block) {
  for (int64_t r = 0; r < rows; ++r, x += ld) {
    const auto [begin, end] = spans[r];
    for (int64_t c = block.begin; c < block.end; ++c) x[c] = c >= begin && c < end ? x[c] * scale : 0;
    if (end > begin) softmax_rows(x + begin, x + begin, 1, end - begin);
  }
}

void softmax_grad_spans(const double* y, double* dx, int64_t ld, const Span* spans, int64_t rows, double scale, Span block) {
  for (int64_t r = 0; r < rows; ++r, y += ld, dx += ld) {
    const auto [begin, end] = spans[r];
    if (end > begin) softmax_grad_rows(y + begin, dx + begin, dx + begin, 1, end - begin);
    for (int64_t c = block.begin; c < block.end; ++c) dx[c] = c >= begin && c < end ? dx[c] * scale : 0;
  }
}

void log_softmax_rows(const double* x, double* y, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    const double m = max(x, cols), rest = log_sum_exp(x, m, cols);
    vector_loop([m, rest](double v) { return (v - m) - rest; }, y, cols, x);
  }
}

void log_softmax_grad_rows(const double* y, const double* dy, double* dx, int64_t rows, int64_t cols) {
  double part[kBlock];
  for (int64_t r = 0; r < rows; ++r, y += cols, dy += cols, dx += cols) {
    const double total = sum(dy, cols);
    for (int64_t c = 0; c < cols; c += kBlock) {
      const int64_t count = std::min(kBlock, cols - c);
      exp(y + c, part, count);
      vector_loop([total](double d, double e) { return d - e * total; }, dx + c, count, dy + c,
                  static_cast<const double*>(part));
    }
  }
}

ONESTEP_EACH_ISA void layer_norm_rows(const double* x, const double* weight, const double* bias, double eps, double* y,
                                      double* mean, double* rstd, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    const double mu = sum(x, cols) / static_cast<double>(cols);
    const double scale = 1 / std::sqrt(centered_dot(x, mu, x, mu, cols) / static_cast<double>(cols) + eps);
#pragma GCC ivdep
    for (int64_t c = 0; c < cols; ++c) y[c] = (x[c] - mu) * scale * (weight ? weight[c] : 1) + (bias ? bias[c] : 0);
    mean[r] = mu;
    rstd[r] = scale;
  }
}

void layer_norm_grad(const double* x, const double* weight, const double* mean, const double* rstd, const double* dy,
                     double* dx, double* dweight, double* dbias, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, x += cols, dy += cols) {
    double avg_g = 0, avg_gh = 0;
    for (int64_t c = 0; c < cols; ++c) {
      const double g = dy[c] * (weight ? weight[c] : 1), h = (x[c] - mean[r]) * rstd[r];
      avg_g += g / static_cast<double>(cols);
      avg_gh += g * h / static_cast<double>(cols);
      if (dweight) dweight[c] += dy[c] * h;
      if (dbias) dbias[c] += dy[c];
    }
    for (int64_t c = 0; dx && c < cols; ++c) {
      const double g = dy[c] * (weight ? weight[c] : 1), h = (x[c] - mean[r]) * rstd[r];
      dx[r * cols + c] = rstd[r] * (g - avg_g - h * avg_gh);
    }
  }
}

void adam_step(double* p, const double* g, double* m, double* v, int64_t n, const AdamScalars<double>& s) {
  for (int64_t i = 0; i < n; ++i) {
    const double grad = s.decoupled ? g[i] : g[i] + s.weight_decay * p[i];
    const double weight = s.decoupled ? p[i] * s.shrink : p[i];
    m[i] += s.one_minus_beta1 * (grad - m[i]);
    v[i] = v[i] * s.beta2 + s.one_minus_beta2 * grad * grad;
    p[i] = weight + s.minus_step_size * m[i] / (std::sqrt(v[i]) / s.sqrt_correction2 + s.eps);
  }
}

void sgd_step(double* p, const double* g, double* buffer, int64_t n, const SgdScalars<double>& s) {
  for (int64_t i = 0; i < n; ++i) {
    double grad = g[i] + s.weight_decay * p[i];
    if (s.momentum != 0) {
      buffer[i] = s.first ? grad : buffer[i] * s.momentum + s.one_minus_dampening * grad;
      grad = s.nesterov ? grad + s.momentum * buffer[i] : buffer[i];
    }
    p[i] += s.minus_lr * grad;
  }
}

void conv_take(const double* from, int64_t ld, int64_t step, int64_t n, int64_t rows, int64_t begin, double* to,
               int64_t width) {
  for (int64_t r = 0; r < rows; ++r, from += ld, to += width)
    for (int64_t j = 0; j < width; ++j) to[j] = j >= begin && j < begin + n ? from[(j - begin) * step] : 0;
}

void conv_put(const double* from, int64_t width, double shift, int64_t n, int64_t rows, double* to, int64_t ld, int64_t step) {
  for (int64_t r = 0; r < rows; ++r, from += width, to += ld)
    for (int64_t j = 0; j < n; ++j) to[j * step] = from[j] + shift;
}

void conv_tiles(int64_t rows, int64_t depth, const int64_t* offsets, const double* weights, const double* source, int64_t n,
                double* to, int64_t ld) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t q = 0; q < n; ++q) {
      double total = 0;
      for (int64_t k = 0; k < depth; ++k) total += weights[k * rows + r] * source[offsets[k] + q];
      to[r * ld + q] = total;
    }
  }
}

void conv_dots(int64_t rows, int64_t cols, const int64_t* offsets, const ConvDots<double>& x) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      double total = 0;
      for (int64_t image = 0; image < x.images; ++image) {
        const double *dy = x.dy + image * x.dy_image + r * x.n, *from = x.source + image * x.source_image + offsets[c];
        for (int64_t q = 0; q < x.n; ++q) total += dy[q] * from[q];
      }
      x.to[r * x.ld + c] = x.add ? x.to[r * x.ld + c] + total : total;
    }
  }
}

void uniform(double* y, int64_t n, double low, double high) {
  for (int64_t i = 0; i < n; ++i) {
    const double v = std::fma(y[i], high - low, low);
    y[i] = v == high ? low : v;
  }
}

void box_muller(double* d, int64_t n, double mean, double std) {
  for (int64_t i = 0; i < n; i += 16) {
    for (double* u = d + i; u < d + i + 8; ++u) {
      const double r = std::sqrt(-2.0 * std::log(1.0 - u[0])), t = 2.0 * std::numbers::pi * u[8];
      u[0] = std::fma(r * std::cos(t), std, mean);
      u[8] = std::fma(r * std::sin(t), std, mean);
    }
  }
}

constexpr Table<double> kTable = {
    .abs = map<[](double x) { return std::fabs(x); }>,
    .relu = map<[](double x) { return x <= 0 ? 0 : x; }>,
    .exp = exp,
    .log = map<[](double x) { return formulas::quick_log(x); }>,
    .log2 = map<[](double x) { return formulas::log2(x); }>,
    .log10 = map<[](double x) { return formulas::log10(x); }>,
    .sqrt = map<[](double x) { return std::sqrt(x); }>,
    .rsqrt = map<[](double x) { return 1 / std::sqrt(x); }>,
    .sin = trigonometric<[](double x) { return formulas::sin(x); }, [](double x) { return std::sin(x); }>,
    .cos = trigonometric<[](double x) { return formulas::cos(x); }, [](double x) { return std::cos(x); }>,
    .tan = trigonometric<[](double x) { return formulas::sin(x) / formulas::cos(x); }, [](double x) { return std::tan(x); }>,
    .tanh = map<[](double x) { return formulas::tanh(x); }>,
    .erf = map<[](double x) { return formulas::erf(x); }>,
    .erfc = map<[](double x) { return formulas::erfc(x); }>,
    .sigmoid = map<[](double x) { return sigmoid(x); }>,
    .silu = map<[](double x) { return x * sigmoid(x); }>,
    .gelu_tanh = map<[](double x) { return x * sigmoid(2 * gelu_inner(x)); }>,
    .gelu_erf = map<[](double x) { return x * normal_cdf(x); }>,
    .silu_grad = map_grad<[](double x) { return silu_derivative(x); }>,
    .gelu_tanh_grad = map_grad<[](double x) { return gelu_tanh_derivative(x); }>,
    .gelu_erf_grad = map_grad<[](double x) { return gelu_erf_derivative(x); }>,
    .add = zip<[](double a, double b) { return a + b; }>,
    .sub = zip<[](double a, double b) { return a - b; }>,
    .mul = zip<[](double a, double b) { return a * b; }>,
    .div = zip<[](double a, double b) { return a / b; }>,
    .maximum = zip<[](double a, double b) { return larger(a, b); }>,
    .minimum = zip<[](double a, double b) { return smaller(a, b); }>,
    .pow = zip<[](double a, double b) { return std::pow(a, b); }>,
    .row_sums = each_row<sum>,
    .sum_squares = sum_squares,
    .sum_rounded_squares = sum_squares,  // dot() does not fuse
    .dot = dot,
    .centered_dot = centered_dot,
    .row_maxima = each_row<max>,
    .row_minima = each_row<min>,
    .argmax = argmax,
    .sum_rows = sum_rows,
    .softmax_rows = softmax_rows,
    .log_softmax_rows = log_softmax_rows,
    .logsumexp_rows = logsumexp_rows,
    .softmax_grad_rows = softmax_grad_rows,
    .log_softmax_grad_rows = log_softmax_grad_rows,
    .softmax_spans = softmax_spans,
    .softmax_grad_spans = softmax_grad_spans,
    .layer_norm_rows = layer_norm_rows,
    .layer_norm_grad = layer_norm_grad,
    .conv_take = conv_take,
    .conv_put = conv_put,
    .conv_rows = 4,
    .conv_tiles = conv_tiles,
    .conv_dots = conv_dots,
    .uniform = uniform,
    .box_muller = box_muller,
    .adam_step = adam_step,
    .sgd_step = sgd_step,
};

}  // namespace

const Table<double>& reference_table() { return kTable; }

}  // namespace onestep::kernels
