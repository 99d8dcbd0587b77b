#include <algorithm>
#include <cmath>

#include "autograd/operators.h"
#include "autograd/ops/reduce_cases.h"
#include "autograd/ops_order.h"

namespace onestep {
namespace {

using namespace reductions;

InputSpec whole(const Shape& shape, std::vector<double> given) {
  return {.shape = shape, .dtype = DType::int64, .values = std::move(given)};
}

OpSample counted(const char* label, std::vector<InputSpec> inputs, int64_t minlength) {
  return {label, std::move(inputs),
          [=](const std::vector<Tensor>& in) { return bincount(in[0], in.size() > 1 ? in[1] : Tensor(), minlength); },
          [=](const std::vector<Values>& in) {
            Row sums(static_cast<size_t>(minlength), 0);
            for (size_t i = 0; i < in[0].data.size(); ++i) {
              const auto bin = static_cast<size_t>(in[0].data[i]);
              if (bin >= sums.size()) sums.resize(bin + 1, 0);
              sums[bin] += in.size() > 1 ? in[1].data[i] : 1;
            }
            Values y(static_cast<int64_t>(sums.size()));
            y.data = sums;
            return y;
          },
          false};
}

OpSample binned(const char* label, InputSpec x, int64_t bins, double min, double max) {
  return {label,
          {std::move(x)},
          [=](const std::vector<Tensor>& in) { return histc(in[0], bins, min, max); },
          [=](const std::vector<Values>& in) {
            double low = min, high = max;
            if (low == high && !in[0].data.empty()) {
              low = *std::min_element(in[0].data.begin(), in[0].data.end());
              high = *std::max_element(in[0].data.begin(), in[0].data.end());
            }
            if (low == high) low -= 1, high += 1;
            Values y(bins);
            for (const double v : in[0].data)
              if (low <= v && v <= high)
                ++y[std::min(bins - 1, static_cast<int64_t>((v - low) * static_cast<double>(bins) / (high - low)))];
            return y;
          },
          false};
}

OpSample encoded(const char* label, InputSpec classes, int64_t num_classes, int64_t columns) {
  return {label,
          {std::move(classes)},
          [=](const std::vector<Tensor>& in) { return one_hot(in[0], num_classes); },
          [=](const std::vector<Values>& in) {
            Shape shape = in[0].shape;
            shape.push_back(columns);
            Values y(shape);
            for (int64_t i = 0; i < in[0].shape.numel(); ++i) y[i * columns + static_cast<int64_t>(in[0][i])] = 1;
            return y;
          },
          false};
}

const RegisterOpCases registered([] {
  const InputSpec numbers = whole({6}, {3, 0, 3, 1, 3, 0});
  OpSample halved = counted("weights", {numbers, integers({6})}, 0);  // float32, and for any other dtype float64
  halved.forward = [](const std::vector<Tensor>& in) { return bincount(in[0], to(in[1], DType::float32) / 2); };
  halved.reference = [f = halved.reference](std::vector<Values> in) {
    for (double& weight : in[1].data) weight /= 2;
    return f(in);
  };
  return OpCases{
      {"bincount",
       {counted("counts", {numbers}, 0), counted("at least ten", {numbers}, 10), halved,
        counted("weights that are integers", {numbers, integers({6})}, 0), counted("nothing", {whole({0}, {})}, 0),
        counted("bins of nothing", {whole({0}, {})}, 3)},
       {{"negative",
         [] {
           bincount(tensor({1, -1}));
         },
         "bincount: ", is_a<IndexError>},
        {"dtype", [] { bincount(zeros(2)); }, "bincount: needs integers: got float32"},
        {"rank", [] { bincount(tensor({{1}})); }, "bincount: needs a vector: got shape [1, 1]"},
        {"minlength", [] { bincount(tensor({1}), {}, -1); }, "bincount: minlength must not be negative: got -1"},
        {"weights", [] { bincount(tensor({1}), zeros(2)); }, "bincount: weights of shape [2] for [1] numbers"}}},
      {"histc",
       {binned("given range", values({2, 4}, {0, 1, 1.5, 3, -1, 4, 2, kNan}), 3, 0, 3),
        binned("own range", drawn({50}), 7, 0, 0), binned("one value", values({3}, {2, 2, 2}), 4, 0, 0),
        binned("number", {{}}, 2, -3, 3), binned("nothing", {{0, 2}}, 3, 0, 0)},
       {{"bins", [] { histc(zeros(2), 0); }, "histc: needs at least one bin: got 0"},
        {"range", [] { histc(zeros(2), 3, 2, 1); }, "histc: no range: from 2 to 1"},
        {"infinite",
         [] {
           histc(tensor({1.0, kInf}));
         },
         "histc: ", is_a<ConfigError>},
        {"dtype",
         [] {
           histc(tensor({1, 2}), 3, 0, 1);
         },
         "histc: ", is_a<DTypeError>}}},
      {"one_hot",
       {encoded("as many as needed", whole({2, 3}, {0, 2, 1, 3, 3, 0}), -1, 4), encoded("more", whole({3}, {0, 2, 1}), 5, 5),
        encoded("number", whole({}, {1}), 3, 3), encoded("nothing", whole({0, 2}, {}), 3, 3)},
       {{"class above", [] { one_hot(tensor({3}), 3); }, "one_hot: ", is_a<IndexError>},
        {"negative class",
         [] {
           one_hot(tensor({-1, 2}));
         },
         "one_hot: ", is_a<IndexError>},
        {"no classes", [] { one_hot(zeros(0, DType::int64)); }, "one_hot: -1 classes for a tensor of shape [0]"},
        {"dtype", [] { one_hot(zeros(2), 3); }, "one_hot: ", is_a<DTypeError>}}}};
});

}  // namespace
}  // namespace onestep
