// The functions of torch.nn.functional: softmax, normalisation, attention, convolutions, pooling.
#include "python/src/op.h"

namespace onestep::python {
namespace {

using T = const Tensor&;
using OptionalDType = std::optional<DType>;
using Scale = std::optional<double>;

Tensor converted(T x, OptionalDType dtype) { return dtype ? to(x, *dtype) : x; }

template <Tensor (*kOp)(T, int64_t)>
Tensor along(T x, int64_t dim, OptionalDType dtype) {
  return kOp(converted(x, dtype), dim);
}
Tensor negated_softmax(T x, int64_t dim, OptionalDType dtype) { return softmax(converted(neg(x), dtype), dim); }
/// As F.softmax(x, dim=None, _stacklevel=3, dtype=None): without a dim PyTorch takes 0 for ranks 0, 1 and 3, else 1.
template <Tensor (*kOp)(T, int64_t)>
Tensor along_default(T x, std::optional<int64_t> dim, int64_t, OptionalDType dtype) {
  const bool first = x.dim() == 0 || x.dim() == 1 || x.dim() == 3;
  return kOp(converted(x, dtype), dim.value_or(first ? 0 : 1));
}

Tensor negated_softmax_default(T x, std::optional<int64_t> dim, int64_t level, OptionalDType dtype) {
  return along_default<softmax>(neg(x), dim, level, dtype);
}

Padding padding_from(PyObject* object) {
  if (PyUnicode_Check(object)) return Padding(std::string(string_from(object)).c_str());
  return shape_from(object);
}

using Convolution = Tensor (*)(T, T, T, const Shape&, const Padding&, const Shape&, int64_t);
template <Convolution kOp>
Tensor convolution(T x, T weight, T bias, const Shape& stride, PyObject* padding, const Shape& dilation, int64_t groups) {
  const Padding zeros = padding_from(padding);
  const nanobind::gil_scoped_release released;
  return kOp(x, weight, bias, stride, zeros, dilation, groups);
}
/// conv_transpose1d and conv_transpose2d.
template <auto kOp>
Tensor transposed(T x, T weight, T bias, const Shape& stride, const Shape& padding, const Shape& output_padding, int64_t groups,
                  const Shape& dilation) {
  return kOp(x, weight, bias, stride, padding, output_padding, groups, dilation);
}

using MaxPool = ValuesIndices (*)(T, const Shape&, const Shape&, const Shape&, const Shape&, bool);
using MaxValues = Tensor (*)(T, const Shape&, const Shape&, const Shape&, const Shape&, bool);
template <MaxPool kOp, MaxValues kValues>
PyObject* max_pool(T x, const Shape& kernel, std::optional<Shape> stride, const Shape& padding, const Shape& dilation,
                   bool ceil, bool indices) {
  const Shape steps = stride.value_or(Shape{});
  if (!indices) return wrap(kValues(x, kernel, steps, padding, dilation, ceil));
  const ValuesIndices found = kOp(x, kernel, steps, padding, dilation, ceil);
  return to_python(std::vector<Tensor>{found.values, found.indices}, "");
}
/// The sizes of an adaptive pool with -1 for None, which keeps the input's.
Shape pool_sizes(Shape sizes) {
  for (int i = 0; i < sizes.rank(); ++i) {
    ONESTEP_CHECK(Error, sizes[i] >= 0 || sizes[i] == kNoSize, "adaptive pool: output_size cannot be negative: got ", sizes[i]);
    if (sizes[i] == kNoSize) sizes[i] = -1;
  }
  return sizes;
}
template <Tensor (*kOp)(T, const Shape&)>
Tensor adaptive_pool(T x, const Shape& size) {
  return kOp(x, pool_sizes(size));
}
template <ValuesIndices (*kOp)(T, const Shape&)>
PyObject* adaptive_max_pool(T x, const Shape& size, bool indices) {
  const ValuesIndices found = kOp(x, pool_sizes(size));
  return indices ? to_python(std::vector<Tensor>{found.values, found.indices}, "") : wrap(found.values);
}

/// A mask to add may have another floating dtype than the query `q`, in which it is added.
AttentionOptions attention_options(T q, T mask, double dropout, bool causal, Scale scale, bool grouped) {
  AttentionOptions options;
  options.mask = mask.defined() && mask.is_floating() ? to(mask, q.dtype()) : mask;
  options.dropout_p = dropout;
  options.is_causal = causal;
  options.scale = scale;
  options.enable_gqa = grouped;
  return options;
}

/// Lets other Python threads run, unless the default generator, which all share, is drawn from.
template <class F>
Tensor unlocked_unless_drawing(double dropout, F f) {
  if (dropout > 0) return f();
  const nanobind::gil_scoped_release released;
  return f();
}

PadMode pad_mode(std::string_view name) {
  if (name == "constant") return PadMode::constant;
  if (name == "reflect") return PadMode::reflect;
  if (name == "replicate") return PadMode::replicate;
  if (name == "circular") return PadMode::circular;
  fail<Error>("pad: unrecognised padding mode ", name);
}

InterpolationMode interpolation_mode(std::string_view name) {
  using enum InterpolationMode;
  for (const auto& [given, mode] :
       std::initializer_list<std::pair<const char*, InterpolationMode>>{{"nearest", nearest},
                                                                        {"nearest-exact", nearest_exact},
                                                                        {"linear", linear},
                                                                        {"bilinear", bilinear},
                                                                        {"trilinear", trilinear},
                                                                        {"bicubic", bicubic},
                                                                        {"area", area}})
    if (name == given) return mode;
  fail<Error>("interpolate: unknown mode ", name);
}

}  // namespace

void bind_nn() {
  both("softmax(Tensor input, int dim, dtype? dtype=None)", along<softmax>);
  both("log_softmax(Tensor input, int dim, dtype? dtype=None)", along<log_softmax>);
  function("softmin(Tensor input, int dim, dtype? dtype=None)", negated_softmax);
  function("softmax(Tensor input, int? dim, int _stacklevel=3, dtype? dtype=None)", along_default<softmax>);
  function("log_softmax(Tensor input, int? dim, int _stacklevel=3, dtype? dtype=None)", along_default<log_softmax>);
  function("softmin(Tensor input, int? dim, int _stacklevel=3, dtype? dtype=None)", negated_softmax_default);
  long_function("_lstm(Tensor input_gates, Tensor h, Tensor c, Tensor weight, Tensor? bias=None, bool reverse=False)", lstm);
  function(
      "dropout(Tensor input, float p=0.5, bool training=True, bool inplace=False, *, Generator? generator=None)",
      +[](T x, double p, bool training, bool in_place, Generator& g) {
        Tensor y = dropout(x, p, training, g);
        return in_place ? assign_in_place("dropout", const_cast<Tensor&>(x), y) : y;
      });
  function(
      "embedding(Tensor input, Tensor weight, int? padding_idx=None, float? max_norm=None, float norm_type=2.0, "
      "bool scale_grad_by_freq=False, bool sparse=False)",
      +[](T index, T weight, std::optional<int64_t> padding, std::optional<double> max_norm, double, bool by_frequency, bool) {
        ONESTEP_CHECK(Error, !max_norm && !by_frequency,
                      "embedding: max_norm and scale_grad_by_freq: use nn.functional.embedding");
        return embedding(index, weight, padding);
      });
  function(
      "_embedding_bag(Tensor input, Tensor weight, Tensor? offsets, str mode, Tensor? per_sample_weights, int? padding_idx)",
      +[](T index, T weight, T offsets, std::string_view mode, T scale, std::optional<int64_t> padding) {
        using enum BagMode;
        return embedding_bag(index, weight, {mode == "sum" ? sum : mode == "max" ? max : mean, offsets, scale, padding});
      });
  function("_pixel_indices(Tensor[] near, int[] sizes)", pixel_indices);
  function("layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05)",
           layer_norm);
  function(
      "batch_norm(Tensor input, Tensor? running_mean, Tensor? running_var, Tensor? weight=None, Tensor? bias=None, "
      "bool training=False, float momentum=0.1, float eps=1e-05)",
      batch_norm);
  function(
      "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05)",
      +[](T x, int64_t groups, T weight, T bias, double eps) {
        ONESTEP_CHECK(ShapeError, groups <= 0 || x.numel() != groups || x.dim() < 2,
                      "Expected more than 1 value per channel when training, got input size ", x.shape());
        return group_norm(x, groups, weight, bias, eps);
      });
  function(
      "instance_norm(Tensor input, Tensor? running_mean=None, Tensor? running_var=None, Tensor? weight=None, "
      "Tensor? bias=None, bool use_input_stats=True, float momentum=0.1, float eps=1e-05)",
      instance_norm);
  function(
      "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
      "float dropout_p=0.0, bool is_causal=False, float? scale=None, bool enable_gqa=False)",
      +[](T q, T k, T v, T mask, double dropout, bool causal, Scale scale, bool grouped) {
        return unlocked_unless_drawing(dropout, [&] {
          return scaled_dot_product_attention(q, k, v, attention_options(q, mask, dropout, causal, scale, grouped));
        });
      });
  function(
      "packed_attention(Tensor qkv, int num_heads, int num_kv_heads, *, Tensor? attn_mask=None, float dropout_p=0.0, "
      "bool is_causal=False, float? scale=None)",
      +[](T qkv, int64_t heads, int64_t kv_heads, T mask, double dropout, bool causal, Scale scale) {
        return unlocked_unless_drawing(dropout, [&] {
          return packed_attention(qkv, heads, kv_heads, attention_options(qkv, mask, dropout, causal, scale, false));
        });
      });
  function(
      "rotary_embedding(Tensor input, int first_position=0, float theta=10000.0)",
      +[](T input, int64_t first_position, double theta) { return rotary_embedding(input, first_position, theta); });
  function("one_hot(Tensor tensor, int num_classes=-1)", one_hot);
  function("normalize(Tensor input, float p=2.0, int[] dim=1, float eps=1e-12)", normalize);
  function("cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08)", cosine_similarity);
  function("pairwise_distance(Tensor x1, Tensor x2, float p=2.0, float eps=1e-06, bool keepdim=False)", pairwise_distance);
}

void bind_conv() {
  for (const auto& [name, f] :
       std::initializer_list<std::pair<std::string, Tensor (*)(T, T, T, const Shape&, PyObject*, const Shape&, int64_t)>>{
           {"conv1d", convolution<conv1d>}, {"conv2d", convolution<conv2d>}})
    function((name + "(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, any padding=0, int[] dilation=1, "
                     "int groups=1)")
                 .c_str(),
             f);
  for (const auto& [name, f] : std::initializer_list<
           std::pair<std::string, Tensor (*)(T, T, T, const Shape&, const Shape&, const Shape&, int64_t, const Shape&)>>{
           {"conv_transpose1d", transposed<conv_transpose1d>}, {"conv_transpose2d", transposed<conv_transpose2d>}})
    long_function((name + "(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, int[] padding=0, "
                          "int[] output_padding=0, int groups=1, int[] dilation=1)")
                      .c_str(),
                  f);
  const std::string pool =
      "(Tensor input, int[] kernel_size, int[]? stride=None, int[] padding=0, int[] dilation=1, "
      "bool ceil_mode=False, bool return_indices=False)";
  function(("max_pool1d" + pool).c_str(), max_pool<max_pool1d_with_indices, max_pool1d>);
  function(("max_pool2d" + pool).c_str(), max_pool<max_pool2d_with_indices, max_pool2d>);
  function(
      "avg_pool1d(Tensor input, int[] kernel_size, int[]? stride=None, int[] padding=0, bool ceil_mode=False, "
      "bool count_include_pad=True)",
      +[](T x, Shape kernel, std::optional<Shape> stride, Shape padding, bool ceil, bool count) {
        return avg_pool1d(x, kernel, stride.value_or(Shape{}), padding, ceil, count);
      });
  function(
      "avg_pool2d(Tensor input, int[] kernel_size, int[]? stride=None, int[] padding=0, bool ceil_mode=False, "
      "bool count_include_pad=True, int? divisor_override=None)",
      +[](T x, Shape kernel, std::optional<Shape> stride, Shape padding, bool ceil, bool count,
          std::optional<int64_t> divisor) {
        return avg_pool2d(x, kernel, stride.value_or(Shape{}), padding, ceil, count, divisor);
      });
  function("im2col(Tensor input, int[] kernel_size, int[] dilation=1, int[] padding=0, int[] stride=1)", im2col);
  function("col2im(Tensor input, int[] output_size, int[] kernel_size, int[] dilation=1, int[] padding=0, int[] stride=1)",
           col2im);
  function("adaptive_avg_pool1d(Tensor input, int[] output_size)", adaptive_pool<adaptive_avg_pool1d>);
  function("adaptive_avg_pool2d(Tensor input, int?[] output_size)", adaptive_pool<adaptive_avg_pool2d>);
  function("adaptive_max_pool1d(Tensor input, int[] output_size, bool return_indices=False)",
           adaptive_max_pool<adaptive_max_pool1d_with_indices>);
  function("adaptive_max_pool2d(Tensor input, int?[] output_size, bool return_indices=False)",
           adaptive_max_pool<adaptive_max_pool2d_with_indices>);
  function(
      "interpolate(Tensor input, int[]? size=None, float[]? scale_factor=None, str mode=\"nearest\", "
      "bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False)",
      +[](T x, std::optional<Shape> size, std::optional<std::vector<double>> factor, std::string_view mode,
          std::optional<bool> align, std::optional<bool> recompute, bool antialias) {
        InterpolateOptions options;
        options.antialias = antialias;
        if (size) options.size = *size;
        if (factor) options.scale_factor = *factor;
        options.mode = interpolation_mode(mode);
        options.align_corners = align.value_or(false);
        options.recompute_scale_factor = recompute.value_or(false);
        return interpolate(x, options);
      });
  function(
      "pad(Tensor input, int[] pad, str mode=\"constant\", float? value=None)",
      +[](T x, const std::vector<int64_t>& sizes, std::string_view mode, std::optional<double> value) {
        ONESTEP_CHECK(Error, mode == "constant" || !value || *value == 0, "pad: mode ", mode, " takes no value: got ", *value);
        return pad(x, sizes, pad_mode(mode), value.value_or(0));
      });
}

}  // namespace onestep::python
