#include <cmath>
#include <limits>

#include "autograd/ops/naive.h"
#include "autograd/ops_conv.h"

namespace onestep {
namespace {

/// The window of every output of one dim: the places [begin, end) in steps, and how many count for a mean.
struct Window {
  std::vector<int64_t> places;
  int64_t counted = 0;
};
using Windows = std::vector<Window>;

Windows fixed(int64_t in, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation, bool ceil_mode,
              bool count_padding) {
  Windows windows;
  for (int64_t first = -padding;; first += stride) {
    const int64_t last = first + dilation * (kernel - 1);
    if (ceil_mode ? first >= in || (first > -padding && first - stride + dilation * (kernel - 1) >= in + padding - 1)
                  : last >= in + padding)
      break;
    Window window;
    for (int64_t tap = 0; tap < kernel; ++tap) {
      const int64_t place = first + tap * dilation;
      if (place >= 0 && place < in) window.places.push_back(place);
      if (count_padding ? place < in + padding : place >= 0 && place < in) ++window.counted;
    }
    windows.push_back(window);
  }
  return windows;
}

Windows adaptive(int64_t in, int64_t out) {
  Windows windows(static_cast<size_t>(out));
  for (int64_t o = 0; o < out; ++o) {
    Window& window = windows[static_cast<size_t>(o)];
    const auto end = static_cast<int64_t>(std::ceil(static_cast<double>((o + 1) * in) / static_cast<double>(out)));
    for (int64_t place = o * in / out; place < end; ++place) window.places.push_back(place);
    window.counted = static_cast<int64_t>(window.places.size());
  }
  return windows;
}

enum class Result { largest, place, mean };

/// Each window of x [..., H, W] (or [..., L], with one window of h), reduced; `divisor` 0: by the number of places.
Values pooled(const Values& x, const Windows& h, const Windows& w, bool two_dims, Result result, int64_t divisor = 0) {
  Shape shape = x.shape;
  const int64_t width = shape.back(), height = two_dims ? shape[shape.rank() - 2] : 1;
  shape[shape.rank() - 1] = std::ssize(w);
  if (two_dims) shape[shape.rank() - 2] = std::ssize(h);
  Values y(shape);
  int64_t o = 0;
  for (int64_t plane = 0; o < shape.numel(); ++plane) {
    for (const Window& rows : h) {
      for (const Window& cols : w) {
        double largest = -std::numeric_limits<double>::infinity(), sum = 0;
        int64_t place = 0;
        for (int64_t r : rows.places) {
          for (int64_t c : cols.places) {
            const double value = x[(plane * height + r) * width + c];
            sum += value;
            if (value > largest) {
              largest = value;
              place = r * width + c;
            }
          }
        }
        y[o++] = result == Result::largest ? largest
                 : result == Result::place ? static_cast<double>(place)
                                           : sum / static_cast<double>(divisor > 0 ? divisor : rows.counted * cols.counted);
      }
    }
  }
  return y;
}

using Forward = std::function<Tensor(const Tensor&)>;

OpSample sample(const char* label, const Shape& shape, const Windows& h, const Windows& w, bool two_dims, Result result,
                const Forward& forward, int64_t divisor = 0) {
  OpSample made = {label,
                   {{shape}},
                   [forward](const std::vector<Tensor>& in) { return forward(in[0]); },
                   [=](const std::vector<Values>& in) { return pooled(in[0], h, w, two_dims, result, divisor); }};
  made.differentiable = result != Result::place;
  return made;
}

const Windows kOne = {{{0}, 1}};

/// Samples of max_pool2d, or of what it says about places.
std::vector<OpSample> max_pool2d_samples(Result result) {
  const auto pick = [result](const ValuesIndices& pool) { return result == Result::place ? pool.indices : pool.values; };
  return {
      sample("2 x 2", {2, 2, 4, 6}, fixed(4, 2, 2, 0, 1, false, true), fixed(6, 2, 2, 0, 1, false, true), true, result,
             [pick](const Tensor& x) { return pick(max_pool2d_with_indices(x, 2)); }),
      sample("all arguments", {1, 2, 7, 6}, fixed(7, 3, 2, 1, 1, true, true), fixed(6, 2, 1, 0, 2, true, true), true, result,
             [pick](const Tensor& x) {
               return pick(max_pool2d_with_indices(x, {3, 2}, {2, 1}, {1, 0}, {1, 2}, true));
             }),
      sample("a last window that would begin outside", {1, 5, 5}, fixed(5, 2, 3, 1, 1, true, true),
             fixed(5, 2, 3, 1, 1, true, true), true, result,
             [pick](const Tensor& x) { return pick(max_pool2d_with_indices(x, 2, 3, 1, 1, true)); }),
      sample("no images", {0, 2, 4, 4}, fixed(4, 2, 2, 0, 1, false, true), fixed(4, 2, 2, 0, 1, false, true), true, result,
             [pick](const Tensor& x) { return pick(max_pool2d_with_indices(x, 2)); })};
}

std::vector<OpSample> max_pool1d_samples(Result result) {
  const auto pick = [result](const ValuesIndices& pool) { return result == Result::place ? pool.indices : pool.values; };
  return {sample("3", {2, 2, 7}, kOne, fixed(7, 3, 3, 0, 1, false, true), false, result,
                 [pick](const Tensor& x) { return pick(max_pool1d_with_indices(x, 3)); }),
          sample("all arguments", {3, 9}, kOne, fixed(9, 3, 2, 1, 2, true, true), false, result,
                 [pick](const Tensor& x) { return pick(max_pool1d_with_indices(x, 3, 2, 1, 2, true)); }),
          sample("no rows", {0, 2, 6}, kOne, fixed(6, 3, 3, 0, 1, false, true), false, result,
                 [pick](const Tensor& x) { return pick(max_pool1d_with_indices(x, 3)); })};
}

std::vector<OpSample> adaptive_max_samples(Result result, bool two_dims) {
  const auto pick = [result](const ValuesIndices& pool) { return result == Result::place ? pool.indices : pool.values; };
  if (!two_dims)
    return {sample("7 to 3", {2, 7}, kOne, adaptive(7, 3), false, result,
                   [pick](const Tensor& x) { return pick(adaptive_max_pool1d_with_indices(x, 3)); }),
            sample("no rows", {0, 2, 7}, kOne, adaptive(7, 3), false, result,
                   [pick](const Tensor& x) { return pick(adaptive_max_pool1d_with_indices(x, 3)); })};
  return {sample("unequal windows", {1, 2, 5, 7}, adaptive(5, 3), adaptive(7, 4), true, result,
                 [pick](const Tensor& x) {
                   return pick(adaptive_max_pool2d_with_indices(x, {3, 4}));
                 }),
          sample("larger than the input", {1, 2, 3}, adaptive(2, 3), adaptive(3, 5), true, result,
                 [pick](const Tensor& x) {
                   return pick(adaptive_max_pool2d_with_indices(x, {3, 5}));
                 }),
          sample("no images", {0, 2, 4, 4}, adaptive(4, 2), adaptive(4, 2), true, result,
                 [pick](const Tensor& x) { return pick(adaptive_max_pool2d_with_indices(x, 2)); })};
}

std::vector<OpSample> avg_pool2d_samples() {
  return {sample("2 x 2", {2, 2, 4, 6}, fixed(4, 2, 2, 0, 1, false, true), fixed(6, 2, 2, 0, 1, false, true), true,
                 Result::mean, [](const Tensor& x) { return avg_pool2d(x, 2); }),
          sample("with padding", {1, 2, 5, 6}, fixed(5, 3, 2, 1, 1, true, true), fixed(6, 2, 1, 1, 1, true, true), true,
                 Result::mean,
                 [](const Tensor& x) {
                   return avg_pool2d(x, {3, 2}, {2, 1}, 1, true);
                 }),
          sample("padding not counted", {2, 6, 6}, fixed(6, 3, 2, 1, 1, true, false), fixed(6, 3, 2, 1, 1, true, false), true,
                 Result::mean, [](const Tensor& x) { return avg_pool2d(x, 3, 2, 1, true, false); }),
          sample(
              "divisor", {1, 1, 4, 4}, fixed(4, 2, 1, 0, 1, false, true), fixed(4, 2, 1, 0, 1, false, true), true, Result::mean,
              [](const Tensor& x) { return avg_pool2d(x, 2, 1, 0, false, true, 3); }, 3),
          sample("no images", {0, 2, 4, 4}, fixed(4, 2, 2, 0, 1, false, true), fixed(4, 2, 2, 0, 1, false, true), true,
                 Result::mean, [](const Tensor& x) { return avg_pool2d(x, 2); })};
}

const RegisterOpCases registered([] {
  return OpCases{{"max_pool2d",
                  max_pool2d_samples(Result::largest),
                  {{"padding",
                    [] {
                      max_pool2d(zeros({1, 4, 4}), 2, 1, 2);
                    },
                    "max_pool2d: padding [2] is more than half of kernel_size [2]"},
                   {"window",
                    [] {
                      max_pool2d(zeros({1, 4, 3}), 4);
                    },
                    "max_pool2d: a window spans 4 places, but the padded input has 3 (dim -1 of input [1, 4, 3])"},
                   {"kernel",
                    [] {
                      max_pool2d(zeros({1, 4, 4}), 0);
                    },
                    "max_pool2d: kernel_size must be at least 1: got [0]"},
                   {"rank", [] { max_pool2d(zeros(4, 4), 2); }, "max_pool2d: needs [N, C, H, W] or [C, H, W]: got [4, 4]"}}},
                 {"max_pool2d_with_indices", max_pool2d_samples(Result::place), {}},
                 {"max_pool1d", max_pool1d_samples(Result::largest), {}},
                 {"max_pool1d_with_indices", max_pool1d_samples(Result::place), {}},
                 {"adaptive_max_pool1d", adaptive_max_samples(Result::largest, false), {}},
                 {"adaptive_max_pool1d_with_indices", adaptive_max_samples(Result::place, false), {}},
                 {"adaptive_max_pool2d",
                  adaptive_max_samples(Result::largest, true),
                  {{"nothing",
                    [] {
                      adaptive_max_pool2d(zeros({1, 0, 3}), 2);
                    },
                    "adaptive_max_pool2d: dim -2 of input [1, 0, 3] is empty"}}},
                 {"adaptive_max_pool2d_with_indices", adaptive_max_samples(Result::place, true), {}},
                 {"avg_pool2d",
                  avg_pool2d_samples(),
                  {{"divisor",
                    [] {
                      avg_pool2d(zeros({1, 4, 4}), 2, {}, 0, false, true, 0);
                    },
                    "avg_pool2d: divisor_override is 0"},
                   {"integers",
                    [] {
                      avg_pool2d(zeros({1, 4, 4}, DType::int64), 2);
                    },
                    "avg_pool2d: ", is_a<DTypeError>}}},
                 {"avg_pool1d",
                  {sample("all arguments", {2, 2, 7}, kOne, fixed(7, 3, 2, 1, 1, true, false), false, Result::mean,
                          [](const Tensor& x) { return avg_pool1d(x, 3, 2, 1, true, false); }),
                   sample("no rows", {0, 2, 6}, kOne, fixed(6, 3, 3, 0, 1, false, true), false, Result::mean,
                          [](const Tensor& x) { return avg_pool1d(x, 3); })},
                  {}},
                 {"adaptive_avg_pool1d",
                  {sample("7 to 3", {2, 7}, kOne, adaptive(7, 3), false, Result::mean,
                          [](const Tensor& x) { return adaptive_avg_pool1d(x, 3); }),
                   sample("no rows", {0, 2, 7}, kOne, adaptive(7, 3), false, Result::mean,
                          [](const Tensor& x) { return adaptive_avg_pool1d(x, 3); })},
                  {}},
                 {"adaptive_avg_pool2d",
                  {sample("unequal windows", {1, 2, 5, 7}, adaptive(5, 3), adaptive(7, 4), true, Result::mean,
                          [](const Tensor& x) {
                            return adaptive_avg_pool2d(x, {3, 4});
                          }),
                   sample("one place", {2, 3, 4, 4}, adaptive(4, 1), adaptive(4, 1), true, Result::mean,
                          [](const Tensor& x) { return adaptive_avg_pool2d(x, 1); }),
                   sample("one dim kept", {1, 5, 4}, adaptive(5, 5), adaptive(4, 3), true, Result::mean,
                          [](const Tensor& x) {
                            return adaptive_avg_pool2d(x, {-1, 3});
                          }),
                   sample("no images", {0, 2, 4, 4}, adaptive(4, 2), adaptive(4, 2), true, Result::mean,
                          [](const Tensor& x) { return adaptive_avg_pool2d(x, 2); })},
                  {{"output_size",
                    [] {
                      adaptive_avg_pool2d(zeros({1, 4, 4}), {1, 2, 3});
                    },
                    "adaptive_avg_pool2d: output_size [1, 2, 3] needs one number or 2"}}}};
});

}  // namespace
}  // namespace onestep
