#include "autograd/shape.h"

#include <algorithm>

namespace onestep {

Shape Shape::filled(int rank, int64_t value) {
  Shape shape;
  for (int i = 0; i < rank; ++i) shape.push_back(value);
  return shape;
}

void Shape::insert(int position, int64_t value) {
  check_room(static_cast<size_t>(rank_) + 1);
  std::copy_backward(begin() + position, end(), values_.begin() + rank_ + 1);
  ++rank_;
  (*this)[position] = value;
}

void Shape::erase(int position) {
  std::copy(begin() + position + 1, end(), values_.begin() + position);
  --rank_;
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  out << '[';
  for (int i = 0; i < shape.rank(); ++i) out << (i ? ", " : "") << shape[i];
  return out << ']';
}

int normalize_dim(std::string_view op, int64_t dim, int rank) {
  const int64_t limit = std::max(rank, 1);
  ONESTEP_CHECK(IndexError, -limit <= dim && dim < limit, op, ": dim out of range: ", dim, " (expected ", -limit, " to ",
                limit - 1, ")");
  return static_cast<int>(dim < 0 ? dim + limit : dim);
}

Shape normalize_dims(std::string_view op, const Shape& dims, int rank) {
  std::array<bool, kMaxRank> chosen{};
  for (int64_t dim : dims) {
    const auto i = static_cast<size_t>(normalize_dim(op, dim, rank));
    ONESTEP_CHECK(ShapeError, !chosen[i], op, ": dim ", dim, " appears twice in ", dims);
    chosen[i] = true;
  }
  Shape sorted;
  for (int i = 0; i < rank; ++i)
    if (dims.empty() || chosen[static_cast<size_t>(i)]) sorted.push_back(i);
  return sorted;
}

Shape reduced_shape(const Shape& shape, const Shape& dims, bool keepdim) {
  Shape reduced;
  for (int i = 0, next = 0; i < shape.rank(); ++i) {
    const bool removed = next < dims.rank() && dims[next] == i;
    if (removed) ++next;
    if (!removed || keepdim) reduced.push_back(removed ? 1 : shape[i]);
  }
  return reduced;
}

Shape contiguous_strides(const Shape& shape) {
  Shape strides = shape;
  int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = step;
    step *= std::max<int64_t>(shape[i], 1);
  }
  return strides;
}

Shape broadcast_shapes(std::string_view op, const Shape& a, const Shape& b) {
  if (a == b) return a;
  const int rank = std::max(a.rank(), b.rank());
  Shape result = Shape::filled(rank, 1);
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank()), ib = i - (rank - b.rank());
    const int64_t na = ia < 0 ? 1 : a[ia], nb = ib < 0 ? 1 : b[ib];
    ONESTEP_CHECK(ShapeError, na == nb || na == 1 || nb == 1, op, ": shapes do not broadcast: ", a, " and ", b, " (sizes ", na,
                  " and ", nb, " differ at dim ", i - rank, "; one of them would have to be 1)");
    result[i] = na == 1 ? nb : na;
  }
  return result;
}

void check_sizes(std::string_view op, const Shape& shape) {
  int64_t count = 1;
  for (int64_t size : shape) {
    ONESTEP_CHECK(ShapeError, size >= 0, op, ": negative size in ", shape);
    const bool overflows = __builtin_mul_overflow(count, size == 0 ? 1 : size, &count) || count > (int64_t{1} << 59);
    ONESTEP_CHECK(ShapeError, !overflows, op, ": too many elements: ", shape);
  }
}

}  // namespace onestep
