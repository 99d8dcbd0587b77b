// Plain copies and views that the op files build on.
#include <algorithm>
#include <cstring>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "autograd/ops/common.h"
#include "autograd/ops/strided.h"
#include "autograd/ops_shape.h"
#include "autograd/vector_loop.h"

namespace onestep::ops {
namespace {

constexpr int64_t kFew = 8;  // elements that share a cache line

/// A dim other than the last along which `source` is contiguous while its last dim jumps, so that copying row by row would
/// touch a new cache line for every element; -1 if there is none.
int crossing_dim(const Shape& shape, const Shape& source) {
  const int last = shape.rank() - 1;
  if (last < 1 || shape[last] == 1 || source[last] < kFew) return -1;
  for (int i = 0; i < last; ++i)
    if (shape[i] > 1 && source[i] == 1) return i;
  return -1;
}

constexpr int64_t kTile = 16;
constexpr int64_t kShortRow = 256;  // which no threads share

/// to[r * kTile + c] = from[r + c * stride] for four r and four c.
void transpose_four(uint32_t* to, const uint32_t* from, int64_t stride) {
  using Four = uint32_t __attribute__((vector_size(16)));
  Four a, b, c, d;
  std::memcpy(&a, from, sizeof a);
  std::memcpy(&b, from + stride, sizeof b);
  std::memcpy(&c, from + 2 * stride, sizeof c);
  std::memcpy(&d, from + 3 * stride, sizeof d);
  const Four ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7),
             cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  const Four rows[4] = {
      __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5), __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7),
      __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5), __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)};
  for (int r = 0; r < 4; ++r) std::memcpy(to + r * kTile, &rows[r], sizeof(Four));
}

/// to[r * step + c] = from[r + c * stride] for a tile [height, width] of at most kTile each. Always inlined: with constants
/// for the two it is three times as fast. By way of a block, because lines of `to` that are a multiple of 4 KiB apart push each
/// other out of the L1 cache before they are full.
template <class T>
[[gnu::always_inline]] inline void transpose_tile(T* to, int64_t step, const T* from, int64_t stride, int64_t height,
                                                  int64_t width) {
  T block[kTile][kTile];
  const bool by_fours = std::is_same_v<T, uint32_t> && height == kTile && width == kTile;
  for (int64_t c = 0; c < width; c += by_fours ? 4 : 1) {
    for (int64_t r = 0; r < height; r += by_fours ? 4 : 1) {
      if constexpr (std::is_same_v<T, uint32_t>) {
        if (by_fours) {
          transpose_four(&block[r][c], from + r + c * stride, stride);
          continue;
        }
      }
      block[r][c] = from[r + c * stride];
    }
  }
  for (int64_t r = 0; r < height; ++r) std::copy_n(block[r], width, to + r * step);
}

/// The same for fewer columns than a tile has: pixels from planes, some that stay in the L1 cache at a time.
template <class T>
void interleave(T* to, int64_t step, const T* from, int64_t stride, int64_t rows, int64_t cols) {
  constexpr int64_t some = 128;
  const auto cost = kLoopCost * static_cast<double>(some * cols);
  kernels::parallel_for((rows + some - 1) / some, cost, [=](int64_t i, int64_t blocks) {
    for (; i < blocks; ++i) {
      for (int64_t c = 0; c < cols; ++c)
        for (int64_t r = i * some; r < std::min((i + 1) * some, rows); ++r) to[r * step + c] = from[r + c * stride];
    }
  });
}

/// The same for a matrix [rows, cols], in tiles that read and write whole cache lines; the next tile's are asked for, in the L2
/// cache, since in the L1 they may push each other out, too.
template <class T>
void transpose_into(T* to, int64_t step, const T* from, int64_t stride, int64_t rows, int64_t cols) {
  kernels::parallel_for((rows + kTile - 1) / kTile, kLoopCost * static_cast<double>(kTile * cols), [=](int64_t i, int64_t end) {
    for (; i < end; ++i) {
      const int64_t r = i * kTile, height = std::min(rows - r, kTile);
      for (int64_t c = 0; c < cols; c += kTile) {
        const int64_t width = std::min(cols - c, kTile);
        for (int64_t j = c + kTile; j < std::min(c + 2 * kTile, cols); ++j) __builtin_prefetch(from + r + j * stride, 0, 2);
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
    for (int64_t i = 0; i < n; ++i) {
      T* const here = to + at[0] + i * steps[0];
      const T* const there = from + at[1] + i * steps[1];
      if (cols < kTile)
        interleave(here, step, there, stride, rows, cols);
      else
        transpose_into(here, step, there, stride, rows, cols);
    }
  });
}

constexpr int64_t kLine = 64;  // bytes that are in the caches or not

/// to[i] = from[i], cache line by cache line where they do not overlap: memmove may write past the caches, though what is
/// copied is read soon, and on some CPUs its string instruction takes seven times as long where the two are a few bytes apart
/// in a page.
template <class T>
void move_row(T* to, const T* from, int64_t n) {
  constexpr int64_t line = kLine / sizeof(T);
  if (n < line || (to < from + n && from < to + n)) {
    std::memmove(to, from, static_cast<size_t>(n) * sizeof(T));
    return;
  }
  for (int64_t i = 0; i + line <= n; i += line) std::memcpy(to + i, from + i, kLine);
  std::memcpy(to + n - line, from + n - line, kLine);
}

/// to[i] = from[n - 1 - i]
template <class T>
ONESTEP_EACH_ISA void reverse_row(const T* from, T* to, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) to[i] = from[n - 1 - i];
}

template <class T>
void copy_row(T* to, int64_t step, const T* from, int64_t stride, int64_t n) {
  if (n <= kTile && stride >= 0) {  // a call for each of many short rows takes longer than they do
    for (int64_t i = 0; i < n; ++i) to[i * step] = from[i * stride];
    return;
  }
  if (step == 1 && stride == 1 && n <= kShortRow) return move_row(to, from, n);
  kernels::parallel_for(n, kLoopCost, [=](int64_t i, int64_t end) {
    if (step == 1 && stride == 1)
      move_row(to + i, from + i, end - i);
    else if (step == 1 && stride == 0)
      std::fill_n(to + i, end - i, *from);
    else if (step == 1 && stride == -1)
      reverse_row(from - (end - 1), to + i, end - i);
    else
      for (; i < end; ++i) to[i * step] = from[i * stride];
  });
}

#ifdef __SSE2__
/// Whether a copy may be written past the caches, which would not keep it until it is read: to a large tensor, an eighth of it
/// or more, from other memory.
bool may_stream(const Tensor& target, const Tensor& source) {
  const Storage &to = *target.impl().storage, &from = *source.impl().storage;
  return to.bytes >= 16 << 20 && target.numel() * size_of(target.dtype()) >= to.bytes / 8 &&
         (to.data + to.bytes <= from.data || from.data + from.bytes <= to.data);
}

/// Whether rows are long and lie side by side.
bool has_long_rows(const MergedDims<2>& dims, int64_t element) {
  return dims.sizes.back() * element >= 16 * kLine && dims.strides[0].back() == 1 && dims.strides[1].back() == 1;
}

/// to[i] = from[i], past the caches but for the ends of `to` that are not whole lines of it.
template <class T>
void stream_row(T* to, const T* from, int64_t n) {
  constexpr int64_t line = kLine / sizeof(T);
  const auto misplaced = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % kLine / sizeof(T));
  int64_t i = std::min((line - misplaced) % line, n);
  std::copy_n(from, i, to);
  for (; i + line <= n; i += line)
    for (int64_t j = i; j < i + line; j += line / 4)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + j), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + j)));
  std::copy_n(from + i, n - i, to + i);
}

/// Copies rows by pieces. What a thread has written others may read after its fence; with one after every row of 4 KiB copies
/// took half as long again.
template <class T>
void stream_rows(const MergedDims<2>& dims, T* to, const T* from) {
  constexpr int64_t piece = 4096;
  const int64_t length = dims.sizes.back(), rows = dims.sizes.numel() / length, pieces = (length + piece - 1) / piece;
  kernels::parallel_for(rows * pieces, kLoopCost * static_cast<double>(std::min(length, piece)), [&](int64_t i, int64_t end) {
    for (; i < end; ++i) {
      const auto at = dims.row_offsets(i / pieces);
      const int64_t first = i % pieces * piece;
      stream_row(to + at[0] + first, from + at[1] + first, std::min(piece, length - first));
    }
    _mm_sfence();
  });
}
#endif

/// Whether x's rows go through memory in steps while another dim's elements lie side by side; not where elements repeat.
bool is_turned(const Tensor& x) {
  int64_t step = 1;
  bool beside = false;
  for (int i = 0; i < x.dim(); ++i) {
    if (x.shape()[i] == 1) continue;
    step = x.strides()[i];
    if (step <= 0) return false;
    beside = beside || step == 1;
  }
  return beside && step != 1;
}

/// A view of x with its dims in the order of the strides of `like`, longest first, without those of size 1.
Tensor in_order_of(const Tensor& like, const Tensor& x) {
  Shape order, shape, strides;
  for (int i = 0; i < x.dim(); ++i) {
    if (x.shape()[i] == 1) continue;
    int place = order.rank();
    while (place > 0 && like.strides()[i] > order[place - 1]) --place;
    order.insert(place, like.strides()[i]);
    shape.insert(place, x.shape()[i]);
    strides.insert(place, x.strides()[i]);
  }
  return view_of(x, shape, strides, x.offset());
}

/// copy_values between equal dtypes.
void move_values(Tensor& target, const Tensor& source) {
  if (is_turned(target)) {
    Tensor to = in_order_of(target, target);
    return move_values(to, in_order_of(target, source));
  }
  const Shape& shape = target.shape();
  const bool in_rows = shape.numel() > 0 && !shape.empty() && target.strides().back() == 1;
  const int crossing = in_rows ? crossing_dim(shape, source.strides()) : -1;
  dispatch_size(target.dtype(), [&]<class U>() {
    U* to = mutable_units<U>(target);
    const U* from = units<U>(source);
    if (crossing >= 0) return copy_transposing(crossing, shape, to, target.strides(), from, source.strides());
#ifdef __SSE2__
    if (may_stream(target, source)) {
      const MergedDims<2> dims(shape, {target.strides(), source.strides()});
      if (has_long_rows(dims, sizeof(U))) return stream_rows(dims, to, from);
    }
#endif
    for_each_row<2>(shape, {target.strides(), source.strides()}, [=](const auto& at, int64_t n, const auto& steps) {
      copy_row(to + at[0], steps[0], from + at[1], steps[1], n);
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
