#pragma once
// Triples whose fused multiply-add is hard to round, and what it gives: for implementations of it in software.
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace onestep::kernels::testing {

struct Triple {
  float a, b, c;
};

/// The kinds of triples, and the FNV-1a hash of the bits of a b + c, rounded once, of the first 2^18 of each, every NaN being
/// one.
enum class FmaInputs : uint8_t { any_bits, alike, tiny, few_bits, ties, subnormal_ties, special };
inline constexpr std::array<uint64_t, 7> kFmaHashes = {0x6ff7f50c1d189c21, 0xe5fef2fff4e5c435, 0xaa2c29bdc27b63b7,
                                                       0x65eb0f9bded34134, 0x2bc5c2e41bf07c31, 0x5a0fe154ab1149ff,
                                                       0x66a06f2a0dbee9a0};
inline constexpr int64_t kFmaCount = int64_t{1} << 18;

/// xorshift64*
class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  uint64_t bits(int count) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ * 0x2545f4914f6cdd1du >> (64 - count);
  }
  int within(int low, int high) { return low + static_cast<int>(bits(31) % static_cast<uint64_t>(high - low + 1)); }
  float sign() { return bits(1) != 0 ? -1.0f : 1.0f; }
  /// Between 2^low and 2^(high + 1), with `digits` binary digits behind the first.
  float number(int low, int high, int digits = 23) {  // one draw after the other: compilers order operands as they like
    const float signed_one = sign(), fraction = std::ldexp(static_cast<float>(bits(digits)), -digits);
    return signed_one * std::ldexp(1 + fraction, within(low, high));
  }

 private:
  uint64_t state_;
};

/// c with an odd last bit and a b half a unit of it, or that but for the last bits of the product.
inline Triple tie(Draws& draw, int exponent) {
  const auto near_one = [&] {
    const bool exact = draw.bits(1) != 0;
    const float step = draw.sign();
    return exact ? 1.0f : 1 + step * std::ldexp(1.0f, -23 + draw.within(0, 8));
  };
  const float c_sign = draw.sign(), a_sign = draw.sign();
  const float c = c_sign * std::ldexp(static_cast<float>(draw.bits(23) | 0x800001), exponent - 23);
  const float unit = std::nextafter(std::abs(c), std::numeric_limits<float>::infinity()) - std::abs(c);
  const int half = std::ilogb(unit) - 1, first = half / 2 + draw.within(-20, 20);
  const float a = near_one(), b = near_one();
  return {a_sign * std::ldexp(a, first), std::ldexp(b, half - first), c};
}

inline Triple triple(FmaInputs kind, Draws& draw) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr std::array kSpecial = {
      0.0f,      -0.0f,        1.0f,      -1.0f,    kInfinity,       -kInfinity,       std::numeric_limits<float>::quiet_NaN(),
      0x1p-149f, -0x1p-149f,   0x1p-126f, 0x1p-75f, 0x1.fffffep127f, -0x1.fffffep127f, 0x1.fffffcp-127f,
      0x1p64f,   0x1.000002p0f};
  const auto any = [&] { return std::bit_cast<float>(static_cast<uint32_t>(draw.bits(32))); };
  switch (kind) {
    case FmaInputs::any_bits:
      return {any(), any(), any()};
    case FmaInputs::alike:
      return {draw.number(-3, 3), draw.number(-3, 3), draw.number(-20, 20)};
    case FmaInputs::tiny:
      return {draw.number(-74, -58), draw.number(-74, -58), draw.number(-149, -110)};
    case FmaInputs::few_bits:
      return {draw.number(-30, 30, 4), draw.number(-30, 30, 4), draw.number(-30, 30, 4)};
    case FmaInputs::ties:
      return tie(draw, draw.within(-60, 60));
    case FmaInputs::subnormal_ties:
      return tie(draw, draw.within(-140, -125));
    case FmaInputs::special:
      break;
  }
  const auto one = [&] { return kSpecial[draw.bits(4)]; };
  return {one(), one(), one()};
}

/// The hash of fma of the kind's triples, in vectors of 16: fma(a, b, c, y).
template <class F>
uint64_t fma_hash(FmaInputs kind, F fma) {
  Draws draw(static_cast<uint64_t>(kind) + 1);
  uint64_t hash = 0xcbf29ce484222325u;
  for (int64_t i = 0; i < kFmaCount; i += 16) {
    float a[16], b[16], c[16], y[16];
    for (int j = 0; j < 16; ++j) {
      const Triple t = triple(kind, draw);
      a[j] = t.a, b[j] = t.b, c[j] = t.c;
    }
    fma(a, b, c, y);
    for (const float value : y) {
      const uint32_t bits = std::isnan(value) ? 0x7fc00000u : std::bit_cast<uint32_t>(value);
      for (int byte = 0; byte < 4; ++byte) hash = (hash ^ (bits >> (8 * byte) & 0xffu)) * 0x100000001b3u;
    }
  }
  return hash;
}

}  // namespace onestep::kernels::testing
