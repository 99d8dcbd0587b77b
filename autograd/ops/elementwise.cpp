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

/// The new elements of result_of.
Tensor empty_result(const Shape& shape, DType dtype, const Tensor& a, const Tensor& b) {
  if (a.is_contiguous() && b.is_contiguous()) return empty(shape, dtype);
  const Tensor &like = a.is_contiguous() ? b : a, &other = a.is_contiguous() ? a : b;
  const bool fits =
      like.shape() == shape && (other.numel() == 1 || (other.shape() == shape && other.strides() == like.strides()));
  if (!fits || !leaves_no_gaps(like)) return empty(shape, dtype);
  return view_of(empty({shape.numel()}, dtype), shape, like.strides(), 0);
}

thread_local const ResultInPlace* writing = nullptr;
}  // namespace

ResultInPlace::ResultInPlace(const char* in_place, const Tensor& x) : op_(in_place), x_(x), before_(writing) {
  op_.remove_suffix(1);
  writing = this;
}
ResultInPlace::~ResultInPlace() { writing = before_; }

bool ResultInPlace::is(const char* op, const Tensor& x) {
  return writing && &x.impl() == &writing->x_.impl() && op == writing->op_ && x.is_contiguous();
}

Tensor result_of(const char* op, const Tensor& x) {
  if (ResultInPlace::is(op, x)) return x;
  return x.is_contiguous() ? empty(x.shape(), x.dtype()) : empty_result(x.shape(), x.dtype(), x, x);
}

Tensor result_of(const char* op, const Tensor& x, const Tensor& other) {
  const Shape shape = broadcast_shapes(op, x.shape(), other.shape());
  if (shape == x.shape() && !other.shares_storage(x) && ResultInPlace::is(op, x)) return x;
  return empty_result(shape, x.dtype(), x, other);
}

namespace {

constexpr int64_t kNarrowBlock = 512;
/// A block of numbers of any compute type.
struct alignas(64) WideBlock {
  std::array<int64_t, kNarrowBlock> numbers;
};

/// f(first, n, to) for blocks of y: what f writes to `to` as y's compute type is y's elements, rounded where y is narrow.
template <class F>
void for_each_narrow_block(Tensor& y, const F& f) {
  const int64_t size = y.numel();
  const Elements<std::byte> to = mutable_elements(y);
  kernels::parallel_for((size + kNarrowBlock - 1) / kNarrowBlock, kNarrowBlock * kLoopCost, [&](int64_t i, int64_t end) {
    WideBlock wide;
    for (; i < end; ++i) {
      const int64_t first = i * kNarrowBlock, n = std::min(size - first, kNarrowBlock);
      if (!is_narrow(y.dtype())) {
        f(first, n, to[first]);
        continue;
      }
      f(first, n, &wide);
      convert_elements(compute_type(y.dtype()), &wide, y.dtype(), to[first], n);
    }
  });
}

/// Elements of a narrow operand that is laid out as the result, or is one element (step 0), as its compute type.
void widen_block(const Tensor& x, int64_t step, int64_t first, int64_t n, WideBlock* to) {
  convert_elements(x.dtype(), elements(x)[first * step], compute_type(x.dtype()), to, step == 0 ? 1 : n);
}

/// map_rows and zip_rows where the result is narrow, or the operands are.
void map_narrow(Tensor& y, const Tensor& x, const MapRow& row) {
  if (!x.is_contiguous() && x.strides() != y.strides()) return map_narrow(y, contiguous_values(x), row);
  for_each_narrow_block(y, [&](int64_t first, int64_t n, void* to) {
    WideBlock from;
    widen_block(x, 1, first, n, &from);
    row.call(row.row, &from, to, n, n);
  });
}
void zip_narrow(Tensor& y, const Tensor& a, const Tensor& b, const ZipRow& row) {
  const int64_t a_step = flat_step(a, y), b_step = flat_step(b, y);
  if (a_step < 0 || b_step < 0)
    return zip_narrow(y, contiguous_values(expand_values("", a, y.shape())), contiguous_values(expand_values("", b, y.shape())),
                      row);
  for_each_narrow_block(y, [&](int64_t first, int64_t n, void* to) {
    WideBlock left, right;
    widen_block(a, a_step, first, n, &left);
    widen_block(b, b_step, first, n, &right);
    row.call(row.row, &left, a_step, &right, b_step, to, n);
  });
}

}  // namespace

void map_rows(Tensor& y, const Tensor& x, const MapRow& row) {
  if (is_narrow(y.dtype()) || is_narrow(x.dtype())) return map_narrow(y, x, row);
  const Elements<std::byte> to = mutable_elements(y);
  if (x.is_contiguous() || x.strides() == y.strides()) return row.call(row.row, x.data_ptr(), to.first, x.numel(), x.numel());
  const Tensor rows = in_rows(x);
  const Elements<const std::byte> from = elements(rows);
  for_each_row<2>(x.shape(), {rows.strides(), y.strides()}, [&](const auto& at, int64_t n, const auto& steps) {
    row.call(row.row, from[at[0]], to[at[1]], steps[0] == 0 ? 1 : n, n);
  });
}

void zip_rows(Tensor& y, const Tensor& a, const Tensor& b, const ZipRow& row) {
  if (is_narrow(y.dtype()) || is_narrow(a.dtype())) return zip_narrow(y, a, b, row);
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
