// The inner loops of convolutions of one instruction set. Products read the input in place by a table of offsets, one for each
// channel and tap, in planes whose rows lie one behind the other: output q of a plane reads place q + offset for every tap.
#include "autograd/kernels/simd.h"
#include "autograd/kernels/table.h"

namespace onestep::kernels {
namespace {

#if defined(ONESTEP_ISA_avx512)
constexpr int kRows = 8, kRegisters = 32, kDotRows = 4, kDotCols = 6;
#elif defined(ONESTEP_ISA_avx2)
constexpr int kRows = 4, kRegisters = 16, kDotRows = 4, kDotCols = 2;
#elif defined(ONESTEP_WASM)  // a page downloads the code, and its models have no convolutions
constexpr int kRows = 1, kRegisters = 3, kDotRows = 1, kDotCols = 1;
#else
constexpr int kRows = 4, kRegisters = 8, kDotRows = 4, kDotCols = 2;
#endif

/// Whole vectors are written, so that zeros beside a row come with its elements; what is too much the next row overwrites.
void conv_take(const float* from, int64_t ld, int64_t step, int64_t n, int64_t rows, int64_t begin, float* to, int64_t width) {
  if (step == 1 && n <= kLanes && begin <= kLanes && width <= begin + kLanes) {  // short rows
    for (int64_t r = 0; r < rows; ++r, from += ld, to += width) {
      if (begin > 0) store(to, splat(0.0f));
      store(to + begin, load_first(from, n));
    }
    return;
  }
  for (int64_t r = 0; r < rows; ++r, from += ld, to += width) {
    store(to, splat(0.0f));
    for (int64_t j = kLanes; j < begin; j += kLanes) store(to + j, splat(0.0f));
    float* const row = to + begin;
    int64_t j = 0;
    if (step == 1) {
      for (; j < n; j += kLanes) store(row + j, load_upto(from + j, n - j));
    } else if (step == 2) {
      for (; j < n; ++j) row[j] = from[2 * j];  // by vectors
    } else {
      for (; j < n; ++j) row[j] = from[step * j];
    }
    for (; j < width - begin; j += kLanes) store(row + j, splat(0.0f));
  }
}

void conv_put(const float* from, int64_t width, float shift, int64_t n, int64_t rows, float* to, int64_t ld, int64_t step) {
  for (int64_t r = 0; r < rows; ++r, from += width, to += ld) {
    if (step == 1) {
      map(from, to, n, [=](Vec x) { return x + splat(shift); });
    } else {
      for (int64_t j = 0; j < n; ++j) to[j * step] = from[j] + shift;
    }
  }
}

/// Registers of outputs beside each other: each row of them holds sums, one the inputs, and one register a weight.
constexpr int regs_for(int rows) { return (kRegisters - 1) / (rows + 1) < 6 ? (kRegisters - 1) / (rows + 1) : 6; }

/// to[r, 0:REGS registers] = or += the sum over k < depth of weights[k, r] source[offsets[k]:].
template <int ROWS, int REGS>
void tile(int64_t depth, const int64_t* offsets, const float* weights, const float* source, float* to, int64_t ld, bool add) {
  FloatReg total[ROWS][REGS];
#pragma GCC unroll 16
  for (int r = 0; r < ROWS; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < REGS; ++v) total[r][v] = splat_reg(0.0f);
  }
#pragma GCC unroll 2
  for (int64_t k = 0; k < depth; ++k, weights += ROWS) {
    const float* from = source + offsets[k];
    FloatReg in[REGS];
#pragma GCC unroll 16
    for (int v = 0; v < REGS; ++v) in[v] = load_reg(from + v * kRegLanes<float>);
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; ++r) {
      const FloatReg weight = splat_reg(weights[r]);
#pragma GCC unroll 16
      for (int v = 0; v < REGS; ++v) total[r][v] = fma(weight, in[v], total[r][v]);
      keep(weight);  // as in gemm
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < ROWS; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < REGS; ++v) {
      float* const place = to + r * ld + v * kRegLanes<float>;
      store_reg(place, add ? load_reg(place) + total[r][v] : total[r][v]);
    }
  }
}

using Tile = void (*)(int64_t depth, const int64_t* offsets, const float* weights, const float* source, float* to, int64_t ld,
                      bool add);

/// [rows - 1][registers - 1]
struct Tiles {
  Tile of[kRows][6];
};

template <int ROWS = kRows, int REGS = regs_for(kRows)>
constexpr void fill(Tiles& t) {
  t.of[ROWS - 1][REGS - 1] = tile<ROWS, REGS>;
  if constexpr (REGS > 1) fill<ROWS, REGS - 1>(t);
  if constexpr (REGS == 1 && ROWS > 1) fill<ROWS - 1, regs_for(ROWS - 1)>(t);
}

constexpr Tiles kTiles = [] {
  Tiles t{};
  fill(t);
  return t;
}();

void conv_tiles(int64_t rows, int64_t depth, const int64_t* offsets, const float* weights, const float* source, int64_t n,
                float* to, int64_t ld) {
  const int64_t most = regs_for(static_cast<int>(rows));
  for (int64_t k = 0; k == 0 || k < depth; k += kBlockK) {  // once also without any, for zeros
    const int64_t steps = depth - k < kBlockK ? depth - k : kBlockK;
    for (int64_t j = 0, regs; j < n; j += regs * kRegLanes<float>) {
      const int64_t left = (n - j + kRegLanes<float> - 1) / kRegLanes<float>, panels = (left + most - 1) / most;
      regs = (left + panels - 1) / panels;  // as evenly as that goes: a narrow panel has too few independent sums
      kTiles.of[rows - 1][regs - 1](steps, offsets + k, weights + k * rows, source + j, to + j, ld, k > 0);
    }
  }
}

/// to[r, c] = or += the sum over images and q of dy[r, q] source[offsets[c] + q]: 16 lanes of q, one register of them after the
/// other, and the tree of sum().
template <int ROWS, int COLS>
void dots(const int64_t* offsets, const ConvDots<float>& x, const float* dy, float* to) {
  constexpr int kParts = static_cast<int>(kLanes / kRegLanes<float>);
  alignas(64) float lanes[ROWS][COLS][kLanes];
  for (int part = 0; part < kParts; ++part) {
    FloatReg total[ROWS][COLS];
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; ++r) {
#pragma GCC unroll 16
      for (int c = 0; c < COLS; ++c) total[r][c] = splat_reg(0.0f);
    }
    for (int64_t image = 0; image < x.images; ++image) {
      const float* grad = dy + image * x.dy_image + part * kRegLanes<float>;
      const float* from = x.source + image * x.source_image + part * kRegLanes<float>;
      for (int64_t q = 0; q < x.n; q += kLanes) {
        FloatReg row[ROWS];
#pragma GCC unroll 16
        for (int r = 0; r < ROWS; ++r) row[r] = load_reg(grad + r * x.n + q);
#pragma GCC unroll 16
        for (int c = 0; c < COLS; ++c) {
          const FloatReg in = load_reg(from + offsets[c] + q);
#pragma GCC unroll 16
          for (int r = 0; r < ROWS; ++r) total[r][c] = fma(row[r], in, total[r][c]);
          keep(in);
        }
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; ++r) {
#pragma GCC unroll 16
      for (int c = 0; c < COLS; ++c) store_reg(lanes[r][c] + part * kRegLanes<float>, total[r][c]);
    }
  }
  for (int r = 0; r < ROWS; ++r) {
    for (int c = 0; c < COLS; ++c) {
      const float total = sum(load(lanes[r][c]));
      to[r * x.ld + c] = x.add ? to[r * x.ld + c] + total : total;
    }
  }
}

using Dots = void (*)(const int64_t* offsets, const ConvDots<float>& x, const float* dy, float* to);

struct DotTiles {
  Dots of[kDotRows][kDotCols];
};

template <int ROWS = kDotRows, int COLS = kDotCols>
constexpr void fill(DotTiles& t) {
  t.of[ROWS - 1][COLS - 1] = dots<ROWS, COLS>;
  if constexpr (COLS > 1) fill<ROWS, COLS - 1>(t);
  if constexpr (COLS == 1 && ROWS > 1) fill<ROWS - 1, kDotCols>(t);
}

constexpr DotTiles kDotTiles = [] {
  DotTiles t{};
  fill(t);
  return t;
}();

void conv_dots(int64_t rows, int64_t cols, const int64_t* offsets, const ConvDots<float>& x) {
  for (int64_t c = 0; c < cols; c += kDotCols) {
    const int64_t wide = cols - c < kDotCols ? cols - c : kDotCols;
    for (int64_t r = 0; r < rows; r += kDotRows) {
      const int64_t high = rows - r < kDotRows ? rows - r : kDotRows;
      kDotTiles.of[high - 1][wide - 1](offsets + c, x, x.dy + r * x.n, x.to + r * x.ld + c);
    }
  }
}

}  // namespace

namespace ONESTEP_ISA_NAME {

void fill_convolution(Table<float>& t) {
  t.conv_take = conv_take;
  t.conv_put = conv_put;
  t.conv_rows = kRows;
  t.conv_tiles = conv_tiles;
  t.conv_dots = conv_dots;
}

}  // namespace ONESTEP_ISA_NAME
}  // namespace onestep::kernels
