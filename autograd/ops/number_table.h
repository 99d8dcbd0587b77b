#pragma once
// Functions of one number of 16 bits, of which there are 65,536: a large tensor's results are looked up in those of all. The
// numbers of a tensor are few of them, so that what is looked up stays in the L1 cache.
#include "autograd/ops/common.h"

namespace onestep::ops {

inline constexpr int64_t kNumbers = 65536;

/// Whether x has numbers of 16 bits, and so many that all results are computed sooner than its own.
inline bool worth_a_table(const Tensor& x) { return size_of(x.dtype()) == 2 && x.numel() >= 4 * kNumbers; }

/// Every number of a dtype of 16 bits in the order of its bits: [65536].
Tensor every_number(DType dtype);

/// y = table[x] element by element as they lie in memory: y, x and table [65536] are of one dtype of 16 bits.
void look_up(Tensor& y, const Tensor& x, const Tensor& table);
/// dx = dy slopes[x] in float32, rounded to the dtype of dx, dy and x; slopes is float32 [65536].
void multiply_looked_up(Tensor& dx, const Tensor& x, const Tensor& dy, const Tensor& slopes);

}  // namespace onestep::ops
