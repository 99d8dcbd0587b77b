// The walks of elementwise ops over the rows of their operands.
#include "autograd/ops/elementwise.h"

#include "autograd/ops/strided.h"

namespace onestep::ops {
namespace {

/// x if its rows have steps of 1 or 0, else a contiguous copy: copying knows how to cross a matrix.
Tensor in_rows(const Tensor& x) {
  int last = x.dim() - 1;
  while (last >= 0 && x.shape()[last] == 1) --last;
  return last < 0 || x.strides()[last] <= 1 ? x : contiguous_values(x);
}

/// The one step of x's elements when it is laid out as the result y, which is row-major where an operand is (1), or is a
/// single element (0), else -1.
int64_t flat_step(const Tensor& x, const Tensor& y) {
  if (x.shape() == y.shape() && (x.is_contiguous() || x.strides() == y.strides())) return 1;
  return x.numel() == 1 ? 0 : -1;
}

/// Whether x is a permutation of row-major.
bool leaves_no_gaps(const Tensor& x) {
  int64_t next = 1;
  for (int found = 0; found < x.dim(); ++found) {
    int i = 0;
    while (i < x.dim() && (x.shape()[i] == 1 || x.strides()[i] != next)) ++i;
    if (i == x.dim()) break;
    next *= x.shape()[i];
  }
  return next == x.numel();
}

/// The elements of a tensor by their size.
template <class Byte>
struct Elements {
  Byte* first;
  int64_t size;
  Byte* operator[](int64_t i) const { return first + i * size; }
};
Elements<const std::byte> elements(const Tensor& x) {
  return {static_cast<const std::byte*>(x.data_ptr()), static_cast<int64_t>(size_of(x.dtype()))};
}
Elements<std::byte> mutable_elements(Tensor& y) {
  return {static_cast<std::byte*>(y.mutable_data_ptr()), static_cast<int64_t>(size_of(y.dtype()))};
}

}  // namespace

Tensor empty_result(const Shape& shape, DType dtype, const Tensor& a, const Tensor& b) {
  if (a.is_contiguous() && b.is_contiguous()) return empty(shape, dtype);
  const Tensor &like = a.is_contiguous() ? b : a, &other = a.is_contiguous() ? a : b;
  const bool fits =
      like.shape() == shape && (other.numel() == 1 || (other.shape() == shape && other.strides() == like.strides()));
  if (!fits || !leaves_no_gaps(like)) return empty(shape, dtype);
  return view_of(empty({shape.numel()}, dtype), shape, like.strides(), 0);
}

void map_rows(Tensor& y, const Tensor& x, const MapRow& row) {
  const Elements<std::byte> to = mutable_elements(y);
  if (x.is_contiguous() || x.strides() == y.strides()) return row.call(row.row, x.data_ptr(), to.first, x.numel(), x.numel());
  const Tensor rows = in_rows(x);
  const Elements<const std::byte> from = elements(rows);
  for_each_row<2>(x.shape(), {rows.strides(), y.strides()}, [&](const auto& at, int64_t n, const auto& steps) {
    row.call(row.row, from[at[0]], to[at[1]], steps[0] == 0 ? 1 : n, n);
  });
}

void zip_rows(Tensor& y, const Tensor& a, const Tensor& b, const ZipRow& row) {
  const Elements<std::byte> to = mutable_elements(y);
  const Shape& shape = y.shape();
  const int64_t a_step = flat_step(a, y), b_step = flat_step(b, y);
  if (a_step >= 0 && b_step >= 0) return row.call(row.row, a.data_ptr(), a_step, b.data_ptr(), b_step, to.first, shape.numel());
  const Tensor a_rows = in_rows(a), b_rows = in_rows(b);
  const Elements<const std::byte> left = elements(a_rows), right = elements(b_rows);
  for_each_row<3>(shape, {broadcast_strides(a_rows, shape), broadcast_strides(b_rows, shape), y.strides()},
                  [&](const auto& at, int64_t n, const auto& steps) {
                    row.call(row.row, left[at[0]], steps[0], right[at[1]], steps[1], to[at[2]], n);
                  });
}

}  // namespace onestep::ops
