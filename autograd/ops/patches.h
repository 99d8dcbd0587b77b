#pragma once
// Convolutions whose windows do not overlap, as those that cut images into patches: products of the matrix of all patches
// [images h.out w.out, in_channels taps], to which the input is copied, and the weight [out_channels, in_channels taps].
#include "autograd/kernels/convolution.h"
#include "autograd/tensor.h"

namespace onestep::ops {

bool cuts_patches(const kernels::Convolution& conv);

/// What the kernels of these names compute for contiguous operands of one floating dtype, in float32 with the same order of
/// sums but in the gradient for the weight: it is summed as by gemm with k = (n, i, j), or image by image where these have many
/// outputs.
void patch_convolution(const kernels::Convolution& conv, const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y);
void patch_convolution_input_grad(const kernels::Convolution& conv, const Tensor& dy, const Tensor& weight, Tensor& dx);
void patch_convolution_weight_grad(const kernels::Convolution& conv, const Tensor& x, const Tensor& dy, Tensor& dweight);

}  // namespace onestep::ops
