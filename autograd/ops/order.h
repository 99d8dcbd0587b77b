#pragma once
// The order of elements as unsigned numbers, and rows of elements that know their places.
#include <bit>
#include <compare>
#include <limits>
#include <type_traits>

#include "autograd/ops/common.h"

namespace onestep::ops {

template <class T>
using OrderKey = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

/// A number with the order of v among its type: -0 is 0, and NaN above all.
template <class T>
OrderKey<T> order_key(T v) {
  using Key = OrderKey<T>;
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
  if constexpr (is_floating(dtype_of<T>())) {
    constexpr Bits sign = static_cast<Bits>(Bits(1) << (8 * sizeof(Bits) - 1));
    if (v != v) return std::numeric_limits<Key>::max();
    const Bits bits = v == T(0) ? Bits(0) : std::bit_cast<Bits>(v);
    return static_cast<Bits>((bits & sign) != 0 ? ~bits : bits | sign);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<Key>(v) ^ Key(1) << (8 * sizeof(Key) - 1);
  } else {
    return static_cast<Key>(v);
  }
}

/// An element and its place in its row, ordered by key and then by place.
template <class Key>
struct Ranked {
  Ranked(Key k, int64_t at) : key(k), where(at) {}
  int64_t place() const { return where; }
  auto operator<=>(const Ranked&) const = default;

  Key key;
  int64_t where;
};
/// Half as large, and one comparison.
template <>
struct Ranked<uint32_t> {
  Ranked(uint32_t key, int64_t at) : bits(uint64_t{key} << 32 | static_cast<uint64_t>(at)) {}
  int64_t place() const { return static_cast<int64_t>(bits & 0xffffffff); }
  auto operator<=>(const Ranked&) const = default;

  uint64_t bits;
};

}  // namespace onestep::ops
