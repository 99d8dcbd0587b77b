// The naive kernels in double: one loop each, libm or portable formulas, no blocking. They are the float64 implementation and
// what the float32 kernels are tested against. Meanings are in kernels.h.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "autograd/kernels/table.h"
#include "autograd/portable_formulas.h"
#include "autograd/vector_loop.h"

namespace onestep::kernels {
namespace {

template <auto F>
void map(const double* x, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = F(x[i]);
}

/// The same of a formula, by vector instructions.
template <auto F>
void compiled(const double* x, double* y, int64_t n) {
  vector_loop(F, y, n, x);
}

template <auto F>
void zip(const double* a, int64_t a_step, const double* b, int64_t b_step, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = F(a[i * a_step], b[i * b_step]);
}

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
constexpr double kSqrt2OverPi = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
double gelu_inner(double x) { return kSqrt2OverPi * (x + 0.044715 * x * x * x); }
double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

double silu(double x) { return x * sigmoid_of(x); }
double silu_derivative(double x) {
  const double s = sigmoid_of(x);
  return s * (1 + x * (1 - s));
}

double gelu_tanh(double x) { return x * sigmoid_of(2 * gelu_inner(x)); }  // (1 + tanh u) / 2 = sigmoid(2u)
double gelu_tanh_derivative(double x) {
  const double s = sigmoid_of(2 * gelu_inner(x));
  return s + x * s * (1 - s) * 2 * kSqrt2OverPi * (1 + 3 * 0.044715 * x * x);
}

double gelu_erf(double x) { return x * normal_cdf(x); }
double gelu_erf_derivative(double x) {
  constexpr double inv_sqrt_2pi = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return normal_cdf(x) + x * inv_sqrt_2pi * std::exp(x * x / -2);
}

template <double (*DERIVATIVE)(double)>
void map_grad(const double* x, const double* dy, double* dx, int64_t n) {
  for (int64_t i = 0; i < n; ++i) dx[i] = dy[i] * DERIVATIVE(x[i]);
}

double larger(double u, double v) { return u != u || u > v ? u : v; }
double smaller(double u, double v) { return u != u || u < v ? u : v; }

double sum(const double* x, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += x[i];
  return total;
}

double dot(const double* a, const double* b, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += a[i] * b[i];
  return total;
}

double centered_dot(const double* a, double a_center, const double* b, double b_center, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += (a[i] - a_center) * (b[i] - b_center);
  return total;
}

double sum_squares(const double* x, int64_t n) { return dot(x, x, n); }

double max(const double* x, int64_t n) {
  double best = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < n; ++i) best = larger(best, x[i]);
  return best;
}

double min(const double* x, int64_t n) {
  double best = std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < n; ++i) best = smaller(best, x[i]);
  return best;
}

int64_t argmax(const double* x, int64_t n) {
  int64_t best = 0;
  for (int64_t i = 1; i < n && x[best] == x[best]; ++i) {
    if (x[i] > x[best] || x[i] != x[i]) best = i;
  }
  return best;
}

void sum_rows(const double* x, double* y, int64_t rows, int64_t cols, int64_t ld) {
  for (int64_t c = 0; c < cols; ++c) y[c] = 0;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) y[c] += x[r * ld + c];
  }
}

/// log(sum(exp(x - m)))
double log_sum_exp(const double* x, double m, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += std::exp(x[i] - m);
  return std::log(total);
}

void softmax_rows(const double* x, double* y, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    const double m = max(x, cols);
    double total = 0;
    for (int64_t c = 0; c < cols; ++c) total += y[c] = std::exp(x[c] - m);
    for (int64_t c = 0; c < cols; ++c) y[c] /= total;
  }
}

void softmax_grad_rows(const double* y, const double* dy, double* dx, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, y += cols, dy += cols, dx += cols) {
    const double mean = dot(y, dy, cols);
    for (int64_t c = 0; c < cols; ++c) dx[c] = y[c] * (dy[c] - mean);
  }
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
    for (int64_t c = 0; c < cols; ++c) y[c] = (x[c] - m) - rest;
  }
}

void log_softmax_grad_rows(const double* y, const double* dy, double* dx, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, y += cols, dy += cols, dx += cols) {
    const double total = sum(dy, cols);
    for (int64_t c = 0; c < cols; ++c) dx[c] = dy[c] - std::exp(y[c]) * total;
  }
}

void layer_norm_rows(const double* x, const double* weight, const double* bias, double eps, double* y, double* mean,
                     double* rstd, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    const double mu = sum(x, cols) / static_cast<double>(cols);
    double squares = 0;
    for (int64_t c = 0; c < cols; ++c) squares += (x[c] - mu) * (x[c] - mu);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(cols) + eps);
    for (int64_t c = 0; c < cols; ++c) y[c] = (x[c] - mu) * scale * (weight ? weight[c] : 1) + (bias ? bias[c] : 0);
    mean[r] = mu;
    rstd[r] = scale;
  }
}

void layer_norm_grad(const double* x, const double* weight, const double* mean, const double* rstd, const double* dy,
                     double* dx, double* dweight, double* dbias, int64_t rows, int64_t cols) {
  if (dweight) std::fill_n(dweight, cols, 0);
  if (dbias) std::fill_n(dbias, cols, 0);
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
    .exp = map<[](double x) { return std::exp(x); }>,
    .log = map<[](double x) { return std::log(x); }>,
    .log2 = compiled<[](double x) { return portable::formulas::log2(x); }>,
    .log10 = compiled<[](double x) { return portable::formulas::log10(x); }>,
    .sqrt = map<[](double x) { return std::sqrt(x); }>,
    .rsqrt = map<[](double x) { return 1 / std::sqrt(x); }>,
    .sin = map<[](double x) { return std::sin(x); }>,
    .cos = map<[](double x) { return std::cos(x); }>,
    .tan = map<[](double x) { return std::sin(x) / std::cos(x); }>,
    .tanh = map<[](double x) { return std::tanh(x); }>,
    .erf = map<[](double x) { return std::erf(x); }>,
    .erfc = compiled<[](double x) { return portable::formulas::erfc(x); }>,
    .sigmoid = map<[](double x) { return sigmoid_of(x); }>,
    .silu = map<silu>,
    .gelu_tanh = map<gelu_tanh>,
    .gelu_erf = map<gelu_erf>,
    .silu_grad = map_grad<silu_derivative>,
    .gelu_tanh_grad = map_grad<gelu_tanh_derivative>,
    .gelu_erf_grad = map_grad<gelu_erf_derivative>,
    .add = zip<[](double a, double b) { return a + b; }>,
    .sub = zip<[](double a, double b) { return a - b; }>,
    .mul = zip<[](double a, double b) { return a * b; }>,
    .div = zip<[](double a, double b) { return a / b; }>,
    .maximum = zip<larger>,
    .minimum = zip<smaller>,
    .pow = zip<[](double a, double b) { return std::pow(a, b); }>,
    .sum = sum,
    .sum_squares = sum_squares,
    .sum_rounded_squares = sum_squares,  // dot() does not fuse
    .dot = dot,
    .centered_dot = centered_dot,
    .max = max,
    .min = min,
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
