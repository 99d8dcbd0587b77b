// Elementwise float32 kernels of one instruction set.
#include "autograd/half.h"
#include "autograd/kernels/table.h"
#include "autograd/kernels/vec_gelu.h"
#include "autograd/kernels/vec_math.h"
#include "autograd/kernels/vec_pow.h"
#include "autograd/kernels/vec_trig.h"

namespace onestep::kernels {
namespace {

ONESTEP_INLINE Vec one_over(Vec x) { return splat(1.0f) / x; }

/// Elements i to i + kLanes of an operand of zip(), of which `left` are left: where they are, or copied.
ONESTEP_INLINE const float* lanes_from(const float* x, int64_t step, int64_t i, int64_t left, float* copy) {
  if (step == 1 && left >= kLanes) return x + i;
  store(copy, step == 0 ? splat(*x) : load_first(x + i, left));
  return copy;
}

ONESTEP_FLATTEN void pow(const float* x, int64_t x_step, const float* exponent, int64_t exponent_step, float* y, int64_t n) {
  if (exponent_step == 0 && x_step == 1) {
    if (*exponent == 2) return map(x, y, n, [](Vec v) { return v * v; });
    if (*exponent == 3) return map(x, y, n, [](Vec v) { return v * v * v; });
    if (*exponent == -1) return map(x, y, n, one_over);
    if (*exponent == -2) return map(x, y, n, [](Vec v) { return one_over(v * v); });
  }
  float bases[kLanes], exponents[kLanes], results[kLanes];
  for (int64_t i = 0; i < n; i += kLanes) {
    powers(lanes_from(x, x_step, i, n - i, bases), lanes_from(exponent, exponent_step, i, n - i, exponents), results);
    store_upto(y + i, load(results), n - i);
  }
}

/// s (1 + x (1 - s)) with s = sigmoid(x)
ONESTEP_INLINE Vec silu_derivative(Vec x) {
  const Vec s = sigmoid(x);
  return s * fma(x, splat(1.0f) - s, splat(1.0f));
}

/// y[i] = f(a[i or 0], b[i or 0])
template <class F>
void zip(const float* a, int64_t a_step, const float* b, int64_t b_step, float* y, int64_t n, F f) {
  if (n <= 0) return;
  if (a_step != 0 && b_step != 0) return map2(a, b, y, n, f);
  const Vec a0 = splat(*a), b0 = splat(*b);
  if (a_step != 0) return map(a, y, n, [=](Vec v) { return f(v, b0); });
  map(b_step != 0 ? b : y, y, n, [=](Vec v) { return f(a0, b_step != 0 ? v : b0); });  // of y nothing is used
}

/// The same order of roundings as torch's single-tensor Adam and AdamW: lerp_, mul_ + fused addcmul_, sqrt / + add, addcdiv_.
ONESTEP_FLATTEN void adam_step(float* p, const float* g, float* m, float* v, int64_t n, const AdamScalars<float>& s) {
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t count = n - i < kLanes ? n - i : kLanes;
    const Vec weight = load_upto(p + i, count), raw = load_upto(g + i, count);
    const Vec grad = s.decoupled ? raw : fma(splat(s.weight_decay), weight, raw);
    const Vec old_m = load_upto(m + i, count);
    const Vec new_m = fma(splat(s.one_minus_beta1), grad - old_m, old_m);
    const Vec new_v = fma(splat(s.one_minus_beta2) * grad, grad, load_upto(v + i, count) * splat(s.beta2));
    const Vec denominator = sqrt(new_v) / splat(s.sqrt_correction2) + splat(s.eps);
    const Vec shrunk = s.decoupled ? weight * splat(s.shrink) : weight;
    store_upto(m + i, new_m, count);
    store_upto(v + i, new_v, count);
    store_upto(p + i, shrunk + splat(s.minus_step_size) * new_m / denominator, count);
  }
}

ONESTEP_FLATTEN void sgd_step(float* p, const float* g, float* buffer, int64_t n, const SgdScalars<float>& s) {
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t count = n - i < kLanes ? n - i : kLanes;
    const Vec weight = load_upto(p + i, count), momentum = splat(s.momentum);
    Vec grad = load_upto(g + i, count);
    if (s.weight_decay != 0) grad = fma(splat(s.weight_decay), weight, grad);
    if (s.momentum != 0) {
      const Vec velocity = s.first ? grad : fma(splat(s.one_minus_dampening), grad, load_upto(buffer + i, count) * momentum);
      store_upto(buffer + i, velocity, count);
      grad = s.nesterov ? fma(momentum, velocity, grad) : velocity;
    }
    store_upto(p + i, fma(splat(s.minus_lr), grad, weight), count);
  }
}

template <auto F>
ONESTEP_FLATTEN void map_with(const float* x, float* y, int64_t n) {
  map(x, y, n, F);
}
/// A loop that the compiler turns into vectors.
template <auto F, class X, class Y>
void each(const X* x, Y* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = F(x[i]);
}
template <auto F>
ONESTEP_FLATTEN void map_grad_with(const float* x, const float* dy, float* dx, int64_t n) {
  map2(x, dy, dx, n, [](Vec v, Vec d) { return d * F(v); });
}
template <auto F>
ONESTEP_FLATTEN void zip_with(const float* a, int64_t a_step, const float* b, int64_t b_step, float* y, int64_t n) {
  zip(a, a_step, b, b_step, y, n, F);
}

}  // namespace

namespace ONESTEP_ISA_NAME {

void fill_maps(Table<float>& t) {
  t.abs = map_with<[](Vec x) { return abs(x); }>;
  t.relu = map_with<[](Vec x) { return max_nan(x, splat(0.0f)); }>;
  t.exp = map_with<[](Vec x) { return exp(x); }>;
  t.log = map_with<[](Vec x) { return log(x); }>;
  t.log2 = map_with<[](Vec x) { return log_to_base(kBase2, x); }>;
  t.log10 = map_with<[](Vec x) { return log_to_base(kBase10, x); }>;
  t.sqrt = map_with<[](Vec x) { return sqrt(x); }>;
  t.rsqrt = map_with<[](Vec x) { return one_over(sqrt(x)); }>;
  t.sin = map_with<[](Vec x) { return sin_shifted(x, 0); }>;
  t.cos = map_with<[](Vec x) { return sin_shifted(x, 1); }>;
  t.tan = map_with<[](Vec x) { return tan(x); }>;
  t.tanh = map_with<[](Vec x) { return tanh(x); }>;
  t.erf = map_with<[](Vec x) { return erf(x); }>;
  t.erfc = map_with<[](Vec x) { return erfc(x); }>;
  t.sigmoid = map_with<[](Vec x) { return sigmoid(x); }>;
  t.silu = map_with<[](Vec x) { return silu(x); }>;
  t.gelu_tanh = map_with<[](Vec x) { return gelu_tanh(x); }>;
  t.gelu_erf = map_with<[](Vec x) { return gelu_erf(x); }>;
  t.pow = pow;
  t.silu_grad = map_grad_with<[](Vec x) { return silu_derivative(x); }>;
  t.gelu_tanh_grad = map_grad_with<[](Vec x) { return gelu_tanh_derivative(x); }>;
  t.gelu_erf_grad = map_grad_with<[](Vec x) { return gelu_erf_derivative(x); }>;
  t.add = zip_with<[](Vec a, Vec b) { return a + b; }>;
  t.sub = zip_with<[](Vec a, Vec b) { return a - b; }>;
  t.mul = zip_with<[](Vec a, Vec b) { return a * b; }>;
  t.div = zip_with<[](Vec a, Vec b) { return a / b; }>;
  t.maximum = zip_with<[](Vec a, Vec b) { return max_nan(a, b); }>;
  t.minimum = zip_with<[](Vec a, Vec b) { return min_nan(a, b); }>;
  t.from_bf16 = each<float_of_bfloat16>;
  t.to_bf16 = each<bfloat16_of_float>;
  t.from_half = each<float_of_half>;
  t.to_half = each<half_of_float>;
  t.adam_step = adam_step;
  t.sgd_step = sgd_step;
}

}  // namespace ONESTEP_ISA_NAME
}  // namespace onestep::kernels
