// Products with weights in fewer bytes: every number is widened to float32 as it is read.
#include "autograd/kernels/weight_products.h"

#include "autograd/kernels/simd.h"
#include "autograd/kernels/table.h"

namespace onestep::kernels {
namespace {

constexpr int64_t kFloatLanes = kRegLanes<float>;
constexpr int kRegs = static_cast<int>(kPanelRows / kFloatLanes);  // of a step

/// A block is what is summed before it is added to y: see WeightProducts.
struct Bf16Weight {
  static constexpr int64_t kBlock = kBlockK, kStepBytes = 2 * kPanelRows, kBlockBytes = 0;
  ONESTEP_INLINE static FloatReg load(const unsigned char* step, int i) { return load_bf16_reg(step + 2 * kFloatLanes * i); }
  ONESTEP_INLINE static FloatReg add(FloatReg total, FloatReg sum, bool first, const unsigned char*, int) {
    return first ? sum : total + sum;
  }
};
struct Int8Weight {
  static constexpr int64_t kBlock = kWeightGroup, kStepBytes = kPanelRows, kBlockBytes = 4 * kPanelRows;
  ONESTEP_INLINE static FloatReg load(const unsigned char* step, int i) { return load_int8_reg(step + i * kFloatLanes); }
  ONESTEP_INLINE static FloatReg add(FloatReg total, FloatReg sum, bool, const unsigned char* block, int i) {
    return fma(load_reg(reinterpret_cast<const float*>(block) + i * kFloatLanes), sum, total);
  }
};

template <class W>
ONESTEP_INLINE int64_t panel_bytes(int64_t k) {
  return k * W::kStepBytes + (k + W::kBlock - 1) / W::kBlock * W::kBlockBytes;
}

template <int ROWS, int PANELS>
ONESTEP_INLINE void set_zero(FloatReg (&sums)[ROWS][PANELS][kRegs]) {
  for (auto& panels : sums)
    for (auto& regs : panels)
      for (FloatReg& sum : regs) sum = splat_reg(0.0f);
}

/// Lane i of a register is column `column` + i of y, where there is one.
ONESTEP_INLINE void store_columns(const WeightProduct& w, int64_t row, int64_t column, FloatReg x) {
  float* const to = w.y + row * w.n + column;
  const int64_t left = w.n - column;
  if (left >= kFloatLanes)
    store_reg(to, x);
  else if (left > 0)
    store_reg_first(to, x, left);
}

/// The microkernel: rows [row, row + ROWS) of y in PANELS panels, `apart` panels from one another. Several panels give more
/// independent accumulators, and several streams get more of the memory's bandwidth than one. It prefetches `ahead` bytes. Not
/// inline: see gemm_few_rows.h.
template <class W, int ROWS, int PANELS>
[[gnu::noinline]] void microkernel(const WeightProduct& w, int64_t row, int64_t panel, int64_t apart, int64_t ahead) {
  constexpr int64_t kLine = 64, kLineSteps = kLine / W::kStepBytes;
  const int64_t k = w.k, stride = apart * panel_bytes<W>(k);
  const float* const x = w.x + row * k;
  const unsigned char* from = w.panels + panel * panel_bytes<W>(k);
  FloatReg total[ROWS][PANELS][kRegs], sum[ROWS][PANELS][kRegs];
  set_zero(total);
  const auto step = [&](int64_t p) {
#pragma GCC unroll 8
    for (int j = 0; j < PANELS; ++j) {
#pragma GCC unroll 2
      for (int i = 0; i < kRegs; ++i) {
        const FloatReg column = W::load(from + j * stride, i);
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; ++r) sum[r][j][i] = fma(splat_reg(x[r * k + p]), column, sum[r][j][i]);
      }
    }
    from += W::kStepBytes;
  };
  for (int64_t p0 = 0; p0 < k; p0 += W::kBlock) {
    const int64_t end = k - p0 < W::kBlock ? k : p0 + W::kBlock;
    const unsigned char* const block = from;
    from += W::kBlockBytes;
    set_zero(sum);
    int64_t p = p0;
    for (; p + kLineSteps <= end; p += kLineSteps) {
      for (int j = 0; j < PANELS; ++j) __builtin_prefetch(from + j * stride + ahead);
#pragma GCC unroll 4
      for (int64_t s = 0; s < kLineSteps; ++s) step(p + s);
    }
    for (; p < end; ++p) step(p);
    for (int r = 0; r < ROWS; ++r)
      for (int j = 0; j < PANELS; ++j)
        for (int i = 0; i < kRegs; ++i) total[r][j][i] = W::add(total[r][j][i], sum[r][j][i], p0 == 0, block + j * stride, i);
  }
  for (int r = 0; r < ROWS; ++r)
    for (int j = 0; j < PANELS; ++j)
      for (int i = 0; i < kRegs; ++i)
        store_columns(w, row + r, (panel + j * apart) * kPanelRows + i * kFloatLanes, total[r][j][i]);
}

/// microkernel of all rows from `row` on, ROWS at a time. Where there are several, the first reads the panels from memory, and
/// the last one prefetches the next panels.
template <class W, int ROWS, int PANELS>
void all_rows(const WeightProduct& w, int64_t row, int64_t panel, int64_t apart) {
  constexpr int64_t kAhead = 1024;
  for (; row + ROWS <= w.m; row += ROWS)
    microkernel<W, ROWS, PANELS>(w, row, panel, apart, row > 0 && row + ROWS == w.m ? panel_bytes<W>(w.k) : kAhead);
  if constexpr (ROWS > 1) {
    if (row < w.m) all_rows<W, ROWS - 1, PANELS>(w, row, panel, apart);
  }
}

/// Rows that share what is read of a weight; and the panels that are read at once, as many as there are accumulators for.
#ifdef ONESTEP_WASM  // a page downloads the code, and reads models of float32
constexpr int kMostRows = 1, kAccumulators = 1;
#else
constexpr int kMostRows = 4, kAccumulators = 8;
#endif
constexpr int panels_for(int rows) { return rows * kRegs >= kAccumulators ? 1 : kAccumulators / (rows * kRegs); }

template <class W, int ROWS = kMostRows>
void product(const WeightProduct& w, int64_t panel, int64_t end) {
  if constexpr (ROWS > 1) {
    if (w.m < ROWS) return product<W, ROWS - 1>(w, panel, end);
  }
  constexpr int kPanels = panels_for(ROWS);
  const int64_t apart = (end - panel) / kPanels;
  for (int64_t i = 0; i < apart; ++i) all_rows<W, ROWS, kPanels>(w, 0, panel + i, apart);
  for (int64_t i = panel + kPanels * apart; i < end; ++i) all_rows<W, ROWS, 1>(w, 0, i, 1);
}

}  // namespace

namespace ONESTEP_ISA_NAME {

WeightProducts weight_products() { return {.bf16 = product<Bf16Weight>, .int8 = product<Int8Weight>}; }

}  // namespace ONESTEP_ISA_NAME
}  // namespace onestep::kernels
