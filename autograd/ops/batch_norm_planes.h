#pragma once
// The planes over which images are normalised; those of few elements are taken row by row, with some channels side by side.
#include <algorithm>
#include <array>
#include <cmath>

#include "autograd/kernels/parallel.h"
#include "autograd/shape.h"
#include "autograd/vector_loop.h"

namespace onestep::ops {

/// Some channels of x [rows, channels, size], which has `step` elements a row. A column is a place in the plane of a channel.
struct ChannelBlock {
  static constexpr int64_t kMostColumns = 512;
  template <class T>
  using Columns = std::array<T, static_cast<size_t>(kMostColumns)>;

  int64_t first, channels, size, rows, step;

  int64_t columns() const { return channels * size; }
  double count() const { return static_cast<double>(rows * size); }
  /// f(place) for every row, whose part of the block begins there.
  template <class F>
  void each_row(const F& f) const {
    for (int64_t r = 0; r < rows; ++r) f(r * step + first * size);
  }
  /// The sum over the columns of a channel.
  double total(const Columns<double>& sums, int64_t channel) const {
    double total = 0;
    for (int64_t i = channel * size; i < (channel + 1) * size; ++i) total += sums[static_cast<size_t>(i)];
    return total;
  }
  /// Gives all columns of a channel a value.
  template <class T>
  void set(Columns<T>& values, int64_t channel, T value) const {
    std::fill_n(values.begin() + channel * size, size, value);
  }
};

/// x [N, C, ...] as planes [N, groups, channels, size], normalised over all of a group: of each image, or of all images.
struct Planes {
  static constexpr int64_t kSmall = 16;

  int64_t images, groups, channels, size;
  bool across_images;

  Shape shape() const { return {images, groups, channels, size}; }
  Shape dims() const { return across_images ? Shape{0, 2, 3} : Shape{2, 3}; }
  /// How many means there are, and how many elements each is of.
  int64_t means() const { return across_images ? groups : images * groups; }
  int64_t count() const { return across_images ? images * channels * size : channels * size; }

  /// f(plane, channel) for the planes of mean number i, channel being that of x.
  template <class F>
  void each_plane(int64_t i, const F& f) const {
    const int64_t group = i % groups, first = across_images ? 0 : i / groups, last = across_images ? images : first + 1;
    for (int64_t image = first; image < last; ++image)
      for (int64_t c = group * channels; c < (group + 1) * channels; ++c) f(image * groups * channels + c, c);
  }
  /// f(plane, run) for runs of these planes that lie one behind the other, each of about 1024 elements or one plane.
  template <class F>
  void each_run(int64_t i, const F& f) const {
    const int64_t most = std::max<int64_t>(1024 / std::max<int64_t>(size, 1), 1);
    const int64_t group = i % groups, first = across_images ? 0 : i / groups, last = across_images ? images : first + 1;
    for (int64_t image = first; image < last; ++image)
      for (int64_t c = 0; c < channels; c += most) f((image * groups + group) * channels + c, std::min(most, channels - c));
  }
  /// f(i) for every mean, by several threads.
  template <class F>
  void each_mean(const F& f) const {
    kernels::parallel_for(means(), static_cast<double>(count()), [&](int64_t i, int64_t end) {
      for (; i < end; ++i) f(i);
    });
  }

  /// Whether calls for each plane would take longer than what they compute; then each_block is faster than each_mean.
  bool are_small() const { return across_images && channels == 1 && size < kSmall; }
  /// f(block) for blocks of all channels, by several threads.
  template <class F>
  void each_block(const F& f) const {
    const int64_t width = std::clamp<int64_t>(ChannelBlock::kMostColumns / std::max<int64_t>(size, 1), 1, groups);
    kernels::parallel_for((groups + width - 1) / width, static_cast<double>(width * count()), [&](int64_t i, int64_t end) {
      for (; i < end; ++i) f(ChannelBlock{i * width, std::min(width, groups - i * width), size, images, groups * size});
    });
  }
};

/// Means, variances and y = (x - mean) rstd scale + shift of the block's channels; scales and shifts may be null.
template <class T>
void normalize_block(const ChannelBlock& b, const T* x, T* y, const T* scales, const T* shifts, double eps, T* means,
                     T* variances, T* rstds) {
  const int64_t n = b.columns();
  ChannelBlock::Columns<double> sums{}, squares{};
  ChannelBlock::Columns<T> mean, scale, shift;
  b.each_row([&](int64_t at) {
    vector_loop([](double sum, T v) { return sum + static_cast<double>(v); }, sums.data(), n, sums.data(), x + at);
  });
  for (int64_t c = 0; c < b.channels; ++c) b.set(mean, c, means[b.first + c] = static_cast<T>(b.total(sums, c) / b.count()));
  const auto square = [](double sum, T v, T center) {
    const T d = v - center;
    return sum + static_cast<double>(d * d);
  };
  b.each_row([&](int64_t at) { vector_loop(square, squares.data(), n, squares.data(), x + at, mean.data()); });
  for (int64_t c = 0; c < b.channels; ++c) {
    const int64_t i = b.first + c;
    variances[i] = static_cast<T>(b.total(squares, c) / b.count());
    rstds[i] = 1 / std::sqrt(variances[i] + static_cast<T>(eps));
    b.set(scale, c, scales ? rstds[i] * scales[i] : rstds[i]);
    b.set(shift, c, shifts ? shifts[i] : T(0));
  }
  const auto normalize = [](T v, T center, T w, T more) { return (v - center) * w + more; };
  b.each_row([&](int64_t at) { vector_loop(normalize, y + at, n, x + at, mean.data(), scale.data(), shift.data()); });
}

/// The gradients of normalize_block: those of x, which may be null, and of the block's scales and shifts.
template <class T>
void block_grads(const ChannelBlock& b, const T* x, const T* dy, const T* scales, const T* means, const T* rstds, T* dx,
                 T* dscales, T* dshifts) {
  if (b.rows * b.size == 0) return;
  const int64_t n = b.columns();
  ChannelBlock::Columns<double> sums{}, products{};  // of dy, and of dy (x - mean)
  ChannelBlock::Columns<T> mean, scale, less, slope;
  for (int64_t c = 0; c < b.channels; ++c) b.set(mean, c, means[b.first + c]);
  b.each_row([&](int64_t at) {
    vector_loop([](double sum, T d) { return sum + static_cast<double>(d); }, sums.data(), n, sums.data(), dy + at);
    vector_loop([](double sum, T d, T v, T center) { return sum + static_cast<double>(d * (v - center)); }, products.data(), n,
                products.data(), dy + at, x + at, mean.data());
  });
  for (int64_t c = 0; c < b.channels; ++c) {
    const int64_t i = b.first + c;
    const T rstd = rstds[i], w = scales ? rstd * scales[i] : rstd;
    const double g = b.total(sums, c), gh = b.total(products, c) * static_cast<double>(rstd);
    dshifts[i] = static_cast<T>(g);
    dscales[i] = static_cast<T>(gh);
    b.set(scale, c, w);
    b.set(less, c, w * static_cast<T>(g / b.count()));
    b.set(slope, c, w * rstd * static_cast<T>(gh / b.count()));
  }
  const auto gradient = [](T d, T v, T center, T w, T mean_of_g, T along) { return d * w - mean_of_g - (v - center) * along; };
  if (dx)
    b.each_row([&](int64_t at) {
      vector_loop(gradient, dx + at, n, dy + at, x + at, mean.data(), scale.data(), less.data(), slope.data());
    });
}

}  // namespace onestep::ops
