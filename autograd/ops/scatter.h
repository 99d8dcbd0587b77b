#pragma once
// Writing to positions along a dim: what scatter, index_add and index_put share.
#include <algorithm>
#include <array>
#include <atomic>

#include "autograd/ops/elementwise.h"
#include "autograd/ops/indexing.h"
#include "autograd/ops/strided.h"
#include "autograd/ops_shape.h"

namespace onestep::ops {

/// Calls f(at, n, steps) for rows of the positions of `shape`: element j of operand k is at offset at[k] + j * steps[k]. One
/// thread has all positions that differ along `dim` alone, in ascending order, so that `f` may write to any place along `dim`.
/// Rows run along `dim`, or across it where the last operand is contiguous there.
template <size_t N, class F>
void for_each_along(Shape shape, int dim, std::array<Shape, N> strides, const F& f) {
  if (shape.numel() == 0) return;
  const int64_t count = shape[dim];
  std::array<int64_t, N> along{}, across{};
  shape.erase(dim);
  for (size_t k = 0; k < N; ++k) {
    along[k] = strides[k][dim];
    strides[k].erase(dim);
  }
  const MergedDims<N> others(shape, strides);
  for (size_t k = 0; k < N; ++k) across[k] = others.strides[k].back();
  const int64_t length = others.sizes.back(), rows = others.sizes.numel() / length;
  const auto offsets = [&](int64_t row, int64_t column) {
    std::array<int64_t, N> at = others.row_offsets(row);
    for (size_t k = 0; k < N; ++k) at[k] += column * across[k];
    return at;
  };
  if (length == 1 || (across[N - 1] != 1 && count > 1)) {
    kernels::parallel_for(rows * length, 3 + static_cast<double>(count), [&](int64_t i, int64_t end) {
      for (; i < end; ++i) f(offsets(i / length, i % length), count, along);
    });
    return;
  }
  for_each_column_range(rows, length, static_cast<double>(count), [&](int64_t row, int64_t begin, int64_t end) {
    std::array<int64_t, N> at = offsets(row, begin);
    for (int64_t i = 0; i < count; ++i) {
      f(at, end - begin, across);
      for (size_t k = 0; k < N; ++k) at[k] += along[k];
    }
  });
}

/// f(to[... places ...], from[...]) for n elements: `steps` are those of the places, of `from` and of `to`, where places are
/// `step` apart.
template <class T, class F>
void walk_row(T* to, int64_t step, const int64_t* places, const T* from, int64_t n, const std::array<int64_t, 3>& steps,
              const F& f) {
  if (steps[0] == 1 && steps[1] == 1 && steps[2] == 0 && step == 1) {
    for (int64_t j = 0; j < n; ++j) f(to[places[j]], from[j]);
  } else if (steps[0] != 0) {
    for (int64_t j = 0; j < n; ++j) f(to[j * steps[2] + places[j * steps[0]] * step], from[j * steps[1]]);
  } else {
    T* const target = to + places[0] * step;  // one for the whole row
    if (steps[1] == 1 && steps[2] == 1)
      for (int64_t j = 0; j < n; ++j) f(target[j], from[j]);
    else
      for (int64_t j = 0; j < n; ++j) f(target[j * steps[2]], from[j * steps[1]]);
  }
}

/// for_each_place of elements of type T at `to` and `from`. With `outside`, places are checked while they are in the caches:
/// where one is not in y it becomes true, and nothing can be said of y.
template <class T, class F>
void walk_places(T* to, const T* from, const Tensor& y, int dim, const Tensor& index, const Tensor& source, const F& f,
                 std::atomic<bool>* outside = nullptr) {
  Shape columns = y.strides();
  const int64_t step = columns[dim], size = y.shape()[dim];
  columns[dim] = 0;
  const auto* const all = index.data<int64_t>();
  for_each_along<3>(index.shape(), dim, {index.strides(), source.strides(), columns},
                    [=](const auto& at, int64_t n, const auto& steps) {
                      constexpr int64_t piece = 1024;
                      for (int64_t i = 0; i < n; i += piece) {
                        const int64_t count = std::min(piece, n - i);
                        const int64_t* const places = all + at[0] + i * steps[0];
                        if (outside && any_outside(places, steps[0] == 0 ? 1 : count, steps[0], size))
                          return outside->store(true);
                        walk_row(to + at[2] + i * steps[2], step, places, from + at[1] + i * steps[1], count, steps, f);
                      }
                    });
}

/// f(y[..., index[p], ...], source[p]) for every position p of `index`, which holds places along `dim` of y; source has y's
/// dtype and is at least as large as index. All have the same rank, which is not 0. Narrow dtypes are rounded once, at the end.
template <class F>
void for_each_place(Tensor& y, int dim, const Tensor& index, const Tensor& source, const F& f) {
  if (is_narrow(y.dtype())) {
    Tensor result = widened(y);
    for_each_place(result, dim, index, widened(source), f);
    return copy_values(y, result);
  }
  dispatch(y.dtype(), [&]<class T>() { walk_places(y.mutable_data<T>(), source.data<T>(), y, dim, index, source, f); });
}

/// The same with y[..., index[p], ...] = source[p], for every dtype; `outside` as in walk_places.
inline void replace_or_find_outside(Tensor& y, int dim, const Tensor& index, const Tensor& source, std::atomic<bool>* outside) {
  dispatch_size(y.dtype(), [&]<class T>() {
    const auto replace = [](T& own, T v) { own = v; };
    walk_places(mutable_units<T>(y), units<T>(source), y, dim, index, source, replace, outside);
  });
}
inline void replace_at(Tensor& y, int dim, const Tensor& index, const Tensor& source) {
  replace_or_find_outside(y, dim, index, source, nullptr);
}

/// The same with y[..., index[p], ...] += source[p].
inline void add_at(Tensor& y, int dim, const Tensor& index, const Tensor& source) {
  for_each_place(y, dim, index, source, []<class T>(T& own, T v) { own = plus(own, v); });
}

/// A rank-0 tensor as a vector of one; not recorded.
inline Tensor as_vector(const Tensor& x) { return x.dim() == 0 ? view_of(x, {1}, {1}, x.offset()) : x; }

/// A row-major copy; not recorded.
inline Tensor copy_of(const Tensor& x) {
  Tensor y = empty(x.shape(), x.dtype());
  copy_values(y, x);
  return y;
}

/// x as it can be read while y is written: a row-major copy where both share memory; not recorded.
inline Tensor readable_while_writing(const Tensor& y, const Tensor& x) { return x.shares_storage(y) ? copy_of(x) : x; }

/// x without what an expand has repeated: such dims have size 1.
inline Tensor unrepeated(Tensor x) {
  for (int d = 0; d < x.dim(); ++d)
    if (x.strides()[d] == 0 && x.shape()[d] > 1) x = narrow(x, d, 0, 1);
  return x;
}

/// The in-place form `name` of op(x, source), which is write(y, source) to a copy y of x.
template <class Op, class Write>
Tensor write_in_place(const char* name, Tensor x, const Tensor& source, const Op& op, const Write& write) {
  x.check_writable(name);
  if (detail::should_record({x, source})) return assign_in_place(name, x, op(x, source));
  write(x, readable_while_writing(x, source));
  return x;
}

}  // namespace onestep::ops
