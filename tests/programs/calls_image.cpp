#include "tests/programs/call_forms.h"

namespace onestep::programs {
namespace {

/// A size of one number or one a dim, or what stands for it.
Shape sizes(const Args& a, size_t i, const char* name, const Shape& otherwise) {
  return a.has(i, name) ? Shape(a.list(i, name)) : otherwise;
}

Padding padding_of(const Args& a, size_t i) {
  if (a.is_text(i, "padding")) return Padding(a.text(i, "padding", "valid").c_str());
  return sizes(a, i, "padding", 0);
}

template <Tensor (*op)(const Tensor&, const Tensor&, const Tensor&, const Shape&, const Padding&, const Shape&, int64_t)>
Results convolution(const Args& a) {
  return op(a.x(), a.tensor(1, "weight"), a.tensor(2, "bias"), sizes(a, 3, "stride", 1), padding_of(a, 4),
            sizes(a, 5, "dilation", 1), a.integer(6, "groups", 1));
}

template <Tensor (*op)(const Tensor&, const Tensor&, const Tensor&, const Shape&, const Shape&, const Shape&, int64_t,
                       const Shape&)>
Results transposed(const Args& a) {
  return op(a.x(), a.tensor(1, "weight"), a.tensor(2, "bias"), sizes(a, 3, "stride", 1), sizes(a, 4, "padding", 0),
            sizes(a, 5, "output_padding", 0), a.integer(6, "groups", 1), sizes(a, 7, "dilation", 1));
}

template <Tensor (*op)(const Tensor&, const Shape&, const Shape&, const Shape&, const Shape&, bool),
          ValuesIndices (*with_indices)(const Tensor&, const Shape&, const Shape&, const Shape&, const Shape&, bool)>
Results max_pool(const Args& a) {
  const Shape kernel = sizes(a, 1, "kernel_size", 1), stride = sizes(a, 2, "stride", {}), padding = sizes(a, 3, "padding", 0);
  const Shape dilation = sizes(a, 4, "dilation", 1);
  const bool ceil_mode = a.flag(kKeywordOnly, "ceil_mode");
  if (a.flag(kKeywordOnly, "return_indices")) return with_indices(a.x(), kernel, stride, padding, dilation, ceil_mode);
  return op(a.x(), kernel, stride, padding, dilation, ceil_mode);
}

Results avg_pool1d_of(const Args& a) {
  return avg_pool1d(a.x(), sizes(a, 1, "kernel_size", 1), sizes(a, 2, "stride", {}), sizes(a, 3, "padding", 0),
                    a.flag(4, "ceil_mode"), a.flag(5, "count_include_pad", true));
}

Results avg_pool2d_of(const Args& a) {
  std::optional<int64_t> divisor;
  if (a.has(6, "divisor_override")) divisor = a.integer(6, "divisor_override");
  return avg_pool2d(a.x(), sizes(a, 1, "kernel_size", 1), sizes(a, 2, "stride", {}), sizes(a, 3, "padding", 0),
                    a.flag(4, "ceil_mode"), a.flag(5, "count_include_pad", true), divisor);
}

template <Tensor (*op)(const Tensor&, const Shape&)>
Results adaptive(const Args& a) {
  return op(a.x(), a.output_size(1));
}

template <Tensor (*op)(const Tensor&, const Shape&), ValuesIndices (*with_indices)(const Tensor&, const Shape&)>
Results adaptive_max(const Args& a) {
  if (a.flag(2, "return_indices")) return with_indices(a.x(), a.output_size(1));
  return op(a.x(), a.output_size(1));
}

Results pad_of(const Args& a) {
  const std::map<std::string, PadMode> modes = {{"constant", PadMode::constant},
                                                {"reflect", PadMode::reflect},
                                                {"replicate", PadMode::replicate},
                                                {"circular", PadMode::circular}};
  const Scalar value = a.has(3, "value") ? a.scalar(3, "value") : Scalar(0);
  return pad(a.x(), a.list(1, "pad"), modes.at(a.text(2, "mode", "constant")), value);
}

Results interpolate_of(const Args& a) {
  const std::string mode = a.text(3, "mode", "nearest");
  ONESTEP_CHECK(Unsupported, mode == "nearest" || mode == "bilinear", "mode ", mode);
  InterpolateOptions options{.mode = mode == "nearest" ? InterpolationMode::nearest : InterpolationMode::bilinear,
                             .align_corners = a.flag(4, "align_corners"),
                             .recompute_scale_factor = a.flag(5, "recompute_scale_factor")};
  if (a.has(1, "size")) options.size = Shape(a.list(1, "size"));
  if (a.is_list(2, "scale_factor"))
    options.scale_factor = a.values<double>(2, "scale_factor");
  else if (a.has(2, "scale_factor"))
    options.scale_factor = {a.real(2, "scale_factor", 1)};
  return interpolate(a.x(), options);
}

Results batch_norm_of(const Args& a) {
  return batch_norm(a.x(), a.tensor(1, "running_mean"), a.tensor(2, "running_var"), a.tensor(3, "weight"), a.tensor(4, "bias"),
                    a.flag(5, "training"), a.real(6, "momentum", 0.1), a.real(7, "eps", 1e-5));
}

Results instance_norm_of(const Args& a) {
  return instance_norm(a.x(), a.tensor(1, "running_mean"), a.tensor(2, "running_var"), a.tensor(3, "weight"),
                       a.tensor(4, "bias"), a.flag(5, "use_input_stats", true), a.real(6, "momentum", 0.1),
                       a.real(7, "eps", 1e-5));
}

}  // namespace

void add_image_calls(CallTable& table) {
  const CallTable rows = {
      {"conv1d", convolution<conv1d>},
      {"conv2d", convolution<conv2d>},
      {"conv_transpose1d", transposed<conv_transpose1d>},
      {"conv_transpose2d", transposed<conv_transpose2d>},
      {"max_pool1d", max_pool<max_pool1d, max_pool1d_with_indices>},
      {"max_pool2d", max_pool<max_pool2d, max_pool2d_with_indices>},
      {"avg_pool1d", avg_pool1d_of},
      {"avg_pool2d", avg_pool2d_of},
      {"adaptive_avg_pool1d", adaptive<adaptive_avg_pool1d>},
      {"adaptive_avg_pool2d", adaptive<adaptive_avg_pool2d>},
      {"adaptive_max_pool1d", adaptive_max<adaptive_max_pool1d, adaptive_max_pool1d_with_indices>},
      {"adaptive_max_pool2d", adaptive_max<adaptive_max_pool2d, adaptive_max_pool2d_with_indices>},
      {"im2col",
       [](const Args& a) -> Results {
         return im2col(a.x(), sizes(a, 1, "kernel_size", 1), sizes(a, 2, "dilation", 1), sizes(a, 3, "padding", 0),
                       sizes(a, 4, "stride", 1));
       }},
      {"col2im",
       [](const Args& a) -> Results {
         return col2im(a.x(), sizes(a, 1, "output_size", 1), sizes(a, 2, "kernel_size", 1), sizes(a, 3, "dilation", 1),
                       sizes(a, 4, "padding", 0), sizes(a, 5, "stride", 1));
       }},
      {"pad", pad_of},
      {"interpolate", interpolate_of},
      {"batch_norm", batch_norm_of},
      {"group_norm",
       [](const Args& a) -> Results {
         return group_norm(a.x(), a.integer(1, "num_groups"), a.tensor(2, "weight"), a.tensor(3, "bias"),
                           a.real(4, "eps", 1e-5));
       }},
      {"instance_norm", instance_norm_of},
  };
  for (const auto& [name, call] : rows) table[name] = call;
}

}  // namespace onestep::programs
