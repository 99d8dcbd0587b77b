#pragma once
// Two neighbouring tokens as the key of a hash table.
#include <cstddef>
#include <cstdint>

namespace onestep::train {

using TokenPair = uint64_t;

constexpr TokenPair token_pair(int32_t left, int32_t right) {
  return static_cast<TokenPair>(left) << 32 | static_cast<TokenPair>(right);
}

struct TokenPairHash {
  // The constant of Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4); the high bits are the good ones.
  size_t operator()(TokenPair pair) const { return (pair * 0x9e3779b97f4a7c15u) >> 20; }
};

}  // namespace onestep::train
