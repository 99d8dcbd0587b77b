#include "autograd/ops/naive.h"
#include "autograd/ops_conv.h"

namespace onestep {
namespace {

/// One dim: sizes and arguments.
struct Dim {
  int64_t in, kernel, stride = 1, padding = 0, dilation = 1;
  int64_t out() const { return (in + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1; }
  int64_t place(int64_t o, int64_t k) const { return o * stride - padding + k * dilation; }
};

struct Sizes {
  int64_t images, channels;
  Dim h, w;

  Shape columns() const { return {images, channels * h.kernel * w.kernel, h.out() * w.out()}; }
  Shape planes() const { return {images, channels, h.in, w.in}; }
  /// Calls f(place in the images, place in the columns) for all that lie inside.
  template <class F>
  void for_each(F f) const {
    const Shape shape = {images, channels, h.kernel, w.kernel, h.out(), w.out()};
    for (int64_t i = 0; i < shape.numel(); ++i) {
      const naive::Place at = naive::place_of(shape, i);
      const int64_t y = h.place(at[4], at[2]), x = w.place(at[5], at[3]);
      if (y >= 0 && y < h.in && x >= 0 && x < w.in) f(((at[0] * channels + at[1]) * h.in + y) * w.in + x, i);
    }
  }
};

OpSample columns(const std::string& label, const Sizes& s) {
  return {label,
          {{s.planes()}},
          [s](const std::vector<Tensor>& in) {
            return im2col(in[0], {s.h.kernel, s.w.kernel}, {s.h.dilation, s.w.dilation}, {s.h.padding, s.w.padding},
                          {s.h.stride, s.w.stride});
          },
          [s](const std::vector<Values>& in) {
            Values y(s.columns());
            s.for_each([&](int64_t image, int64_t column) { y[column] = in[0][image]; });
            return y;
          }};
}

OpSample images(const std::string& label, const Sizes& s) {
  return {label,
          {{s.columns()}},
          [s](const std::vector<Tensor>& in) {
            return col2im(in[0], {s.h.in, s.w.in}, {s.h.kernel, s.w.kernel}, {s.h.dilation, s.w.dilation},
                          {s.h.padding, s.w.padding}, {s.h.stride, s.w.stride});
          },
          [s](const std::vector<Values>& in) {
            Values y(s.planes());
            s.for_each([&](int64_t image, int64_t column) { y[image] += in[0][column]; });
            return y;
          }};
}

/// The same without the dim of images, of which there is one.
OpSample unbatched(OpSample sample) {
  sample.label += " without its dim";
  sample.inputs[0].shape.erase(0);
  const auto reference = sample.reference;
  sample.reference = [reference](const std::vector<Values>& in) {
    Values y = reference(in);
    y.shape.erase(0);
    return y;
  };
  return sample;
}

std::vector<OpSample> samples(OpSample (*make)(const std::string&, const Sizes&)) {
  return {make("3 x 3", {2, 2, {4, 3}, {5, 3}}),
          make("dims of their own", {1, 2, {6, 2, 1, 2, 2}, {5, 3, 3, 0, 1}}),
          make("windows apart", {2, 1, {7, 2, 3}, {6, 1, 4, 1}}),
          make("padding", {1, 2, {3, 3, 2, 2}, {2, 2, 1, 1}}),
          make("no images", {0, 2, {4, 3}, {5, 3}}),
          unbatched(make("one image", {1, 2, {4, 3}, {3, 2}}))};
}

const RegisterOpCases registered([] {
  return OpCases{{"im2col",
                  samples(columns),
                  {{"rank",
                    [] {
                      im2col(zeros({4, 4}), 2);
                    },
                    "im2col: needs [N, C, H, W] or [C, H, W]: got [4, 4]"},
                   {"kernel",
                    [] {
                      im2col(zeros({1, 4, 4}), {2, 3}, {1, 2});
                    },
                    "im2col: the kernel spans 5 places, but the padded images have 4 (dim -1 of images of size [4, 4])"},
                   {"stride",
                    [] {
                      im2col(zeros({1, 4, 4}), 2, 1, 0, 0);
                    },
                    "im2col: stride must be at least 1: got [0]"}}},
                 {"col2im",
                  samples(images),
                  {{"rank", [] { col2im(zeros(4), 2, 2); }, "col2im: needs columns [N, C KH KW, L] or [C KH KW, L]: got [4]"},
                   {"columns",
                    [] {
                      col2im(zeros({1, 4, 5}), {3, 3}, 2);
                    },
                    "col2im: columns [1, 4, 5] do not fit 4 windows of 4 places in images of size [3, 3]"},
                   {"rows",
                    [] {
                      col2im(zeros({1, 3, 4}), {3, 3}, 2);
                    },
                    "col2im: ", is_a<ShapeError>}}}};
});

}  // namespace
}  // namespace onestep
