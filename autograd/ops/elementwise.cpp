// The walks of elementwise ops over the rows of their operands.
#include "autograd/ops/elementwise.h"

#include <cstddef>

#include "autograd/ops/broadcast.h"
#include "autograd/ops/vectorized.h"

namespace onestep::ops {
namespace {

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

/// f(first, n, to) for blocks of y: what f writes to `to` as y's compute type is y's elements, rounded where y is narrow.
template <class F>
void write_blocks(Tensor& y, const F& f) {
  const Elements<std::byte> to = mutable_elements(y);
  for_each_block(y.numel(), [&](int64_t first, int64_t n) {
    if (!is_narrow(y.dtype())) return f(first, n, static_cast<void*>(to[first]));
    ElementBlock wide;
    f(first, n, static_cast<void*>(&wide));
    convert_elements(compute_type(y.dtype()), &wide, y.dtype(), to[first], n);
  });
}

/// The elements that a row has at least to be read by itself: a call for each shorter one would take longer than what it
/// computes.
constexpr int64_t kOwnCall = 64;

}  // namespace

void map_rows(Tensor& y, const Tensor& x, const MapRow& row) {
  const bool narrow = is_narrow(y.dtype()) || is_narrow(x.dtype());
  if (!narrow && flat_step(x, y) == 1) return row.call(row.row, x.data_ptr(), y.mutable_data_ptr(), x.numel());
  const BroadcastOperand from(x, y);
  const Tensor& source = from.in_rows();
  const MergedDims<2> rows(y.shape(), {source.strides(), y.strides()});
  if (!narrow && rows.sizes.back() >= kOwnCall && rows.strides[0].back() == 1) {
    return for_each_row(rows, [&, from = elements(source), to = mutable_elements(y)](const auto& at, int64_t n, const auto&) {
      row.call(row.row, from[at[0]], to[at[1]], n);
    });
  }
  write_blocks(y, [&](int64_t first, int64_t n, void* to) {
    ElementBlock block;
    row.call(row.row, from.read_wide(first, n, &block), to, n);
  });
}

void zip_rows(Tensor& y, const Tensor& a, const Tensor& b, const ZipRow& row) {
  const bool narrow = is_narrow(y.dtype()) || is_narrow(a.dtype());
  const int64_t a_step = flat_step(a, y), b_step = flat_step(b, y);
  if (!narrow && a_step >= 0 && b_step >= 0)
    return row.call(row.row, a.data_ptr(), a_step, b.data_ptr(), b_step, y.mutable_data_ptr(), y.numel());
  const BroadcastOperand left(a, y), right(b, y);
  const Tensor &a_rows = left.in_rows(), &b_rows = right.in_rows();
  const MergedDims<3> rows(y.shape(),
                           {broadcast_strides(a_rows, y.shape()), broadcast_strides(b_rows, y.shape()), y.strides()});
  if (!narrow && rows.sizes.back() >= kOwnCall) {
    const Elements<const std::byte> from_a = elements(a_rows), from_b = elements(b_rows);
    return for_each_row(rows, [&, to = mutable_elements(y)](const auto& at, int64_t n, const auto& steps) {
      row.call(row.row, from_a[at[0]], steps[0], from_b[at[1]], steps[1], to[at[2]], n);
    });
  }
  write_blocks(y, [&](int64_t first, int64_t n, void* to) {
    ElementBlock a_block, b_block;
    row.call(row.row, left.read_wide(first, n, &a_block), left.step(), right.read_wide(first, n, &b_block), right.step(), to,
             n);
  });
}

Tensor zip_three_rows(const char* op, const Tensor& a, const Tensor& b, const Tensor& c, const ZipThreeRow& row) {
  const Shape shape = broadcast_shapes(op, broadcast_shapes(op, a.shape(), b.shape()), c.shape());
  const bool apart = !ResultInPlace::is(op, a) || !c.shares_storage(a);
  Tensor y = shape == a.shape() && apart ? result_of(op, a, b) : empty(shape, a.dtype());
  const std::array<int64_t, 3> steps = {flat_step(a, y), flat_step(b, y), flat_step(c, y)};
  const bool flat = *std::min_element(steps.begin(), steps.end()) >= 0;
  if (flat && !is_narrow(y.dtype())) {
    row.call(row.row, {a.data_ptr(), b.data_ptr(), c.data_ptr()}, steps, y.mutable_data_ptr(), y.numel());
    return y;
  }
  if (!flat && !y.is_contiguous()) y = empty(shape, a.dtype());
  const std::array<BroadcastOperand, 3> from = {BroadcastOperand(a, y), BroadcastOperand(b, y), BroadcastOperand(c, y)};
  write_blocks(y, [&](int64_t first, int64_t n, void* to) {
    std::array<ElementBlock, 3> blocks;
    const auto read = [&](size_t k) { return from[k].read_wide(first, n, &blocks[k]); };
    row.call(row.row, {read(0), read(1), read(2)}, {from[0].step(), from[1].step(), from[2].step()}, to, n);
  });
  return y;
}

}  // namespace onestep::ops
