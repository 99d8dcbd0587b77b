#pragma once
// The order of elements as unsigned numbers, and rows of elements that know their places.
#include <algorithm>
#include <array>
#include <bit>
#include <compare>
#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

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
  Ranked(Key k, int64_t at) : order(k), where(at) {}
  Key key() const { return order; }
  int64_t place() const { return where; }
  auto operator<=>(const Ranked&) const = default;

  Key order;
  int64_t where;
};
/// Half as large, and one comparison.
template <>
struct Ranked<uint32_t> {
  Ranked(uint32_t key, int64_t at) : bits(uint64_t{key} << 32 | static_cast<uint64_t>(at)) {}
  uint32_t key() const { return static_cast<uint32_t>(bits >> 32); }
  int64_t place() const { return static_cast<int64_t>(bits & 0xffffffff); }
  auto operator<=>(const Ranked&) const = default;

  uint64_t bits;
};

/// Sorts a row whose elements are in the order of their places: by the bytes of the keys, the lowest first (radix sort), or
/// a short one by comparisons. `scratch` is room to work in.
template <class Key>
void sort_row(std::vector<Ranked<Key>>& row, std::vector<Ranked<Key>>& scratch) {
  if (row.size() < 256) return std::sort(row.begin(), row.end());
  const auto byte = [](const Ranked<Key>& r, size_t b) { return static_cast<size_t>(r.key() >> (8 * b) & 0xff); };
  std::array<std::array<size_t, 256>, sizeof(Key)> counts{};
  for (const Ranked<Key>& r : row)
    for (size_t b = 0; b < sizeof(Key); ++b) ++counts[b][byte(r, b)];
  scratch.resize(row.size(), row[0]);
  for (size_t b = 0; b < sizeof(Key); ++b) {
    if (counts[b][byte(row[0], b)] == row.size()) continue;  // all have the same
    std::array<size_t, 256> next;
    std::exclusive_scan(counts[b].begin(), counts[b].end(), next.begin(), size_t{0});
    for (const Ranked<Key>& r : row) scratch[next[byte(r, b)]++] = r;
    row.swap(scratch);
  }
}

}  // namespace onestep::ops
