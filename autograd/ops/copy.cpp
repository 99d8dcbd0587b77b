// Plain copies and views that the op files build on.
#include <algorithm>
#include <cstring>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "autograd/ops/common.h"
#include "autograd/ops/strided.h"
#include "autograd/ops/vectorized.h"
#include "autograd/ops_shape.h"

namespace onestep::ops {
namespace {

/// A dim other than the last along which `source` is contiguous while its last dim jumps, so that copying row by row would
/// touch a new cache line for every element; -1 if there is none.
int crossing_dim(const Shape& shape, const Shape& source) {
  const int last = shape.rank() - 1;
  if (last < 1 || shape[last] == 1 || source[last] <= 1) return -1;
  for (int i = 0; i < last; ++i)
    if (shape[i] > 1 && source[i] == 1) return i;
  return -1;
}

constexpr int64_t kTile = 16;

/// to[r * step + c] = from[r + c * stride] for a tile [height, width] of at most kTile each. Always inlined: with constants
/// for the two it is three times as fast.
template <class T>
[[gnu::always_inline]] inline void transpose_tile(T* to, int64_t step, const T* from, int64_t stride, int64_t height,
                                                  int64_t width) {
  T block[kTile][kTile];
  for (int64_t c = 0; c < width; ++c)
    for (int64_t r = 0; r < height; ++r) block[r][c] = from[r + c * stride];
  for (int64_t r = 0; r < height; ++r) std::copy_n(block[r], width, to + r * step);
}

/// The same for a matrix [rows, cols], in tiles that read and write whole cache lines; the next tile's are asked for.
template <class T>
void transpose_into(T* to, int64_t step, const T* from, int64_t stride, int64_t rows, int64_t cols) {
  kernels::parallel_for((rows + kTile - 1) / kTile, kLoopCost * static_cast<double>(kTile * cols), [=](int64_t i, int64_t end) {
    for (; i < end; ++i) {
      const int64_t r = i * kTile, height = std::min(rows - r, kTile);
      for (int64_t c = 0; c < cols; c += kTile) {
        const int64_t width = std::min(cols - c, kTile);
        for (int64_t j = c + kTile; j < std::min(c + 2 * kTile, cols); ++j) __builtin_prefetch(from + r + j * stride);
        if (height == kTile && width == kTile)
          transpose_tile(to + r * step + c, step, from + r + c * stride, stride, kTile, kTile);
        else
          transpose_tile(to + r * step + c, step, from + r + c * stride, stride, height, width);
      }
    }
  });
}

/// Copies a tensor whose unit-stride dim is `d` into a target whose unit-stride dim is the last one.
template <class T>
void copy_transposing(int d, Shape shape, T* to, Shape target, const T* from, Shape source) {
  const int last = shape.rank() - 1;
  const int64_t rows = shape[d], cols = shape[last], step = target[d], stride = source[last];
  for (Shape* s : {&shape, &target, &source}) {
    s->erase(last);
    s->erase(d);
  }
  for_each_row<2>(shape, {target, source}, [=](const auto& at, int64_t n, const auto& steps) {
    for (int64_t i = 0; i < n; ++i)
      transpose_into(to + at[0] + i * steps[0], step, from + at[1] + i * steps[1], stride, rows, cols);
  });
}

/// Whether a copy is written past the caches, which would not keep it until it is read: to a large tensor, an eighth of it or
/// more.
bool is_streamed(const Tensor& target) {
  const int64_t bytes = target.numel() * size_of(target.dtype()), all = target.impl().storage->bytes;
  return all >= 16 << 20 && bytes >= all / 8;
}

#ifdef __SSE2__
/// to[i] = from[i] for whole cache lines, written past the caches; `to` is at a multiple of 16 bytes.
void stream_lines(std::byte* to, const std::byte* from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 16)
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
  _mm_sfence();  // before others read it
}
bool can_stream(const void* to) { return reinterpret_cast<uintptr_t>(to) % 16 == 0; }
#else
void stream_lines(std::byte* to, const std::byte* from, int64_t bytes) { std::memcpy(to, from, static_cast<size_t>(bytes)); }
bool can_stream(const void* /*to*/) { return false; }
#endif

/// to[i] = from[i], cache line by cache line where they do not overlap: memmove may write past the caches, though what is
/// copied is read soon, and on some CPUs its string instruction takes seven times as long where the two are a few bytes apart
/// in a page.
template <class T>
void move_row(T* to, const T* from, int64_t n, bool streamed) {
  constexpr int64_t line = 64 / sizeof(T);
  int64_t i = 0;
  if (to + n <= from || from + n <= to) {
    if (streamed && can_stream(to)) {
      i = n / line * line;
      stream_lines(reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(from),
                   i * static_cast<int64_t>(sizeof(T)));
    }
    for (; i + line <= n; i += line) std::memcpy(to + i, from + i, line * sizeof(T));
  }
  if (i < n) std::memmove(to + i, from + i, static_cast<size_t>(n - i) * sizeof(T));
}

/// to[i] = from[n - 1 - i]
template <class T>
ONESTEP_EACH_ISA void reverse_row(const T* from, T* to, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) to[i] = from[n - 1 - i];
}

template <class T>
void copy_row(T* to, int64_t step, const T* from, int64_t stride, int64_t n, bool streamed) {
  if (n <= kTile && stride >= 0) {  // a call for each of many short rows takes longer than they do
    for (int64_t i = 0; i < n; ++i) to[i * step] = from[i * stride];
    return;
  }
  kernels::parallel_for(n, kLoopCost, [=](int64_t i, int64_t end) {
    if (step == 1 && stride == 1)
      move_row(to + i, from + i, end - i, streamed);
    else if (step == 1 && stride == 0)
      std::fill_n(to + i, end - i, *from);
    else if (step == 1 && stride == -1)
      reverse_row(from - (end - 1), to + i, end - i);
    else
      for (; i < end; ++i) to[i * step] = from[i * stride];
  });
}

/// copy_values between equal dtypes.
void move_values(Tensor& target, const Tensor& source) {
  const Shape& shape = target.shape();
  const int crossing = target.is_contiguous() && shape.numel() > 0 ? crossing_dim(shape, source.strides()) : -1;
  dispatch_size(target.dtype(), [&]<class U>() {
    U* to = mutable_units<U>(target);
    const U* from = units<U>(source);
    if (crossing >= 0) return copy_transposing(crossing, shape, to, target.strides(), from, source.strides());
    const bool streamed = is_streamed(target);
    for_each_row<2>(shape, {target.strides(), source.strides()}, [=](const auto& at, int64_t n, const auto& steps) {
      copy_row(to + at[0], steps[0], from + at[1], steps[1], n, streamed);
    });
  });
}

}  // namespace

void copy_values(Tensor& target, const Tensor& source) {
  if (target.dtype() == source.dtype()) return move_values(target, source);
  if (!target.is_contiguous()) return move_values(target, converted(source, target.dtype()));
  const Tensor rows = contiguous_values(source);
  const auto* const from = units<std::byte>(rows);
  auto* const to = mutable_units<std::byte>(target);
  kernels::parallel_for(
      rows.numel(), kLoopCost, [=, from_type = rows.dtype(), to_type = target.dtype()](int64_t i, int64_t end) {
        convert_elements(from_type, from + i * size_of(from_type), to_type, to + i * size_of(to_type), end - i);
      });
}

Tensor view_of(const Tensor& x, const Shape& shape, const Shape& strides, int64_t offset) {
  Tensor view(x.impl().storage, x.dtype(), shape, strides, offset);
  view.impl().inference = x.is_inference();
  return view;
}

Tensor contiguous_values(const Tensor& x) {
  if (x.is_contiguous()) return x.values();
  Tensor y = empty(x.shape(), x.dtype());
  copy_values(y, x);
  return y;
}

Tensor as_it_was(const Tensor& x) {
  Tensor copy = empty(x.shape(), x.dtype());
  copy_values(copy, x);
  detail::set_node(copy, x.node());
  return copy;
}

Shape broadcast_strides(const Tensor& x, const Shape& shape) {
  const int added = shape.rank() - x.dim();
  Shape strides = Shape::filled(shape.rank(), 0);
  for (int i = 0; i < x.dim(); ++i)
    if (x.shape()[i] == shape[added + i]) strides[added + i] = x.strides()[i];
  return strides;
}

Tensor expand_values(std::string_view op, const Tensor& x, const Shape& shape) {
  const int added = shape.rank() - x.dim();
  bool fits = added >= 0;
  for (int i = 0; fits && i < x.dim(); ++i) fits = x.shape()[i] == shape[added + i] || x.shape()[i] == 1;
  ONESTEP_CHECK(ShapeError, fits, op, ": shape ", x.shape(), " does not broadcast to ", shape,
                " (from the right, each size must be 1 or equal)");
  return view_of(x, shape, broadcast_strides(x, shape), x.offset());
}

}  // namespace onestep::ops
