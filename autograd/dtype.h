#pragma once
// Element types and the step from a run-time dtype to a compile-time type.
#include <array>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string_view>
#include <type_traits>

#include "base/error.h"

namespace onestep {

enum class DType : uint8_t { float32, float64, int64, boolean };

/// The dtype that stores C++ type `T` (float, double, int64_t or bool).
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) return DType::float32;
  if constexpr (std::is_same_v<T, double>) return DType::float64;
  if constexpr (std::is_same_v<T, int64_t>) return DType::int64;
  if constexpr (std::is_same_v<T, bool>) return DType::boolean;
}

constexpr int64_t size_of(DType dtype) { return dtype == DType::boolean ? 1 : dtype == DType::float32 ? 4 : 8; }
constexpr bool is_floating(DType dtype) { return dtype == DType::float32 || dtype == DType::float64; }

constexpr auto names(DType /*all*/) { return std::to_array<std::string_view>({"float32", "float64", "int64", "bool"}); }

/// PyTorch's name without the `torch.`: float32, float64, int64, bool.
constexpr std::string_view name(DType dtype) { return names(dtype)[static_cast<size_t>(dtype)]; }
inline std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name(dtype); }

/// Calls `f.template operator()<T>()` with the C++ type of `dtype`.
template <class F>
decltype(auto) dispatch(DType dtype, F&& f) {
  switch (dtype) {
    case DType::float32:
      return f.template operator()<float>();
    case DType::float64:
      return f.template operator()<double>();
    case DType::int64:
      return f.template operator()<int64_t>();
    default:
      return f.template operator()<bool>();
  }
}

/// As `dispatch`, for float32 and float64 only; throws DTypeError naming `op` otherwise.
template <class F>
decltype(auto) dispatch_floating(DType dtype, std::string_view op, F&& f) {
  if (dtype == DType::float32) return f.template operator()<float>();
  if (dtype == DType::float64) return f.template operator()<double>();
  fail<DTypeError>(op, ": needs a floating dtype: got ", dtype, " (convert with x.to(DType::float32))");
}

}  // namespace onestep
