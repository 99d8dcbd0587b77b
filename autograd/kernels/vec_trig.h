#pragma once
// sin, cos and tan on 16 floats, every float included.
#include "autograd/kernels/vec_math.h"

namespace onestep::kernels {
namespace {

inline constexpr float kTrigNear = 32768.0f;

/// x = quadrant pi/2 + rest with |rest| <= pi/4; the quadrant counts modulo 4.
struct Reduced {
  double rest;
  int32_t quadrant;
};

/// For finite |x| >= kTrigNear: x is an integer mantissa m times 2^e, and of m 2^e 2/pi only the bits below 4 matter, so a
/// window of 128 bits of 2/pi is enough (Payne and Hanek 1983).
inline Reduced reduce_far(float x) {
  __extension__ using Wide = unsigned __int128;
  constexpr uint32_t kTwoOverPi[] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0,
                                     0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561};
  const auto u = __builtin_bit_cast(uint32_t, x);
  const int e = static_cast<int>(u >> 23 & 0xff) - 150;
  const int first = e + 30;  // of the window, in bits of the table, which has 32 bits before the point
  Wide window = 0;
  for (int i = 0; i < 5; ++i) {
    const int shift = 96 - 32 * i + first % 32;
    const Wide word = first / 32 + i < 9 ? kTwoOverPi[first / 32 + i] : 0;
    window |= shift >= 0 ? word << shift : word >> -shift;
  }
  const Wide turns = window * ((u & 0x7fffff) | 0x800000);  // modulo 4, 126 bits behind the point
  const auto fraction = static_cast<uint64_t>(turns >> 62);
  const auto quadrant = static_cast<int32_t>(turns >> 126) + static_cast<int32_t>(fraction >> 63);
  const double rest = static_cast<double>(static_cast<int64_t>(fraction)) * 0x1.921fb54442d18p-64;
  return u >> 31 ? Reduced{-rest, -quadrant} : Reduced{rest, quadrant};
}

/// x = quadrant pi/2 + rest with |rest| <= pi/4 and a little more; the quadrant counts modulo 4.
struct ReducedTrig {
  Pair rest;
  IVec quadrant;
};
ONESTEP_INLINE ReducedTrig reduce_trig(Vec x) {
  constexpr float kPi1 = 0x1.921fb6p+0f, kPi2 = -0x1.777a5cp-25f, kPi3 = -0x1.ee59dap-50f;  // their sum is pi/2
  const Rounded n = round_nearest(x * splat(0x1.45f306p-1f));
  const Pair second = two_product(n.value, splat(-kPi2));
  // fast_two_sum, but for the pair, which GCC copies through memory. `first` is exact, and with n != 0 a multiple of 2^-24.
  const Vec first = fnma(n.value, splat(kPi1), x), sum = first + second.high, lost = second.high - (sum - first);
  const ReducedTrig near = {{sum, lost + fnma(n.value, splat(kPi3), second.low)}, n.modulo};
  if (!any(abs(x) > splat(kTrigNear))) return near;
  float xs[kLanes], rest[kLanes], rest_low[kLanes], quadrants[kLanes];
  store(xs, x);
  store(rest, near.rest.high);
  store(rest_low, near.rest.low);
  store(quadrants, as_float(near.quadrant));
  for (int i = 0; i < kLanes; ++i) {
    const float magnitude = __builtin_fabsf(xs[i]);
    if (!(magnitude > kTrigNear)) continue;
    const Reduced far = magnitude < kInf ? reduce_far(xs[i]) : Reduced{__builtin_nan(""), 0};
    rest[i] = static_cast<float>(far.rest);
    rest_low[i] = static_cast<float>(far.rest - static_cast<double>(rest[i]));
    quadrants[i] = __builtin_bit_cast(float, far.quadrant);
  }
  return {{load(rest), load(rest_low)}, bits(load(quadrants))};
}

/// sin(x + shift pi/2)
ONESTEP_INLINE Vec sin_shifted(Vec x, int32_t shift) {
  constexpr float kSin[] = {-0.166666672f, 0.00833332911f, -0.000198393042f, 2.71804652e-06f};
  constexpr float kCos[] = {0.0416666679f, -0.00138888834f, 2.47994521e-05f, -2.72050471e-07f};
  const ReducedTrig reduced = reduce_trig(x);
  const IVec quadrant = reduced.quadrant + splat(shift);
  const Vec r = reduced.rest.high + reduced.rest.low, r_squared = r * r;
  const Vec s = fma(r * r_squared, polynomial(r_squared, kSin), r);
  const Vec c = fma(r_squared * r_squared, polynomial(r_squared, kCos), fma(r_squared, splat(-0.5f), splat(1.0f)));
  const Vec y = select((quadrant & splat(1)) == splat(0), s, c);
  const Vec signed_y = as_float(bits(y) ^ (shift_left<30>(quadrant) & bits(splat(-0.0f))));
  return shift == 0 ? select(x == splat(0.0f), x, signed_y) : signed_y;  // sin(-0) is -0
}

/// tan(rest), or -1 / tan(rest) in odd quadrants.
ONESTEP_INLINE Vec tan(Vec x) {
  constexpr float kTan[] = {0.333333492f,  0.133326814f,    0.054057952f,  0.0212918352f,
                            0.0108121363f, 0.000117901698f, 0.00436305907f};
  const ReducedTrig reduced = reduce_trig(x);
  const Vec r = reduced.rest.high, r_squared = r * r, cubic = (r * r_squared) * polynomial(r_squared, kTan), y = r + cubic;
  const Vec low = fma(fma(y, y, splat(1.0f)), reduced.rest.low, cubic - (y - r));  // what y lacks
  const Vec inverse = splat(-1.0f) / y;
  const Vec even = y + low, odd = fma(inverse * inverse, low, inverse);
  return select(x == splat(0.0f), x, select((reduced.quadrant & splat(1)) == splat(0), even, odd));
}

}  // namespace
}  // namespace onestep::kernels
