#pragma once
// Weights in fewer bytes, for inference: a model that generates token by token takes as long as its weights take to be read.
#include <array>
#include <cstdint>
#include <string_view>

#include "autograd/tensor.h"

namespace onestep {

/// How a weight is kept. In bf16 every number is rounded to bfloat16. In int8 a row is cut into groups of 64 numbers, each kept
/// as q s with a float32 s = max |w| / 127 of its own and integers q from -127 to 127.
enum class WeightFormat : uint8_t { float32, bf16, int8 };
constexpr auto names(WeightFormat /*all*/) { return std::to_array<std::string_view>({"float32", "bf16", "int8"}); }

/// A read-only copy of a weight [out, in] in half (bf16) or a quarter (int8) of its bytes, without gradient. Sums are in
/// float32, and results have the same bits on every instruction set, for any number of threads and of other rows.
class PackedWeight {
 public:
  /// Throws ShapeError unless weight is [out, in], DTypeError unless it is float32, ConfigError if `format` is float32, too.
  PackedWeight(const Tensor& weight, WeightFormat format);

  /// x W^T + b: float32 [..., in] -> [..., out]. With bf16 the bits of the op linear with unpacked(). With int8 every 64
  /// numbers of a row of x are rounded to integers times a scale of their own, max |x| / 127, too, so that their products are
  /// summed exactly (as by torch.ao.quantization.quantize_dynamic, but in groups). Throws ShapeError and DTypeError as the op
  /// does, and GradError where it would be recorded.
  Tensor linear(const Tensor& x, const Tensor& bias = {}) const;
  /// Rows of unpacked(): int64 [...] -> [..., in]. Throws as the op embedding does.
  Tensor embedding(const Tensor& index) const;
  /// The numbers that it stands for: float32 [out, in].
  Tensor unpacked() const;

  WeightFormat format() const { return format_; }
  const Shape& shape() const { return shape_; }  ///< [out, in]
  int64_t bytes() const { return panels_.numel(); }

 private:
  WeightFormat format_;
  Shape shape_;
  Tensor panels_;  // uint8, as autograd/kernels/weight_products.h says
};

}  // namespace onestep
