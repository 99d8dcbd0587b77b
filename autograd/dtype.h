#pragma once
// Element types and the step from a run-time dtype to a compile-time type. A dtype has a type in memory and one in which it is
// computed with: float32 for float16 and bfloat16, int64 for int32 and uint8, for the others their own. Ops know those four
// compute types alone: they widen what they read and round what they return.
#include <array>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string_view>
#include <type_traits>

#include "autograd/half.h"
#include "base/error.h"

namespace onestep {

enum class DType : uint8_t { float32, float64, int64, boolean, int32, uint8, float16, bfloat16 };
inline constexpr size_t kDTypes = 8;

// libtorch's names: `x.to(kInt)` where Python writes x.int().
inline constexpr DType kFloat = DType::float32, kDouble = DType::float64, kHalf = DType::float16, kBFloat16 = DType::bfloat16,
                       kLong = DType::int64, kInt = DType::int32, kByte = DType::uint8, kBool = DType::boolean;

/// The dtype that stores C++ type `T` (float, double, int64_t, bool, int32_t, uint8_t, Half or BFloat16).
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) return DType::float32;
  if constexpr (std::is_same_v<T, double>) return DType::float64;
  if constexpr (std::is_same_v<T, int64_t>) return DType::int64;
  if constexpr (std::is_same_v<T, bool>) return DType::boolean;
  if constexpr (std::is_same_v<T, int32_t>) return DType::int32;
  if constexpr (std::is_same_v<T, uint8_t>) return DType::uint8;
  if constexpr (std::is_same_v<T, Half>) return DType::float16;
  if constexpr (std::is_same_v<T, BFloat16>) return DType::bfloat16;
}

/// Bytes of an element.
constexpr int64_t size_of(DType dtype) { return std::to_array<int64_t>({4, 8, 8, 1, 4, 1, 2, 2})[static_cast<size_t>(dtype)]; }
constexpr bool is_floating(DType dtype) {
  return dtype == DType::float32 || dtype == DType::float64 || dtype == DType::float16 || dtype == DType::bfloat16;
}

/// The dtype of arithmetic with elements of `dtype`.
constexpr DType compute_type(DType dtype) {
  if (dtype == DType::float16 || dtype == DType::bfloat16) return DType::float32;
  return dtype == DType::int32 || dtype == DType::uint8 ? DType::int64 : dtype;
}
/// True for the dtypes that are narrower in memory than in arithmetic: int32, uint8, float16, bfloat16.
constexpr bool is_narrow(DType dtype) { return dtype > DType::boolean; }
/// float16 and bfloat16.
constexpr bool is_half(DType dtype) { return is_narrow(dtype) && is_floating(dtype); }

/// The dtype in which a and b meet (torch.promote_types): bool < uint8 < int32 < int64 < float16, bfloat16 < float32 < float64,
/// and float32 for the two halves.
DType promote_types(DType a, DType b);

/// What integers become by division, by roots and beside a number with a fraction (torch.get_default_dtype): float32 until it
/// is set. Python's factories make it, too, where no dtype is said; C++'s, and so layers and the trainer, make float32.
DType default_dtype();
/// For all threads; throws DTypeError unless it is a floating one (torch.set_default_dtype).
void set_default_dtype(DType dtype);

constexpr auto names(DType /*all*/) {
  return std::to_array<std::string_view>({"float32", "float64", "int64", "bool", "int32", "uint8", "float16", "bfloat16"});
}

/// PyTorch's name without the `torch.`: float32, float64, int64, bool, int32, uint8, float16, bfloat16.
constexpr std::string_view name(DType dtype) { return names(dtype)[static_cast<size_t>(dtype)]; }
inline std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name(dtype); }

/// Calls `f.template operator()<T>()` with the C++ type of `dtype`. Throws DTypeError on a narrow one, with which nothing is
/// computed (see compute_type).
template <class F>
decltype(auto) dispatch(DType dtype, F&& f) {
  switch (dtype) {
    case DType::float32:
      return f.template operator()<float>();
    case DType::float64:
      return f.template operator()<double>();
    case DType::int64:
      return f.template operator()<int64_t>();
    case DType::boolean:
      return f.template operator()<bool>();
    default:
      fail<DTypeError>("this op does not take ", dtype, " (convert with x.to(DType::", compute_type(dtype), "))");
  }
}

/// As `dispatch`, for float32 and float64 only; throws DTypeError naming `op` otherwise.
template <class F>
decltype(auto) dispatch_floating(DType dtype, std::string_view op, F&& f) {
  if (dtype == DType::float32) return f.template operator()<float>();
  if (dtype == DType::float64) return f.template operator()<double>();
  fail<DTypeError>(op, ": needs ", is_floating(dtype) ? "float32 or float64" : "a floating dtype", ": got ", dtype,
                   " (convert with x.to(DType::float32))");
}

/// Calls `f.template operator()<U>()` with the unsigned integer of `dtype`'s size, for ops that move elements and do not
/// compute.
template <class F>
decltype(auto) dispatch_size(DType dtype, F&& f) {
  switch (size_of(dtype)) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    default:
      return f.template operator()<uint64_t>();
  }
}

}  // namespace onestep
