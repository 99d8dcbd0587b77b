#pragma once
// What may be between the brackets of Python's x[...]: `x.index({0, Slice(1, 3), None, Ellipsis, mask})`.
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <variant>

#include "autograd/list_view.h"
#include "autograd/tensor.h"

namespace onestep {

/// No bound of a Slice, or as an index a new dim of size 1.
inline constexpr std::nullopt_t None = std::nullopt;

/// As many whole dims as are left.
struct EllipsisIndex {};
inline constexpr EllipsisIndex Ellipsis{};

/// start:stop:step of one dim with Python's clamping and negative positions; step >= 1. `Slice()` is the whole dim.
struct Slice {
  Slice(std::optional<int64_t> first = {}, std::optional<int64_t> last = {}, int64_t by = 1)
      : start(first), stop(last), step(by) {}
  std::optional<int64_t> start, stop;
  int64_t step;
};

/// One of them: a position, a Slice, None, Ellipsis (or "..."), or a tensor: int64 positions, or a bool mask.
class TensorIndex {
 public:
  template <class T, class = std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>>
  TensorIndex(T position) : kind(static_cast<int64_t>(position)) {}
  TensorIndex(Slice slice) : kind(slice) {}
  TensorIndex(std::nullopt_t) : kind(std::nullopt) {}
  TensorIndex(EllipsisIndex ellipsis) : kind(ellipsis) {}
  TensorIndex(const char* dots);  ///< Throws ShapeError unless it is "...".
  TensorIndex(const Tensor& tensor) : kind(tensor) {}

  std::variant<int64_t, Slice, std::nullopt_t, EllipsisIndex, Tensor> kind;
};

using IndexList = ListView<TensorIndex>;

}  // namespace onestep
