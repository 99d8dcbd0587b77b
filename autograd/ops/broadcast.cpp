// Blocks of broadcast operands.
#include "autograd/ops/broadcast.h"

#include <algorithm>

namespace onestep::ops {
namespace {

/// x if a dim is left along which its elements lie one after the other or are one, else a contiguous copy: copying knows how to
/// cross a matrix.
Tensor rows_of(const Tensor& x) {
  int last = x.dim() - 1;
  while (last >= 0 && x.shape()[last] == 1) --last;
  return last < 0 || x.strides()[last] <= 1 ? x : contiguous_values(x);
}

/// to[r, c] = from[r * stride] for `rows` rows of n; what lies up to kBlockEnd elements behind is overwritten.
template <class U>
void repeat_each(U* to, const U* from, int64_t rows, int64_t n, int64_t stride) {
  for (; rows > 0; --rows, to += n, from += stride)
    for (int64_t c = 0; c < n; c += kBlockEnd) std::fill_n(to + c, kBlockEnd, *from);
}

/// to[r, c] = from[r * stride + c] for `rows` rows of n bytes.
void copy_rows(std::byte* to, const std::byte* from, int64_t rows, int64_t n, int64_t stride) {
  if (stride == 0) {
    std::copy_n(from, n, to);
    for (int64_t done = n; done < rows * n; done *= 2) std::copy_n(to, std::min(done, rows * n - done), to + done);
  } else {
    for (; rows > 0; --rows, to += n, from += stride) std::copy_n(from, n, to);
  }
}

/// Elements [first, first + n) of x as `dims` order them.
void gather(const MergedDims<1>& dims, DType dtype, const Elements<const std::byte>& x, int64_t first, int64_t n,
            std::byte* to) {
  const Shape &sizes = dims.sizes, &strides = dims.strides[0];
  const int last = sizes.rank() - 1;
  const int64_t length = sizes[last], step = strides[last];
  for (int64_t row = first / length, column = first % length; n > 0;) {
    const std::byte* const from = x[dims.row_offsets(row)[0] + column * step];
    const int64_t neighbours = last == 0 ? 1 : sizes[last - 1] - row % sizes[last - 1];
    const bool whole = column == 0 && n >= length;
    const int64_t rows = whole ? std::min(neighbours, n / length) : 1, cols = whole ? length : std::min(n, length - column);
    const int64_t stride = last == 0 ? 0 : strides[last - 1];
    if (step == 0)
      dispatch_size(dtype, [=]<class U>() {
        repeat_each(reinterpret_cast<U*>(to), reinterpret_cast<const U*>(from), rows, cols, stride);
      });
    else
      copy_rows(to, from, rows, cols * x.size, stride * x.size);
    to += rows * cols * x.size;
    n -= rows * cols;
    row += rows;
    column = 0;
  }
}

}  // namespace

int64_t flat_step(const Tensor& x, const Tensor& y) {
  const bool alike = x.strides() == y.strides() || (x.is_contiguous() && y.is_contiguous());
  if (x.shape() == y.shape() && alike) return 1;
  return x.numel() == 1 ? 0 : -1;
}

BroadcastOperand::BroadcastOperand(const Tensor& x, const Tensor& y) : BroadcastOperand(x, y, flat_step(x, y) >= 0) {}

BroadcastOperand::BroadcastOperand(const Tensor& x, const Tensor& y, bool flat)
    : x_(flat ? x : rows_of(x)),
      single_(x.numel() == 1),
      dims_(flat ? MergedDims<1>({y.numel()}, {Shape{1}}) : MergedDims<1>(y.shape(), {broadcast_strides(x_, y.shape())})) {}

const void* BroadcastOperand::read(int64_t first, int64_t n, ElementBlock* to) const {
  if (single_) return x_.data_ptr();
  const Elements<const std::byte> x = elements(x_);
  const int64_t length = dims_.sizes.back(), column = first % length;
  if (dims_.strides[0].back() == 1 && column + n <= length) return x[dims_.row_offsets(first / length)[0] + column];
  gather(dims_, x_.dtype(), x, first, n, reinterpret_cast<std::byte*>(to->numbers.data()));
  return to;
}

const void* BroadcastOperand::read_wide(int64_t first, int64_t n, ElementBlock* to) const {
  if (!is_narrow(x_.dtype())) return read(first, n, to);
  ElementBlock narrow;
  convert_elements(x_.dtype(), read(first, n, &narrow), compute_type(x_.dtype()), to, single_ ? 1 : n);
  return to;
}

}  // namespace onestep::ops
