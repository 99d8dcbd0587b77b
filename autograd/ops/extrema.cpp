// The largest and the least element, and where they are. NaN is both; ties go to the first, or share the gradient evenly.
#include <algorithm>

#include "autograd/operators.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops_index.h"

namespace onestep {

using ops::Blocks;
using ops::with_dims;
using ops::without_dims;

namespace {

void check_not_empty(const char* op, const Shape& shape, const Shape& dims) {
  ONESTEP_CHECK(IndexError, ops::count_of(shape, dims) != 0, op, ": no elements to choose from in dims ", dims, " of shape ",
                shape);
}

struct Largest {
  template <class T>
  static void of_rows(const T* x, T* y, int64_t rows, int64_t n) {
    if constexpr (std::is_floating_point_v<T>)
      kernels::row_maxima(x, y, rows, n);
    else
      for (int64_t r = 0; r < rows; ++r) y[r] = *std::max_element(x + r * n, x + (r + 1) * n);
  }
  template <class T>
  static void fold(T* y, const T* x, int64_t n) {  // y = max(y, x)
    if constexpr (std::is_floating_point_v<T>)
      kernels::maximum(y, 1, x, 1, y, n);
    else
      for (int64_t i = 0; i < n; ++i) y[i] = std::max(y[i], x[i]);
  }
};

struct Least {
  template <class T>
  static void of_rows(const T* x, T* y, int64_t rows, int64_t n) {
    if constexpr (std::is_floating_point_v<T>)
      kernels::row_minima(x, y, rows, n);
    else
      for (int64_t r = 0; r < rows; ++r) y[r] = *std::min_element(x + r * n, x + (r + 1) * n);
  }
  template <class T>
  static void fold(T* y, const T* x, int64_t n) {
    if constexpr (std::is_floating_point_v<T>)
      kernels::minimum(y, 1, x, 1, y, n);
    else
      for (int64_t i = 0; i < n; ++i) y[i] = std::min(y[i], x[i]);
  }
};

template <class Extremum, class T>
void extremum_blocks(const T* x, T* y, const Blocks& b) {
  kernels::parallel_for(b.outer, ops::kLoopCost * static_cast<double>(b.reduced * b.inner), [=](int64_t o, int64_t end) {
    if (b.inner == 1) return Extremum::of_rows(x + o * b.reduced, y + o, end - o, b.reduced);
    for (; o < end; ++o) {
      const T* from = x + o * b.reduced * b.inner;
      T* to = y + o * b.inner;
      std::copy_n(from, b.inner, to);
      for (int64_t r = 1; r < b.reduced; ++r) Extremum::fold(to, from + r * b.inner, b.inner);
    }
  });
}

/// The largest or least over `dims` (sorted), which stay with size 1.
template <class Extremum>
Tensor extremum_values(const Tensor& x, const Shape& dims) {
  const Tensor y = dispatch(compute_type(x.dtype()), [&]<class T>() {
    return ops::reduce<T>(x, dims, [](const Tensor& from, T* to, const Blocks& b) {
      ops::reduce_in_pieces(from, to, b, extremum_blocks<Extremum, T>, Extremum::template fold<T>);
    });
  });
  return ops::rounded(y, x.dtype());
}

/// v is larger than w, NaN being the largest of all.
template <class T>
bool above(T v, T w) {
  return v > w || (v != v && w == w);
}

/// Where the first largest of few elements is.
template <class T>
int64_t first_largest(const T* x, int64_t n) {
  T largest = x[0];
  int64_t best = 0;
  for (int64_t i = 1; i < n; ++i) {
    const T v = x[i];
    const bool more = above(v, largest);
    largest = more ? v : largest;
    best = more ? i : best;
  }
  return best;
}

/// The elements in the opposite order, exactly: the least becomes the largest, NaN stays.
Tensor reversed(const Tensor& x) {
  return ops::map("reversed", x, ops::Loop{[]<class T>(T v) {
                    if constexpr (std::is_floating_point_v<T>)
                      return -v;
                    else if constexpr (std::is_same_v<T, bool>)
                      return !v;
                    else
                      return ~v;
                  }});
}

/// Where the first largest element is along dim `d`; the dim stays with size 1.
Tensor argmax_values(const char* op, const Tensor& x, int d) {
  const Shape dims = x.dim() == 0 ? Shape() : Shape{d};
  check_not_empty(op, x.shape(), dims);
  const Tensor rows = ops::contiguous_values(ops::widened(x));
  Tensor index = empty(reduced_shape(x.shape(), dims, true), DType::int64);
  const Blocks b = ops::blocks_of(x.shape(), d, d);
  constexpr int64_t few = 16;  // that are sooner compared one by one
  dispatch(rows.dtype(), [&]<class T>() {
    const T* from = rows.data<T>();
    auto* to = index.mutable_data<int64_t>();
    kernels::parallel_for(b.outer, ops::kLoopCost * static_cast<double>(b.reduced * b.inner), [=](int64_t o, int64_t end) {
      for (; o < end; ++o) {
        const T* block = from + o * b.reduced * b.inner;
        int64_t* best = to + o * b.inner;
        if constexpr (std::is_floating_point_v<T>) {
          if (b.inner == 1) {
            *best = b.reduced > few ? kernels::argmax(block, b.reduced) : first_largest(block, b.reduced);
            continue;
          }
        }
        std::fill_n(best, b.inner, 0);
        for (int64_t r = 1; r < b.reduced; ++r)
          for (int64_t i = 0; i < b.inner; ++i)
            if (above(block[r * b.inner + i], block[best[i] * b.inner + i])) best[i] = r;
      }
    });
  });
  return index;
}

template <class Extremum>
Tensor extremum_over_dims(const char* op, const Tensor& x, const Shape& wanted, bool keepdim) {
  const Shape dims = normalize_dims(op, wanted, x.dim());
  check_not_empty(op, x.shape(), dims);
  const Tensor y = without_dims(extremum_values<Extremum>(x, dims), x.shape(), dims, keepdim);
  return record(op, y, {x}, {x, y}, [dims](const Backward& b) -> Grads {
    const Tensor& v = b.saved(0);
    const Tensor chosen = to(eq(v, with_dims(b.saved(1), v.shape(), dims)), v.dtype());
    return {mul(div(with_dims(b.grad(), v.shape(), dims), sum(chosen, dims, true)), chosen)};
  });  // dx = dy / (number of extrema) where x is one
}

template <class Extremum>
Tensor extremum_of_all(const char* op, const Tensor& x) {
  ONESTEP_CHECK(ShapeError, x.numel() != 0, op, ": no elements to choose from in shape ", x.shape());
  const Shape dims = normalize_dims(op, {}, x.dim());
  const Tensor y = without_dims(extremum_values<Extremum>(x, dims), x.shape(), dims, /*keepdim=*/false);
  return record(op, y, {x}, {x, y}, [dims](const Backward& b) -> Grads {
    return {ops::shared_among_equals(b.grad(), b.saved(0), b.saved(1), dims)};
  });  // as over dims, where NaN is equal to NaN
}

ValuesIndices extremum_along(const char* op, const Tensor& x, int d, const Tensor& index, bool keepdim) {
  const Shape dims = x.dim() == 0 ? Shape() : Shape{d};
  Tensor values;
  {
    const NoGradGuard no_grad;
    values = without_dims(gather(x, d, index), x.shape(), dims, keepdim);
  }
  values = record(op, values, {x}, {index}, [d, dims](const Backward& b) -> Grads {
    const Shape& shape = b.input_shape(0);
    return {scatter_(zeros(shape, b.grad().dtype()), d, b.saved(0), with_dims(b.grad(), shape, dims))};
  });  // dx = dy at the index, else 0
  return {values, without_dims(index, x.shape(), dims, keepdim)};
}

}  // namespace

Tensor amax(const Tensor& x, const Shape& dims, bool keepdim) { return extremum_over_dims<Largest>("amax", x, dims, keepdim); }
Tensor amin(const Tensor& x, const Shape& dims, bool keepdim) { return extremum_over_dims<Least>("amin", x, dims, keepdim); }

Tensor max(const Tensor& x) { return extremum_of_all<Largest>("max", x); }
Tensor min(const Tensor& x) { return extremum_of_all<Least>("min", x); }

ValuesIndices max(const Tensor& x, int64_t dim, bool keepdim) {
  const int d = normalize_dim("max", dim, x.dim());
  return extremum_along("max", x, d, argmax_values("max", x, d), keepdim);
}
ValuesIndices min(const Tensor& x, int64_t dim, bool keepdim) {
  const int d = normalize_dim("min", dim, x.dim());
  return extremum_along("min", x, d, argmax_values("min", reversed(x), d), keepdim);
}

Tensor argmax(const Tensor& x, int64_t dim, bool keepdim) {
  const int d = normalize_dim("argmax", dim, x.dim());
  return without_dims(argmax_values("argmax", x, d), x.shape(), x.dim() == 0 ? Shape() : Shape{d}, keepdim);
}
Tensor argmin(const Tensor& x, int64_t dim, bool keepdim) {
  const int d = normalize_dim("argmin", dim, x.dim());
  return without_dims(argmax_values("argmin", reversed(x), d), x.shape(), x.dim() == 0 ? Shape() : Shape{d}, keepdim);
}

Tensor argmax(const Tensor& x) {
  const NoGradGuard no_grad;
  return argmax(reshape(x, {-1}), 0);
}
Tensor argmin(const Tensor& x) {
  const NoGradGuard no_grad;
  return argmin(reshape(x, {-1}), 0);
}

}  // namespace onestep
