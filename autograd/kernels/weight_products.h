#pragma once
// Products with weights in fewer bytes than float32. When a model generates token by token, the time of a product is that of
// reading its weight. Included by files compiled per instruction set: no inline functions here.
#include <cstdint>

namespace onestep::kernels {

/// A weight w [n, k] lies in panels of 16 rows, the last one filled up with zeros. A panel goes along k in steps:
///
///   bf16: a step is 16 bfloat16, one a row, of rows 0, 8, 1, 9, ..., 7 and 15
///   int8: before every 64 numbers of k, a group, 16 float scales, one a row; a step is four bytes a row, numbers 0, 2, 1 and 3
///   of
///         it, and 16 of them a group, the last step filled up with zeros; a byte b stands for (b - 128) scale
///
/// So the sums of 16 outputs are in 16 lanes, and no sum is split over lanes.
inline constexpr int64_t kPanelRows = 16, kWeightGroup = 64;

/// Panels are read in chunks, one of each of several panels in turn. Several streams get more of the memory's bandwidth than
/// one, and while rows multiply a chunk of each, the next one of each arrives.
inline constexpr int64_t kPanelStreams = 8;

/// y [m, n] = x [m, k] w^T + bias; rows of y are n apart.
struct WeightProduct {
  const void* x;                // float rows k apart, for int8 what quantize() made of them
  const unsigned char* panels;  // of w
  const float* bias;            // of n, or null
  float* y;
  int64_t m, n, k;
};

/// The columns of y that belong to panels [panel, end) of w. Neither the panels nor m can change a bit:
struct WeightProducts {
  /// The bits of gemm with w as float32.
  void (*bf16)(const WeightProduct& product, int64_t panel, int64_t end);
  /// In ascending groups y = scale (x's scale s) + y with one rounding, and one of x's scale s, from 0, where s is the group's
  /// sum of products of integers, which is exact.
  void (*int8)(const WeightProduct& product, int64_t panel, int64_t end);
  /// A row of x for int8(): each group of 64 numbers as integers x / scale, rounded to nearest even, by a scale of its own,
  /// max |x| / 127; a number that is not finite makes it NaN. `to` has group_bytes a group.
  void (*quantize)(const float* x, int64_t k, unsigned char* to);
  int64_t group_bytes;
};

}  // namespace onestep::kernels
