#include <algorithm>
#include <cmath>

#include "autograd/ops/naive.h"

namespace onestep {
namespace {

/// One dim of an interpolation: the distance of two outputs in places of the input.
struct Scale {
  int64_t in, out;
  double step;
};

double value_at(const Values& x, int64_t plane, const Scale& h, const Scale& w, int64_t r, int64_t c) {
  return x[(plane * h.in + std::min(r, h.in - 1)) * w.in + std::min(c, w.in - 1)];
}

/// Where output o lies between the places of the input.
double source(const Scale& s, int64_t o, bool align_corners) {
  const auto position = static_cast<double>(o);
  return align_corners ? s.step * position : std::max(0.0, s.step * (position + 0.5) - 0.5);
}

OpSample sample(const char* label, const Shape& shape, const Scale& h, const Scale& w, const InterpolateOptions& options) {
  return {label,
          {{shape}},
          [options](const std::vector<Tensor>& in) { return interpolate(in[0], options); },
          [=](const std::vector<Values>& in) {
            Shape result = shape;
            result[shape.rank() - 1] = w.out;
            if (shape.rank() > 3) result[2] = h.out;
            Values y(result);
            for (int64_t i = 0; i < result.numel(); ++i) {
              const int64_t c = i % w.out, r = i / w.out % h.out, plane = i / w.out / h.out;
              if (options.mode == InterpolationMode::nearest) {
                y[i] = value_at(in[0], plane, h, w, static_cast<int64_t>(h.step * static_cast<double>(r)),
                                static_cast<int64_t>(w.step * static_cast<double>(c)));
                continue;
              }
              const double row = source(h, r, options.align_corners), col = source(w, c, options.align_corners);
              const auto top = static_cast<int64_t>(row), left = static_cast<int64_t>(col);
              const double down = row - std::floor(row), right = col - std::floor(col);
              y[i] = (1 - down) * ((1 - right) * value_at(in[0], plane, h, w, top, left) +
                                   right * value_at(in[0], plane, h, w, top, left + 1)) +
                     down * ((1 - right) * value_at(in[0], plane, h, w, top + 1, left) +
                             right * value_at(in[0], plane, h, w, top + 1, left + 1));
            }
            return y;
          }};
}

constexpr Scale kOne = {1, 1, 1};
constexpr auto kBilinear = InterpolationMode::bilinear;

const RegisterOpCases registered([] {
  return OpCases{
      {"interpolate",
       {sample("nearest, twice as large", {1, 2, 2, 3}, {2, 4, 0.5}, {3, 6, 0.5}, {.scale_factor = {2}}),
        sample("nearest, a size", {2, 1, 5, 4}, {5, 2, 2.5}, {4, 3, 4.0 / 3}, {.size = {2, 3}}),
        sample("nearest signals", {1, 2, 4}, kOne, {4, 6, 4.0 / 6}, {.size = 6}),
        sample("bilinear, twice as large", {1, 2, 2, 3}, {2, 4, 0.5}, {3, 6, 0.5}, {.scale_factor = {2, 2}, .mode = kBilinear}),
        sample("bilinear, smaller", {1, 1, 5, 6}, {5, 3, 5.0 / 3}, {6, 4, 1.5}, {.size = {3, 4}, .mode = kBilinear}),
        sample("bilinear, corners aligned", {1, 1, 3, 4}, {3, 5, 0.5}, {4, 1, 0},
               {.size = {5, 1}, .mode = kBilinear, .align_corners = true}),
        sample("bilinear, a factor", {1, 1, 3, 4}, {3, 4, 1 / 1.5}, {4, 6, 1 / 1.5},
               {.scale_factor = {1.5}, .mode = kBilinear}),
        sample("bilinear, a recomputed factor", {1, 1, 3, 3}, {3, 4, 0.75}, {3, 4, 0.75},
               {.scale_factor = {1.5}, .mode = kBilinear, .recompute_scale_factor = true}),
        sample("no images", {0, 1, 2, 2}, {2, 4, 0.5}, {2, 4, 0.5}, {.size = 4})},
       {{"rank", [] { interpolate(zeros(2, 2), {.size = 2}); },
         "interpolate: needs [N, C, L], [N, C, H, W] or [N, C, D, H, W]: got [2, 2]"},
        {"bilinear rank", [] { interpolate(zeros(1, 1, 2), {.size = 2, .mode = kBilinear}); },
         "interpolate: needs [N, C, H, W]: got [1, 1, 2]"},
        {"both", [] { interpolate(zeros(1, 1, 2), {.size = 2, .scale_factor = {2}}); },
         "interpolate: needs either size or scale_factor"},
        {"corners", [] { interpolate(zeros(1, 1, 2), {.size = 2, .align_corners = true}); },
         "interpolate: align_corners is for bilinear"},
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
