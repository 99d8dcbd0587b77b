#pragma once
// AMX: how many rows each tile has, and how long they are.
#include "autograd/kernels/simd.h"

namespace onestep::kernels {
namespace {

struct alignas(64) TileConfig {  // as the CPU reads it
  uint8_t palette = 1, start = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

/// Clears all tiles.
ONESTEP_INLINE void load(const TileConfig& config) {
  asm volatile("" : : "r"(&config) : "memory");  // to GCC the next one reads eight bytes
  _tile_loadconfig(&config);
}

}  // namespace
}  // namespace onestep::kernels
