#pragma once
// Products with weights in fewer bytes than float32. When a model generates token by token, the time of a product is that of
// reading its weight. Included by files compiled per instruction set: no inline functions here.
#include <cstdint>

namespace onestep::kernels {

/// A weight w [n, k] lies in panels of 16 rows, the last one filled up with zeros. A panel goes along k in steps of 16 numbers,
/// one a row:
///
///   bf16: a step is 16 bfloat16
///   int8: before every 64 steps, a group, 16 float scales, one a row; a step is 16 int8; a number is int8 times scale
///
/// So the sums of 16 outputs are in 16 lanes, and no sum is split over lanes.
inline constexpr int64_t kPanelRows = 16, kWeightGroup = 64;

/// y [m, n] = x [m, k] w^T; rows of x are k apart, those of y n.
struct WeightProduct {
  const float* x;
  const unsigned char* panels;  // of w
  float* y;
  int64_t m, n, k;
};

/// The columns of y that belong to panels [panel, end) of w. Neither the panels nor m can change a bit:
struct WeightProducts {
  /// The bits of gemm with w as float32.
  void (*bf16)(const WeightProduct& product, int64_t panel, int64_t end);
  /// In ascending groups y = scale s + y with one rounding, from 0, where s is the group's sum by fma in ascending k from 0.
  void (*int8)(const WeightProduct& product, int64_t panel, int64_t end);
};

}  // namespace onestep::kernels
