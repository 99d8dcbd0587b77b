// Reductions over dims. Each run of adjacent reduced dims is one step over [outer, reduced, inner], innermost run first, and
// each output element is summed in one fixed order: neither threads nor layout can change a bit of it.
#include <algorithm>
#include <array>
#include <limits>

#include "autograd/ops/elementwise.h"

namespace onestep {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

/// A contiguous tensor seen as [outer, reduced, inner].
struct Blocks {
  int64_t outer = 1, reduced = 1, inner = 1;
};

Blocks blocks_of(const Shape& shape, int first, int last) {
  Blocks blocks;
  for (int i = 0; i < shape.rank(); ++i) (i < first ? blocks.outer : i <= last ? blocks.reduced : blocks.inner) *= shape[i];
  return blocks;
}

/// Applies `step(from, to, blocks)` to every run of adjacent dims in `dims` (sorted); the result keeps them with size 1.
template <class T, class Step>
Tensor reduce(const Tensor& x, const Shape& dims, const Step& step) {
  const NoGradGuard no_grad;
  Tensor y = dims.empty() ? clone(x) : ops::contiguous_values(x);
  for (int d = dims.rank() - 1; d >= 0; --d) {
    int first = d;
    while (first > 0 && dims[first - 1] == dims[first] - 1) --first;
    const Blocks blocks = blocks_of(y.shape(), static_cast<int>(dims[first]), static_cast<int>(dims[d]));
    Shape shape = y.shape();
    for (int i = first; i <= d; ++i) shape[static_cast<int>(dims[i])] = 1;
    Tensor reduced = empty(shape, y.dtype());
    step(y.data<T>(), reduced.mutable_data<T>(), blocks);
    y = reduced;
    d = first;
  }
  return y;
}

/// Rows longer than this are summed in 64 equal chunks, which can go to threads, and then over the chunks.
constexpr int64_t kLongRow = 65536;

template <class T>
T sum_row(const T* x, int64_t n) {
  if (n <= kLongRow) return kernels::sum(x, n);
  std::array<T, 64> sums;
  const auto chunks = static_cast<int64_t>(sums.size());
  kernels::parallel_for(chunks, 0.2 * static_cast<double>(n) / static_cast<double>(chunks), [&](int64_t c, int64_t end) {
    for (; c < end; ++c) {
      const int64_t first = n * c / chunks, last = n * (c + 1) / chunks;
      sums[static_cast<size_t>(c)] = kernels::sum(x + first, last - first);
    }
  });
  return kernels::sum(sums.data(), chunks);
}

template <class T>
void sum_blocks(const T* x, T* y, const Blocks& b) {
  kernels::parallel_for(b.outer, ops::kLoopCost * static_cast<double>(b.reduced * b.inner), [=](int64_t o, int64_t end) {
    for (; o < end; ++o) {
      const T* from = x + o * b.reduced * b.inner;
      T* to = y + o * b.inner;
      if constexpr (std::is_floating_point_v<T>) {
        if (b.inner == 1)
          *to = sum_row(from, b.reduced);
        else
          kernels::sum_rows(from, to, b.reduced, b.inner, b.inner);
      } else {
        std::fill_n(to, b.inner, T(0));
        for (int64_t r = 0; r < b.reduced; ++r)
          for (int64_t i = 0; i < b.inner; ++i) to[i] = ops::plus(to[i], from[r * b.inner + i]);
      }
    }
  });
}

/// The sum over `dims` (sorted), which stay with size 1; x of a floating dtype or int64.
Tensor sum_values(const Tensor& x, const Shape& dims) {
  return dispatch(x.dtype(), [&]<class T>() { return reduce<T>(x, dims, sum_blocks<T>); });
}

/// `y` with the reduced dims of size 1 removed, unless they are to be kept.
Tensor without_dims(const Tensor& y, const Shape& shape, const Shape& dims, bool keepdim) {
  const Shape result = reduced_shape(shape, dims, keepdim);
  return ops::view_of(y, result, contiguous_strides(result), y.offset());
}

/// The gradient of a reduction's output as it stands before the dims were removed: [.., 1, ..] broadcasts to the input.
Tensor with_dims(const Tensor& dy, const Shape& shape, const Shape& dims) {
  return reshape(dy, reduced_shape(shape, dims, true));
}

int64_t count_of(const Shape& shape, const Shape& dims) {
  int64_t count = 1;
  for (int64_t d : dims) count *= shape[static_cast<int>(d)];
  return count;
}

Tensor deviations(const Tensor& x, const Shape& dims) { return sub(x, mean(x, dims, true)); }

/// v is larger than w, NaN being the largest of all.
template <class T>
bool above(T v, T w) {
  return v > w || (v != v && w == w);
}

void check_not_empty(const char* op, const Shape& shape, const Shape& dims) {
  ONESTEP_CHECK(ShapeError, count_of(shape, dims) != 0, op, ": no elements to choose from in dims ", dims, " of shape ", shape);
}

/// Where the first largest element stands along dim `d`; the dim stays with size 1.
Tensor argmax_values(const char* op, const Tensor& x, int d) {
  const Shape dims = x.dim() == 0 ? Shape() : Shape{d};
  check_not_empty(op, x.shape(), dims);
  const Tensor rows = ops::contiguous_values(x);
  Tensor index = empty(reduced_shape(x.shape(), dims, true), DType::int64);
  const Blocks b = blocks_of(x.shape(), d, d);
  dispatch(x.dtype(), [&]<class T>() {
    const T* from = rows.data<T>();
    auto* to = index.mutable_data<int64_t>();
    kernels::parallel_for(b.outer, ops::kLoopCost * static_cast<double>(b.reduced * b.inner), [=](int64_t o, int64_t end) {
      for (; o < end; ++o) {
        const T* block = from + o * b.reduced * b.inner;
        int64_t* best = to + o * b.inner;
        if constexpr (std::is_floating_point_v<T>) {
          if (b.inner == 1) {
            *best = kernels::argmax(block, b.reduced);
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

template <class T>
void max_blocks(const T* x, T* y, const Blocks& b) {
  kernels::parallel_for(b.outer, ops::kLoopCost * static_cast<double>(b.reduced * b.inner), [=](int64_t o, int64_t end) {
    for (; o < end; ++o) {
      const T* from = x + o * b.reduced * b.inner;
      T* to = y + o * b.inner;
      std::copy_n(from, b.inner, to);
      if constexpr (std::is_floating_point_v<T>) {
        if (b.inner == 1) *to = kernels::max(from, b.reduced);
        for (int64_t r = 1; b.inner > 1 && r < b.reduced; ++r) kernels::maximum(to, 1, from + r * b.inner, 1, to, b.inner);
      } else {
        for (int64_t r = 1; r < b.reduced; ++r)
          for (int64_t i = 0; i < b.inner; ++i) to[i] = std::max(to[i], from[r * b.inner + i]);
      }
    }
  });
}

/// The largest over `dims` (sorted), which stay with size 1.
Tensor max_values(const Tensor& x, const Shape& dims) {
  return dispatch(x.dtype(), [&]<class T>() { return reduce<T>(x, dims, max_blocks<T>); });
}

/// `dy` over the number of places along `dims` that are `chosen`, there; 0 elsewhere.
Tensor shared_evenly(const Tensor& dy, const Tensor& chosen, const Shape& dims) {
  const Tensor ones = to(chosen, dy.dtype());
  return mul(dy, div(ones, sum(ones, dims, true)));
}

/// A running sum down `columns` neighbouring columns of `rows` rows; the distance between rows is negative to go up.
template <class T, int64_t columns>
void running_sum(const T* x, T* y, int64_t rows, int64_t distance, int64_t used = columns) {
  using Sum = std::conditional_t<std::is_floating_point_v<T>, double, T>;
  std::array<Sum, columns> totals{};
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < used; ++i) {
      Sum& total = totals[static_cast<size_t>(i)];
      total = ops::plus(total, static_cast<Sum>(x[r * distance + i]));
      y[r * distance + i] = static_cast<T>(total);
    }
  }
}

/// y_i = x_0 + ... + x_i along dim `d`, or from the end with `reverse`; float32 sums in double, as torch.cumsum.
Tensor cumsum_values(const Tensor& x, int d, bool reverse) {
  const Tensor rows = ops::contiguous_values(x);
  Tensor y = empty(x.shape(), x.dtype());
  if (x.numel() == 0) return y;
  const Blocks b = blocks_of(x.shape(), d, d);
  dispatch(x.dtype(), [&]<class T>() {
    const T* from = rows.data<T>();
    T* to = y.mutable_data<T>();
    constexpr int64_t width = 64;
    const int64_t groups = (b.inner + width - 1) / width, distance = reverse ? -b.inner : b.inner;
    kernels::parallel_for(
        b.outer * groups, static_cast<double>(b.reduced * std::min(b.inner, width)), [=](int64_t g, int64_t end) {
          for (; g < end; ++g) {
            const int64_t column = g % groups * width, first = g / groups * b.reduced + (reverse ? b.reduced - 1 : 0);
            const int64_t place = first * b.inner + column, columns = std::min(b.inner - column, width);
            if (columns == 1)
              running_sum<T, 1>(from + place, to + place, b.reduced, distance);
            else
              running_sum<T, width>(from + place, to + place, b.reduced, distance, columns);
          }
        });
  });
  return y;
}

}  // namespace

Tensor ops::sum_to(const Tensor& grad, const Shape& shape) {
  if (grad.shape() == shape) return grad;
  const int added = grad.dim() - shape.rank();
  Shape dims;
  for (int i = 0; i < grad.dim(); ++i)
    if (i < added || (shape[i - added] == 1 && grad.shape()[i] != 1)) dims.push_back(i);
  const Tensor y = sum_values(grad, dims);
  return view_of(y, shape, contiguous_strides(shape), y.offset());
}

Tensor sum(const Tensor& x) { return sum(x, {}); }

Tensor sum(const Tensor& input, const Shape& wanted, bool keepdim) {
  const Tensor x = input.dtype() == DType::boolean ? to(input, DType::int64) : input;
  const Shape dims = normalize_dims("sum", wanted, x.dim());
  const Tensor y = without_dims(sum_values(x, dims), x.shape(), dims, keepdim);
  return record("sum", y, {x}, {}, [dims](const Backward& b) -> Grads {
    const Shape& shape = b.input_shape(0);
    return {expand(with_dims(b.grad(), shape, dims), shape)};  // dx = dy, repeated
  });
}

Tensor mean(const Tensor& x) { return mean(x, {}); }

Tensor mean(const Tensor& x, const Shape& wanted, bool keepdim) {
  ops::check_floating("mean", x);
  const Shape dims = normalize_dims("mean", wanted, x.dim());
  const auto n = static_cast<double>(count_of(x.shape(), dims));
  Tensor y = without_dims(sum_values(x, dims), x.shape(), dims, keepdim);
  y = div(y, n);
  return record("mean", y, {x}, {}, [dims, n](const Backward& b) -> Grads {
    const Shape& shape = b.input_shape(0);
    return {expand(with_dims(div(b.grad(), n), shape, dims), shape)};  // dx = dy / n, repeated
  });
}

Tensor var(const Tensor& x, const Shape& wanted, int64_t correction, bool keepdim) {
  ops::check_floating("var", x);
  const Shape dims = normalize_dims("var", wanted, x.dim());
  const int64_t n = count_of(x.shape(), dims);
  Tensor y;
  {
    const NoGradGuard no_grad;
    const Tensor d = deviations(x, dims);
    y = without_dims(sum_values(mul(d, d), dims), x.shape(), dims, keepdim);
    y = div(y, std::max<int64_t>(n - correction, 0));
  }
  const double scale = 2.0 / static_cast<double>(n - correction);
  const bool infinite = n <= correction && (wanted.empty() || x.dim() == 0);  // PyTorch looks at it where no dims are given
  return record("var", y, {x}, {x}, [dims, scale, infinite](const Backward& b) -> Grads {
    const Tensor& v = b.saved(0);
    if (infinite) return {mul(b.grad(), masked_fill(full_like(v, kInfinity), eq(v, mean(v)), kNaN))};
    return {mul(mul(with_dims(b.grad(), v.shape(), dims), scale), deviations(v, dims))};
  });  // dx = dy 2 (x - mean) / (n - correction)
}

Tensor amax(const Tensor& x, const Shape& wanted, bool keepdim) {
  const Shape dims = normalize_dims("amax", wanted, x.dim());
  check_not_empty("amax", x.shape(), dims);
  const Tensor y = without_dims(max_values(x, dims), x.shape(), dims, keepdim);
  return record("amax", y, {x}, {x, y}, [dims](const Backward& b) -> Grads {
    const Tensor& v = b.saved(0);
    return {shared_evenly(with_dims(b.grad(), v.shape(), dims), eq(v, with_dims(b.saved(1), v.shape(), dims)), dims)};
  });  // dx = dy / (number of largest) where x is largest
}

Tensor max(const Tensor& x) {
  ONESTEP_CHECK(ShapeError, x.numel() != 0, "max: no elements to choose from in shape ", x.shape());
  const Shape dims = normalize_dims("max", {}, x.dim());
  const Tensor y = without_dims(max_values(x, dims), x.shape(), dims, /*keepdim=*/false);
  return record("max", y, {x}, {x, y}, [dims](const Backward& b) -> Grads {
    const Tensor &v = b.saved(0), &largest = b.saved(1);
    return {shared_evenly(b.grad(), isnan(largest).item<bool>() ? isnan(v) : eq(v, largest), dims)};
  });  // as amax, where NaN is equal to NaN
}

MaxResult max(const Tensor& x, int64_t dim, bool keepdim) {
  const int d = normalize_dim("max", dim, x.dim());
  const Shape dims = x.dim() == 0 ? Shape() : Shape{d};
  const Tensor index = argmax_values("max", x, d);
  Tensor values = without_dims(max_values(x, dims), x.shape(), dims, keepdim);
  values = record("max", values, {x}, {index}, [d, dims](const Backward& b) -> Grads {
    const Shape& shape = b.input_shape(0);
    Shape line = Shape::filled(shape.rank(), 1);
    if (!line.empty()) line[d] = shape[d];
    const Tensor places = view(arange(line.numel()), line);
    return {where(eq(places, b.saved(0)), with_dims(b.grad(), shape, dims), zeros({}, b.grad().dtype()))};
  });  // dx = dy at the index, else 0
  return {values, without_dims(index, x.shape(), dims, keepdim)};
}

Tensor argmax(const Tensor& x) {
  const NoGradGuard no_grad;
  return argmax(reshape(x, {-1}), 0);
}

Tensor argmax(const Tensor& x, int64_t dim, bool keepdim) {
  const int d = normalize_dim("argmax", dim, x.dim());
  return without_dims(argmax_values("argmax", x, d), x.shape(), x.dim() == 0 ? Shape() : Shape{d}, keepdim);
}

Tensor cumsum(const Tensor& input, int64_t dim) {
  const Tensor x = input.dtype() == DType::boolean ? to(input, DType::int64) : input;
  const int d = normalize_dim("cumsum", dim, x.dim());
  return record("cumsum", cumsum_values(x, d, false), {x}, {},
                [d](const Backward& b) -> Grads { return {cumsum_values(b.grad(), d, true)}; });  // dx_i = dy_i + ... + dy_n
}

}  // namespace onestep
