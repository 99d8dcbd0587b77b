#pragma once
// Shapes, strides and dim lists: a fixed-capacity array of int64, cheap to copy and to capture in a backward rule.
#include <array>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.h"

namespace onestep {

inline constexpr int kMaxRank = 8;

/// Up to eight int64 values: a shape, the strides of a tensor, or a list of dims. Throws ShapeError beyond rank 8.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> values) : Shape(values.begin(), values.size()) {}
  /// One entry, so that `ones(3)`, `view(x, -1)` and `sum(x, 1)` read as in PyTorch.
  template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
  Shape(T value) : Shape({static_cast<int64_t>(value)}) {}
  Shape(const std::vector<int64_t>& values) : Shape(values.data(), values.size()) {}
  static Shape filled(int rank, int64_t value);

  int rank() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  int64_t operator[](int i) const { return values_[static_cast<size_t>(i)]; }
  int64_t& operator[](int i) { return values_[static_cast<size_t>(i)]; }
  int64_t back() const { return (*this)[rank_ - 1]; }
  const int64_t* begin() const { return values_.data(); }
  const int64_t* end() const { return values_.data() + rank_; }

  /// The first `rank` entries.
  Shape first(int rank) const { return {values_.data(), static_cast<size_t>(rank)}; }
  void push_back(int64_t value) {
    check_room(static_cast<size_t>(rank_) + 1);
    values_[static_cast<size_t>(rank_++)] = value;
  }
  void insert(int position, int64_t value);
  void erase(int position);

  /// Number of elements: the product of all entries (1 for rank 0).
  int64_t numel() const {
    int64_t count = 1;
    for (const int64_t size : *this) count *= size;
    return count;
  }
  bool operator==(const Shape& other) const {
    if (rank_ != other.rank_) return false;
    for (int i = 0; i < rank_; ++i) {
      if ((*this)[i] != other[i]) return false;
    }
    return true;
  }

 private:
  Shape(const int64_t* values, size_t count) {
    check_room(count);
    for (size_t i = 0; i < count; ++i) values_[i] = values[i];
    rank_ = static_cast<int>(count);
  }
  static void check_room(size_t rank) {
    ONESTEP_CHECK(ShapeError, rank <= kMaxRank, "shape: rank ", rank, " is above the limit of ", kMaxRank);
  }

  std::array<int64_t, kMaxRank> values_{};
  int rank_ = 0;
};

/// Two or more sizes or dims that are given without braces: `zeros(3, 4)`, `x.view(2, -1)`.
template <class... I>
concept Sizes = sizeof...(I) >= 2 && (std::is_integral_v<I> && ...);

/// `[2, 3, 4]`
std::ostream& operator<<(std::ostream& out, const Shape& shape);

/// Maps a dim in [-rank, rank) to [0, rank); throws ShapeError naming `op`. A rank-0 tensor takes dims 0 and -1.
int normalize_dim(std::string_view op, int64_t dim, int rank);

/// Sorted, normalised, distinct dims; an empty list means all of them. Throws ShapeError on a repeated dim.
Shape normalize_dims(std::string_view op, const Shape& dims, int rank);

/// The shape after removing `dims` (sorted, normalised), or after setting them to 1 with `keepdim`.
Shape reduced_shape(const Shape& shape, const Shape& dims, bool keepdim);

/// Row-major strides, in elements.
Shape contiguous_strides(const Shape& shape);

/// NumPy broadcasting of two shapes; throws ShapeError naming `op` and both shapes.
Shape broadcast_shapes(std::string_view op, const Shape& a, const Shape& b);

/// Throws ShapeError unless every size is >= 0 and the element count fits in memory arithmetic.
void check_sizes(std::string_view op, const Shape& shape);

}  // namespace onestep
