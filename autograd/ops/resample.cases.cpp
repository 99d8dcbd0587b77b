#include <algorithm>
#include <cmath>

#include "autograd/ops/naive.h"
#include "autograd/ops_conv.h"

namespace onestep {
namespace {

/// One dim of an interpolation: the distance of two outputs in places of the input.
struct Scale {
  int64_t in, out;
  double step;
};
struct Tap {
  int64_t place;
  double weight;
};

/// Keys' cubic convolution kernel.
double keys(double d, double a = -0.75) {
  d = std::fabs(d);
  if (d <= 1) return (a + 2) * d * d * d - (a + 3) * d * d + 1;
  return d < 2 ? a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a : 0;
}

/// The places of the input that make output o.
std::vector<Tap> taps(const Scale& s, int64_t o, const InterpolateOptions& options) {
  const auto position = static_cast<double>(o);
  const auto inside = [&](double place) { return std::clamp(static_cast<int64_t>(place), int64_t{0}, s.in - 1); };
  if (options.mode == InterpolationMode::nearest) return {{inside(s.step * position), 1}};
  if (options.mode == InterpolationMode::nearest_exact) return {{inside(s.step * (position + 0.5)), 1}};
  if (options.mode == InterpolationMode::area) {
    const double ratio = static_cast<double>(s.in) / static_cast<double>(s.out);
    const auto begin = static_cast<int64_t>(std::floor(position * ratio + 1e-9));
    const auto end = static_cast<int64_t>(std::ceil((position + 1) * ratio - 1e-9));
    std::vector<Tap> all;
    for (int64_t place = begin; place < end; ++place)
      all.push_back({std::clamp(place, int64_t{0}, s.in - 1), 1 / static_cast<double>(end - begin)});
    return all;
  }
  if (options.antialias) {
    const double middle = s.step * (position + 0.5), width = std::max(s.step, 1.0);
    std::vector<Tap> all;
    double sum = 0;
    for (int64_t place = 0; place < s.in; ++place) {
      const double d = std::fabs(static_cast<double>(place) + 0.5 - middle) / width;
      const double weight = options.mode == InterpolationMode::bicubic ? keys(d, -0.5) : std::max(1 - d, 0.0);
      all.push_back({place, weight});
      sum += weight;
    }
    for (Tap& tap : all) tap.weight /= sum;
    return all;
  }
  const double at = options.align_corners ? s.step * position : s.step * (position + 0.5) - 0.5;
  const bool cubic = options.mode == InterpolationMode::bicubic;
  const double source = cubic ? at : std::max(at, 0.0), first = std::floor(source);
  std::vector<Tap> all;
  for (int k = cubic ? -1 : 0; k <= (cubic ? 2 : 1); ++k)
    all.push_back({inside(std::max(first + k, 0.0)), cubic ? keys(source - first - k) : 1 - std::fabs(source - first - k)});
  return all;
}

/// `dims`: the scales of the last one, two or three dims.
OpSample sample(const char* label, const Shape& shape, const std::vector<Scale>& dims, const InterpolateOptions& options) {
  return {label,
          {{shape}},
          [options](const std::vector<Tensor>& in) { return interpolate(in[0], options); },
          [=](const std::vector<Values>& in) {
            Shape result = shape;
            std::vector<Scale> three(3 - dims.size(), Scale{1, 1, 1});
            three.insert(three.end(), dims.begin(), dims.end());
            for (size_t d = 0; d < dims.size(); ++d) result[static_cast<int>(d) + 2] = dims[d].out;
            const Scale &depth = three[0], &height = three[1], &width = three[2];
            Values y(result);
            for (int64_t i = 0; i < result.numel(); ++i) {
              const int64_t c = i % width.out, r = i / width.out % height.out, z = i / width.out / height.out % depth.out;
              const int64_t plane = i / width.out / height.out / depth.out;
              for (const Tap& a : taps(depth, z, options))
                for (const Tap& b : taps(height, r, options))
                  for (const Tap& w : taps(width, c, options)) {
                    const int64_t from = ((plane * depth.in + a.place) * height.in + b.place) * width.in + w.place;
                    y[i] += a.weight * b.weight * w.weight * in[0][from];
                  }
            }
            return y;
          }};
}

constexpr auto kBilinear = InterpolationMode::bilinear;
constexpr auto kBicubic = InterpolationMode::bicubic;

const RegisterOpCases registered([] {
  return OpCases{
      {"interpolate",
       {sample("nearest, twice as large", {1, 2, 2, 3}, {{2, 4, 0.5}, {3, 6, 0.5}}, {.scale_factor = {2}}),
        sample("nearest, a size", {2, 1, 5, 4}, {{5, 2, 2.5}, {4, 3, 4.0 / 3}}, {.size = {2, 3}}),
        sample("nearest signals", {1, 2, 4}, {{4, 6, 4.0 / 6}}, {.size = 6}),
        sample("nearest exact", {1, 1, 5, 4}, {{5, 2, 2.5}, {4, 6, 4.0 / 6}},
               {.size = {2, 6}, .mode = InterpolationMode::nearest_exact}),
        sample("linear", {1, 2, 4}, {{4, 6, 4.0 / 6}}, {.size = 6, .mode = InterpolationMode::linear}),
        sample("trilinear", {1, 1, 2, 3, 2}, {{2, 3, 2.0 / 3}, {3, 2, 1.5}, {2, 4, 0.5}},
               {.size = {3, 2, 4}, .mode = InterpolationMode::trilinear}),
        sample("bicubic, larger", {1, 2, 3, 4}, {{3, 5, 0.6}, {4, 8, 0.5}}, {.size = {5, 8}, .mode = kBicubic}),
        sample("bicubic, smaller, corners aligned", {1, 1, 5, 4}, {{5, 3, 2}, {4, 2, 3}},
               {.size = {3, 2}, .mode = kBicubic, .align_corners = true}),
        sample("bilinear without aliasing", {1, 2, 5, 7}, {{5, 2, 2.5}, {7, 9, 7.0 / 9}},
               {.size = {2, 9}, .mode = kBilinear, .antialias = true}),
        sample("bicubic without aliasing, corners aligned", {1, 1, 9, 8}, {{9, 3, 4}, {8, 2, 7}},
               {.size = {3, 2}, .mode = kBicubic, .align_corners = true, .antialias = true}),
        sample("area", {1, 2, 5, 4}, {{5, 3, 5.0 / 3}, {4, 2, 2}}, {.size = {3, 2}, .mode = InterpolationMode::area}),
        sample("area of volumes", {1, 1, 2, 3, 4}, {{2, 1, 2}, {3, 2, 1.5}, {4, 4, 1}},
               {.size = {1, 2, 4}, .mode = InterpolationMode::area}),
        sample("bilinear, twice as large", {1, 2, 2, 3}, {{2, 4, 0.5}, {3, 6, 0.5}},
               {.scale_factor = {2, 2}, .mode = kBilinear}),
        sample("bilinear, smaller", {1, 1, 5, 6}, {{5, 3, 5.0 / 3}, {6, 4, 1.5}}, {.size = {3, 4}, .mode = kBilinear}),
        sample("bilinear, corners aligned", {1, 1, 3, 4}, {{3, 5, 0.5}, {4, 1, 0}},
               {.size = {5, 1}, .mode = kBilinear, .align_corners = true}),
        sample("bilinear, a factor", {1, 1, 3, 4}, {{3, 4, 1 / 1.5}, {4, 6, 1 / 1.5}},
               {.scale_factor = {1.5}, .mode = kBilinear}),
        sample("bilinear, a recomputed factor", {1, 1, 3, 3}, {{3, 4, 0.75}, {3, 4, 0.75}},
               {.scale_factor = {1.5}, .mode = kBilinear, .recompute_scale_factor = true}),
        sample("no images", {0, 1, 2, 2}, {{2, 4, 0.5}, {2, 4, 0.5}}, {.size = 4})},
       {{"rank", [] { interpolate(zeros(2, 2), {.size = 2}); },
         "interpolate: needs [N, C, L], [N, C, H, W] or [N, C, D, H, W]: got [2, 2]"},
        {"bilinear rank", [] { interpolate(zeros(1, 1, 2), {.size = 2, .mode = kBilinear}); },
         "interpolate: needs [N, C, H, W]: got [1, 1, 2]"},
        {"both", [] { interpolate(zeros(1, 1, 2), {.size = 2, .scale_factor = {2}}); },
         "interpolate: needs either size or scale_factor"},
        {"corners", [] { interpolate(zeros(1, 1, 2), {.size = 2, .align_corners = true}); },
         "interpolate: align_corners is for linear and cubic modes"},
        {"aliasing", [] { interpolate(zeros(1, 1, 2, 2), {.size = 2, .antialias = true}); },
         "interpolate: antialias is for bilinear and bicubic modes"},
        {"empty", [] { interpolate(zeros(1, 1, 2), {.scale_factor = {0.2}}); },
         "interpolate: dim 2 of input [1, 1, 2] would get size 0"},
        {"factors",
         [] {
           interpolate(zeros(1, 1, 2), {.scale_factor = {2, 2}});
         },
         "interpolate: scale_factor needs one number or 1: got 2"}}}};
});

}  // namespace
}  // namespace onestep
