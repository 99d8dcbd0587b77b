#include <cmath>

#include "autograd/ops/naive.h"
#include "autograd/ops_conv.h"

namespace onestep {
namespace {

constexpr double kEps = 1e-5;

/// x [N, C, ...] normalised over all elements that agree in `group(image, channel)`, of `groups`, then scaled per channel by
/// the inputs from `scale` on.
template <class F>
Values normalized(const std::vector<Values>& in, int64_t groups, F group, size_t scale) {
  const Values& x = in[0];
  const int64_t channels = x.shape[1], pixels = x.shape.numel() / std::max<int64_t>(x.shape[0] * channels, 1);
  const auto size = static_cast<size_t>(groups);
  std::vector<double> count(size), mean(size), variance(size);
  const auto group_of = [&](int64_t i) { return static_cast<size_t>(group(i / pixels / channels, i / pixels % channels)); };
  for (int64_t i = 0; i < x.shape.numel(); ++i) ++count[group_of(i)];
  for (int64_t i = 0; i < x.shape.numel(); ++i) mean[group_of(i)] += x[i] / count[group_of(i)];
  for (int64_t i = 0; i < x.shape.numel(); ++i)
    variance[group_of(i)] += std::pow(x[i] - mean[group_of(i)], 2) / count[group_of(i)];
  Values y(x.shape);
  for (int64_t i = 0; i < x.shape.numel(); ++i) {
    const int64_t channel = i / pixels % channels;
    y[i] = (x[i] - mean[group_of(i)]) / std::sqrt(variance[group_of(i)] + kEps);
    if (in.size() > scale) y[i] = y[i] * in[scale][channel] + in[scale + 1][channel];
  }
  return y;
}

/// With the inputs x, mean, var and, where there are five, weight and bias.
Values with_statistics(const std::vector<Values>& in) {
  const Values& x = in[0];
  const int64_t channels = x.shape[1], pixels = x.shape.numel() / std::max<int64_t>(x.shape[0] * channels, 1);
  Values y(x.shape);
  for (int64_t i = 0; i < x.shape.numel(); ++i) {
    const int64_t c = i / pixels % channels;
    y[i] = (x[i] - in[1][c]) / std::sqrt(in[2][c] + kEps);
    if (in.size() > 3) y[i] = y[i] * in[3][c] + in[4][c];
  }
  return y;
}

std::vector<InputSpec> specs(const Shape& x, bool affine) {
  std::vector<InputSpec> inputs = {{x}};
  if (affine) inputs.insert(inputs.end(), {{x[1]}, {x[1]}});
  return inputs;
}

Tensor at(const std::vector<Tensor>& in, size_t i) { return i < in.size() ? in[i] : Tensor(); }

OpSample batch_sample(const char* label, const Shape& x, bool affine) {
  return {label, specs(x, affine),
          [](const std::vector<Tensor>& in) { return batch_norm(in[0], {}, {}, at(in, 1), at(in, 2), true); },
          [x](const std::vector<Values>& in) {
            return normalized(
                in, x[1], [](int64_t, int64_t c) { return c; }, 1);
          }};
}

OpSample group_sample(const char* label, const Shape& x, int64_t groups, bool affine) {
  return {label, specs(x, affine),
          [groups](const std::vector<Tensor>& in) { return group_norm(in[0], groups, at(in, 1), at(in, 2)); },
          [x, groups](const std::vector<Values>& in) {
            return normalized(
                in, x[0] * groups, [=](int64_t n, int64_t c) { return n * groups + c / (x[1] / groups); }, 1);
          }};
}

OpSample instance_sample(const char* label, const Shape& x, bool affine) {
  return {label, specs(x, affine),
          [](const std::vector<Tensor>& in) { return instance_norm(in[0], {}, {}, at(in, 1), at(in, 2)); },
          [x](const std::vector<Values>& in) {
            return normalized(
                in, x[0] * x[1], [=](int64_t n, int64_t c) { return n * x[1] + c; }, 1);
          }};
}

template <class F>
OpSample evaluated(const char* label, const Shape& x, bool affine, F f) {
  std::vector<InputSpec> inputs = {{x}, {x[1]}, {.shape = x[1], .low = 0.5, .high = 2}};
  if (affine) inputs.insert(inputs.end(), {{x[1]}, {x[1]}});
  return {label, inputs, f, with_statistics};
}

Tensor f32(const Shape& shape) { return zeros(shape); }

const RegisterOpCases registered([] {
  const auto eval = [](const std::vector<Tensor>& in) { return batch_norm(in[0], in[1], in[2], at(in, 3), at(in, 4)); };
  const auto eval_instance = [](const std::vector<Tensor>& in) {
    return instance_norm(in[0], in[1], in[2], at(in, 3), at(in, 4), false);
  };
  return OpCases{
      {"batch_norm",
       {batch_sample("rows", {5, 3}, true), batch_sample("signals", {3, 2, 4}, false),
        batch_sample("images", {2, 3, 3, 2}, true), batch_sample("large images", {2, 2, 3, 7}, true),
        batch_sample("many channels", {2, 130, 4}, true), batch_sample("no images", {0, 3, 2}, true),
        batch_sample("images of nothing", {2, 3, 0}, true), evaluated("in evaluation", {2, 3, 2, 2}, true, eval),
        evaluated("in evaluation, plain", {4, 3}, false, eval), evaluated("in evaluation, one value", {1, 2}, true, eval)},
       {{"one value",
         [] {
           batch_norm(f32({1, 3}), {}, {}, {}, {}, true);
         },
         "batch_norm: needs more than one value a channel to train: got [1, 3]"},
        {"statistics",
         [] {
           batch_norm(f32({2, 3}), {}, {});
         },
         "batch_norm: needs running_mean and running_var outside training"},
        {"half of the statistics",
         [] {
           batch_norm(f32({2, 3}), f32({3}), {}, {}, {}, true);
         },
         "batch_norm: needs running_mean and running_var, or neither"},
        {"rank", [] { batch_norm(f32({3}), f32({3}), f32({3})); }, "batch_norm: needs [N, C, ...]: got [3]"},
        {"weight",
         [] {
           batch_norm(f32({2, 3}), {}, {}, f32({2}), {}, true);
         },
         "batch_norm: weight [2] does not fit input [2, 3] (needs [3])"}}},
      {"group_norm",
       {group_sample("two groups", {2, 4, 3}, 2, true), group_sample("images", {2, 6, 2, 3}, 3, true),
        group_sample("one group", {3, 4}, 1, false), group_sample("no images", {0, 4, 3}, 2, true),
        group_sample("large images", {2, 4, 3, 6}, 2, true), group_sample("large images, plain", {1, 2, 17}, 1, false)},
       {{"groups",
         [] {
           group_norm(f32({2, 4, 3}), 3);
         },
         "group_norm: num_groups=3 does not divide the channels of input [2, 4, 3]"}}},
      {"instance_norm",
       {instance_sample("images", {2, 3, 2, 3}, true), instance_sample("signals", {2, 2, 5}, false),
        instance_sample("no images", {0, 3, 4}, true), evaluated("with statistics", {2, 3, 4}, true, eval_instance)},
       {{"one element",
         [] {
           instance_norm(f32({2, 3, 1}));
         },
         "instance_norm: needs more than one element a channel: got [2, 3, 1]"}}}};
});

}  // namespace
}  // namespace onestep
