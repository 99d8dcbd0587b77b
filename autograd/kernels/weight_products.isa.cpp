// Products with weights in fewer bytes: bfloat16 is widened to float32 as it is read, int8 multiplied by integers.
#include "autograd/kernels/weight_products.h"

#include "autograd/kernels/simd.h"
#include "autograd/kernels/table.h"

namespace onestep::kernels {
namespace {

/// Bytes of a panel after what is multiplied that are prefetched to the L2 cache; up to kNear to the L1 cache.
constexpr int64_t kFarAhead = 8192, kNear = 512;
#if defined(ONESTEP_ISA_avx2)
constexpr int64_t kAheadOfHalves = 384, kAheadOfBytes = 256;
#else
constexpr int64_t kAheadOfHalves = kFarAhead, kAheadOfBytes = 1024;
#endif

/// Not one function for both: where it goes is part of the instruction.
ONESTEP_INLINE void prefetch(const unsigned char* now, int64_t ahead) {
  if (ahead <= kNear)
    __builtin_prefetch(now + ahead, 0, 3);
  else
    __builtin_prefetch(now + ahead, 0, 2);
}

/// A block is what is summed before it is added to y. x has kHeaderBytes before each block, and kXBytes a step.
struct Bf16Weight {
  using Columns = Vec;
  using Sum = Vec;
  static constexpr int64_t kStep = 1, kBlock = kBlockK, kStepBytes = 2 * kPanelRows, kBlockBytes = 0;
  static constexpr int64_t kHeaderBytes = 0, kXBytes = sizeof(float);
  static constexpr int kMostRows = 8;
  static constexpr int64_t kAhead = kAheadOfHalves;

  ONESTEP_INLINE static Columns load(const unsigned char* step) { return load_bf16(step); }
  ONESTEP_INLINE static Sum start(const unsigned char*) { return splat(0.0f); }
  ONESTEP_INLINE static Sum add(Sum sum, Columns columns, const unsigned char* x) {
    return fma(splat(*reinterpret_cast<const float*>(x)), columns, sum);
  }
  ONESTEP_INLINE static Vec add(Vec total, Sum sum, bool first, const unsigned char*, const unsigned char*) {
    return first ? sum : total + sum;
  }
};

struct Int8Weight {
  using Columns = Bytes;
  using Sum = IVec;
  struct Header {  // of a group of x
    float scale;
    int32_t start;  // bytes are larger by 128 than what they stand for
  };
  static constexpr int64_t kStep = 4, kBlock = kWeightGroup, kStepBytes = kStep * kPanelRows;
  static constexpr int64_t kBlockBytes = sizeof(float) * kPanelRows;
  static constexpr int64_t kHeaderBytes = sizeof(Header), kXBytes = sizeof(Quantized) * kStep;
  static constexpr int kMostRows = 4;
  static constexpr int64_t kAhead = kAheadOfBytes;
  static constexpr int64_t kGroupBytes = kHeaderBytes + kWeightGroup / kStep * kXBytes;

  ONESTEP_INLINE static Columns load(const unsigned char* step) { return load_bytes(step); }
  ONESTEP_INLINE static Sum start(const unsigned char* header) { return splat(reinterpret_cast<const Header*>(header)->start); }
  ONESTEP_INLINE static Sum add(Sum sum, Columns columns, const unsigned char* x) {
    return add_dots(sum, columns, reinterpret_cast<const Quantized*>(x));
  }
  ONESTEP_INLINE static Vec add(Vec total, Sum sum, bool, const unsigned char* header, const unsigned char* scales) {
    const Vec products = splat(reinterpret_cast<const Header*>(header)->scale) * to_float(sum);
    return fma(kernels::load(reinterpret_cast<const float*>(scales)), products, total);
  }
};

/// One group of n numbers.
ONESTEP_INLINE void quantize_group(const float* x, int64_t n, unsigned char* to) {
  Vec numbers[kWeightGroup / kLanes], largest = splat(0.0f), sum_of_rounded = splat(0.0f);
  bool finite = true;
  for (int i = 0; i < kWeightGroup / kLanes; ++i) {
    const int64_t left = n - i * kLanes;
    numbers[i] = left > 0 ? load_upto(x + i * kLanes, left) : splat(0.0f);
    const Vec magnitude = abs(numbers[i]);
    finite = finite && all(magnitude < splat(kInf));
    largest = max(magnitude, largest);
  }
  const float scale = finite ? max(largest) / 127 : __builtin_nanf("");
  const float divisor = scale > 0 ? scale : 1;  // all are rounded to 0 then
  auto* const quantized = reinterpret_cast<Quantized*>(to + Int8Weight::kHeaderBytes);
  for (int i = 0; i < kWeightGroup / kLanes; ++i) {
    const Vec quotient = finite ? clamp(numbers[i] / splat(divisor), -127, 127) : splat(0.0f);  // a subnormal scale is coarse
    const Rounded rounded = round_nearest(quotient);
    store_quantized(quantized + i * kLanes, rounded.integer);
    sum_of_rounded = sum_of_rounded + rounded.value;
  }
  *reinterpret_cast<Int8Weight::Header*>(to) = {scale, -128 * static_cast<int32_t>(sum(sum_of_rounded))};
}

void quantize(const float* x, int64_t k, unsigned char* to) {
  for (int64_t p = 0; p < k; p += kWeightGroup, to += Int8Weight::kGroupBytes) quantize_group(x + p, k - p, to);
}

constexpr int64_t pieces(int64_t n, int64_t size) { return (n + size - 1) / size; }
template <class W>
ONESTEP_INLINE int64_t panel_bytes(int64_t k) {
  return pieces(k, W::kStep) * W::kStepBytes + pieces(k, W::kBlock) * W::kBlockBytes;
}
template <class W>
ONESTEP_INLINE int64_t row_bytes(int64_t k) {  // of x
  return W::kHeaderBytes == 0 ? k * W::kXBytes : pieces(k, W::kBlock) * (W::kHeaderBytes + W::kBlock / W::kStep * W::kXBytes);
}

/// Lane i is column `column` + i of y, where there is one.
ONESTEP_INLINE void store_columns(const WeightProduct& w, int64_t row, int64_t column, Vec x) {
  store_upto(w.y + row * w.n + column, x, w.n - column);
}

/// The microkernel: rows [row, row + ROWS) of y in PANELS panels, `apart` panels from one another. Several panels give more
/// independent accumulators, and several streams get more of the memory's bandwidth than one. It prefetches `ahead` bytes. Not
/// inline: see gemm_few_rows.h.
template <class W, int ROWS, int PANELS>
[[gnu::noinline]] void microkernel(const WeightProduct& w, int64_t row, int64_t panel, int64_t apart, int64_t ahead) {
  constexpr int64_t kUnrolled = 4;
  const int64_t steps = pieces(w.k, W::kStep), stride = apart * panel_bytes<W>(w.k), x_stride = row_bytes<W>(w.k);
  const unsigned char* x = static_cast<const unsigned char*>(w.x) + row * x_stride;
  const unsigned char* from = w.panels + panel * panel_bytes<W>(w.k);
  Vec total[ROWS][PANELS];
  typename W::Sum sum[ROWS][PANELS];
#pragma GCC unroll 8
  for (int r = 0; r < ROWS; ++r)
#pragma GCC unroll 8
    for (int j = 0; j < PANELS; ++j) total[r][j] = splat(0.0f);
  const auto step = [&] {
#pragma GCC unroll 8
    for (int j = 0; j < PANELS; ++j) {
      const typename W::Columns columns = W::load(from + j * stride);
#pragma GCC unroll 8
      for (int r = 0; r < ROWS; ++r) sum[r][j] = W::add(sum[r][j], columns, x + r * x_stride);
    }
    from += W::kStepBytes;
    x += W::kXBytes;
  };
  constexpr int64_t kBlockSteps = W::kBlock / W::kStep;
  for (int64_t s0 = 0; s0 < steps; s0 += kBlockSteps) {
    const unsigned char *const block = from, *const header = x;
    from += W::kBlockBytes;
    x += W::kHeaderBytes;
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; ++r)
#pragma GCC unroll 8
      for (int j = 0; j < PANELS; ++j) sum[r][j] = W::start(header + r * x_stride);
    int64_t left = steps - s0 < kBlockSteps ? steps - s0 : kBlockSteps;
    for (; left >= kUnrolled; left -= kUnrolled) {
      for (int j = 0; j < PANELS; ++j)
        for (int64_t line = 0; line < kUnrolled * W::kStepBytes; line += 64) prefetch(from + j * stride + line, ahead);
#pragma GCC unroll 4
      for (int64_t s = 0; s < kUnrolled; ++s) step();
    }
    for (; left > 0; --left) step();
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; ++r)
#pragma GCC unroll 8
      for (int j = 0; j < PANELS; ++j)
        total[r][j] = W::add(total[r][j], sum[r][j], s0 == 0, header + r * x_stride, block + j * stride);
  }
#pragma GCC unroll 8
  for (int r = 0; r < ROWS; ++r)
#pragma GCC unroll 8
    for (int j = 0; j < PANELS; ++j) store_columns(w, row + r, (panel + j * apart) * kPanelRows, total[r][j]);
}

/// microkernel of all rows from `row` on, ROWS at a time. Where there are several, the first reads the panels from memory, and
/// the last one prefetches the next panels.
template <class W, int ROWS, int PANELS>
void all_rows(const WeightProduct& w, int64_t row, int64_t panel, int64_t apart) {
  for (; row + ROWS <= w.m; row += ROWS) {
    const int64_t first = w.m > ROWS ? kFarAhead : W::kAhead;
    microkernel<W, ROWS, PANELS>(w, row, panel, apart, row > 0 && row + ROWS == w.m ? panel_bytes<W>(w.k) : first);
  }
  if constexpr (ROWS > 1) {
    if (row < w.m) all_rows<W, ROWS - 1, PANELS>(w, row, panel, apart);
  }
}

#if defined(ONESTEP_WASM)  // a page downloads the code, and reads models of float32
constexpr int kAccumulators = 1;
#elif defined(ONESTEP_ISA_avx512)
constexpr int kAccumulators = 8;
#else
constexpr int kAccumulators = 4;
#endif

template <class W>
inline constexpr int kRowsAtOnce = kAccumulators < W::kMostRows ? kAccumulators : W::kMostRows;

/// ROWS rows share what is read of a weight; as many panels are read at once as there are accumulators for.
template <class W, int ROWS = kRowsAtOnce<W>>
void product(const WeightProduct& w, int64_t panel, int64_t end) {
  if constexpr (ROWS > 1) {
    if (w.m < ROWS) return product<W, ROWS - 1>(w, panel, end);
  }
  constexpr int kPanels = kAccumulators / ROWS;
  const int64_t apart = (end - panel) / kPanels;
  for (int64_t i = 0; i < apart; ++i) all_rows<W, ROWS, kPanels>(w, 0, panel + i, apart);
  for (int64_t i = panel + kPanels * apart; i < end; ++i) all_rows<W, ROWS, 1>(w, 0, i, 1);
}

}  // namespace

#if defined(__AVX512VNNI__)
#define ONESTEP_WEIGHTS_NAMESPACE avx512vnni
#elif defined(__AVXVNNI__)
#define ONESTEP_WEIGHTS_NAMESPACE avxvnni
#else
#define ONESTEP_WEIGHTS_NAMESPACE ONESTEP_ISA_NAME
#endif

namespace ONESTEP_WEIGHTS_NAMESPACE {

WeightProducts weight_products() {
  return {
      .bf16 = product<Bf16Weight>, .int8 = product<Int8Weight>, .quantize = quantize, .group_bytes = Int8Weight::kGroupBytes};
}

}  // namespace ONESTEP_WEIGHTS_NAMESPACE
}  // namespace onestep::kernels
