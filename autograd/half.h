#pragma once
// float16 and bfloat16: 16 bits in memory, float32 in arithmetic. Rounding is to nearest, ties to even, subnormals included.
#include <cstdint>
#include <ostream>
#include <type_traits>

namespace onestep {

// The conversions have no branches and no functions that a linker could merge, so that kernels compile them for every
// instruction set.
#define ONESTEP_CONVERSION [[gnu::always_inline]] constexpr inline

/// float16 (IEEE binary16: 5 bits of exponent, 10 of fraction) as float32; exact. A signalling NaN becomes a quiet one.
ONESTEP_CONVERSION float float_of_half(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16, magnitude = half & 0x7fffu;
  const uint32_t rebased = (magnitude << 13) + (magnitude >= 0x7c00u ? 224u << 23 : 112u << 23);
  const auto subnormal = __builtin_bit_cast(uint32_t, static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);
  const uint32_t quiet = magnitude > 0x7c00u ? 0x00400000u : 0u;
  return __builtin_bit_cast(float, sign | quiet | (magnitude < 0x0400u ? subnormal : rebased));
}

/// float32 rounded to float16: infinite from 65520 on; a NaN keeps its sign and first bits.
ONESTEP_CONVERSION uint16_t half_of_float(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  const uint32_t rounded = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  // Among numbers from 0.5 to 1 a unit in the last place is worth 2^-24, as among the subnormals of float16.
  const uint32_t subnormal = __builtin_bit_cast(uint32_t, __builtin_bit_cast(float, magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t finite = magnitude < 0x38800000u ? subnormal : magnitude >= 0x47800000u ? 0x7c00u : rounded;
  const uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  return static_cast<uint16_t>(sign | (magnitude > 0x7f800000u ? nan : finite));
}

/// bfloat16 (the upper half of a float32) as float32.
ONESTEP_CONVERSION float float_of_bfloat16(uint16_t upper) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(upper) << 16);
}

/// float32 rounded to bfloat16; every NaN becomes 0x7fc0.
ONESTEP_CONVERSION uint16_t bfloat16_of_float(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value), rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
}

#undef ONESTEP_CONVERSION

/// An element of a float16 tensor. It converts from and to float32, in which all arithmetic is done.
struct Half {
  Half() = default;
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  constexpr Half(T value) : bits(half_of_float(static_cast<float>(value))) {}
  constexpr operator float() const { return float_of_half(bits); }
  uint16_t bits;
};

/// An element of a bfloat16 tensor, likewise.
struct BFloat16 {
  BFloat16() = default;
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  constexpr BFloat16(T value) : bits(bfloat16_of_float(static_cast<float>(value))) {}
  constexpr operator float() const { return float_of_bfloat16(bits); }
  uint16_t bits;
};

inline std::ostream& operator<<(std::ostream& out, Half value) { return out << static_cast<float>(value); }
inline std::ostream& operator<<(std::ostream& out, BFloat16 value) { return out << static_cast<float>(value); }

}  // namespace onestep
