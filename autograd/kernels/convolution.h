#pragma once
// 2-d convolutions and their gradients. The bits do not depend on threads or instruction set: how a sum is grouped depends on
// shapes alone.
#include <cstdint>

#include "autograd/kernels/span.h"

namespace onestep::kernels {

/// One dim of a convolution or pooling window: output `o` reads the places of its `kernel` taps.
struct WindowDim {
  int64_t in, out, kernel, stride, padding, dilation;

  int64_t place(int64_t o, int64_t tap) const { return o * stride - padding + tap * dilation; }
  /// The outputs whose tap lies inside the input.
  Span outputs(int64_t tap) const;
};

/// `images` images of groups * in_channels planes [h.in, w.in] to groups * out_channels planes [h.out, w.out].
struct Convolution {
  int64_t images, groups, in_channels, out_channels;
  WindowDim h, w;

  int64_t in_plane() const { return h.in * w.in; }
  int64_t out_plane() const { return h.out * w.out; }
  int64_t taps() const { return h.kernel * w.kernel; }
};

/// y[n, o] = sum over (c, i, j) of weight[o, c, i, j] x[n, c, place(i), place(j)], summed as by gemm with k = (c, i, j), plus
/// bias[o] (may be null). weight is [groups * out_channels, in_channels, h.kernel, w.kernel].
template <class T>
void convolution(const Convolution& conv, const T* x, const T* weight, const T* bias, T* y);

/// dx[n, c, place(i), place(j)] = sum over (o, i, j) of weight[o, c, i, j] dy[n, o], summed as by gemm with k = (o, i, j).
template <class T>
void convolution_input_grad(const Convolution& conv, const T* dy, const T* weight, T* dx);

/// dweight[o, c, i, j] = sum over n and the outputs of dy[n, o] x[n, c, place(i), place(j)]: in 16 lanes, images in chunks
/// whose sums are added in order.
template <class T>
void convolution_weight_grad(const Convolution& conv, const T* x, const T* dy, T* dweight);

}  // namespace onestep::kernels
