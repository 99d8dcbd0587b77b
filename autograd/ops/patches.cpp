#include "autograd/ops/patches.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "autograd/kernels/kernels.h"
#include "autograd/ops/common.h"
#include "autograd/ops/strided.h"

namespace onestep::ops {
namespace {

using kernels::Convolution, kernels::WindowDim;

/// Elements of the patches of a band, which stay in the L2 cache until they are multiplied.
constexpr int64_t kBandElements = int64_t{1} << 16;

/// Numbers of a patch.
int64_t depth_of(const Convolution& conv) { return conv.in_channels * conv.taps(); }
/// Rows of outputs over all images.
int64_t rows_of(const Convolution& conv) { return conv.images * conv.h.out; }

/// Moves n pieces of `width` bytes from steps of one length to steps of another.
void move_pieces(const std::byte* from, int64_t from_step, std::byte* to, int64_t to_step, int64_t n, int64_t width) {
  const auto move = [=](auto size) {
    for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * to_step, from + i * from_step, static_cast<size_t>(size));
  };
  switch (width) {  // a call for each of the usual ones takes longer than moving it
    case 8:
      return move(std::integral_constant<int64_t, 8>());
    case 16:
      return move(std::integral_constant<int64_t, 16>());
    case 32:
      return move(std::integral_constant<int64_t, 32>());
    case 64:
      return move(std::integral_constant<int64_t, 64>());
    default:
      return move(width);
  }
}

/// The windows of one row of outputs, counted over all images, in bytes: each line of the input is in pieces one behind the
/// other in the input, and apart in patches [w.out, in_channels, taps].
struct WindowRow {
  WindowRow(const Convolution& c, int64_t row, int64_t size)
      : conv(c),
        first((row / c.h.out * c.in_channels * c.h.in + row % c.h.out * c.h.stride) * c.w.in * size),
        line(c.w.in * size),
        step(c.w.stride * size),
        width(c.w.kernel * size),
        depth(depth_of(c) * size) {}

  /// Calls f(place in the images, place in the patches, number) for some pieces of a line: of so few patches at once that their
  /// cache lines stay in the L1 cache until they are full.
  template <class F>
  void each_pieces(const F& f) const {
    constexpr int64_t patches = 8;
    for (int64_t o = 0; o < conv.w.out; o += patches) {
      int64_t to = o * depth;
      for (int64_t c = 0; c < conv.in_channels; ++c)
        for (int64_t tap = 0; tap < conv.h.kernel; ++tap, to += width)
          f(first + (c * conv.h.in + tap) * line + o * step, to, std::min(patches, conv.w.out - o));
    }
  }
  void take(const std::byte* images, std::byte* patches) const {
    each_pieces([&](int64_t from, int64_t to, int64_t n) { move_pieces(images + from, step, patches + to, depth, n, width); });
  }
  void put(const std::byte* patches, std::byte* images) const {
    each_pieces([&](int64_t to, int64_t from, int64_t n) { move_pieces(patches + from, depth, images + to, step, n, width); });
  }

  const Convolution& conv;
  int64_t first, line, step, width, depth;
};

/// Calls f(row) for `rows` of outputs, by several threads.
template <class F>
void for_each_window_row(const Convolution& conv, kernels::Span rows, const F& f) {
  kernels::parallel_for(rows.end - rows.begin, kLoopCost * static_cast<double>(conv.w.out * depth_of(conv)),
                        [&](int64_t i, int64_t end) {
                          for (; i < end; ++i) f(rows.begin + i);
                        });
}

/// dy [images, out_channels, h.out, w.out] with the channels of an output beside each other.
Tensor channels_last(const Convolution& conv, const Tensor& dy) {
  const int64_t channels = conv.out_channels, plane = conv.out_plane();
  return contiguous_values(view_of(dy, {conv.images, plane, channels}, {channels * plane, 1, plane}, dy.offset()));
}

/// y of outputs in `rows`: the products of their patches and of the packed weight, `band` rows at once.
template <class T>
void multiply_bands(const Convolution& conv, const T* x, const kernels::Packed<T>& weight, const T* bias, int64_t band,
                    Tensor& y, kernels::Span rows) {
  const int64_t depth = depth_of(conv), channels = conv.out_channels, width = conv.w.out;
  Tensor patches = empty({band * width, depth}, y.dtype()), sums = empty({band * width, channels}, y.dtype());
  T *const from = patches.mutable_data<T>(), *const to = sums.mutable_data<T>();
  for (int64_t row = rows.begin, end; row < rows.end; row = end) {
    end = std::min(row + band, rows.end);
    const int64_t outputs = (end - row) * width;
    for (int64_t i = row; i < end; ++i)
      WindowRow(conv, i, sizeof(T))
          .take(reinterpret_cast<const std::byte*>(x), reinterpret_cast<std::byte*>(from + (i - row) * width * depth));
    kernels::gemm<T>(outputs, channels, depth, from, depth, weight, to, channels);
    for (int64_t i = 0; bias && i < outputs; ++i)
      kernels::table<T>().add(to + i * channels, 1, bias, 1, to + i * channels, channels);
    for (int64_t i = row, stop; i < end; i = stop) {  // those of one image
      const int64_t image = i / conv.h.out;
      stop = std::min(end, (image + 1) * conv.h.out);
      const Shape part = {channels, (stop - i) * width};
      Tensor target =
          view_of(y, part, {conv.out_plane(), 1}, y.offset() + image * channels * conv.out_plane() + i % conv.h.out * width);
      copy_values(target, view_of(sums, part, {1, channels}, (i - row) * width * channels));
    }
  }
}

}  // namespace

bool cuts_patches(const Convolution& conv) {
  const auto apart = [](const WindowDim& d) {
    return d.padding == 0 && (d.dilation == 1 || d.kernel == 1) && (d.stride >= d.kernel || d.out == 1) &&
           (d.out - 1) * d.stride + d.kernel <= d.in;  // "same" may end outside without padding before
  };
  // Copying patches pays where these are long and many channels come of them.
  return conv.groups == 1 && conv.taps() > 1 && depth_of(conv) >= 256 && conv.out_channels >= 32 && apart(conv.h) &&
         apart(conv.w);
}

void patch_convolution(const Convolution& conv, const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y) {
  const int64_t depth = depth_of(conv), channels = conv.out_channels;
  dispatch_floating(x.dtype(), "conv2d", [&]<class T>() {
    Tensor packed = empty({kernels::packed_size<T>(channels, depth)}, x.dtype());
    T* const panels = packed.mutable_data<T>();
    const int64_t pieces = kernels::products<T>().pack_pieces(channels, depth);
    kernels::parallel_for(pieces, static_cast<double>(channels * depth) / static_cast<double>(pieces),
                          [=, from = weight.data<T>()](int64_t piece, int64_t end) {
                            for (; piece < end; ++piece)
                              kernels::products<T>().pack(true, channels, depth, from, depth, panels, piece);
                          });
    const int64_t band = std::clamp<int64_t>(kBandElements / (depth * conv.w.out), 1, std::max<int64_t>(rows_of(conv), 1));
    kernels::parallel_for((rows_of(conv) + band - 1) / band, 0.04 * static_cast<double>(band * conv.w.out * depth * channels),
                          [&](int64_t i, int64_t end) {
                            multiply_bands<T>(conv, x.data<T>(), {panels, channels, depth}, data_or_null<T>(bias), band, y,
                                              {i * band, std::min(end * band, rows_of(conv))});
                          });
  });
}

void patch_convolution_input_grad(const Convolution& conv, const Tensor& dy, const Tensor& weight, Tensor& dx) {
  const int64_t depth = depth_of(conv), outputs = conv.images * conv.out_plane();
  const Tensor rows = channels_last(conv, dy);
  Tensor patches = empty({outputs, depth}, dy.dtype());
  dispatch_floating(dy.dtype(), "conv_transpose2d", [&]<class T>() {
    kernels::gemm<T>(false, false, outputs, depth, conv.out_channels, rows.data<T>(), conv.out_channels, weight.data<T>(),
                     depth, patches.mutable_data<T>(), depth, false);
  });
  if (patches.numel() < dx.numel()) dx.zero_();  // places that are in no window
  const int64_t size = size_of(dx.dtype()), row_bytes = conv.w.out * depth * size;
  const auto* const from = units<std::byte>(patches);
  auto* const to = mutable_units<std::byte>(dx);
  for_each_window_row(conv, {0, rows_of(conv)},
                      [&](int64_t row) { WindowRow(conv, row, size).put(from + row * row_bytes, to); });
}

void patch_convolution_weight_grad(const Convolution& conv, const Tensor& x, const Tensor& dy, Tensor& dweight) {
  // Image by image dy is read as it lies, which takes longer where an image has few outputs.
  const bool by_image = conv.out_plane() >= kernels::kBlockK;
  const int64_t parts = by_image ? std::max<int64_t>(conv.images, 1) : 1, images = conv.images / parts;
  const int64_t depth = depth_of(conv), channels = conv.out_channels, outputs = images * conv.out_plane();
  const Tensor grads = by_image ? dy : channels_last(conv, dy);
  Tensor patches = empty({outputs, depth}, x.dtype());
  const int64_t size = size_of(x.dtype()), row_bytes = conv.w.out * depth * size;
  const auto* const from = units<std::byte>(x);
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t first = part * images * conv.h.out;
    auto* const to = mutable_units<std::byte>(patches);
    for_each_window_row(conv, {first, first + images * conv.h.out},
                        [&](int64_t row) { WindowRow(conv, row, size).take(from, to + (row - first) * row_bytes); });
    dispatch_floating(x.dtype(), "conv2d", [&]<class T>() {
      kernels::gemm<T>(!by_image, false, channels, depth, outputs, grads.data<T>() + part * channels * outputs,
                       by_image ? outputs : channels, patches.data<T>(), depth, dweight.mutable_data<T>(), depth, part > 0);
    });
  }
}

}  // namespace onestep::ops
