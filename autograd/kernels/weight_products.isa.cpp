// Products with weights in fewer bytes: bfloat16 is widened to float32 as it is read, int8 multiplied by integers.
#include "autograd/kernels/weight_products.h"

#include "autograd/kernels/simd.h"
#include "autograd/kernels/table.h"
#if defined(ONESTEP_TILES)
#include "autograd/kernels/tile_config.h"
#endif

namespace onestep::kernels {
namespace {

/// Sums in registers, the bytes of bfloat16 that are read of a panel at a time, and the cache that is prefetched to, by its
/// locality: the L2 cache with AVX-512 (on Zen 4 a core reads 24 GB/s then, and 14 by the L1 cache), else the L1 cache.
#if defined(ONESTEP_WASM)  // a page downloads the code, and reads models of float32
constexpr int kAccumulators = 1, kChunkBytes = 1024, kLocality = 3;
#elif defined(ONESTEP_ISA_avx512)
constexpr int kAccumulators = 16, kChunkBytes = 4096, kLocality = 2;
#else
constexpr int kAccumulators = 4, kChunkBytes = 1024, kLocality = 3;
#endif

/// A block is what is summed before it is added to y. x has kHeaderBytes before each block, and kXBytes a step.
struct Bf16Weight {
  using Columns = Vec;
  using Sum = Vec;
  static constexpr bool kHasTiles = false;
  static constexpr int kPassRows = 8;
  static constexpr int64_t kStep = 1, kBlock = kBlockK, kStepBytes = 2 * kPanelRows, kBlockBytes = 0;
  static constexpr int64_t kChunkSteps = kChunkBytes / kStepBytes;
  static constexpr int64_t kHeaderBytes = 0, kXBytes = sizeof(float);

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
#if defined(ONESTEP_TILES)
  static constexpr bool kHasTiles = true;
#else
  static constexpr bool kHasTiles = false;
#endif
  static constexpr int kPassRows = kHasTiles ? 16 : 8;
  static constexpr int64_t kStep = 4, kBlock = kWeightGroup, kStepBytes = kStep * kPanelRows;
  static constexpr int64_t kBlockBytes = sizeof(float) * kPanelRows, kChunkSteps = kBlock / kStep;
  static constexpr int64_t kHeaderBytes = sizeof(Header), kXBytes = sizeof(Quantized) * kStep;
  static constexpr int64_t kGroupBytes = kHeaderBytes + kWeightGroup / kStep * kXBytes;

  ONESTEP_INLINE static Columns load(const unsigned char* step) { return load_bytes(step); }
  ONESTEP_INLINE static Sum start(const unsigned char* header) { return splat(reinterpret_cast<const Header*>(header)->start); }
  ONESTEP_INLINE static Sum add(Sum sum, Columns columns, const unsigned char* x) {
    return add_dots(sum, columns, reinterpret_cast<const Quantized*>(x));
  }
  ONESTEP_INLINE static Vec add(Vec total, Sum sum, bool first, const unsigned char* header, const unsigned char* scales) {
    const Vec products = splat(reinterpret_cast<const Header*>(header)->scale) * to_float(sum);
    return fma(kernels::load(reinterpret_cast<const float*>(scales)), products, first ? splat(0.0f) : total);
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

/// Bytes of a chunk of a panel.
template <class W>
constexpr int64_t kChunkWidth = W::kChunkSteps* W::kStepBytes + W::kBlockBytes;

/// Of columns in rows, between chunks.
template <class W>
struct Sums {
  Vec total[W::kPassRows][kPanelStreams];
  typename W::Sum block[W::kPassRows][kPanelStreams];  // of the one that is not complete
};

class Tiles;

/// Up to kPassRows rows and kPanelStreams panels, `apart` from one another.
template <class W>
struct Pass {
  const WeightProduct& product;
  int64_t row, rows, panel, panels, apart;
  Sums<W>& sums;
  Tiles& tiles;
};

/// Where the first panel and row of a pass have a chunk.
struct Chunk {
  const unsigned char *panel, *x;
  int64_t panel_stride, x_stride, steps = 0;
  bool first_block = true, starts_block = true, ends_block = true;
};

/// Calls f(chunk) for all of a pass, in ascending steps.
template <class W, class F>
ONESTEP_INLINE void for_each_chunk(const Pass<W>& pass, const F& f) {
  constexpr int64_t kBlockSteps = W::kBlock / W::kStep;
  static_assert(kBlockSteps % W::kChunkSteps == 0 && (W::kBlockBytes == 0 || kBlockSteps == W::kChunkSteps));
  const WeightProduct& w = pass.product;
  const int64_t panel = panel_bytes<W>(w.k), row = row_bytes<W>(w.k), steps = pieces(w.k, W::kStep);
  Chunk chunk = {.panel = w.panels + pass.panel * panel,
                 .x = static_cast<const unsigned char*>(w.x) + pass.row * row,
                 .panel_stride = pass.apart * panel,
                 .x_stride = row};
  for (int64_t s = 0; s < steps; s += W::kChunkSteps) {
    chunk.steps = steps - s < W::kChunkSteps ? steps - s : W::kChunkSteps;
    chunk.first_block = s < kBlockSteps;
    chunk.starts_block = s % kBlockSteps == 0;
    chunk.ends_block = steps - s <= W::kChunkSteps || (s + W::kChunkSteps) % kBlockSteps == 0;
    f(chunk);
    chunk.panel += kChunkWidth<W>;
    chunk.x += W::kChunkSteps * W::kXBytes + W::kHeaderBytes;
  }
}

/// The microkernel: a chunk of rows [row, row + ROWS) and panels [panel, panel + PANELS) of a pass. It prefetches the next one,
/// of which two groups of rows take a half each.
template <class W, int ROWS, int PANELS>
ONESTEP_INLINE void microkernel(const Pass<W>& pass, const Chunk& chunk, int64_t row, int64_t panel) {
  constexpr int64_t kUnrolled = 4;
  constexpr bool kIsBlock = W::kChunkSteps * W::kStep == W::kBlock;
  const int64_t stride = chunk.panel_stride, x_stride = chunk.x_stride;
  const unsigned char *from = chunk.panel + panel * stride, *x = chunk.x + row * x_stride;
  const unsigned char *const scales = from, *const header = x;
  Vec* const total = &pass.sums.total[row][panel];
  typename W::Sum* const block = &pass.sums.block[row][panel];
  typename W::Sum sum[ROWS][PANELS];
  if (kIsBlock || chunk.starts_block) {
    from += W::kBlockBytes;
    x += W::kHeaderBytes;
  }
#pragma GCC unroll 8
  for (int r = 0; r < ROWS; ++r)
#pragma GCC unroll 8
    for (int j = 0; j < PANELS; ++j)
      sum[r][j] = kIsBlock || chunk.starts_block ? W::start(header + r * x_stride) : block[r * kPanelStreams + j];
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
  int64_t n = chunk.steps;
  for (; n >= kUnrolled; n -= kUnrolled) {
    if (pass.rows < 2 * ROWS ? row == 0 : n / kUnrolled % 2 == row / ROWS)
      for (int j = 0; j < PANELS; ++j)
        for (int64_t line = 0; line < kUnrolled * W::kStepBytes; line += 64)
          __builtin_prefetch(from + j * stride + kChunkWidth<W> + line, 0, kLocality);
#pragma GCC unroll 4
    for (int64_t s = 0; s < kUnrolled; ++s) step();
  }
  for (; n > 0; --n) step();
#pragma GCC unroll 8
  for (int r = 0; r < ROWS; ++r)
#pragma GCC unroll 8
    for (int j = 0; j < PANELS; ++j) {
      Vec& t = total[r * kPanelStreams + j];
      if (kIsBlock || chunk.ends_block)
        t = W::add(t, sum[r][j], chunk.first_block, header + r * x_stride, scales + j * stride);
      else
        block[r * kPanelStreams + j] = sum[r][j];
    }
}

/// All panels from `panel` on that are PANELS. Not inline: see gemm_few_rows.h.
template <class W, int ROWS, int PANELS>
[[gnu::noinline]] int64_t panels_at_once(const Pass<W>& pass, const Chunk& chunk, int64_t row, int64_t panel) {
  for (; panel + PANELS <= pass.panels; panel += PANELS) microkernel<W, ROWS, PANELS>(pass, chunk, row, panel);
  return panel;
}

/// A chunk of the rows of a pass from `row` on. ROWS rows share what is read of a weight; as many panels are read at once as
/// there are accumulators for.
template <class W, int ROWS>
void chunk_of_rows(const Pass<W>& pass, const Chunk& chunk, int64_t row) {
  constexpr int kPanels = kAccumulators / ROWS < kPanelStreams ? kAccumulators / ROWS : kPanelStreams;
  for (; row + ROWS <= pass.rows; row += ROWS) {
    const int64_t panel = panels_at_once<W, ROWS, kPanels>(pass, chunk, row, 0);
    if constexpr (kPanels > 1) panels_at_once<W, ROWS, 1>(pass, chunk, row, panel);
  }
  if constexpr (ROWS > 1) {
    if (row < pass.rows) chunk_of_rows<W, ROWS - 1>(pass, chunk, row);
  }
}

#if defined(ONESTEP_TILES)
/// The products of whole groups by AMX, one instruction for up to 16 rows and a panel: tile 1 has the numbers of rows of x,
/// tile 2 those of a panel and tile 0 the sums.
class Tiles {
 public:
  Tiles() = default;
  ~Tiles() {
    if (config_.rows[0] > 0) _tile_release();
  }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;

  /// A chunk of a pass that is a whole group. It prefetches the next one.
  void multiply(const Pass<Int8Weight>& pass, const Chunk& chunk) {
    have_rows(static_cast<uint8_t>(pass.rows));
    _tile_loadd(1, chunk.x + Int8Weight::kHeaderBytes, chunk.x_stride);
    for (int64_t j = 0; j < pass.panels; ++j) {
      const unsigned char* const scales = chunk.panel + j * chunk.panel_stride;
      for (int64_t line = 0; line < kChunkWidth<Int8Weight>; line += 64)
        __builtin_prefetch(scales + kChunkWidth<Int8Weight> + line);
      _tile_zero(0);
      _tile_loadd(2, scales + Int8Weight::kBlockBytes, kTileRowBytes);
      _tile_dpbsud(0, 1, 2);
      _tile_stored(0, sums_[j], kTileRowBytes);
    }
    for (int64_t r = 0; r < pass.rows; ++r)
      for (int64_t j = 0; j < pass.panels; ++j) {
        const unsigned char* const header = chunk.x + r * chunk.x_stride;
        Vec& total = pass.sums.total[r][j];
        total = Int8Weight::add(total, Int8Weight::start(header) + load_bytes(sums_[j][r]), chunk.first_block, header,
                                chunk.panel + j * chunk.panel_stride);
      }
  }

 private:
  static constexpr int64_t kTileRowBytes = 64;

  void have_rows(uint8_t rows) {
    if (config_.rows[0] == rows) return;
    config_.rows[0] = config_.rows[1] = rows;
    load(config_);
  }

  TileConfig config_ = {.row_bytes = {kTileRowBytes, kTileRowBytes, kTileRowBytes}, .rows = {0, 0, 16}};
  alignas(64) int32_t sums_[kPanelStreams][Int8Weight::kPassRows][kPanelRows];
};
#else
class Tiles {};
#endif

template <class W>
void run(const Pass<W>& pass) {
  constexpr int kRows = kAccumulators < W::kPassRows ? kAccumulators : W::kPassRows;
  const WeightProduct& w = pass.product;
  for_each_chunk(pass, [&](const Chunk& chunk) {
    if constexpr (W::kHasTiles) {
      if (chunk.steps == W::kChunkSteps) return pass.tiles.multiply(pass, chunk);
    }
    chunk_of_rows<W, kRows>(pass, chunk, 0);
  });
  for (int64_t r = 0; r < pass.rows; ++r)
    for (int64_t j = 0; j < pass.panels; ++j) {
      const int64_t column = (pass.panel + j * pass.apart) * kPanelRows, columns = w.n - column;
      const Vec total = pass.sums.total[r][j], y = w.bias ? total + load_upto(w.bias + column, columns) : total;
      store_upto(w.y + (pass.row + r) * w.n + column, y, columns);
    }
}

template <class W>
void product(const WeightProduct& w, int64_t panel, int64_t end) {
  Sums<W> sums;
  Tiles tiles;
  const auto all_rows = [&](int64_t first, int64_t panels, int64_t apart) {
    for (int64_t row = 0; row < w.m; row += W::kPassRows)
      run(Pass<W>{w, row, w.m - row < W::kPassRows ? w.m - row : W::kPassRows, first, panels, apart, sums, tiles});
  };
  const int64_t apart = (end - panel) / kPanelStreams, rest = panel + kPanelStreams * apart;
  for (int64_t i = 0; i < apart; ++i) all_rows(panel + i, kPanelStreams, apart);
  if (rest < end) all_rows(rest, end - rest, 1);
}

}  // namespace

#if defined(ONESTEP_TILES)
#define ONESTEP_WEIGHTS_NAMESPACE avx512amx
#elif defined(__AVX512VNNI__)
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
