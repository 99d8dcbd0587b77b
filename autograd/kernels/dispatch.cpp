// The parallel drivers over the serial kernels of the table in use. Maps and rows are split into ranges; no output depends on
// the split.
#include <algorithm>
#include <cmath>

#include "autograd/kernels/flops.h"
#include "autograd/kernels/kernels.h"
#include "autograd/kernels/table.h"
#include "autograd/portable_math.h"

namespace onestep::kernels {

template <class T>
void run(typename Table<T>::Map Table<T>::*kernel, double cost, const T* x, T* y, int64_t n) {
  parallel_for(n, cost, [=](int64_t i, int64_t end) { (table<T>().*kernel)(x + i, y + i, end - i); });
}
template <class T>
void run(typename Table<T>::MapGrad Table<T>::*kernel, double cost, const T* x, const T* dy, T* dx, int64_t n) {
  parallel_for(n, cost, [=](int64_t i, int64_t end) { (table<T>().*kernel)(x + i, dy + i, dx + i, end - i); });
}
template <class T>
void run(typename Table<T>::Zip Table<T>::*kernel, double cost, const T* a, int64_t a_step, const T* b, int64_t b_step, T* y,
         int64_t n) {
  parallel_for(n, cost, [=](int64_t i, int64_t end) {
    (table<T>().*kernel)(a + i * a_step, a_step, b + i * b_step, b_step, y + i, end - i);
  });
}
template <class T>
void run_rows(typename Table<T>::Rows Table<T>::*kernel, const T* x, T* y, int64_t y_cols, int64_t rows, int64_t cols) {
  parallel_for(rows, 2 * kTranscendental * static_cast<double>(cols),
               [=](int64_t r, int64_t end) { (table<T>().*kernel)(x + r * cols, y + r * y_cols, end - r, cols); });
}
template <class T>
void run_rows(typename Table<T>::RowsGrad Table<T>::*kernel, const T* y, const T* dy, T* dx, int64_t rows, int64_t cols) {
  parallel_for(rows, 3 * kCheap * static_cast<double>(cols), [=](int64_t r, int64_t end) {
    (table<T>().*kernel)(y + r * cols, dy + r * cols, dx + r * cols, end - r, cols);
  });
}

/// Columns go to threads in groups of 64, four vectors of a row.
template <class F>
void parallel_columns(int64_t rows, int64_t cols, const F& f) {
  constexpr int64_t group = 64;
  parallel_for((cols + group - 1) / group, kCheap * static_cast<double>(rows * group),
               [&](int64_t begin, int64_t end) { f(begin * group, end * group < cols ? end * group : cols); });
}

template <class T>
void sum_rows(const T* x, T* y, int64_t rows, int64_t cols, int64_t ld) {
  parallel_columns(rows, cols, [=](int64_t c, int64_t end) { table<T>().sum_rows(x + c, y + c, rows, end - c, ld); });
}

template <class T>
void layer_norm_rows(const T* x, const T* weight, const T* bias, T eps, T* y, T* mean, T* rstd, int64_t rows, int64_t cols) {
  parallel_for(rows, 3 * kCheap * static_cast<double>(cols), [=](int64_t r, int64_t end) {
    table<T>().layer_norm_rows(x + r * cols, weight, bias, eps, y + r * cols, mean + r, rstd + r, end - r, cols);
  });
}

namespace {

/// `cost` of a number of the weight in the units of parallel_for.
void weight_product(void (*WeightProducts::*kernel)(const WeightProduct&, int64_t, int64_t), double cost,
                    const WeightProduct& product) {
  add_flops(2 * static_cast<double>(product.m) * static_cast<double>(product.n * product.k));
  const int64_t panels = (product.n + kPanelRows - 1) / kPanelRows;
  parallel_for((panels + kPanelStreams - 1) / kPanelStreams, static_cast<double>(kPanelStreams * kPanelRows * product.k) * cost,
               [=, &product](int64_t i, int64_t end) {
                 (weight_products().*kernel)(product, i * kPanelStreams, std::min(end * kPanelStreams, panels));
               });
}

}  // namespace

void bf16_weight_product(const WeightProduct& product) {
  weight_product(&WeightProducts::bf16, 0.05 + 0.03 * static_cast<double>(product.m), product);
}

void int8_weight_product(const WeightProduct& product) {
  weight_product(&WeightProducts::int8, 0.05 + 0.015 * static_cast<double>(product.m), product);
}

int64_t quantized_row_bytes(int64_t k) { return (k + kWeightGroup - 1) / kWeightGroup * weight_products().group_bytes; }

void quantize_rows(const float* x, int64_t m, int64_t k, unsigned char* to) {
  constexpr double kNumber = 0.8;  // ns: x comes from the caches of other cores
  parallel_for(m, kNumber * static_cast<double>(k), [=](int64_t row, int64_t end) {
    for (const int64_t bytes = quantized_row_bytes(k); row < end; ++row)
      weight_products().quantize(x + row * k, k, to + row * bytes);
  });
}

template <class T>
AdamScalars<T> adam_scalars(const AdamUpdate& o) {
  const double correction1 = 1 - portable::pown(o.beta1, o.step);
  const double correction2 = 1 - portable::pown(o.beta2, o.step);
  return {
      .shrink = static_cast<T>(1 - o.lr * o.weight_decay),
      .weight_decay = static_cast<T>(o.weight_decay),
      .one_minus_beta1 = static_cast<T>(1 - o.beta1),
      .beta2 = static_cast<T>(o.beta2),
      .one_minus_beta2 = static_cast<T>(1 - o.beta2),
      .sqrt_correction2 = static_cast<T>(std::sqrt(correction2)),
      .eps = static_cast<T>(o.eps),
      .minus_step_size = static_cast<T>(-o.lr / correction1),
      .decoupled = o.decoupled,
  };
}

template <class T>
void adam_step(T* p, const T* g, T* m, T* v, int64_t n, const AdamUpdate& update) {
  const auto s = adam_scalars<T>(update);
  parallel_for(n, 4 * kCheap, [&](int64_t i, int64_t end) { table<T>().adam_step(p + i, g + i, m + i, v + i, end - i, s); });
}

template <class T>
void sgd_step(T* p, const T* g, T* buffer, int64_t n, const SgdUpdate& update) {
  const SgdScalars<T> s = {
      .minus_lr = static_cast<T>(-update.lr),
      .momentum = static_cast<T>(update.momentum),
      .one_minus_dampening = static_cast<T>(1 - update.dampening),
      .weight_decay = static_cast<T>(update.weight_decay),
      .nesterov = update.nesterov,
      .first = update.first,
  };
  parallel_for(n, 3 * kCheap,
               [&](int64_t i, int64_t end) { table<T>().sgd_step(p + i, g + i, buffer ? buffer + i : nullptr, end - i, s); });
}

template <class T>
void uniform(T* y, int64_t n, T low, T high) {
  parallel_for(n, kCheap, [=](int64_t i, int64_t end) { table<T>().uniform(y + i, end - i, low, high); });
}

template <class T>
void box_muller(T* d, int64_t n, T mean, T std) {
  parallel_for(n / 16, 64 * kTranscendental,
               [=](int64_t i, int64_t end) { table<T>().box_muller(d + 16 * i, 16 * (end - i), mean, std); });
}

#define ONESTEP_INSTANTIATE(T)                                                                             \
  template void run(Table<T>::Map Table<T>::*, double, const T*, T*, int64_t);                             \
  template void run(Table<T>::MapGrad Table<T>::*, double, const T*, const T*, T*, int64_t);               \
  template void run(Table<T>::Zip Table<T>::*, double, const T*, int64_t, const T*, int64_t, T*, int64_t); \
  template void run_rows(Table<T>::Rows Table<T>::*, const T*, T*, int64_t, int64_t, int64_t);             \
  template void run_rows(Table<T>::RowsGrad Table<T>::*, const T*, const T*, T*, int64_t, int64_t);        \
  template void sum_rows(const T*, T*, int64_t, int64_t, int64_t);                                         \
  template void layer_norm_rows(const T*, const T*, const T*, T, T*, T*, T*, int64_t, int64_t);            \
  template void uniform(T*, int64_t, T, T);                                                                \
  template void box_muller(T*, int64_t, T, T);                                                             \
  template AdamScalars<T> adam_scalars(const AdamUpdate&);                                                 \
  template void adam_step(T*, const T*, T*, T*, int64_t, const AdamUpdate&);                               \
  template void sgd_step(T*, const T*, T*, int64_t, const SgdUpdate&);
ONESTEP_INSTANTIATE(float)
ONESTEP_INSTANTIATE(double)
#undef ONESTEP_INSTANTIATE

}  // namespace onestep::kernels
