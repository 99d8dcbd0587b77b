// The float32 half of PyTorch's uniform and normal fills. Every fused step is one of PyTorch's AVX2 kernels: the bits of the
// result depend on them.
#include "autograd/kernels/table.h"
#include "autograd/kernels/vec_math.h"

namespace onestep::kernels {
namespace {

// log(x) for x in [2^-24, 1] by the polynomial of Cephes' logf (Stephen L. Moshier): x = 2^e m with m in [sqrt(1/2),
// sqrt(2)), log(m) = y - y^2 / 2 + y^3 P(y) for y = m - 1, and log(2) in two parts.
ONESTEP_INLINE Vec log_cephes(Vec x) {
  constexpr float kP[] = {3.3333331174e-1f,  -2.4999993993e-1f, 2.0000714765e-1f,  -1.6668057665e-1f, 1.4249322787e-1f,
                          -1.2420140846e-1f, 1.1676998740e-1f,  -1.1514610310e-1f, 7.0376836292e-2f};
  const Vec half_up = as_float((bits(x) & splat(0x007fffff)) | splat(0x3f000000));  // in [1/2, 1)
  const Mask small = half_up < splat(0.707106781f);
  const Vec e = to_float(shift_right<23>(bits(x)) - splat(126)) - select(small, splat(1.0f), splat(0.0f));
  const Vec y = half_up - splat(1.0f) + select(small, half_up, splat(0.0f)), y2 = y * y;
  const Vec tail = fma(polynomial(y, kP) * y, y2, e * splat(-2.12194440e-4f));
  return fma(e, splat(0.693359375f), y + fma(y2, splat(-0.5f), tail));
}

struct SinCos {
  Vec sin, cos;
};
// For x in [0, 2 pi] by the polynomials of Cephes' sinf and cosf (Stephen L. Moshier): x minus the nearest even multiple j
// of pi / 4 (in three parts), then sine or cosine of the rest by j.
ONESTEP_INLINE SinCos sincos_cephes(Vec x) {
  constexpr float kSin[] = {-1.6666654611e-1f, 8.3321608736e-3f, -1.9515295891e-4f};
  constexpr float kCos[] = {4.166664568298827e-2f, -1.388731625493765e-3f, 2.443315711809948e-5f};
  const Vec octants = x * splat(1.27323954f);
  const Rounded near = round_nearest(octants);
  const IVec octant = select(near.value > octants, near.integer - splat(1), near.integer);  // rounded down
  const IVec j = (octant + splat(1)) & splat(~1);
  const Vec multiple = to_float(j);
  Vec r = fma(multiple, splat(-0.78515625f), x);
  r = fma(multiple, splat(-2.4187564849853515625e-4f), r);
  r = fma(multiple, splat(-3.77489497744594108e-8f), r);
  const Vec r2 = r * r;
  const Vec c = fma(polynomial(r2, kCos) * r2, r2, -(r2 * splat(0.5f))) + splat(1.0f);
  const Vec s = fma(polynomial(r2, kSin) * r2, r, r);
  const Mask in_place = (j & splat(2)) == splat(0);
  return {as_float(bits(select(in_place, s, c)) ^ shift_left<29>(j & splat(4))),
          as_float(bits(select(in_place, c, s)) ^ shift_left<29>((j + splat(2)) & splat(4)))};
}

void uniform(float* y, int64_t n, float low, float high) {
  const Vec width = splat(high - low), from = splat(low), to = splat(high);
  map(y, y, n, [=](Vec u) {
    const Vec v = fma(u, width, from);
    return select(v == to, from, v);
  });
}

// The pairs of two blocks at a time fill a vector.
void box_muller(float* d, int64_t n, float mean, float std) {
  for (int64_t i = 0; i < n; i += 32) {
    const int64_t blocks = n - i < 32 ? 1 : 2;
    float u1[kLanes] = {}, u2[kLanes] = {};
    constexpr int64_t kHalf = 8;
    for (int64_t b = 0; b < blocks; ++b) {
      __builtin_memcpy(u1 + b * kHalf, d + i + 2 * b * kHalf, sizeof u1 / 2);
      __builtin_memcpy(u2 + b * kHalf, d + i + (2 * b + 1) * kHalf, sizeof u2 / 2);
    }
    const Vec radius = sqrt(splat(-2.0f) * log_cephes(splat(1.0f) - load(u1)));
    const SinCos angle = sincos_cephes(splat(6.28318530f) * load(u2));
    store(u1, fma(radius * angle.cos, splat(std), splat(mean)));
    store(u2, fma(radius * angle.sin, splat(std), splat(mean)));
    for (int64_t b = 0; b < blocks; ++b) {
      __builtin_memcpy(d + i + 2 * b * kHalf, u1 + b * kHalf, sizeof u1 / 2);
      __builtin_memcpy(d + i + (2 * b + 1) * kHalf, u2 + b * kHalf, sizeof u2 / 2);
    }
  }
}

}  // namespace

namespace ONESTEP_ISA_NAME {

void fill_random(Table<float>& t) {
  t.uniform = uniform;
  t.box_muller = box_muller;
}

}  // namespace ONESTEP_ISA_NAME
}  // namespace onestep::kernels
