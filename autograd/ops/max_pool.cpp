// Max pooling: the kernel finds where the largest element of each window is, and gather fetches it, so that the gradient,
// of any order, is that of gather.
#include <algorithm>
#include <limits>
#include <vector>

#include "autograd/ops/strided.h"
#include "autograd/ops/windows.h"
#include "autograd/ops_conv.h"
#include "autograd/ops_index.h"
#include "autograd/vector_loop.h"

namespace onestep {

using ops::Places, ops::places_of, ops::WindowDim;

namespace {

template <class T>
constexpr T kLeast = is_floating(dtype_of<T>()) ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();

/// The place of the largest element of each window in its plane: int64 [planes, h.out * w.out]. NaN is the largest.
Tensor largest_places(const Tensor& x, int64_t planes, const WindowDim& h, const WindowDim& w) {
  const Tensor values = ops::widened(ops::contiguous_values(x));
  Tensor places = empty({planes, h.out * w.out}, DType::int64);
  std::vector<Places> columns;
  for (int64_t j = 0; j < w.out; ++j) columns.push_back(places_of(w, j));
  dispatch(values.dtype(), [&]<class T>() {
    const T* from = values.data<T>();
    auto* to = places.mutable_data<int64_t>();
    const double cost = ops::kLoopCost * static_cast<double>(h.in * w.in + 4 * h.out * w.out);
    kernels::parallel_for(planes, cost, [&, from, to](int64_t plane, int64_t end) {
      for (; plane < end; ++plane) {
        const T* in = from + plane * h.in * w.in;
        int64_t* out = to + plane * h.out * w.out;
        for (int64_t i = 0; i < h.out; ++i) {
          const Places rows = places_of(h, i);
          for (const Places& cols : columns) {
            int64_t best = rows.begin * w.in + cols.begin;
            T most = kLeast<T>;
            for (int64_t r = rows.begin; r < rows.end; r += rows.step) {
              for (int64_t c = cols.begin; c < cols.end; c += cols.step) {
                const T value = in[r * w.in + c];
                const bool larger = (value > most) | (value != value);  // as likely as not: without a branch
                most = larger ? value : most;
                best = larger ? r * w.in + c : best;
              }
            }
            *out++ = best;
          }
        }
      }
    });
  });
  return places;
}

/// y[i] = x[i * step] where that is larger or NaN.
template <class T>
ONESTEP_EACH_ISA void take_larger(T* y, int64_t n, const T* x, int64_t step) {
  const auto larger = [](T value, T most) { return value > most || value != value ? value : most; };
  if (step == 1) {
    for (int64_t i = 0; i < n; ++i) y[i] = larger(x[i], y[i]);
  } else if (step == 2) {  // of two neighbours one: whole vectors are loaded
    for (int64_t i = 0; i < n; ++i) y[i] = larger(x[2 * i], y[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = larger(x[i * step], y[i]);
  }
}

/// The elements at largest_places, [planes, h.out * w.out], without these: tap by tap for a whole row of windows of fixed size.
Tensor largest_values(const Tensor& x, int64_t planes, const WindowDim& h, const WindowDim& w) {
  const Tensor values = ops::widened(ops::contiguous_values(x));
  Tensor largest = empty({planes, h.out * w.out}, values.dtype());
  dispatch(values.dtype(), [&]<class T>() {
    const T* from = values.data<T>();
    T* to = largest.mutable_data<T>();
    const double cost = ops::kLoopCost * static_cast<double>(h.out * w.out * w.kernel);
    kernels::parallel_for(planes * h.out, cost, [&, from, to](int64_t row, int64_t end) {
      for (; row < end; ++row) {
        const T* in = from + row / h.out * h.in * w.in;
        T* out = to + row * w.out;
        std::fill_n(out, w.out, kLeast<T>);
        const Places rows = places_of(h, row % h.out);
        for (int64_t r = rows.begin; r < rows.end; r += rows.step) {
          for (int64_t tap = 0; tap < w.kernel; ++tap) {
            const auto [first, last] = w.outputs(tap);
            take_larger(out + first, last - first, in + r * w.in + w.place(first, tap), w.stride);
          }
        }
      }
    });
  });
  return ops::rounded(largest, x.dtype());
}

ValuesIndices pool(const Tensor& x, const Tensor& images, const WindowDim& h, const WindowDim& w, int dims) {
  const Shape shape = {images.shape()[0], images.shape()[1], h.out, w.out};
  const int64_t planes = shape[0] * shape[1];
  const Tensor places = largest_places(images, planes, h, w);
  const Tensor values = gather(reshape(images, {planes, h.in * w.in}), 1, places);
  return {ops::like_input(reshape(values, shape), x, dims), ops::like_input(reshape(places, shape), x, dims)};
}

/// With `indices` false their tensor stays undefined.
ValuesIndices max_pool(const char* op, const Tensor& x, const Shape& kernel_size, const Shape& stride, const Shape& padding,
                       const Shape& dilation, bool ceil_mode, int dims, bool indices) {
  const Tensor images = ops::as_images(op, x, dims, /*integers=*/dims == 2);
  ONESTEP_CHECK(ShapeError, images.shape()[1] > 0, op, ": no channels in input ", x.shape());
  const auto [h, w] = ops::pool_windows(op, x, dims, kernel_size, stride, padding, dilation, ceil_mode);
  // Only a dilated window may have no element, of which pool() says so.
  const bool dilated = std::any_of(dilation.begin(), dilation.end(), [](int64_t d) { return d > 1; });
  if (indices || dilated || detail::should_record({x})) return pool(x, images, h, w, dims);
  const Shape shape = {images.shape()[0], images.shape()[1], h.out, w.out};
  return {ops::like_input(reshape(largest_values(images, shape[0] * shape[1], h, w), shape), x, dims), Tensor()};
}

ValuesIndices adaptive_max_pool(const char* op, const Tensor& x, const Shape& output_size, int dims) {
  const Tensor images = ops::as_images(op, x, dims);
  const auto [h, w] = ops::adaptive_windows(op, x, dims, output_size);
  return pool(x, images, h, w, dims);
}

}  // namespace

ValuesIndices max_pool1d_with_indices(const Tensor& x, const Shape& kernel_size, const Shape& stride, const Shape& padding,
                                      const Shape& dilation, bool ceil_mode) {
  return max_pool("max_pool1d", x, kernel_size, stride, padding, dilation, ceil_mode, 1, true);
}

ValuesIndices max_pool2d_with_indices(const Tensor& x, const Shape& kernel_size, const Shape& stride, const Shape& padding,
                                      const Shape& dilation, bool ceil_mode) {
  return max_pool("max_pool2d", x, kernel_size, stride, padding, dilation, ceil_mode, 2, true);
}

Tensor max_pool1d(const Tensor& x, const Shape& kernel_size, const Shape& stride, const Shape& padding, const Shape& dilation,
                  bool ceil_mode) {
  return max_pool("max_pool1d", x, kernel_size, stride, padding, dilation, ceil_mode, 1, false).values;
}

Tensor max_pool2d(const Tensor& x, const Shape& kernel_size, const Shape& stride, const Shape& padding, const Shape& dilation,
                  bool ceil_mode) {
  return max_pool("max_pool2d", x, kernel_size, stride, padding, dilation, ceil_mode, 2, false).values;
}

ValuesIndices adaptive_max_pool1d_with_indices(const Tensor& x, const Shape& output_size) {
  return adaptive_max_pool("adaptive_max_pool1d", x, output_size, 1);
}

ValuesIndices adaptive_max_pool2d_with_indices(const Tensor& x, const Shape& output_size) {
  return adaptive_max_pool("adaptive_max_pool2d", x, output_size, 2);
}

Tensor adaptive_max_pool1d(const Tensor& x, const Shape& output_size) {
  return adaptive_max_pool1d_with_indices(x, output_size).values;
}

Tensor adaptive_max_pool2d(const Tensor& x, const Shape& output_size) {
  return adaptive_max_pool2d_with_indices(x, output_size).values;
}

}  // namespace onestep
