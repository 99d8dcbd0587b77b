#pragma once
#include <cstdint>

namespace onestep {
struct BFloat16;
}

namespace onestep::kernels {

/// The side of a product whose numbers are multiplied as bfloat16: stored so, or float32 that packing rounds.
struct Bf16Source {
  const void* data;
  bool stored;  ///< As bfloat16.

  /// From element n on. Always inline, as all functions here, because the linker merges others of files for different
  /// instruction sets.
  [[gnu::always_inline]] constexpr Bf16Source operator+(int64_t n) const {
    return {stored ? static_cast<const void*>(static_cast<const uint16_t*>(data) + n)
                   : static_cast<const void*>(static_cast<const float*>(data) + n),
            stored};
  }
};

/// How the numbers of a product are multiplied, and in what they are summed: E is float, double, or BFloat16 with sums in
/// float.
template <class E>
struct ProductTypes {
  using Number = E;
  using Source = const E*;
};
template <>
struct ProductTypes<BFloat16> {
  using Number = float;
  using Source = Bf16Source;
};
template <class E>
using Number = typename ProductTypes<E>::Number;
template <class E>
using Source = typename ProductTypes<E>::Source;

/// The right side of a product, op(b) [k, n], in the order in which gemm reads it (pack in kernels.h).
template <class E>
struct Packed {
  const Number<E>* data;
  int64_t n, k;
};

/// What is done with the elements of a product: called, by any thread, for disjoint rectangles that cover it, as soon as they
/// are complete and while they are in the caches.
struct Epilogue {
  const void* context = nullptr;
  /// For `c`, whose rows are `ldc` apart: the rows [row, row + rows) and columns [col, col + cols) of the product.
  void (*call)(const void* context, void* c, int64_t ldc, int64_t row, int64_t rows, int64_t col, int64_t cols) = nullptr;
  int64_t first_row = 0, first_col = 0;  ///< Added to `row` and `col`, where a part of the product is computed as one.

  [[gnu::always_inline]] explicit operator bool() const { return call != nullptr; }
  [[gnu::always_inline]] void operator()(void* c, int64_t ldc, int64_t row, int64_t rows, int64_t col, int64_t cols) const {
    if (call) call(context, c, ldc, first_row + row, rows, first_col + col, cols);
  }
  [[gnu::always_inline]] Epilogue of_part(int64_t row, int64_t col) const {
    return {context, call, first_row + row, first_col + col};
  }
};

}  // namespace onestep::kernels
