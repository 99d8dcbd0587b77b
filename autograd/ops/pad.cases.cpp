#include <algorithm>

#include "autograd/ops/naive.h"
#include "autograd/ops_conv.h"

namespace onestep {
namespace {

/// The place of x that place i of a padded dim shows, or -1 for a new value.
int64_t source(PadMode mode, int64_t i, int64_t size, int64_t before, int64_t behind) {
  int64_t place = i - before;
  if (mode == PadMode::constant) return place < 0 || place >= size ? -1 : place;
  if (mode == PadMode::replicate) return std::clamp<int64_t>(place, 0, size - 1);
  if (mode == PadMode::reflect) return place < 0 ? -place : place >= size ? 2 * size - 2 - place : place;
  const int64_t first = std::max<int64_t>(0, -before), end = size - std::max<int64_t>(0, -behind);
  while (place < first) place += end - first;
  while (place >= end) place -= end - first;
  return place;
}

OpSample sample(const char* label, const Shape& shape, const std::vector<int64_t>& numbers, PadMode mode = PadMode::constant,
                double value = 0) {
  return {label,
          {{shape}},
          [=](const std::vector<Tensor>& in) { return pad(in[0], numbers, mode, value); },
          [=](const std::vector<Values>& in) {
            Shape padded = shape;
            for (size_t i = 0; i < numbers.size(); ++i) padded[shape.rank() - 1 - static_cast<int>(i / 2)] += numbers[i];
            Values y(padded);
            for (int64_t i = 0; i < padded.numel(); ++i) {
              naive::Place place = naive::place_of(padded, i);
              bool inside = true;
              for (size_t n = 0; n < numbers.size(); n += 2) {
                const int dim = shape.rank() - 1 - static_cast<int>(n / 2);
                int64_t& at = place[static_cast<size_t>(dim)];
                at = source(mode, at, shape[dim], numbers[n], numbers[n + 1]);
                inside = inside && at >= 0;
              }
              y[i] = inside ? in[0][naive::number_of(shape, place)] : value;
            }
            return y;
          }};
}

Tensor f32(const Shape& shape) { return zeros(shape); }

const RegisterOpCases registered([] {
  return OpCases{
      {"pad",
       {sample("last dim", {2, 3}, {1, 2}),
        sample("a value", {2, 3}, {1, 2, 0, 1}, PadMode::constant, 1.5),
        sample("negative", {4, 5}, {-1, -2, 2, -1}),
        sample("all cut off", {4, 3}, {-2, -1}),
        sample("nothing", {0, 3}, {1, 1, 2, 0}),
        sample("no numbers", {2, 3}, {}),
        sample("not the last dim", {2, 2, 3}, {0, 0, 1, 2}, PadMode::constant, 1.5),
        sample("from nothing", {2, 0}, {1, 1}, PadMode::constant, 1.5),
        sample("all dims", {2, 1, 3}, {1, 0, -1, 2, 1, 1}),
        sample("reflect", {2, 4}, {2, 3}, PadMode::reflect),
        sample("reflect rows", {1, 3, 2}, {0, 0, 2, 1}, PadMode::reflect),
        sample("reflect images", {1, 1, 3, 4}, {1, 2, 2, 1}, PadMode::reflect),
        sample("reflect, negative", {2, 5}, {-1, 3}, PadMode::reflect),
        sample("replicate", {1, 2, 3, 2}, {3, 0, 1, 4}, PadMode::replicate),
        sample("replicate, negative", {2, 4}, {-4, 5}, PadMode::replicate),
        sample("circular", {1, 2, 3, 4}, {4, 1, 0, 3}, PadMode::circular),
        sample("circular, negative", {1, 5}, {-2, 3}, PadMode::circular),
        sample("reflect, all cut off", {2, 4}, {-2, -2}, PadMode::reflect),
        sample("circular, all cut off", {2, 4}, {-3, -1}, PadMode::circular),
        sample("circular beside an empty dim", {1, 0, 3}, {1, 1, 0, 0}, PadMode::circular),
        sample("replicate volumes", {1, 2, 2, 3}, {1, 1, 0, 2, 1, 0}, PadMode::replicate)},
       {{"odd",
         [] {
           pad(f32({2, 3}), {1});
         },
         "pad: needs two numbers a dim, for at most 2 dims: got 1 numbers"},
        {"too many",
         [] {
           pad(f32({3}), {1, 1, 1, 1});
         },
         "pad: ", is_a<ShapeError>},
        {"cut",
         [] {
           pad(f32({3}), {-4, 2});
         },
         "pad: cuts more off than there is: -4 and 2 of size 3 (dim 0)"},
        {"reflect",
         [] {
           pad(f32({1, 3}), {3, 0}, PadMode::reflect);
         },
         "pad: at most 2 places can be added to dim -1 of input [1, 3]: got 3 and 0"},
        {"circular",
         [] {
           pad(f32({1, 5}), {5, -3}, PadMode::circular);
         },
         "pad: at most 2 places can be added to dim -1 of input [1, 5]: got 5 and -3"},
        {"rank",
         [] {
           pad(f32({3}), {1, 1}, PadMode::circular);
         },
         "pad: 2 numbers for input [3] (these modes pad the last 1, 2 or 3 dims of a tensor that has one or two more)"},
        {"no numbers", [] { pad(f32({3}), {}, PadMode::reflect); },
         "pad: 0 numbers for input [3] (these modes pad the last 1, 2 or 3 dims of a tensor that has one or two more)"},
        {"nothing",
         [] {
           pad(f32({1, 0}), {1, 1}, PadMode::replicate);
         },
         "pad: nothing is left of dim -1 of input [1, 0]: got 1 and 1"}}}};
});

}  // namespace
}  // namespace onestep
