#include "autograd/ops/naive.h"
#include "autograd/ops_conv.h"

namespace onestep {
namespace {

/// One dim of a convolution: input size, kernel size and arguments.
struct Dim {
  int64_t in, kernel, stride = 1, padding = 0, dilation = 1, out = 0;
};

struct Conv {
  int64_t images, groups, in_channels, out_channels;  // channels of a group
  Dim h, w;
};

/// Calls f(x, weight, y) with the positions of all elements that meet.
template <class F>
void for_each_product(const Conv& c, F f) {
  const auto channels = c.groups * c.in_channels, outputs = c.groups * c.out_channels;
  for (int64_t i = 0; i < c.images * outputs * c.h.out * c.w.out; ++i) {
    const int64_t ow = i % c.w.out, oh = i / c.w.out % c.h.out, o = i / c.w.out / c.h.out % outputs;
    const int64_t image = i / c.w.out / c.h.out / outputs;
    for (int64_t j = 0; j < c.in_channels * c.h.kernel * c.w.kernel; ++j) {
      const int64_t kw = j % c.w.kernel, kh = j / c.w.kernel % c.h.kernel, channel = j / c.w.kernel / c.h.kernel;
      const int64_t y = oh * c.h.stride - c.h.padding + kh * c.h.dilation,
                    x = ow * c.w.stride - c.w.padding + kw * c.w.dilation;
      if (y < 0 || y >= c.h.in || x < 0 || x >= c.w.in) continue;
      const int64_t from = image * channels + o / c.out_channels * c.in_channels + channel;
      f((from * c.h.in + y) * c.w.in + x, o * c.in_channels * c.h.kernel * c.w.kernel + j, i);
    }
  }
}

Dim with_output(Dim d) {
  d.out = (d.in + 2 * d.padding - d.dilation * (d.kernel - 1) - 1) / d.stride + 1;
  return d;
}

/// Row 0 of the dims where there is only one.
constexpr Dim kNone = {.in = 1, .kernel = 1};

std::vector<InputSpec> specs(const Shape& x, const Shape& weight, int64_t bias) {
  std::vector<InputSpec> inputs = {{x, -1, 1}, {weight, -1, 1}};
  if (bias > 0) inputs.push_back({bias, -1, 1});
  return inputs;
}

Tensor bias_of(const std::vector<Tensor>& in) { return in.size() > 2 ? in[2] : Tensor(); }

Shape sizes(int64_t n, int64_t c, const Dim& h, const Dim& w, int64_t Dim::*size, bool two_dims) {
  return two_dims ? Shape{n, c, h.*size, w.*size} : Shape{n, c, w.*size};
}

OpSample conv_sample(const std::string& label, Conv c, bool bias, bool two_dims) {
  c.h = with_output(c.h);
  c.w = with_output(c.w);
  const int64_t outputs = c.groups * c.out_channels;
  return {label,
          specs(sizes(c.images, c.groups * c.in_channels, c.h, c.w, &Dim::in, two_dims),
                sizes(outputs, c.in_channels, c.h, c.w, &Dim::kernel, two_dims), bias ? outputs : 0),
          [c, two_dims](const std::vector<Tensor>& in) {
            if (!two_dims) return conv1d(in[0], in[1], bias_of(in), c.w.stride, c.w.padding, c.w.dilation, c.groups);
            return conv2d(in[0], in[1], bias_of(in), {c.h.stride, c.w.stride}, {c.h.padding, c.w.padding},
                          {c.h.dilation, c.w.dilation}, c.groups);
          },
          [c, outputs, two_dims](const std::vector<Values>& in) {
            Values y(sizes(c.images, outputs, c.h, c.w, &Dim::out, two_dims));
            for_each_product(c, [&](int64_t x, int64_t w, int64_t o) { y[o] += in[0][x] * in[1][w]; });
            for (int64_t i = 0; in.size() > 2 && i < y.shape.numel(); ++i) y[i] += in[2][i / (c.h.out * c.w.out) % outputs];
            return y;
          }};
}

/// The transposed convolution of which `c` is the other direction: c.h.out and c.w.out are the sizes of its input.
OpSample transposed_sample(const std::string& label, Conv c, const Shape& output_padding, bool bias, bool two_dims) {
  for (Dim* d : {&c.h, &c.w}) {
    d->out = d->in;
    d->in = (d->out - 1) * d->stride - 2 * d->padding + d->dilation * (d->kernel - 1) + 1;
  }
  c.w.in += output_padding.back();
  if (two_dims) c.h.in += output_padding[0];
  const int64_t outputs = c.groups * c.in_channels;
  return {label,
          specs(sizes(c.images, c.groups * c.out_channels, c.h, c.w, &Dim::out, two_dims),
                sizes(c.groups * c.out_channels, c.in_channels, c.h, c.w, &Dim::kernel, two_dims), bias ? outputs : 0),
          [=](const std::vector<Tensor>& in) {
            if (!two_dims)
              return conv_transpose1d(in[0], in[1], bias_of(in), c.w.stride, c.w.padding, output_padding, c.groups,
                                      c.w.dilation);
            return conv_transpose2d(in[0], in[1], bias_of(in), {c.h.stride, c.w.stride}, {c.h.padding, c.w.padding},
                                    output_padding, c.groups, {c.h.dilation, c.w.dilation});
          },
          [=](const std::vector<Values>& in) {
            Values y(sizes(c.images, outputs, c.h, c.w, &Dim::in, two_dims));
            for_each_product(c, [&](int64_t x, int64_t w, int64_t o) { y[x] += in[0][o] * in[1][w]; });
            for (int64_t i = 0; in.size() > 2 && i < y.shape.numel(); ++i) y[i] += in[2][i / (c.h.in * c.w.in) % outputs];
            return y;
          }};
}

/// The same as `sample` without the dim of images, of which it has one.
OpSample unbatched(OpSample sample) {
  sample.label += ", one image without its dim";
  sample.inputs[0].shape.erase(0);
  const auto reference = sample.reference;
  sample.reference = [reference](std::vector<Values> in) {
    in[0].shape.insert(0, 1);
    Values y = reference(in);
    y.shape.erase(0);
    return y;
  };
  return sample;
}

/// padding "same" of kernels of even and odd sizes.
OpSample same_sample() {
  Conv c = {2, 1, 2, 3, {.in = 4, .kernel = 3, .padding = 1, .out = 4}, {.in = 5, .kernel = 4, .padding = 1, .out = 5}};
  OpSample sample = conv_sample("padding same", c, true, true);
  sample.forward = [](const std::vector<Tensor>& in) { return conv2d(in[0], in[1], in[2], 1, "same"); };
  sample.reference = [c](const std::vector<Values>& in) {
    Values y({2, 3, 4, 5});
    for_each_product(c, [&](int64_t x, int64_t w, int64_t o) { y[o] += in[0][x] * in[1][w]; });
    for (int64_t i = 0; i < y.shape.numel(); ++i) y[i] += in[2][i / 20 % 3];
    return y;
  };
  return sample;
}

std::vector<OpSample> conv2d_samples() {
  return {conv_sample("3 x 3", {2, 1, 2, 3, {.in = 5, .kernel = 3}, {.in = 6, .kernel = 3}}, true, true),
          conv_sample("padding and stride", {2, 1, 2, 2, {5, 3, 2, 1}, {7, 3, 2, 1}}, false, true),
          conv_sample("dims of their own", {1, 1, 1, 2, {6, 2, 1, 2, 2}, {5, 3, 3, 0, 1}}, true, true),
          conv_sample("padding beyond the kernel", {1, 1, 1, 1, {3, 2, 1, 3}, {2, 1, 1, 2}}, true, true),
          conv_sample("stride beyond the kernel", {1, 1, 2, 1, {7, 2, 3}, {8, 1, 4, 1}}, true, true),
          conv_sample("groups", {2, 2, 2, 3, {4, 3, 1, 1}, {4, 3, 1, 1}}, true, true),
          conv_sample("a kernel a channel", {2, 3, 1, 1, {4, 3, 1, 1}, {5, 3, 1, 1}}, false, true),
          conv_sample("1 x 1", {2, 1, 3, 4, {3, 1}, {4, 1}}, true, true),
          conv_sample("1 x 1 with stride", {2, 1, 3, 2, {4, 1, 2}, {5, 1, 2}}, true, true),
          conv_sample("as large as the image", {3, 1, 2, 2, {3, 3}, {3, 3}}, true, true),
          conv_sample("more channels than a register tile", {1, 1, 2, 19, {4, 2}, {5, 2}}, true, true),
          conv_sample("rows longer than a register", {1, 1, 1, 2, {3, 3, 1, 1}, {37, 3, 1, 1}}, true, true),
          conv_sample("no images", {0, 1, 2, 3, {4, 3}, {4, 3}}, true, true),
          unbatched(conv_sample("a single image", {1, 1, 2, 3, {4, 3}, {5, 2}}, true, true)),
          conv_sample("patches", {2, 1, 2, 3, {7, 2, 2}, {9, 3, 3}}, true, true),
          conv_sample("patches with places between", {2, 1, 1, 2, {6, 2, 3}, {3, 2, 5}}, false, true),
          same_sample()};
}

std::vector<OpSample> conv1d_samples() {
  return {conv_sample("3 taps", {2, 1, 2, 3, kNone, {.in = 6, .kernel = 3}}, true, false),
          conv_sample("all arguments", {2, 2, 2, 1, kNone, {9, 3, 2, 2, 2}}, false, false),
          conv_sample("patches", {2, 1, 2, 3, kNone, {9, 2, 2}}, true, false),
          conv_sample("no signals", {0, 1, 2, 3, kNone, {.in = 6, .kernel = 3}}, true, false),
          unbatched(conv_sample("a single signal", {1, 1, 2, 3, kNone, {.in = 6, .kernel = 3}}, true, false))};
}

std::vector<OpSample> transposed2d_samples() {
  return {transposed_sample("3 x 3", {2, 1, 2, 3, {4, 3}, {3, 3}}, 0, true, true),
          transposed_sample("twice the size", {2, 1, 2, 2, {3, 3, 2, 1}, {3, 3, 2, 1}}, 1, true, true),
          transposed_sample("dims of their own", {1, 1, 1, 2, {3, 2, 3, 1, 2}, {4, 3, 1, 0, 1}}, {2, 0}, false, true),
          transposed_sample("groups", {1, 2, 2, 1, {3, 2, 2}, {3, 2, 2}}, 0, true, true),
          transposed_sample("patches", {2, 1, 3, 2, {2, 2, 2}, {3, 3, 3}}, 1, true, true),
          transposed_sample("1 x 1", {2, 1, 3, 4, {3, 1}, {4, 1}}, 0, true, true),
          transposed_sample("no images", {0, 1, 2, 3, {4, 3}, {4, 3}}, 0, true, true),
          unbatched(transposed_sample("a single image", {1, 1, 2, 3, {4, 3}, {5, 2}}, 0, true, true))};
}

std::vector<OpSample> transposed1d_samples() {
  return {transposed_sample("3 taps", {2, 1, 2, 3, kNone, {4, 3}}, 0, true, false),
          transposed_sample("all arguments", {2, 2, 1, 2, kNone, {5, 3, 3, 1, 2}}, 1, false, false),
          transposed_sample("no signals", {0, 1, 2, 3, kNone, {4, 3}}, 0, true, false)};
}

const RegisterOpCases registered([] {
  return OpCases{
      {"conv2d",
       conv2d_samples(),
       {{"rank",
         [] {
           conv2d(zeros(4, 4), zeros({1, 1, 2, 2}));
         },
         "conv2d: needs [N, C, H, W] or [C, H, W]: got [4, 4]"},
        {"weight",
         [] {
           conv2d(zeros({1, 4, 4}), zeros(1, 2, 2));
         },
         "conv2d: weight must have 4 dims: got [1, 2, 2]"},
        {"no kernel",
         [] {
           conv2d(zeros({1, 4, 4}), zeros({1, 1, 0, 2}));
         },
         "conv2d: weight [1, 1, 0, 2] has an empty kernel"},
        {"channels",
         [] {
           conv2d(zeros({3, 4, 4}), zeros({2, 1, 2, 2}), {}, 1, 0, 1, 2);
         },
         "conv2d: input [3, 4, 4] does not fit weight [2, 1, 2, 2] with groups=2 (needs 2 channels)"},
        {"groups",
         [] {
           conv2d(zeros({3, 4, 4}), zeros({2, 1, 2, 2}), {}, 1, 0, 1, 3);
         },
         "conv2d: groups=3 does not divide dim 0 of weight [2, 1, 2, 2]"},
        {"bias",
         [] {
           conv2d(zeros({1, 4, 4}), zeros({2, 1, 2, 2}), zeros(1));
         },
         "conv2d: bias [1] does not fit weight [2, 1, 2, 2] (needs [2])"},
        {"stride",
         [] {
           conv2d(zeros({1, 4, 4}), zeros({2, 1, 2, 2}), {}, 0);
         },
         "conv2d: stride must be at least 1: got [0]"},
        {"three strides",
         [] {
           conv2d(zeros({1, 4, 4}), zeros({2, 1, 2, 2}), {}, {1, 1, 1});
         },
         "conv2d: stride [1, 1, 1] needs one number or 2"},
        {"padding",
         [] {
           conv2d(zeros({1, 4, 4}), zeros({2, 1, 2, 2}), {}, 1, {0, -1});
         },
         "conv2d: padding must be at least 0: got [0, -1]"},
        {"same with stride",
         [] {
           conv2d(zeros({1, 4, 4}), zeros({2, 1, 2, 2}), {}, 2, "same");
         },
         "conv2d: padding \"same\" needs stride 1: got [2]"},
        {"kernel",
         [] {
           conv2d(zeros({1, 4, 4}), zeros({2, 1, 2, 3}), {}, 1, 0, {1, 2});
         },
         "conv2d: the kernel spans 5 places, but the padded input has 4 (dim -1 of input [1, 4, 4])"},
        {"dtypes",
         [] {
           conv2d(zeros({1, 4, 4}), zeros({2, 1, 2, 2}, DType::float64));
         },
         "conv2d: ", is_a<DTypeError>},
        {"integers",
         [] {
           conv2d(zeros({1, 4, 4}, DType::int64), zeros({2, 1, 2, 2}, DType::int64));
         },
         "conv2d: ", is_a<DTypeError>}}},
      {"conv1d",
       conv1d_samples(),
       {{"rank", [] { conv1d(zeros(4), zeros(1, 1, 2)); }, "conv1d: ", is_a<ShapeError>},
        {"weight",
         [] {
           conv1d(zeros(1, 4), zeros({1, 1, 1, 2}));
         },
         "conv1d: ", is_a<ShapeError>}}},
      {"conv_transpose2d",
       transposed2d_samples(),
       {{"channels",
         [] {
           conv_transpose2d(zeros({3, 4, 4}), zeros({2, 1, 2, 2}));
         },
         "conv_transpose2d: ", is_a<ShapeError>},
        {"output_padding",
         [] {
           conv_transpose2d(zeros({1, 4, 4}), zeros({1, 1, 2, 2}), {}, 2, 0, 2);
         },
         "conv_transpose2d: output_padding [2] must be smaller than stride [2] or dilation [1]"},
        {"nothing left",
         [] {
           conv_transpose2d(zeros({1, 1, 1}), zeros({1, 1, 2, 2}), {}, 1, 1);
         },
         "conv_transpose2d: nothing is left of dim -2 of input [1, 1, 1] (the output would have 0 places)"}}},
      {"conv_transpose1d",
       transposed1d_samples(),
       {{"bias", [] { conv_transpose1d(zeros(1, 4), zeros(1, 2, 2), zeros(1)); }, "conv_transpose1d: ", is_a<ShapeError>}}}};
});

}  // namespace
}  // namespace onestep
