#pragma once
// What one instruction set provides: serial kernels on raw pointers. dispatch.cpp adds the threads. Included by the files
// compiled per instruction set, so nothing here may be an inline function: the linker could keep the AVX-512 copy.
#include <cstdint>

#include "autograd/kernels/packed.h"
#include "autograd/kernels/span.h"
#include "autograd/kernels/weight_products.h"

namespace onestep::kernels {

/// Products are summed in k-blocks of this size on every instruction set: it is part of the result's bits.
inline constexpr int64_t kBlockK = 256;

/// AdamUpdate as the numbers that enter the update, each rounded once to T.
template <class T>
struct AdamScalars {
  T shrink, weight_decay, one_minus_beta1, beta2, one_minus_beta2, sqrt_correction2, eps, minus_step_size;
  bool decoupled;
};

/// SgdUpdate as the numbers that enter the update, each rounded once to T.
template <class T>
struct SgdScalars {
  T minus_lr, momentum, one_minus_dampening, weight_decay;
  bool nesterov, first;
};

/// Rows of a chunk of a sum over rows: chunks are added up from zero, so that rounding errors grow slower.
inline constexpr int64_t kSumRows = 64;

/// Gradients of outputs and padded inputs of some images, as conv_dots reads them: rows of n (a multiple of 16) outputs.
template <class T>
struct ConvDots {
  int64_t images, n;
  const T* dy;  // [images, rows, n], images dy_image apart
  int64_t dy_image;
  const T* source;  // images source_image apart
  int64_t source_image;
  T* to;  // [rows, cols], rows ld apart
  int64_t ld;
  bool add;
};

/// Matrix products of numbers that are multiplied as E (packed.h).
template <class E>
struct Products {
  /// Elements of scratch memory (64-byte aligned) that gemm needs for k and up to m and n, with own_c where its c may be null,
  /// and that op(b) takes when packed.
  int64_t (*workspace)(int64_t m, int64_t n, int64_t k, bool own_c);
  int64_t (*packed_size)(int64_t n, int64_t k);
  /// Packs op(b) [k, n] for gemm: piece i of pack_pieces(n, k).
  int64_t (*pack_pieces)(int64_t n, int64_t k);
  void (*pack)(bool trans_b, int64_t n, int64_t k, Source<E> b, int64_t ldb, Number<E>* to, int64_t piece);
  /// With `packed`, op(b) is its first k rows and n columns, and b is not read. The epilogue may be none. Of
  /// bfloat16, c may be null: then only the epilogue gets to see the sums.
  void (*gemm)(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, Source<E> a, int64_t lda, Source<E> b, int64_t ldb,
               const Packed<E>* packed, Number<E>* c, int64_t ldc, bool accumulate, const Epilogue& epilogue,
               Number<E>* workspace);
};

/// Meanings are those of the functions of the same name in kernels.h; `ld` is the distance between rows.
template <class T>
struct Table {
  using Map = void (*)(const T* x, T* y, int64_t n);
  using MapGrad = void (*)(const T* x, const T* dy, T* dx, int64_t n);
  using Zip = void (*)(const T* a, int64_t a_step, const T* b, int64_t b_step, T* y, int64_t n);
  using Rows = void (*)(const T* x, T* y, int64_t rows, int64_t cols);
  using RowsGrad = void (*)(const T* y, const T* dy, T* dx, int64_t rows, int64_t cols);

  Map abs, relu, exp, log, log2, log10, sqrt, rsqrt, sin, cos, tan, tanh, erf, erfc, sigmoid, silu, gelu_tanh, gelu_erf;
  MapGrad silu_grad, gelu_tanh_grad, gelu_erf_grad;
  Zip add, sub, mul, div, maximum, minimum, pow;

  Rows row_sums;
  T (*sum_squares)(const T* x, int64_t n);
  T (*sum_rounded_squares)(const T* x, int64_t n);
  T (*dot)(const T* a, const T* b, int64_t n);
  T (*centered_dot)(const T* a, T a_center, const T* b, T b_center, int64_t n);
  Rows row_maxima, row_minima;
  int64_t (*argmax)(const T* x, int64_t n);

  void (*sum_rows)(const T* x, T* y, int64_t rows, int64_t cols, int64_t ld);
  Rows softmax_rows, log_softmax_rows, logsumexp_rows;
  RowsGrad softmax_grad_rows, log_softmax_grad_rows;
  void (*softmax_spans)(T* x, int64_t ld, const Span* spans, int64_t rows, T scale, Span block);
  void (*softmax_grad_spans)(const T* y, T* dx, int64_t ld, const Span* spans, int64_t rows, T scale, Span block);
  void (*layer_norm_rows)(const T* x, const T* weight, const T* bias, T eps, T* y, T* mean, T* rstd, int64_t rows,
                          int64_t cols);
  /// Adds to dweight and dbias, which may be null as dx may.
  void (*layer_norm_grad)(const T* x, const T* weight, const T* mean, const T* rstd, const T* dy, T* dx, T* dweight, T* dbias,
                          int64_t rows, int64_t cols);

  Products<T> products = {};  ///< None in the reference, which takes those of an instruction set.

  /// For `rows` rows of `width` in `to`: n elements from `from`, step apart, at place `begin`, and zeros around them. Rows of
  /// `from` are ld apart. May write up to 31 elements past the last row.
  void (*conv_take)(const T* from, int64_t ld, int64_t step, int64_t n, int64_t rows, int64_t begin, T* to, int64_t width);
  /// n elements of each row of `from`, width apart, plus `shift`, to rows of `to`, ld apart, step between elements.
  void (*conv_put)(const T* from, int64_t width, T shift, int64_t n, int64_t rows, T* to, int64_t ld, int64_t step);
  /// Rows that conv_tiles takes at most.
  int64_t conv_rows;
  /// to[r, q] = sum over k < depth of weights[k, r] source[offsets[k] + q] for r < rows and q < n, a multiple of 16, in the
  /// order of gemm's sums.
  void (*conv_tiles)(int64_t rows, int64_t depth, const int64_t* offsets, const T* weights, const T* source, int64_t n, T* to,
                     int64_t ld);
  /// to[r, c] = or += sum over images and q of dy[r, q] source[offsets[c] + q] in 16 lanes and one fixed tree.
  void (*conv_dots)(int64_t rows, int64_t cols, const int64_t* offsets, const ConvDots<T>& x);

  /// y[i] = dot(x, row i of a), or column i. In float alone, as the conversions that follow.
  void (*dot_rows)(const T* a, int64_t ld, const T* x, T* y, int64_t rows, int64_t n) = nullptr;
  void (*dot_columns)(const T* a, int64_t ld, const T* x, T* y, int64_t cols, int64_t n) = nullptr;

  /// bfloat16 and float16 as T, and T rounded to them.
  void (*from_bf16)(const uint16_t* x, T* y, int64_t n) = nullptr;
  void (*to_bf16)(const T* x, uint16_t* y, int64_t n) = nullptr;
  void (*from_half)(const uint16_t* x, T* y, int64_t n) = nullptr;
  void (*to_half)(const T* x, uint16_t* y, int64_t n) = nullptr;
  /// The sum of numbers that `widen` makes of n, with the bits of row_sums.
  T (*sum_widened)(void (*widen)(const uint16_t* x, T* y, int64_t n), const uint16_t* x, int64_t n) = nullptr;

  void (*uniform)(T* y, int64_t n, T low, T high);
  void (*box_muller)(T* d, int64_t n, T mean, T std);

  void (*adam_step)(T* p, const T* g, T* m, T* v, int64_t n, const AdamScalars<T>& s);
  void (*sgd_step)(T* p, const T* g, T* buffer, int64_t n, const SgdScalars<T>& s);
};

/// The kernels in double (reference.cpp), without products.
const Table<double>& reference_table();

/// The table in use: that of active_isa(), which for double differs in its products alone.
template <class T>
const Table<T>& table();
template <>
const Table<float>& table();
template <>
const Table<double>& table();

/// The products in use: those of table<E>(), or for BFloat16 those of active_isa() in the order of bf16_in_tiles(), made of dot
/// products where bf16_dot_in_use(), or of tiles where amx_bf16_in_use().
template <class E>
const Products<E>& products();
template <>
const Products<float>& products();
template <>
const Products<double>& products();
template <>
const Products<BFloat16>& products();

/// Whether the CPU and the system let this process multiply tiles of bfloat16.
bool may_multiply_bf16_tiles();

/// Those of active_isa(), with the widest dot products of bytes that this CPU has.
const WeightProducts& weight_products();

// WebAssembly refuses a module with any instruction that it does not know, so modules are linked with the instruction sets
// that they are for: those of the others are null.
#ifdef ONESTEP_WASM
#define ONESTEP_IF_LINKED __attribute__((weak))
#else
#define ONESTEP_IF_LINKED
#endif

// Each *.isa.cpp fills its part of a table, once per instruction set.
#define ONESTEP_DECLARE_FILLS(ISA)                              \
  namespace ISA {                                               \
  ONESTEP_IF_LINKED void fill_maps(Table<float>& table);        \
  ONESTEP_IF_LINKED void fill_rows(Table<float>& table);        \
  template <class T>                                            \
  ONESTEP_IF_LINKED void fill_gemm(Table<T>& table);            \
  ONESTEP_IF_LINKED void fill_random(Table<float>& table);      \
  ONESTEP_IF_LINKED void fill_convolution(Table<float>& table); \
  Products<BFloat16> bf16_products();                           \
  Products<BFloat16> tiled_bf16_products();                     \
  WeightProducts weight_products();                             \
  }
ONESTEP_DECLARE_FILLS(generic)
ONESTEP_DECLARE_FILLS(avx2)
ONESTEP_DECLARE_FILLS(avx512)
ONESTEP_DECLARE_FILLS(wasm)
ONESTEP_DECLARE_FILLS(wasm_relaxed)
#undef ONESTEP_DECLARE_FILLS
namespace avx512bf16 {
Products<BFloat16> bf16_products();
}
namespace avx512vnni {
WeightProducts weight_products();
}
namespace avx512amx {
Products<BFloat16> tiled_bf16_products();
WeightProducts weight_products();
}  // namespace avx512amx
namespace avxvnni {
WeightProducts weight_products();
}
namespace wasm_relaxed {
/// Whether relaxed_madd rounds once on this machine, in float and in double: it may round twice.
ONESTEP_IF_LINKED bool madd_is_fused();
}  // namespace wasm_relaxed

}  // namespace onestep::kernels
