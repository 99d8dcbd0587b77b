// Weights in fewer bytes: how they are packed, their product and their rows.
#include "autograd/packed_weight.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "autograd/creation.h"
#include "autograd/half.h"
#include "autograd/kernels/kernels.h"
#include "autograd/node.h"
#include "autograd/ops/indexing.h"
#include "autograd/ops/matrices.h"
#include "autograd/ops_pointwise.h"

namespace onestep {
namespace {

using kernels::kPanelRows, kernels::kWeightGroup;

/// Where the numbers of a panel are, in bytes from its start (autograd/kernels/weight_products.h).
struct Layout {
  bool int8;
  int64_t k;

  int64_t panel() const {
    const int64_t steps = (k + kStep - 1) / kStep, groups = (k + kWeightGroup - 1) / kWeightGroup;
    return int8 ? steps * kStep * kPanelRows + groups * kScales : k * kPanelRows * 2;
  }
  /// Number p of row r.
  int64_t number(int64_t p, int64_t r) const {
    constexpr int64_t kPlace[kStep] = {0, 2, 1, 3};
    if (!int8) return 2 * (p * kPanelRows + r % (kPanelRows / 2) * 2 + r / (kPanelRows / 2));
    return (p / kWeightGroup + 1) * kScales + p / kStep * kStep * kPanelRows + kStep * r + kPlace[p % kStep];
  }
  /// The scale of that number.
  static int64_t scale(int64_t p, int64_t r) { return p / kWeightGroup * (kWeightGroup * kPanelRows + kScales) + 4 * r; }

 private:
  static constexpr int64_t kScales = 4 * kPanelRows, kStep = 4;
};

/// The scale of a group: max |w| / 127; not a number where one of them is not finite.
float group_scale(const float* w, int64_t n) {
  float largest = 0;
  for (int64_t p = 0; p < n; ++p) {
    if (!std::isfinite(w[p])) return std::numeric_limits<float>::quiet_NaN();
    largest = std::max(largest, std::fabs(w[p]));
  }
  return largest / 127;
}

constexpr int kZero = 128;  // the byte that stands for 0

/// The byte of the nearest integer of w / scale; of 0 for a scale of 0, or that is not a number.
uint8_t quantized(float w, float scale) {
  if (!(scale > 0)) return kZero;
  const float quotient = std::clamp(w / scale, -127.0f, 127.0f);  // a subnormal scale is coarse
  return static_cast<uint8_t>(kZero + static_cast<int>(quotient < 0 ? quotient - 0.5f : quotient + 0.5f));
}

/// Writes row r of a panel in int8.
void write_quantized(const Layout& layout, const float* w, unsigned char* panel, int64_t r) {
  for (int64_t p0 = 0; p0 < layout.k; p0 += kWeightGroup) {
    const int64_t end = std::min(layout.k, p0 + kWeightGroup);
    const float scale = group_scale(w + p0, end - p0);
    std::memcpy(panel + Layout::scale(p0, r), &scale, sizeof scale);
    for (int64_t p = p0; p < end; ++p) panel[layout.number(p, r)] = quantized(w[p], scale);
  }
}

/// Writes row r of a panel.
void write_row(const Layout& layout, const float* w, unsigned char* panel, int64_t r) {
  if (layout.int8) return write_quantized(layout, w, panel, r);
  for (int64_t p = 0; p < layout.k; ++p) {
    const uint16_t rounded = bfloat16_of_float(w[p]);
    std::memcpy(panel + layout.number(p, r), &rounded, sizeof rounded);
  }
}

/// Reads it as float32.
void read_row(const Layout& layout, const unsigned char* panel, int64_t r, float* w) {
  for (int64_t p = 0; p < layout.k; ++p) {
    const unsigned char* const from = panel + layout.number(p, r);
    if (layout.int8) {
      float scale = 0;
      std::memcpy(&scale, panel + Layout::scale(p, r), sizeof scale);
      w[p] = scale * static_cast<float>(*from - kZero);
    } else {
      uint16_t rounded = 0;
      std::memcpy(&rounded, from, sizeof rounded);
      w[p] = float_of_bfloat16(rounded);
    }
  }
}

}  // namespace

PackedWeight::PackedWeight(const Tensor& weight, WeightFormat format) : format_(format), shape_(weight.shape()) {
  ONESTEP_CHECK(ShapeError, weight.dim() == 2, "PackedWeight: weight must be [out, in]: got ", weight.shape());
  ONESTEP_CHECK(DTypeError, weight.dtype() == DType::float32, "PackedWeight: weight must be float32: got ", weight.dtype());
  ONESTEP_CHECK(ConfigError, format != WeightFormat::float32, "PackedWeight: needs the format bf16 or int8: got float32");
  const Layout layout = {format == WeightFormat::int8, shape_[1]};
  const int64_t n = shape_[0], k = shape_[1], panels = (n + kPanelRows - 1) / kPanelRows;
  panels_ = zeros({panels * layout.panel()}, DType::uint8);
  const Tensor values = ops::contiguous_values(weight);
  const auto* const from = values.data<float>();
  auto* const to = panels_.mutable_data<uint8_t>();
  kernels::parallel_for(n, 2.0 * static_cast<double>(k), [=](int64_t row, int64_t end) {
    for (; row < end; ++row) write_row(layout, from + row * k, to + row / kPanelRows * layout.panel(), row % kPanelRows);
  });
}

Tensor PackedWeight::linear(const Tensor& x, const Tensor& bias) const {
  const int64_t n = shape_[0], k = shape_[1];
  ONESTEP_CHECK(GradError, !detail::should_record({x, bias}),
                "linear: a packed weight is for inference: nothing is recorded (use NoGradGuard)");
  ONESTEP_CHECK(DTypeError, x.dtype() == DType::float32, "linear: a packed weight needs a float32 input: got ", x.dtype());
  if (bias.defined()) ops::check_same_dtype("linear", x, bias);
  ops::check_linear_shapes(x, shape_, bias);
  Shape shape = x.shape();
  shape[shape.rank() - 1] = n;
  if (k == 0) return bias.defined() ? add(zeros(shape), bias) : zeros(shape);
  Tensor y = empty(shape);
  const Tensor rows = ops::contiguous_values(x), added = bias.defined() ? ops::contiguous_values(bias) : bias;
  if (y.numel() > 0) {
    kernels::WeightProduct product = {.x = rows.data<float>(),
                                      .panels = panels_.data<uint8_t>(),
                                      .bias = added.defined() ? added.data<float>() : nullptr,
                                      .y = y.mutable_data<float>(),
                                      .m = y.numel() / n,
                                      .n = n,
                                      .k = k};
    if (format_ == WeightFormat::bf16) {
      bf16_weight_product(product);
    } else {
      Tensor quantized = empty({product.m * kernels::quantized_row_bytes(k)}, DType::uint8);
      kernels::quantize_rows(rows.data<float>(), product.m, k, quantized.mutable_data<uint8_t>());
      product.x = quantized.data<uint8_t>();
      int8_weight_product(product);
    }
  }
  return y;
}

Tensor PackedWeight::embedding(const Tensor& index) const {
  const Tensor picked = ops::checked_index("embedding", index, shape_, 0);
  Shape shape = index.shape();
  shape.push_back(shape_[1]);
  Tensor y = empty(shape);
  const Layout layout = {format_ == WeightFormat::int8, shape_[1]};
  const auto* const place = picked.data<int64_t>();
  const auto* const from = panels_.data<uint8_t>();
  auto* const to = y.mutable_data<float>();
  kernels::parallel_for(picked.numel(), 2.0 * static_cast<double>(layout.k), [=](int64_t i, int64_t end) {
    for (; i < end; ++i)
      read_row(layout, from + place[i] / kPanelRows * layout.panel(), place[i] % kPanelRows, to + i * layout.k);
  });
  return y;
}

Tensor PackedWeight::unpacked() const { return embedding(arange(0, shape_[0])); }

}  // namespace onestep
