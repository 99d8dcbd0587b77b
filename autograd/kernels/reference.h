#pragma once
// The naive kernels: one loop each, libm, no blocking. They are the float64 implementation, and in double what the
// float32 kernels are tested against. Signatures are those of Table<T>.

#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "autograd/kernels/table.h"

namespace onestep::kernels::reference {

template <class T, class F>
void map(const T* x, T* y, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
}

template <class T>
void exp(const T* x, T* y, int64_t n) {
  map(x, y, n, [](T v) { return std::exp(v); });
}
template <class T>
void log(const T* x, T* y, int64_t n) {
  map(x, y, n, [](T v) { return std::log(v); });
}
template <class T>
void sqrt(const T* x, T* y, int64_t n) {
  map(x, y, n, [](T v) { return std::sqrt(v); });
}
template <class T>
void rsqrt(const T* x, T* y, int64_t n) {
  map(x, y, n, [](T v) { return 1 / std::sqrt(v); });
}
template <class T>
void sin(const T* x, T* y, int64_t n) {
  map(x, y, n, [](T v) { return std::sin(v); });
}
template <class T>
void cos(const T* x, T* y, int64_t n) {
  map(x, y, n, [](T v) { return std::cos(v); });
}
template <class T>
void tanh(const T* x, T* y, int64_t n) {
  map(x, y, n, [](T v) { return std::tanh(v); });
}
template <class T>
void erf(const T* x, T* y, int64_t n) {
  map(x, y, n, [](T v) { return std::erf(v); });
}

template <class T>
T sigmoid_of(T x) {
  return 1 / (1 + std::exp(-x));
}
template <class T>
void sigmoid(const T* x, T* y, int64_t n) {
  map(x, y, n, sigmoid_of<T>);
}
template <class T>
void silu(const T* x, T* y, int64_t n) {
  map(x, y, n, [](T v) { return v / (1 + std::exp(-v)); });
}

template <class T>
inline constexpr T kSqrt2OverPi = std::numbers::sqrt2_v<T>* std::numbers::inv_sqrtpi_v<T>;
template <class T>
T gelu_inner(T x) {
  return kSqrt2OverPi<T> * (x + T(0.044715) * x * x * x);
}
template <class T>
T normal_cdf(T x) {
  return T(0.5) * std::erfc(-x / std::numbers::sqrt2_v<T>);
}

template <class T>
void gelu_tanh(const T* x, T* y, int64_t n) {
  map(x, y, n, [](T v) { return v * sigmoid_of(2 * gelu_inner(v)); });  // (1 + tanh u) / 2 = sigmoid(2u)
}
template <class T>
void gelu_erf(const T* x, T* y, int64_t n) {
  map(x, y, n, [](T v) { return v * normal_cdf(v); });
}

template <class T>
void pow(const T* x, T exponent, T* y, int64_t n) {
  map(x, y, n, [=](T v) { return std::pow(v, exponent); });
}

template <class T>
void silu_grad(const T* x, const T* dy, T* dx, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const T s = sigmoid_of(x[i]);
    dx[i] = dy[i] * s * (1 + x[i] * (1 - s));
  }
}

template <class T>
void gelu_tanh_grad(const T* x, const T* dy, T* dx, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const T s = sigmoid_of(2 * gelu_inner(x[i])), slope = 2 * kSqrt2OverPi<T> * (1 + T(3 * 0.044715) * x[i] * x[i]);
    dx[i] = dy[i] * (s + x[i] * s * (1 - s) * slope);
  }
}

template <class T>
void gelu_erf_grad(const T* x, const T* dy, T* dx, int64_t n) {
  constexpr T inv_sqrt_2pi = std::numbers::inv_sqrtpi_v<T> / std::numbers::sqrt2_v<T>;
  for (int64_t i = 0; i < n; ++i) dx[i] = dy[i] * (normal_cdf(x[i]) + x[i] * inv_sqrt_2pi * std::exp(x[i] * x[i] / -2));
}

template <class T, class F>
void zip(const T* a, int64_t sa, const T* b, int64_t sb, T* y, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i) y[i] = f(a[i * sa], b[i * sb]);
}

template <class T>
void add(const T* a, int64_t sa, const T* b, int64_t sb, T* y, int64_t n) {
  zip(a, sa, b, sb, y, n, [](T u, T v) { return u + v; });
}
template <class T>
void sub(const T* a, int64_t sa, const T* b, int64_t sb, T* y, int64_t n) {
  zip(a, sa, b, sb, y, n, [](T u, T v) { return u - v; });
}
template <class T>
void mul(const T* a, int64_t sa, const T* b, int64_t sb, T* y, int64_t n) {
  zip(a, sa, b, sb, y, n, [](T u, T v) { return u * v; });
}
template <class T>
void div(const T* a, int64_t sa, const T* b, int64_t sb, T* y, int64_t n) {
  zip(a, sa, b, sb, y, n, [](T u, T v) { return u / v; });
}
template <class T>
T larger(T u, T v) {
  return u != u || u > v ? u : v;
}
template <class T>
T smaller(T u, T v) {
  return u != u || u < v ? u : v;
}
template <class T>
void maximum(const T* a, int64_t sa, const T* b, int64_t sb, T* y, int64_t n) {
  zip(a, sa, b, sb, y, n, larger<T>);
}
template <class T>
void minimum(const T* a, int64_t sa, const T* b, int64_t sb, T* y, int64_t n) {
  zip(a, sa, b, sb, y, n, smaller<T>);
}

template <class T>
T sum(const T* x, int64_t n) {
  T total = 0;
  for (int64_t i = 0; i < n; ++i) total += x[i];
  return total;
}

template <class T>
T dot(const T* a, const T* b, int64_t n) {
  T total = 0;
  for (int64_t i = 0; i < n; ++i) total = std::fma(a[i], b[i], total);
  return total;
}

template <class T>
T sum_squares(const T* x, int64_t n) {
  return dot(x, x, n);
}

template <class T>
T max(const T* x, int64_t n) {
  T best = -std::numeric_limits<T>::infinity();
  for (int64_t i = 0; i < n; ++i) best = larger(best, x[i]);
  return best;
}

template <class T>
int64_t argmax(const T* x, int64_t n) {
  int64_t best = 0;
  for (int64_t i = 1; i < n && x[best] == x[best]; ++i) {
    if (x[i] > x[best] || x[i] != x[i]) best = i;
  }
  return best;
}

template <class T>
void sum_rows(const T* x, T* y, int64_t rows, int64_t cols, int64_t ld) {
  for (int64_t c = 0; c < cols; ++c) y[c] = 0;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) y[c] += x[r * ld + c];
  }
}

template <class T>
T logsumexp(const T* x, int64_t n) {
  const T m = max(x, n);
  if (std::isinf(m)) return m;
  T total = 0;
  for (int64_t i = 0; i < n; ++i) total += std::exp(x[i] - m);
  return m + std::log(total);
}

template <class T>
void softmax_rows(const T* x, T* y, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    const T m = max(x, cols);
    T total = 0;
    for (int64_t c = 0; c < cols; ++c) total += y[c] = std::exp(x[c] - m);
    for (int64_t c = 0; c < cols; ++c) y[c] /= total;
  }
}

template <class T>
void softmax_grad_rows(const T* y, const T* dy, T* dx, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, y += cols, dy += cols, dx += cols) {
    const T mean = dot(y, dy, cols);
    for (int64_t c = 0; c < cols; ++c) dx[c] = y[c] * (dy[c] - mean);
  }
}

template <class T>
void logsumexp_rows(const T* x, T* y, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r) y[r] = logsumexp(x + r * cols, cols);
}

template <class T>
void log_softmax_rows(const T* x, T* y, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    const T lse = logsumexp(x, cols);
    for (int64_t c = 0; c < cols; ++c) y[c] = x[c] - lse;
  }
}

template <class T>
void log_softmax_grad_rows(const T* y, const T* dy, T* dx, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, y += cols, dy += cols, dx += cols) {
    const T total = sum(dy, cols);
    for (int64_t c = 0; c < cols; ++c) dx[c] = dy[c] - std::exp(y[c]) * total;
  }
}

template <class T>
void layer_norm_rows(const T* x, const T* weight, const T* bias, T eps, T* y, T* mean, T* rstd, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    const T mu = sum(x, cols) / static_cast<T>(cols);
    T squares = 0;
    for (int64_t c = 0; c < cols; ++c) squares += (x[c] - mu) * (x[c] - mu);
    const T scale = 1 / std::sqrt(squares / static_cast<T>(cols) + eps);
    for (int64_t c = 0; c < cols; ++c) y[c] = (x[c] - mu) * scale * (weight ? weight[c] : 1) + (bias ? bias[c] : 0);
    mean[r] = mu;
    rstd[r] = scale;
  }
}

template <class T>
void layer_norm_grad_rows(const T* x, const T* weight, const T* mean, const T* rstd, const T* dy, T* dx, int64_t rows,
                          int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, x += cols, dy += cols, dx += cols) {
    T avg_g = 0, avg_gh = 0;
    for (int64_t c = 0; c < cols; ++c) {
      const T g = dy[c] * (weight ? weight[c] : 1), h = (x[c] - mean[r]) * rstd[r];
      avg_g += g / static_cast<T>(cols);
      avg_gh += g * h / static_cast<T>(cols);
    }
    for (int64_t c = 0; c < cols; ++c) {
      const T g = dy[c] * (weight ? weight[c] : 1), h = (x[c] - mean[r]) * rstd[r];
      dx[c] = rstd[r] * (g - avg_g - h * avg_gh);
    }
  }
}

template <class T>
void layer_norm_param_grad(const T* x, const T* mean, const T* rstd, const T* dy, T* dweight, T* dbias, int64_t rows,
                           int64_t cols, int64_t ld) {
  for (int64_t c = 0; c < cols; ++c) {
    T w = 0, b = 0;
    for (int64_t r = 0; r < rows; ++r) {
      w += dy[r * ld + c] * (x[r * ld + c] - mean[r]) * rstd[r];
      b += dy[r * ld + c];
    }
    if (dweight) dweight[c] = w;
    if (dbias) dbias[c] = b;
  }
}

template <class T>
int64_t gemm_workspace(int64_t, int64_t, int64_t) {
  return 0;
}

/// Ascending k with fma, the block sums of kBlockK added in order.
template <class T>
void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c,
          int64_t ldc, bool accumulate, T* /*workspace*/) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      T total = accumulate ? c[i * ldc + j] : 0;
      for (int64_t p0 = 0; p0 < k; p0 += kBlockK) {
        T block = 0;
        for (int64_t p = p0; p < k && p < p0 + kBlockK; ++p) {
          block = std::fma(trans_a ? a[p * lda + i] : a[i * lda + p], trans_b ? b[j * ldb + p] : b[p * ldb + j], block);
        }
        total = p0 == 0 && !accumulate ? block : total + block;
      }
      c[i * ldc + j] = total;
    }
  }
}

template <class T>
void adam_step(T* p, const T* g, T* m, T* v, int64_t n, const AdamScalars<T>& s) {
  for (int64_t i = 0; i < n; ++i) {
    const T grad = s.decoupled ? g[i] : g[i] + s.weight_decay * p[i];
    const T weight = s.decoupled ? p[i] * s.shrink : p[i];
    m[i] += s.one_minus_beta1 * (grad - m[i]);
    v[i] = v[i] * s.beta2 + s.one_minus_beta2 * grad * grad;
    p[i] = weight + s.minus_step_size * m[i] / (std::sqrt(v[i]) / s.sqrt_correction2 + s.eps);
  }
}

template <class T>
void sgd_step(T* p, const T* g, T* buffer, int64_t n, const SgdScalars<T>& s) {
  for (int64_t i = 0; i < n; ++i) {
    T grad = g[i] + s.weight_decay * p[i];
    if (s.momentum != 0) {
      buffer[i] = s.first ? grad : buffer[i] * s.momentum + s.one_minus_dampening * grad;
      grad = s.nesterov ? grad + s.momentum * buffer[i] : buffer[i];
    }
    p[i] += s.minus_lr * grad;
  }
}

template <class T>
inline constexpr Table<T> table = {
    .exp = exp<T>,
    .log = log<T>,
    .sqrt = sqrt<T>,
    .rsqrt = rsqrt<T>,
    .sin = sin<T>,
    .cos = cos<T>,
    .tanh = tanh<T>,
    .erf = erf<T>,
    .sigmoid = sigmoid<T>,
    .silu = silu<T>,
    .gelu_tanh = gelu_tanh<T>,
    .gelu_erf = gelu_erf<T>,
    .pow = pow<T>,
    .silu_grad = silu_grad<T>,
    .gelu_tanh_grad = gelu_tanh_grad<T>,
    .gelu_erf_grad = gelu_erf_grad<T>,
    .add = add<T>,
    .sub = sub<T>,
    .mul = mul<T>,
    .div = div<T>,
    .maximum = maximum<T>,
    .minimum = minimum<T>,
    .sum = sum<T>,
    .sum_squares = sum_squares<T>,
    .dot = dot<T>,
    .max = max<T>,
    .argmax = argmax<T>,
    .sum_rows = sum_rows<T>,
    .softmax_rows = softmax_rows<T>,
    .log_softmax_rows = log_softmax_rows<T>,
    .logsumexp_rows = logsumexp_rows<T>,
    .softmax_grad_rows = softmax_grad_rows<T>,
    .log_softmax_grad_rows = log_softmax_grad_rows<T>,
    .layer_norm_rows = layer_norm_rows<T>,
    .layer_norm_grad_rows = layer_norm_grad_rows<T>,
    .layer_norm_param_grad = layer_norm_param_grad<T>,
    .gemm_workspace = gemm_workspace<T>,
    .gemm = gemm<T>,
    .adam_step = adam_step<T>,
    .sgd_step = sgd_step<T>,
};

}  // namespace onestep::kernels::reference
