// Plain copies and views that the op files build on.
#include <algorithm>
#include <cstring>

#include "autograd/ops/common.h"
#include "autograd/ops/strided.h"

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

/// to[r * step + c] = from[r + c * stride] for a tile [height, width] of at most kTile each. In place always: with constants
/// for the two it is three times as fast.
template <class T, class S>
[[gnu::always_inline]] inline void transpose_tile(T* to, int64_t step, const S* from, int64_t stride, int64_t height,
                                                  int64_t width) {
  T block[kTile][kTile];
  for (int64_t c = 0; c < width; ++c)
    for (int64_t r = 0; r < height; ++r) block[r][c] = convert<T>(from[r + c * stride]);
  for (int64_t r = 0; r < height; ++r) std::copy_n(block[r], width, to + r * step);
}

/// The same for a matrix [rows, cols], in tiles that read and write whole cache lines; the next tile's are asked for.
template <class T, class S>
void transpose_into(T* to, int64_t step, const S* from, int64_t stride, int64_t rows, int64_t cols) {
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

/// Copies a tensor whose dim `d` crosses its last one, the target's last stride being 1.
template <class T, class S>
void copy_crossing(int d, Shape shape, T* to, Shape target, const S* from, Shape source) {
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

template <class T, class S>
void copy_row(T* to, int64_t step, const S* from, int64_t stride, int64_t n) {
  kernels::parallel_for(n, kLoopCost, [=](int64_t i, int64_t end) {
    if (std::is_same_v<T, S> && step == 1 && stride == 1)
      std::memmove(to + i, from + i, static_cast<size_t>(end - i) * sizeof(T));
    else if (step == 1 && stride == 0)
      std::fill_n(to + i, end - i, convert<T>(*from));
    else
      for (; i < end; ++i) to[i * step] = convert<T>(from[i * stride]);
  });
}

}  // namespace

void copy_values(Tensor& target, const Tensor& source) {
  const Shape& shape = target.shape();
  const int crossing = target.is_contiguous() && shape.numel() > 0 ? crossing_dim(shape, source.strides()) : -1;
  dispatch(target.dtype(), [&]<class T>() {
    dispatch(source.dtype(), [&]<class S>() {
      T* to = target.mutable_data<T>();
      const S* from = source.data<S>();
      if (crossing >= 0) return copy_crossing(crossing, shape, to, target.strides(), from, source.strides());
      for_each_row<2>(shape, {target.strides(), source.strides()}, [=](const auto& at, int64_t n, const auto& steps) {
        copy_row(to + at[0], steps[0], from + at[1], steps[1], n);
      });
    });
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
