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

/// A dim that may be left out.
inline std::optional<int64_t> optional_dim(const Args& a, size_t i, const char* name) {
  return a.has(i, name) ? std::optional(a.integer(i, name)) : std::nullopt;
}

/// An op of two tensors, or of a tensor and a number, on either side where there is `mirrored`: op(number, x) is mirrored(x,
/// number).
template <Tensor (*op)(const Tensor&, const Tensor&), Tensor (*with_number)(const Tensor&, Scalar),
          Tensor (*... mirrored)(const Tensor&, Scalar)>
Results binary(const Args& a) {
  if constexpr (sizeof...(mirrored) > 0) {
    if (!a.is_tensor(0, "input")) return (mirrored(a.tensor(1, "other"), a.scalar(0, "input")), ...);
  }
  return a.is_tensor(1, "other") ? op(a.x(), a.tensor(1, "other")) : with_number(a.x(), a.scalar(1, "other"));
}

/// A reduction of everything, or over dims.
template <Tensor (*op)(const Tensor&), Tensor (*over)(const Tensor&, const Shape&, bool)>
Results reduction(const Args& a) {
  if (!a.has(1, "dim") && !a.flag(2, "keepdim")) return op(a.x());
  return over(a.x(), a.shape(1, "dim"), a.flag(2, "keepdim"));
}

/// sum, mean: a reduction that may convert its input first.
template <Tensor (*op)(const Tensor&), Tensor (*over)(const Tensor&, const Shape&, bool),
          Tensor (*in_dtype)(const Tensor&, const Shape&, bool, DType)>
Results reduction_in(const Args& a) {
  if (!a.has(kKeywordOnly, "dtype")) return reduction<op, over>(a);
  return in_dtype(a.x(), a.shape(1, "dim"), a.flag(2, "keepdim"), a.dtype(kKeywordOnly, "dtype"));
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

/// cumsum, softmax and others along a dim that may convert their input first.
template <Tensor (*op)(const Tensor&, int64_t), Tensor (*in_dtype)(const Tensor&, int64_t, DType)>
Results along_dim_in(const Args& a) {
  if (!a.has(2, "dtype")) return op(a.x(), a.integer(1, "dim"));
  return in_dtype(a.x(), a.integer(1, "dim"), a.dtype(2, "dtype"));
}

template <ValuesIndices (*op)(const Tensor&, int64_t)>
Results scan(const Args& a) {
  return op(a.x(), a.integer(1, "dim"));
}

/// The reduction of a loss, which PyTorch's tests name by keyword.
inline Reduction reduction_of(const Args& a) {
  const std::string name = a.text(kKeywordOnly, "reduction", "mean");
  const std::map<std::string, Reduction> all = {
      {"none", Reduction::none}, {"mean", Reduction::mean}, {"sum", Reduction::sum}, {"batchmean", Reduction::batchmean}};
  ONESTEP_CHECK(Unsupported, all.contains(name), "reduction ", name);
  return all.at(name);
}

}  // namespace onestep::programs
