// Average pooling and interpolation: weighted sums of neighbours, dim by dim. The sum and its transpose are each other's
// gradient.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "autograd/creation.h"
#include "autograd/ops/strided.h"
#include "autograd/ops/windows.h"
#include "autograd/ops_conv.h"
#include "autograd/ops_index.h"
#include "autograd/ops_pointwise.h"

namespace onestep {

using ops::Places, ops::WindowDim;

namespace {

/// Which places of a dim enter each output: spans[o] = {begin, end}, int64 [out, 2], with weights [out, most].
struct Taps {
  Tensor spans, weights;
};

/// y[o] = sum of weights[o, t] x[begin + t] over the spans of all outputs o, in order; or with `back` y[begin + t] +=
/// weights[o, t] x[o]. Of x and y are given [outer, size, inner] around the dim.
struct Sums {
  int64_t outer = 1, x_size, y_size, inner = 1;
  bool back;

  template <class T>
  void add(const T* x, T* y, const Taps& taps) const {
    const double cost = ops::kLoopCost * static_cast<double>(taps.weights.numel() * inner);
    kernels::parallel_for(outer, cost, [&, this, x, y](int64_t n, int64_t end) {
      const auto from = [&] { return x + n * x_size * inner; };
      const auto to = [&] { return y + n * y_size * inner; };
      if (back || inner != 1) std::fill(to(), y + end * y_size * inner, T(0));
      for (; inner != 1 && n < end; ++n) add_block(from(), to(), taps);
      for (; n + 8 <= end; n += 8) add_rows<8>(from(), to(), taps);  // each of a row's sums waits for the one before
      for (; n < end; ++n) add_rows<1>(from(), to(), taps);
    });
  }

 private:
  template <class T>
  void add_block(const T* x, T* y, const Taps& taps) const {
    const int64_t out = taps.spans.shape()[0], most = taps.weights.shape()[1];
    const auto* const spans = taps.spans.data<int64_t>();
    const T* const weights = taps.weights.data<T>();
    const int64_t n = inner;
    for (int64_t o = 0; o < out; ++o) {
      for (int64_t place = spans[2 * o]; place < spans[2 * o + 1]; ++place) {
        const T weight = weights[o * most + place - spans[2 * o]];
        const T* const from = x + (back ? o : place) * n;
        T* const to = y + (back ? place : o) * n;
        for (int64_t i = 0; i < n; ++i) to[i] += weight * from[i];
      }
    }
  }

  /// Of rows without inner dims.
  template <int64_t kRows, class T>
  void add_rows(const T* x, T* y, const Taps& taps) const {
    const int64_t out = taps.spans.shape()[0], most = taps.weights.shape()[1];
    const auto* const spans = taps.spans.data<int64_t>();
    const T* const weights = taps.weights.data<T>();
    for (int64_t o = 0; o < out; ++o) {
      T own[kRows] = {};
      for (int64_t r = 0; back && r < kRows; ++r) own[r] = x[r * x_size + o];
      for (int64_t place = spans[2 * o]; place < spans[2 * o + 1]; ++place) {
        const T weight = weights[o * most + place - spans[2 * o]];
        if (back)
          for (int64_t r = 0; r < kRows; ++r) y[r * y_size + place] += weight * own[r];
        else
          for (int64_t r = 0; r < kRows; ++r) own[r] += weight * x[r * x_size + place];
      }
      for (int64_t r = 0; !back && r < kRows; ++r) y[r * y_size + o] = own[r];
    }
  }
};

/// The sums of x's elements along `dim`, which gets `size`. Forwards and back are each other's transposes, and so gradients.
Tensor resampled(const Tensor& x, int dim, const Taps& taps, int64_t size, bool back) {
  Shape shape = x.shape();
  const int64_t before = shape[dim];
  shape[dim] = size;
  const Tensor values = ops::contiguous_values(x);
  Tensor y = empty(shape, x.dtype());
  Sums sums{.x_size = before, .y_size = size, .back = back};
  for (int i = 0; i < shape.rank(); ++i) (i < dim ? sums.outer : sums.inner) *= i == dim ? 1 : shape[i];
  dispatch_floating(x.dtype(), "resample", [&]<class T>() { sums.add(values.data<T>(), y.mutable_data<T>(), taps); });
  return record("resample", y, {x}, {taps.spans, taps.weights}, [dim, before, back](const Backward& b) -> Grads {
    return {resampled(b.grad(), dim, {b.saved(0), b.saved(1)}, before, !back)};
  });
}

Tensor gather_sums(const Tensor& x, int dim, const Taps& taps) { return resampled(x, dim, taps, taps.spans.shape()[0], false); }

/// Each output's window with weights 1.
Taps taps_of(const WindowDim& d, DType dtype) {
  std::vector<int64_t> spans;
  int64_t most = 0;
  for (int64_t o = 0; o < d.out; ++o) {
    const Places places = ops::places_of(d, o);
    spans.insert(spans.end(), {places.begin, places.end});
    most = std::max(most, places.end - places.begin);
  }
  return {from_values(spans, {d.out, 2}), ones({d.out, most}, dtype)};
}

/// How many places each output's window counts: those inside, or also those of the padding.
Tensor counts_of(const WindowDim& d, bool count_padding, DType dtype) {
  std::vector<double> counts;
  for (int64_t o = 0; o < d.out; ++o) {
    const Places places = ops::places_of(d, o);
    const int64_t first = d.place(o, 0), padded = std::min(first + d.kernel, d.in + d.padding) - first;
    counts.push_back(static_cast<double>(count_padding ? padded : places.end - places.begin));
  }
  return from_values(counts, {d.out}).to(dtype);
}

Tensor mean_of_windows(const Tensor& images, const ops::Windows2d& windows, bool count_padding,
                       std::optional<int64_t> divisor) {
  const Tensor values = ops::wide(images);
  const DType dtype = values.dtype();
  const bool one_row = windows.h.in == 1 && windows.h.out == 1 && windows.h.kernel <= 1;  // of one dim
  const Tensor rows = one_row ? values : gather_sums(values, 2, taps_of(windows.h, dtype));
  const Tensor sums = gather_sums(rows, 3, taps_of(windows.w, dtype));
  if (divisor) return to(div(sums, *divisor), images.dtype());
  const Tensor rows_counted = unsqueeze(counts_of(windows.h, count_padding, dtype), 1);
  return to(div(sums, mul(rows_counted, counts_of(windows.w, count_padding, dtype))), images.dtype());
}

Tensor avg_pool(const char* op, const Tensor& x, const Shape& kernel_size, const Shape& stride, const Shape& padding,
                bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor, int dims) {
  const Tensor images = ops::as_images(op, x, dims);
  ONESTEP_CHECK(ShapeError, divisor != 0, op, ": divisor_override is 0");
  const ops::Windows2d windows = ops::pool_windows(op, x, dims, kernel_size, stride, padding, 1, ceil_mode);
  return ops::like_input(mean_of_windows(images, windows, count_include_pad, divisor), x, dims);
}

Tensor adaptive_avg_pool(const char* op, const Tensor& x, const Shape& output_size, int dims) {
  const Tensor images = ops::as_images(op, x, dims);
  return ops::like_input(mean_of_windows(images, ops::adaptive_windows(op, x, dims, output_size), false, {}), x, dims);
}

/// One dim of an interpolation: its sizes and the distance of two outputs in places of the input.
template <class T>
struct Scale {
  int64_t in, out;
  T step;
  std::vector<int64_t> spans = {};
  std::vector<T> weights = {};

  /// The nearest place below, or with `exact` that in which the middle of output o lies.
  int64_t nearest(int64_t o, bool exact) const {
    return std::min(static_cast<int64_t>((static_cast<float>(o) + (exact ? 0.5f : 0.0f)) * static_cast<float>(step)), in - 1);
  }
  T place(int64_t o, bool align_corners) const {
    constexpr T half = T(0.5);
    return align_corners ? step * static_cast<T>(o) : step * (static_cast<T>(o) + half) - half;
  }
  /// The two neighbours of output o and their weights.
  void add_linear(int64_t o, bool align_corners) {
    if (in == out) {  // itself, whatever the factor, as in PyTorch
      spans.insert(spans.end(), {o, o + 1});
      weights.insert(weights.end(), {T(1), T(0)});
      return;
    }
    const T at = std::max(place(o, align_corners), T(0));
    const int64_t first = std::min(static_cast<int64_t>(at), in - 1);
    const T second = std::clamp(at - static_cast<T>(first), T(0), T(1));
    spans.insert(spans.end(), {first, std::min(first + 2, in)});
    weights.insert(weights.end(), {first + 1 < in ? T(1) - second : T(1), second});
  }
  /// Keys' cubic convolution: the weight of a neighbour at a distance below 1, and of one below 2.
  static T near(T d, T a) { return ((a + 2) * d - (a + 3)) * d * d + 1; }
  static T far(T d, T a) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; }
  /// That of four neighbours with a = -0.75; neighbours outside are the outer elements.
  void add_cubic(int64_t o, bool align_corners) {
    constexpr T a = T(-0.75);
    const T at = place(o, align_corners);
    const int64_t first = std::min(static_cast<int64_t>(std::floor(at)), in - 1);
    const T second = std::clamp(at - static_cast<T>(first), T(0), T(1));
    const std::array<T, 4> each = {far(second + 1, a), near(second, a), near(1 - second, a), far(2 - second, a)};
    const int64_t begin = std::clamp<int64_t>(first - 1, 0, in - 1), end = std::clamp<int64_t>(first + 2, 0, in - 1) + 1;
    std::array<T, 4> folded{};
    for (size_t tap = 0; tap < 4; ++tap)
      folded[static_cast<size_t>(std::clamp(first - 1 + static_cast<int64_t>(tap), begin, end - 1) - begin)] += each[tap];
    spans.insert(spans.end(), {begin, end});
    weights.insert(weights.end(), folded.begin(), folded.end());
  }
  /// How far to either side the places reach that enter an output without aliasing: as many more as outputs are further apart.
  T reach(bool cubic) const { return (cubic ? T(2) : T(1)) * std::max(step, T(1)); }
  /// `most` weights, of sum 1, of the places within reach of output o's middle: the triangle, or Keys' with a = -0.5.
  void add_filtered(int64_t o, bool cubic, int64_t most) {
    constexpr T half = T(0.5), a = T(-0.5);
    const T middle = step * (static_cast<T>(o) + half);
    const int64_t begin = std::max<int64_t>(static_cast<int64_t>(middle - reach(cubic) + half), 0);
    const int64_t end = std::min({static_cast<int64_t>(middle + reach(cubic) + half), in, begin + most});
    std::vector<T> row(static_cast<size_t>(most));
    T sum = 0;
    for (int64_t place = begin; place < end; ++place) {
      const T d = std::abs(static_cast<T>(place) + half - middle) / std::max(step, T(1));
      const T weight = !cubic ? std::max(1 - d, T(0)) : d < 1 ? near(d, a) : d < 2 ? far(d, a) : T(0);
      sum += row[static_cast<size_t>(place - begin)] = weight;
    }
    for (T& weight : row) weight /= sum;
    spans.insert(spans.end(), {begin, end});
    weights.insert(weights.end(), row.begin(), row.end());
  }
};

template <class T>
Tensor interpolate_dim(const Tensor& x, int dim, Scale<T> scale, const InterpolateOptions& options) {
  if (options.mode == InterpolationMode::nearest || options.mode == InterpolationMode::nearest_exact) {
    std::vector<int64_t> places;
    for (int64_t o = 0; o < scale.out; ++o)
      places.push_back(scale.nearest(o, options.mode == InterpolationMode::nearest_exact));
    return index_select(x, dim, from_values(places, {scale.out}));
  }
  if (options.mode == InterpolationMode::area) {
    const WindowDim windows{.in = scale.in, .out = scale.out, .kernel = 0, .stride = 1, .padding = 0, .dilation = 1};
    Shape counts = Shape{scale.out};
    while (counts.rank() < x.dim() - dim) counts.push_back(1);
    const Tensor sums = gather_sums(x, dim, taps_of(windows, x.dtype()));
    return div(sums, view(counts_of(windows, false, x.dtype()), counts));
  }
  const bool cubic = options.mode == InterpolationMode::bicubic;
  int64_t most = cubic ? 4 : 2;
  if (options.antialias) most = 2 * static_cast<int64_t>(std::ceil(scale.reach(cubic))) + 1;
  for (int64_t o = 0; o < scale.out; ++o) {
    if (options.antialias)
      scale.add_filtered(o, cubic, most);
    else if (cubic)
      scale.add_cubic(o, options.align_corners);
    else
      scale.add_linear(o, options.align_corners);
  }
  return gather_sums(x, dim, {from_values(scale.spans, {scale.out, 2}), from_values(scale.weights, {scale.out, most})});
}

/// The ranks that a mode takes: their least and largest number of dims.
std::pair<int, int> dims_of(InterpolationMode mode) {
  switch (mode) {
    case InterpolationMode::linear:
      return {1, 1};
    case InterpolationMode::bilinear:
    case InterpolationMode::bicubic:
      return {2, 2};
    case InterpolationMode::trilinear:
      return {3, 3};
    default:
      return {1, 3};
  }
}

}  // namespace

Tensor avg_pool1d(const Tensor& x, const Shape& kernel_size, const Shape& stride, const Shape& padding, bool ceil_mode,
                  bool count_include_pad) {
  return avg_pool("avg_pool1d", x, kernel_size, stride, padding, ceil_mode, count_include_pad, {}, 1);
}

Tensor avg_pool2d(const Tensor& x, const Shape& kernel_size, const Shape& stride, const Shape& padding, bool ceil_mode,
                  bool count_include_pad, std::optional<int64_t> divisor_override) {
  return avg_pool("avg_pool2d", x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, 2);
}

Tensor adaptive_avg_pool1d(const Tensor& x, const Shape& output_size) {
  return adaptive_avg_pool("adaptive_avg_pool1d", x, output_size, 1);
}

Tensor adaptive_avg_pool2d(const Tensor& x, const Shape& output_size) {
  return adaptive_avg_pool("adaptive_avg_pool2d", x, output_size, 2);
}

Tensor interpolate(const Tensor& x, const InterpolateOptions& options) {
  const int dims = x.dim() - 2;
  const auto [least, most] = dims_of(options.mode);
  const bool nearest = options.mode == InterpolationMode::nearest || options.mode == InterpolationMode::nearest_exact;
  if (!nearest || x.dtype() != DType::uint8) ops::check_floating("interpolate", x);
  constexpr std::array shapes = {"[N, C, L]", "[N, C, H, W]", "[N, C, D, H, W]"};
  ONESTEP_CHECK(ShapeError, dims >= least && dims <= most, "interpolate: needs ",
                least == most ? shapes[static_cast<size_t>(least - 1)] : "[N, C, L], [N, C, H, W] or [N, C, D, H, W]", ": got ",
                x.shape());
  const bool sized = !options.size.empty();
  ONESTEP_CHECK(ConfigError, sized == options.scale_factor.empty(), "interpolate: needs either size or scale_factor");
  ONESTEP_CHECK(ConfigError, !options.align_corners || !(nearest || options.mode == InterpolationMode::area),
                "interpolate: align_corners is for linear and cubic modes");
  ONESTEP_CHECK(ConfigError, !options.antialias || (dims == 2 && least == 2),
                "interpolate: antialias is for bilinear and bicubic modes");
  const size_t factors = options.scale_factor.size();
  ONESTEP_CHECK(ShapeError, sized || factors == 1 || factors == static_cast<size_t>(dims),
                "interpolate: scale_factor needs one number or ", dims, ": got ", factors);
  Tensor y = nearest ? x : ops::wide(x);
  const auto resample = [&]<class T>() {
    for (int i = 0; i < dims; ++i) {
      const int64_t in = x.shape()[i + 2];
      const double factor = sized ? 1 : options.scale_factor[factors == 1 ? 0 : static_cast<size_t>(i)];
      const int64_t out = sized ? ops::of_dim("interpolate", "size", options.size, dims, i, 1)
                                : static_cast<int64_t>(std::floor(static_cast<double>(in) * factor));
      ONESTEP_CHECK(ShapeError, in > 0 && out > 0, "interpolate: dim ", i + 2, " of input ", x.shape(), " would get size ",
                    out);
      T step = sized || options.recompute_scale_factor ? static_cast<T>(in) / static_cast<T>(out) : static_cast<T>(1 / factor);
      if (options.align_corners) step = out > 1 ? static_cast<T>(in - 1) / static_cast<T>(out - 1) : T(0);
      y = interpolate_dim<T>(y, i + 2, {in, out, step}, options);
    }
  };
  x.dtype() == DType::float64 ? resample.template operator()<double>() : resample.template operator()<float>();
  return to(y, x.dtype());
}

}  // namespace onestep
