#pragma once
// Hot loops on raw pointers. T is float (vectorised, the same bits for every instruction set and number of threads) or
// double (plain loops over portable formulas, which the float kernels are tested against; products as in float). Rows are
// contiguous. An output may be the same array as an input of the same shape, but may not overlap it otherwise. Nothing here
// checks or throws.

#include <cstdint>
#include <vector>

#include "autograd/kernels/isa.h"
#include "autograd/kernels/packed.h"
#include "autograd/kernels/parallel.h"
#include "autograd/kernels/span.h"
#include "autograd/kernels/table.h"

namespace onestep::kernels {

// --- parallel drivers of the serial kernels of the table in use: maps and rows are split into ranges -------------------

/// Rough nanoseconds an element takes.
inline constexpr double kCheap = 0.15, kTranscendental = 0.6;

template <class T>
void run(typename Table<T>::Map Table<T>::*kernel, double cost, const T* x, T* y, int64_t n);
template <class T>
void run(typename Table<T>::MapGrad Table<T>::*kernel, double cost, const T* x, const T* dy, T* dx, int64_t n);
template <class T>
void run(typename Table<T>::Zip Table<T>::*kernel, double cost, const T* a, int64_t a_step, const T* b, int64_t b_step, T* y,
         int64_t n);
/// Rows of y are y_cols long.
template <class T>
void run_rows(typename Table<T>::Rows Table<T>::*kernel, const T* x, T* y, int64_t y_cols, int64_t rows, int64_t cols);
template <class T>
void run_rows(typename Table<T>::RowsGrad Table<T>::*kernel, const T* y, const T* dy, T* dx, int64_t rows, int64_t cols);

// --- maps: y[i] = f(x[i]) ----------------------------------------------------------------------------------------------

template <class T>
void abs(const T* x, T* y, int64_t n) {
  run(&Table<T>::abs, kCheap, x, y, n);
}
/// max(x, 0); NaN stays.
template <class T>
void relu(const T* x, T* y, int64_t n) {
  run(&Table<T>::relu, kCheap, x, y, n);
}
template <class T>
void exp(const T* x, T* y, int64_t n) {
  run(&Table<T>::exp, kTranscendental, x, y, n);
}
template <class T>
void log(const T* x, T* y, int64_t n) {
  run(&Table<T>::log, kTranscendental, x, y, n);
}
template <class T>
void log2(const T* x, T* y, int64_t n) {
  run(&Table<T>::log2, kTranscendental, x, y, n);
}
template <class T>
void log10(const T* x, T* y, int64_t n) {
  run(&Table<T>::log10, kTranscendental, x, y, n);
}
template <class T>
void sqrt(const T* x, T* y, int64_t n) {
  run(&Table<T>::sqrt, kCheap, x, y, n);
}
/// 1 / sqrt(x), both correctly rounded.
template <class T>
void rsqrt(const T* x, T* y, int64_t n) {
  run(&Table<T>::rsqrt, kCheap, x, y, n);
}
template <class T>
void sin(const T* x, T* y, int64_t n) {
  run(&Table<T>::sin, kTranscendental, x, y, n);
}
template <class T>
void cos(const T* x, T* y, int64_t n) {
  run(&Table<T>::cos, kTranscendental, x, y, n);
}
template <class T>
void tan(const T* x, T* y, int64_t n) {
  run(&Table<T>::tan, kTranscendental, x, y, n);
}
template <class T>
void tanh(const T* x, T* y, int64_t n) {
  run(&Table<T>::tanh, kTranscendental, x, y, n);
}
template <class T>
void erf(const T* x, T* y, int64_t n) {
  run(&Table<T>::erf, kTranscendental, x, y, n);
}
template <class T>
void erfc(const T* x, T* y, int64_t n) {
  run(&Table<T>::erfc, kTranscendental, x, y, n);
}
/// 1 / (1 + exp(-x))
template <class T>
void sigmoid(const T* x, T* y, int64_t n) {
  run(&Table<T>::sigmoid, kTranscendental, x, y, n);
}
/// x sigmoid(x)
template <class T>
void silu(const T* x, T* y, int64_t n) {
  run(&Table<T>::silu, kTranscendental, x, y, n);
}
/// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
template <class T>
void gelu_tanh(const T* x, T* y, int64_t n) {
  run(&Table<T>::gelu_tanh, kTranscendental, x, y, n);
}
/// x/2 (1 + erf(x / sqrt(2)))
template <class T>
void gelu_erf(const T* x, T* y, int64_t n) {
  run(&Table<T>::gelu_erf, kTranscendental, x, y, n);
}

/// dx[i] = dy[i] f'(x[i])
template <class T>
void silu_grad(const T* x, const T* dy, T* dx, int64_t n) {
  run(&Table<T>::silu_grad, kTranscendental, x, dy, dx, n);
}
template <class T>
void gelu_tanh_grad(const T* x, const T* dy, T* dx, int64_t n) {
  run(&Table<T>::gelu_tanh_grad, kTranscendental, x, dy, dx, n);
}
template <class T>
void gelu_erf_grad(const T* x, const T* dy, T* dx, int64_t n) {
  run(&Table<T>::gelu_erf_grad, kTranscendental, x, dy, dx, n);
}

/// y[i] = a[i * a_step] op b[i * b_step]; a step is 1, or 0 for a scalar operand.
template <class T>
void add(const T* a, int64_t a_step, const T* b, int64_t b_step, T* y, int64_t n) {
  run(&Table<T>::add, kCheap, a, a_step, b, b_step, y, n);
}
template <class T>
void sub(const T* a, int64_t a_step, const T* b, int64_t b_step, T* y, int64_t n) {
  run(&Table<T>::sub, kCheap, a, a_step, b, b_step, y, n);
}
template <class T>
void mul(const T* a, int64_t a_step, const T* b, int64_t b_step, T* y, int64_t n) {
  run(&Table<T>::mul, kCheap, a, a_step, b, b_step, y, n);
}
template <class T>
void div(const T* a, int64_t a_step, const T* b, int64_t b_step, T* y, int64_t n) {
  run(&Table<T>::div, kCheap, a, a_step, b, b_step, y, n);
}
/// a^b; if all exponents are one 2, 3, -1 or -2, by multiplication and division as in torch.pow.
template <class T>
void pow(const T* a, int64_t a_step, const T* b, int64_t b_step, T* y, int64_t n) {
  run(&Table<T>::pow, 8 * kTranscendental, a, a_step, b, b_step, y, n);
}
/// NaN when either is NaN, as torch.maximum and torch.minimum.
template <class T>
void maximum(const T* a, int64_t a_step, const T* b, int64_t b_step, T* y, int64_t n) {
  run(&Table<T>::maximum, kCheap, a, a_step, b, b_step, y, n);
}
template <class T>
void minimum(const T* a, int64_t a_step, const T* b, int64_t b_step, T* y, int64_t n) {
  run(&Table<T>::minimum, kCheap, a, a_step, b, b_step, y, n);
}

// --- reductions of one row: 16 lanes and one fixed tree ----------------------------------------------------------------

/// What a kernel of rows gives for one.
template <class T>
T of_one_row(typename Table<T>::Rows Table<T>::*kernel, const T* x, int64_t n) {
  T y;
  (table<T>().*kernel)(x, &y, 1, n);
  return y;
}

/// y[r] = the sum of row r of x [rows, n], on one thread; 0 for n = 0.
template <class T>
void row_sums(const T* x, T* y, int64_t rows, int64_t n) {
  table<T>().row_sums(x, y, rows, n);
}

template <class T>
T sum(const T* x, int64_t n) {
  return of_one_row(&Table<T>::row_sums, x, n);
}
template <class T>
T sum_squares(const T* x, int64_t n) {
  return table<T>().sum_squares(x, n);
}
/// sum() of the squares, each rounded: the bits of a product and then a sum, where sum_squares fuses both.
template <class T>
T sum_rounded_squares(const T* x, int64_t n) {
  return table<T>().sum_rounded_squares(x, n);
}
template <class T>
T dot(const T* a, const T* b, int64_t n) {
  return table<T>().dot(a, b, n);
}
/// sum((a - a_center) (b - b_center))
template <class T>
T centered_dot(const T* a, T a_center, const T* b, T b_center, int64_t n) {
  return table<T>().centered_dot(a, a_center, b, b_center, n);
}
/// y[r] = the largest, or least, number of row r of x [rows, n], on one thread: NaN when any is NaN, -inf (inf) for n = 0.
template <class T>
void row_maxima(const T* x, T* y, int64_t rows, int64_t n) {
  table<T>().row_maxima(x, y, rows, n);
}
template <class T>
void row_minima(const T* x, T* y, int64_t rows, int64_t n) {
  table<T>().row_minima(x, y, rows, n);
}

template <class T>
T max(const T* x, int64_t n) {
  return of_one_row(&Table<T>::row_maxima, x, n);
}
template <class T>
T min(const T* x, int64_t n) {
  return of_one_row(&Table<T>::row_minima, x, n);
}
/// First index of the largest value; NaN counts as the largest (torch.argmax). n >= 1.
template <class T>
int64_t argmax(const T* x, int64_t n) {
  return table<T>().argmax(x, n);
}

// --- rows: x is [rows, cols] -------------------------------------------------------------------------------------------

/// y[c] = sum over r of x[r, c] (a bias gradient): [rows, cols], rows ld apart -> [cols]
template <class T>
void sum_rows(const T* x, T* y, int64_t rows, int64_t cols, int64_t ld);

/// y = exp(x - max) / sum(exp(x - max)) per row; a row of -inf gives NaN, as torch.softmax.
template <class T>
void softmax_rows(const T* x, T* y, int64_t rows, int64_t cols) {
  run_rows(&Table<T>::softmax_rows, x, y, cols, rows, cols);
}
/// dx = y (dy - sum(y dy)) per row, y the softmax.
template <class T>
void softmax_grad_rows(const T* y, const T* dy, T* dx, int64_t rows, int64_t cols) {
  run_rows(&Table<T>::softmax_grad_rows, y, dy, dx, rows, cols);
}
/// x = softmax(scale x) in place on every row's own span, and 0 in the rest of `block`: the weights of queries that
/// attend to different keys. A serial kernel: its caller has split the queries.
template <class T>
void softmax_spans(T* x, int64_t ld, const Span* spans, int64_t rows, T scale, Span block) {
  table<T>().softmax_spans(x, ld, spans, rows, scale, block);
}
/// dx = scale y (dx - sum(y dx)) in place on every row's span, and 0 in the rest of `block`.
template <class T>
void softmax_grad_spans(const T* y, T* dx, int64_t ld, const Span* spans, int64_t rows, T scale, Span block) {
  table<T>().softmax_grad_spans(y, dx, ld, spans, rows, scale, block);
}
/// y = x - logsumexp(x) per row.
template <class T>
void log_softmax_rows(const T* x, T* y, int64_t rows, int64_t cols) {
  run_rows(&Table<T>::log_softmax_rows, x, y, cols, rows, cols);
}
/// dx = dy - exp(y) sum(dy) per row, y the log-softmax.
template <class T>
void log_softmax_grad_rows(const T* y, const T* dy, T* dx, int64_t rows, int64_t cols) {
  run_rows(&Table<T>::log_softmax_grad_rows, y, dy, dx, rows, cols);
}
/// y[r] = log(sum(exp(x[r, :]))): [rows, cols] -> [rows]; a row of -inf gives -inf.
template <class T>
void logsumexp_rows(const T* x, T* y, int64_t rows, int64_t cols) {
  run_rows(&Table<T>::logsumexp_rows, x, y, 1, rows, cols);
}

/// y = (x - mean) rstd weight + bias per row, rstd = 1 / sqrt(var + eps) with the biased variance. weight [cols] and bias
/// [cols] may be null; mean [rows] and rstd [rows] are written for the backward pass. torch.nn.functional.layer_norm.
template <class T>
void layer_norm_rows(const T* x, const T* weight, const T* bias, T eps, T* y, T* mean, T* rstd, int64_t rows, int64_t cols);
/// The gradients of layer_norm_rows, of some rows by the calling thread: with g = dy weight and h = (x - mean) rstd,
/// dx = rstd (g - avg(g) - h avg(g h)), and row by row dweight[c] += dy h, dbias[c] += dy: [rows, cols] -> [cols]. Each may be
/// null.
template <class T>
void layer_norm_grad(const T* x, const T* weight, const T* mean, const T* rstd, const T* dy, T* dx, T* dweight, T* dbias,
                     int64_t rows, int64_t cols) {
  table<T>().layer_norm_grad(x, weight, mean, rstd, dy, dx, dweight, dbias, rows, cols);
}

// --- matrix products ---------------------------------------------------------------------------------------------------

/// c = op(a) op(b), or c += with `accumulate`: [m, k] x [k, n] -> [m, n], row-major with leading dimensions; op(a) is the
/// transpose of the stored [k, m] when trans_a. Every c[i, j] is summed by fma in ascending k from zero within k-blocks of
/// 256, the block sums added in order: neither threads, instruction set, nor m and n can change a bit of it. The epilogue, if
/// there is one, gets every element of c once.
template <class T>
void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, T* c,
          int64_t ldc, bool accumulate, const Epilogue& epilogue = {});

/// The same of numbers rounded to bfloat16 (ties to even), summed in float32 with the bits of AVX512-BF16's VDPBF16PS: within
/// k-blocks sum = a_even b_even + (a_odd b_odd + sum) in ascending pairs of k, each + rounded once; subnormal numbers, those
/// between included, are zeros of their sign. With bf16_in_tiles() they are the bits of AMX's TDPBF16PS: c = c + (even + odd)
/// for each group of 32 numbers along k in order, where even and odd are sums from zero by fma in ascending k.
void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, Bf16Source a, int64_t lda, Bf16Source b, int64_t ldb,
          float* c, int64_t ldc, bool accumulate, const Epilogue& epilogue = {});
/// The same rounded to c [m, n], after the epilogue, while it is in the caches.
void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, Bf16Source a, int64_t lda, Bf16Source b, int64_t ldb,
          BFloat16* c, const Epilogue& epilogue = {});

/// Elements that pack writes for op(b) [k, n]. E is float, double, or BFloat16: how numbers are multiplied (packed.h).
template <class E>
int64_t packed_size(int64_t n, int64_t k);

/// Packs op(b) for products with several a. By the calling thread alone.
template <class E>
void pack(bool trans_b, int64_t n, int64_t k, Source<E> b, int64_t ldb, Number<E>* to);

/// c = a b for the first k rows and n columns of b: [m, k] [k, n] -> [m, n]. By the calling thread alone. An odd k of BFloat16
/// meets the next row of b with zeros: it must be finite.
template <class E>
void gemm(int64_t m, int64_t n, int64_t k, Source<E> a, int64_t lda, const Packed<E>& b, Number<E>* c, int64_t ldc);

/// `batch` products at a + a_offsets[i], b + b_offsets[i], c + c_offsets[i] (in elements; inputs may repeat, outputs may
/// not overlap), each with the bits that gemm gives.
template <class T>
void gemm_batched(int64_t batch, bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda,
                  const int64_t* a_offsets, const T* b, int64_t ldb, const int64_t* b_offsets, T* c, int64_t ldc,
                  const int64_t* c_offsets, bool accumulate);
void gemm_batched(int64_t batch, bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, Bf16Source a, int64_t lda,
                  const int64_t* a_offsets, Bf16Source b, int64_t ldb, const int64_t* b_offsets, float* c, int64_t ldc,
                  const int64_t* c_offsets, bool accumulate);

/// y = op(a) x for `batch` matrices at a + a_offsets[i]: [m, k] x [k] -> [m], one after the other in y, with the bits of dot()
/// of each row of op(a), however a lies. Unlike a sum in ascending k it needs no transposed rows.
void gemv(int64_t batch, bool trans_a, int64_t m, int64_t k, const float* a, int64_t lda, const int64_t* a_offsets,
          const float* x, float* y);

/// y = x w^T for a weight in fewer bytes (weight_products.h), by all threads. Neither threads, instruction set, nor m and n can
/// change a bit of an element.
void bf16_weight_product(const WeightProduct& product);
void int8_weight_product(const WeightProduct& product);
/// x [m, k] as int8_weight_product takes it, quantized_row_bytes a row. Both are those of the instruction set in use.
void quantize_rows(const float* x, int64_t m, int64_t k, unsigned char* to);
int64_t quantized_row_bytes(int64_t k);
/// What this CPU can run of an instruction set that it has, the widest dot products of bytes first: all have the same bits.
std::vector<WeightProducts> usable_weight_products(Isa isa);

// --- optimizer steps ---------------------------------------------------------------------------------------------------

/// What one Adam or AdamW update needs beside its tensors; `step` counts from 1. Decoupled weight decay is AdamW.
struct AdamUpdate {
  double lr, beta1, beta2, eps, weight_decay;
  int64_t step;
  bool decoupled;
};

/// The numbers of an update as kernels take them.
template <class T>
AdamScalars<T> adam_scalars(const AdamUpdate& update);

/// One update of p with gradient g and moments m and v, in the operation order of torch.optim.Adam and AdamW.
template <class T>
void adam_step(T* p, const T* g, T* m, T* v, int64_t n, const AdamUpdate& update);

/// What one SGD update needs beside its tensors; `first` is the first step (the buffer becomes the gradient).
struct SgdUpdate {
  double lr, momentum, dampening, weight_decay;
  bool nesterov, first;
};

/// One update of p with gradient g and momentum buffer (may be null when momentum is 0), as torch.optim.SGD.
template <class T>
void sgd_step(T* p, const T* g, T* buffer, int64_t n, const SgdUpdate& update);

// --- random fills ------------------------------------------------------------------------------------------------------

/// Uniforms in [0, 1) to [low, high): y[i] = y[i] (high - low) + low, fused; a result equal to high becomes low.
template <class T>
void uniform(T* y, int64_t n, T low, T high);

/// Uniforms in [0, 1) to normals, in blocks of 16 (n is a multiple): for j < 8, with r = sqrt(-2 log(1 - d[j])) and
/// t = 2 pi d[j + 8], d[j] = r cos(t) std + mean and d[j + 8] = r sin(t) std + mean, fused. The bits are those of
/// torch.Tensor.normal_ on a CPU with AVX2.
template <class T>
void box_muller(T* d, int64_t n, T mean, T std);

}  // namespace onestep::kernels
