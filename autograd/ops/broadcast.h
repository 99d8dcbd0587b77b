#pragma once
// Operands of elementwise ops in the order of the result, block by block: where rows are short, one call of a row function for
// each would take longer than what it computes.
#include <array>
#include <cstddef>
#include <cstdint>

#include "autograd/ops/common.h"
#include "autograd/ops/strided.h"

namespace onestep::ops {

/// The elements of a tensor by their size.
template <class Byte>
struct Elements {
  Byte* first;
  int64_t size;
  Byte* operator[](int64_t i) const { return first + i * size; }
};
inline Elements<const std::byte> elements(const Tensor& x) {
  return {static_cast<const std::byte*>(x.data_ptr()), static_cast<int64_t>(size_of(x.dtype()))};
}
inline Elements<std::byte> mutable_elements(Tensor& y) {
  return {static_cast<std::byte*>(y.mutable_data_ptr()), static_cast<int64_t>(size_of(y.dtype()))};
}

/// Elements of a block: those of three operands fit in the L1 cache.
inline constexpr int64_t kBlockSize = 512;
/// Elements that copies of short rows may write beyond a block's end.
inline constexpr int64_t kBlockEnd = 16;

/// A block of numbers of any dtype.
struct alignas(64) ElementBlock {
  std::array<int64_t, kBlockSize + kBlockEnd> numbers;
};

/// The one step of x's elements when it is laid out as the result y (1), or is a single element (0), else -1.
int64_t flat_step(const Tensor& x, const Tensor& y);

/// The elements of an operand x in the order of the result y's, to whose shape it broadcasts.
class BroadcastOperand {
 public:
  BroadcastOperand(const Tensor& x, const Tensor& y);

  /// x, or a copy of it, with a dim along which its elements lie one after the other or are one.
  const Tensor& in_rows() const { return x_; }
  /// What lies between two elements of a block: 0 where x is a single one, which the block then holds alone, else 1.
  int64_t step() const { return single_ ? 0 : 1; }
  /// Elements [first, first + n), n <= kBlockSize: where they lie, or in `to`.
  const void* read(int64_t first, int64_t n, ElementBlock* to) const;
  /// The same as x's compute type.
  const void* read_wide(int64_t first, int64_t n, ElementBlock* to) const;

 private:
  BroadcastOperand(const Tensor& x, const Tensor& y, bool flat);

  Tensor x_;
  bool single_;
  MergedDims<1> dims_;
};

/// Calls f(first, n) for the blocks of `size` elements, on all threads.
template <class F>
void for_each_block(int64_t size, const F& f) {
  kernels::parallel_for((size + kBlockSize - 1) / kBlockSize, kBlockSize * kLoopCost, [&](int64_t i, int64_t end) {
    for (; i < end; ++i) f(i * kBlockSize, std::min(size - i * kBlockSize, kBlockSize));
  });
}

}  // namespace onestep::ops
