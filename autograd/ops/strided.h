#pragma once
// Walking strided tensors: dims that are laid out as one are merged, what is left is handed on row by row.
#include <algorithm>
#include <array>
#include <cstdint>

#include "autograd/kernels/parallel.h"
#include "autograd/shape.h"

namespace onestep::ops {

/// Rough nanoseconds that one element of a plain loop takes.
inline constexpr double kLoopCost = 0.4;

/// A shape with the strides of N operands, merged as far as all of them allow. The last dim is the row.
template <size_t N>
struct MergedDims {
  MergedDims(const Shape& shape, const std::array<Shape, N>& operand_strides) {
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape[i] == 1) continue;
      const int last = sizes.rank() - 1;
      bool merges = last >= 0;
      for (size_t k = 0; merges && k < N; ++k) merges = strides[k][last] == operand_strides[k][i] * shape[i];
      if (merges) sizes[last] *= shape[i];
      if (!merges) sizes.push_back(shape[i]);
      for (size_t k = 0; k < N; ++k) {
        if (merges)
          strides[k][last] = operand_strides[k][i];
        else
          strides[k].push_back(operand_strides[k][i]);
      }
    }
    if (sizes.empty()) {
      sizes.push_back(1);
      for (Shape& s : strides) s.push_back(1);
    }
  }

  /// Where row `row` starts in each operand, in elements.
  std::array<int64_t, N> row_offsets(int64_t row) const {
    std::array<int64_t, N> offsets{};
    for (int i = sizes.rank() - 2; i > 0; --i) {
      for (size_t k = 0; k < N; ++k) offsets[k] += row % sizes[i] * strides[k][i];
      row /= sizes[i];
    }
    if (sizes.rank() > 1)  // no division
      for (size_t k = 0; k < N; ++k) offsets[k] += row * strides[k][0];
    return offsets;
  }

  Shape sizes;
  std::array<Shape, N> strides;
};

/// Calls `f(offsets, length, steps)` for every row: element j of operand k is at offsets[k] + j * steps[k]. Rows are
/// dealt over threads, so `f` may write only its own row.
template <size_t N, class F>
void for_each_row(const MergedDims<N>& merged, F f) {
  if (merged.sizes.numel() == 0) return;
  const int64_t length = merged.sizes.back(), rows = merged.sizes.numel() / length;
  std::array<int64_t, N> steps;
  for (size_t k = 0; k < N; ++k) steps[k] = merged.strides[k].back();
  const int around = merged.sizes.rank() - 2;  // the dim that counts neighbouring rows
  const int64_t neighbours = around < 0 ? 1 : merged.sizes[around];
  kernels::parallel_for(rows, kLoopCost * static_cast<double>(length), [&](int64_t row, int64_t end) {
    while (row < end) {
      std::array<int64_t, N> offsets = merged.row_offsets(row);
      for (const int64_t stop = std::min(end, row - row % neighbours + neighbours); row < stop; ++row) {
        f(offsets, length, steps);
        for (size_t k = 0; around >= 0 && k < N; ++k) offsets[k] += merged.strides[k][around];
      }
    }
  });
}

template <size_t N, class F>
void for_each_row(const Shape& shape, const std::array<Shape, N>& strides, F f) {
  for_each_row(MergedDims<N>(shape, strides), f);
}

/// Calls f(row, begin, end) for ranges of columns of every row, each column once; `cost` is that of one column. A range is as
/// wide as a thread's share, in whole cache lines: what f does down the columns reads long pieces of memory.
template <class F>
void for_each_column_range(int64_t rows, int64_t columns, double cost, const F& f) {
  constexpr int64_t block = 64;
  const int64_t blocks = (columns + block - 1) / block;
  kernels::parallel_for(rows * blocks, cost * static_cast<double>(std::min(columns, block)), [&](int64_t i, int64_t end) {
    while (i < end) {
      const int64_t row = i / blocks, first = i % blocks, last = std::min(blocks, first + end - i);
      f(row, first * block, std::min(last * block, columns));
      i += last - first;
    }
  });
}

}  // namespace onestep::ops
