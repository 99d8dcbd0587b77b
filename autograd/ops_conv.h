#pragma once
// Convolutions, pooling, padding and the normalisations of images (torch.nn.functional).
#include <optional>
#include <string_view>
#include <vector>

#include "autograd/tensor.h"

namespace onestep {

struct ValuesIndices;

// Images are [N, C, H, W] or one [C, H, W], signals [N, C, L] or [C, L]. A size, stride, padding or dilation is one number for
// all dims or one a dim.

/// Zeros on both sides of each dim: numbers, "valid" (none) or "same" (the output has the input's size; the odd zero comes
/// last; stride 1 only).
struct Padding {
  Padding(const Shape& of_dims) : sizes(of_dims) {}
  template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
  Padding(T of_all) : sizes(of_all) {}
  Padding(std::initializer_list<int64_t> of_dims) : sizes(of_dims) {}
  /// Throws ConfigError unless `name` is same or valid.
  Padding(const char* name);

  Shape sizes = 0;
  bool same = false;
};

// ---- convolutions (ops/convolution.cpp) ----------------------------------------------------------------------------------

/// y[n, o] = bias[o] + sum over the channels c of o's group and the taps of weight[o, c, tap] x[n, c, place * stride - padding
/// + tap * dilation] (cross-correlation): x [N, C, L], weight [O, C / groups, K] -> [N, O, L'] with L' = (L + 2 padding -
/// dilation (K - 1) - 1) / stride + 1 (torch.nn.functional.conv1d). Throws ShapeError on sizes that do not fit.
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Shape& stride = 1,
              const Padding& padding = 0, const Shape& dilation = 1, int64_t groups = 1);
/// The same in two dims: x [N, C, H, W], weight [O, C / groups, KH, KW] -> [N, O, H', W'] (torch.nn.functional.conv2d).
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Shape& stride = 1,
              const Padding& padding = 0, const Shape& dilation = 1, int64_t groups = 1);
/// The gradient of conv1d for its input, as a layer: x [N, C, L], weight [C, O / groups, K] -> [N, O, L'] with L' = (L - 1)
/// stride - 2 padding + dilation (K - 1) + output_padding + 1 (torch.nn.functional.conv_transpose1d).
Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Shape& stride = 1,
                        const Shape& padding = 0, const Shape& output_padding = 0, int64_t groups = 1,
                        const Shape& dilation = 1);
/// The same in two dims: weight [C, O / groups, KH, KW] (torch.nn.functional.conv_transpose2d).
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Shape& stride = 1,
                        const Shape& padding = 0, const Shape& output_padding = 0, int64_t groups = 1,
                        const Shape& dilation = 1);

// ---- pooling (ops/max_pool.cpp, ops/resample.cpp) ------------------------------------------------------------------------
// The stride is the kernel's size unless given. With ceil_mode windows may end outside, but none may begin there.

/// The largest element of each window; NaN wins; the gradient goes to the first largest (torch.nn.functional.max_pool2d).
/// Throws ShapeError unless 0 <= padding <= kernel_size / 2.
Tensor max_pool1d(const Tensor& x, const Shape& kernel_size, const Shape& stride = {}, const Shape& padding = 0,
                  const Shape& dilation = 1, bool ceil_mode = false);
Tensor max_pool2d(const Tensor& x, const Shape& kernel_size, const Shape& stride = {}, const Shape& padding = 0,
                  const Shape& dilation = 1, bool ceil_mode = false);
/// The same with the place of each element in its plane, int64 (return_indices=True).
ValuesIndices max_pool1d_with_indices(const Tensor& x, const Shape& kernel_size, const Shape& stride = {},
                                      const Shape& padding = 0, const Shape& dilation = 1, bool ceil_mode = false);
ValuesIndices max_pool2d_with_indices(const Tensor& x, const Shape& kernel_size, const Shape& stride = {},
                                      const Shape& padding = 0, const Shape& dilation = 1, bool ceil_mode = false);
/// The mean of each window, zeros of the padding counted unless !count_include_pad; or its sum divided by divisor_override
/// (torch.nn.functional.avg_pool2d).
Tensor avg_pool1d(const Tensor& x, const Shape& kernel_size, const Shape& stride = {}, const Shape& padding = 0,
                  bool ceil_mode = false, bool count_include_pad = true);
Tensor avg_pool2d(const Tensor& x, const Shape& kernel_size, const Shape& stride = {}, const Shape& padding = 0,
                  bool ceil_mode = false, bool count_include_pad = true, std::optional<int64_t> divisor_override = {});
/// Windows such that the output has `output_size` places a dim: output o takes [o in / out, ceil((o + 1) in / out)); -1 keeps
/// the size (None in torch.nn.functional.adaptive_avg_pool2d).
Tensor adaptive_avg_pool1d(const Tensor& x, const Shape& output_size);
Tensor adaptive_avg_pool2d(const Tensor& x, const Shape& output_size);
Tensor adaptive_max_pool1d(const Tensor& x, const Shape& output_size);
Tensor adaptive_max_pool2d(const Tensor& x, const Shape& output_size);
ValuesIndices adaptive_max_pool1d_with_indices(const Tensor& x, const Shape& output_size);
ValuesIndices adaptive_max_pool2d_with_indices(const Tensor& x, const Shape& output_size);

enum class InterpolationMode { nearest, nearest_exact, linear, bilinear, trilinear, bicubic, area };
/// x [N, C, L], [N, C, H, W] or [N, C, D, H, W] in another size, given or as floor(in * scale_factor)
/// (torch.nn.functional.interpolate, ops/resample.cpp): the nearest element below or, exactly, at each output's middle (uint8,
/// too); in one, two or three dims the weighted mean of two neighbours a dim; the cubic convolution of four (Keys 1981); or the
/// mean of the area that an output covers. With align_corners the outer elements stay in place.
struct InterpolateOptions {
  Shape size = {};                        ///< One number for all dims or one a dim; or else:
  std::vector<double> scale_factor = {};  ///< The same of factors.
  InterpolationMode mode = InterpolationMode::nearest;
  bool align_corners = false;           ///< With linear and cubic modes.
  bool recompute_scale_factor = false;  ///< Uses in / out of the rounded sizes instead of the given factor.
  bool antialias = false;               ///< With bilinear and bicubic: a smaller output is a mean of all that it covers.
};
Tensor interpolate(const Tensor& x, const InterpolateOptions& options);

// ---- padding (ops/pad.cpp) -----------------------------------------------------------------------------------------------

enum class PadMode { constant, reflect, replicate, circular };
/// x with pad[0] places before and pad[1] after along the last dim, pad[2] and pad[3] along the one before it, and so on;
/// negative numbers cut off (torch.nn.functional.pad). The new places hold `value`, or what lies mirrored, nearest or one
/// period away; these modes pad the last one, two or three dims of a tensor that has one or two more. Throws ShapeError.
Tensor pad(const Tensor& x, const std::vector<int64_t>& pad, PadMode mode = PadMode::constant, Scalar value = 0);

// ---- windows as columns (ops/columns.cpp) --------------------------------------------------------------------------------

/// The windows of images [N, C, H, W] as columns: [N, C KH KW, L] (torch.nn.functional.unfold, in C++ named as ATen does:
/// unfold is that of tensors, in ops_shape.h). Throws ShapeError where no window fits.
Tensor im2col(const Tensor& x, const Shape& kernel_size, const Shape& dilation = 1, const Shape& padding = 0,
              const Shape& stride = 1);
/// Its transpose: the sums of what columns [N, C KH KW, L] hold for each place of images [N, C, output_size...]
/// (torch.nn.functional.fold). Throws ShapeError unless the columns are those of such images.
Tensor col2im(const Tensor& x, const Shape& output_size, const Shape& kernel_size, const Shape& dilation = 1,
              const Shape& padding = 0, const Shape& stride = 1);

// ---- normalisation (ops/batch_norm.cpp) ----------------------------------------------------------------------------------

/// (x - mean) / sqrt(var + eps) * weight + bias per channel of x [N, C, ...]; weight and bias [C] may be undefined. In training
/// mean and biased variance are the batch's, and running_mean and running_var [C], unless undefined, move towards the mean and
/// the unbiased variance: r = (1 - momentum) r + momentum v. Else they are the running ones (Ioffe and Szegedy 2015;
/// torch.nn.functional.batch_norm). Throws ShapeError when training on one value a channel.
Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight = {},
                  const Tensor& bias = {}, bool training = false, double momentum = 0.1, double eps = 1e-5);
/// The same over the channels of each of num_groups groups of each example, scaled per channel (Wu and He 2018;
/// torch.nn.functional.group_norm).
Tensor group_norm(const Tensor& x, int64_t num_groups, const Tensor& weight = {}, const Tensor& bias = {}, double eps = 1e-5);
/// The same over each channel of each example; with running statistics as batch_norm (Ulyanov et al. 2016;
/// torch.nn.functional.instance_norm).
Tensor instance_norm(const Tensor& x, const Tensor& running_mean = {}, const Tensor& running_var = {},
                     const Tensor& weight = {}, const Tensor& bias = {}, bool use_input_stats = true, double momentum = 0.1,
                     double eps = 1e-5);

}  // namespace onestep
