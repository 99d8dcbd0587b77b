#pragma once
// What op cases of every kind share: special numbers, given inputs, refused calls.
#include <limits>
#include <utility>
#include <vector>

#include "autograd/testing/op_case.h"

namespace onestep {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// An input of given values.
inline InputSpec values(const Shape& shape, std::vector<double> given, DType dtype = DType::float64) {
  return {.shape = shape, .dtype = dtype, .values = std::move(given)};
}
inline InputSpec values(std::vector<double> given, DType dtype = DType::float64) {
  const auto count = static_cast<int64_t>(given.size());
  return values(count, std::move(given), dtype);
}
/// Given indices.
inline InputSpec places(const Shape& shape, std::vector<double> given) { return values(shape, std::move(given), DType::int64); }
inline InputSpec truths(const Shape& shape) { return {.shape = shape, .low = 0, .high = 2, .dtype = DType::boolean}; }

template <class F>
OpError refused(const char* label, F call, const char* message, ErrorType type = is_a<Error>) {
  return {label, [call] { call(); }, message, type};
}

}  // namespace onestep
