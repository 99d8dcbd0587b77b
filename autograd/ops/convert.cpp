// Conversions between dtypes: a narrow one is widened to its compute type, that is converted, and the result is narrowed.
// Blocks of elements go through all steps at once.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "autograd/kernels/table.h"
#include "autograd/ops/common.h"

namespace onestep::ops {
namespace {

/// to[i] = from[i] for i < n, from one type to another.
using Step = void (*)(const void* from, void* to, int64_t n);

template <class From, class To>
void convert_all(const void* from, void* to, int64_t n) {
  const auto* source = static_cast<const From*>(from);
  auto* target = static_cast<To*>(to);
  for (int64_t i = 0; i < n; ++i) target[i] = convert<To>(source[i]);
}

/// convert_all by a kernel.
template <auto KERNEL, class From, class To>
void convert_by(const void* from, void* to, int64_t n) {
  (kernels::table<float>().*KERNEL)(static_cast<const From*>(from), static_cast<To*>(to), n);
}

/// From a narrow dtype to its compute type.
Step widening(DType dtype) {
  using Kernels = kernels::Table<float>;
  switch (dtype) {
    case DType::int32:
      return convert_all<int32_t, int64_t>;
    case DType::uint8:
      return convert_all<uint8_t, int64_t>;
    case DType::float16:
      return convert_by<&Kernels::from_half, uint16_t, float>;
    default:
      return convert_by<&Kernels::from_bf16, uint16_t, float>;
  }
}

/// From a compute type to a narrow dtype.
Step narrowing(DType dtype) {
  using Kernels = kernels::Table<float>;
  switch (dtype) {
    case DType::int32:
      return convert_all<int64_t, int32_t>;
    case DType::uint8:
      return convert_all<int64_t, uint8_t>;
    case DType::float16:
      return convert_by<&Kernels::to_half, float, uint16_t>;
    default:
      return convert_by<&Kernels::to_bf16, float, uint16_t>;
  }
}

/// The steps from one dtype to another, at most three.
struct Steps {
  std::array<Step, 3> all{};
  size_t count = 0;

  Steps(DType from, DType to) {
    if (is_narrow(from)) all[count++] = widening(from);
    const DType source = compute_type(from);
    // Outside int32 a float becomes the smallest int32 and no remainder: not by way of int64.
    const DType target = to == DType::int32 && is_floating(source) ? to : compute_type(to);
    if (source != target)
      all[count++] = dispatch(source, [&]<class S>() -> Step {
        if (target == DType::int32) return convert_all<S, int32_t>;
        return dispatch(target, []<class T>() -> Step { return convert_all<S, T>; });
      });
    if (is_narrow(to) && target != to) all[count++] = narrowing(to);
  }
};

/// The least and the largest number that an element can be made of.
std::pair<double, double> range_of(DType dtype) {
  switch (dtype) {
    case DType::int64:
      return {-0x1p63, 0x1.fffffffffffffp62};
    case DType::int32:
      return {-0x1p31, 0x1p31 - 1};
    case DType::uint8:
      return {-255, 255};
    case DType::float16:
      return {-65504, 65504};
    case DType::bfloat16:
      return {-0x1.fep127, 0x1.fep127};
    case DType::float32:
      return {-std::numeric_limits<float>::max(), std::numeric_limits<float>::max()};
    default:
      return {-std::numeric_limits<double>::max(), std::numeric_limits<double>::max()};
  }
}

}  // namespace

void convert_elements(DType from_type, const void* from, DType to_type, void* to, int64_t n) {
  constexpr int64_t kBlock = 512;
  const Steps steps(from_type, to_type);
  const int64_t from_size = size_of(from_type), to_size = size_of(to_type);
  if (steps.count == 0) std::copy_n(static_cast<const std::byte*>(from), n * from_size, static_cast<std::byte*>(to));
  if (steps.count == 1) return steps.all[0](from, to, n);
  alignas(64) std::array<std::array<double, kBlock>, 2> between;
  for (int64_t i = 0; steps.count > 1 && i < n; i += kBlock) {
    const int64_t count = std::min(kBlock, n - i);
    const void* source = static_cast<const std::byte*>(from) + i * from_size;
    for (size_t s = 0; s < steps.count; ++s) {
      void* const target = s + 1 == steps.count ? static_cast<void*>(static_cast<std::byte*>(to) + i * to_size) : &between[s];
      steps.all[s](source, target, count);
      source = target;
    }
  }
}

Tensor converted(const Tensor& x, DType dtype) {
  Tensor y = empty(x.shape(), dtype);
  copy_values(y, x);
  return y;
}

void write_element(Scalar number, DType dtype, void* to) {
  if (number.dtype != DType::float32 && !is_floating(dtype))
    convert_elements(DType::int64, &number.integer, dtype, to, 1);
  else
    convert_elements(DType::float64, &number.value, dtype, to, 1);
}

Scalar rounded(Scalar number, DType dtype) {
  if (dtype == DType::float32 && std::abs(number.value) > std::numeric_limits<float>::max())
    return std::copysign(std::numeric_limits<double>::infinity(), number.value);
  if (!is_narrow(dtype)) return number;
  uint64_t bits = 0;
  write_element(number, dtype, &bits);
  double value = 0;
  convert_elements(dtype, &bits, DType::float64, &value, 1);
  return is_floating(dtype) ? Scalar(value) : Scalar(static_cast<int64_t>(value));
}

void check_fits(std::string_view op, Scalar number, DType dtype) {
  const double v = number.value;
  const auto [least, most] = range_of(dtype);
  const bool is_exact = number.dtype != DType::float32 && dtype == DType::int64;
  const bool holds_any = is_floating(dtype) || dtype == DType::boolean;  // infinities and NaN, too
  const bool fits = is_exact || (v >= least && v <= most) || (holds_any && !std::isfinite(v));
  ONESTEP_CHECK(DTypeError, fits, op, ": ", v, " cannot be an element of dtype ", dtype, " (it would overflow)");
}

}  // namespace onestep::ops
