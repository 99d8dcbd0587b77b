#pragma once
// Calls of the forms that many ops share.
#include "tests/programs/call.h"

namespace onestep::programs {

template <Tensor (*op)(const Tensor&)>
Results unary(const Args& a) {
  return op(a.x());
}

template <Tensor (*op)(const Tensor&, const Tensor&)>
Results tensors(const Args& a) {
  return op(a.x(), a.tensor(1, "other"));
}

/// An op of two tensors, or of a tensor and a number on either side: op(number, x) is mirrored(x, number).
template <Tensor (*op)(const Tensor&, const Tensor&), Tensor (*with_number)(const Tensor&, Scalar),
          Tensor (*mirrored)(const Tensor&, Scalar) = nullptr>
Results binary(const Args& a) {
  if constexpr (mirrored != nullptr) {
    if (!a.is_tensor(0, "input")) return mirrored(a.tensor(1, "other"), a.scalar(0, "input"));
  }
  return a.is_tensor(1, "other") ? op(a.x(), a.tensor(1, "other")) : with_number(a.x(), a.scalar(1, "other"));
}

/// A reduction of everything, or over dims.
template <Tensor (*op)(const Tensor&), Tensor (*over)(const Tensor&, const Shape&, bool)>
Results reduction(const Args& a) {
  if (!a.has(1, "dim") && !a.flag(2, "keepdim")) return op(a.x());
  return over(a.x(), a.shape(1, "dim"), a.flag(2, "keepdim"));
}

/// amax, amin: over dims, of which an empty list means all.
template <Tensor (*op)(const Tensor&, const Shape&, bool)>
Results over_dims(const Args& a) {
  return op(a.x(), a.shape(1, "dim"), a.flag(2, "keepdim"));
}

/// max, min: of everything, along a dim with the places, or of two tensors.
template <Tensor (*op)(const Tensor&), ValuesIndices (*along)(const Tensor&, int64_t, bool),
          Tensor (*of_two)(const Tensor&, const Tensor&)>
Results extremum(const Args& a) {
  if (a.is_tensor(1, "other")) return of_two(a.x(), a.tensor(1, "other"));
  if (a.has(1, "dim")) return along(a.x(), a.integer(1, "dim"), a.flag(2, "keepdim"));
  return op(a.x());
}

template <Tensor (*op)(const Tensor&), Tensor (*along)(const Tensor&, int64_t, bool)>
Results along_dim(const Args& a) {
  if (a.has(1, "dim")) return along(a.x(), a.integer(1, "dim"), a.flag(2, "keepdim"));
  return op(a.x());
}

template <ValuesIndices (*op)(const Tensor&, int64_t)>
Results scan(const Args& a) {
  return op(a.x(), a.integer(1, "dim"));
}

/// The reduction of a loss, which PyTorch's tests name by keyword.
inline Reduction reduction_of(const Args& a) {
  const std::string name = a.text(kKeywordOnly, "reduction", "mean");
  return name == "none" ? Reduction::none : name == "sum" ? Reduction::sum : Reduction::mean;
}

}  // namespace onestep::programs
