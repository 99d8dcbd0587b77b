#include <cmath>

#include "autograd/ops_nn.h"
#include "autograd/testing/op_case.h"

namespace onestep {
namespace {

double squashed(double x) { return 1 / (1 + std::exp(-x)); }

/// One token of one row: h and c, of `size` elements, become the next ones.
void step(const double* input, const Values& weight, const double* bias, int64_t size, double* h, double* c) {
  std::vector<double> sums;
  for (int64_t g = 0; g < 4 * size; ++g) {
    double sum = input[g] + (bias ? bias[g] : 0);
    for (int64_t j = 0; j < size; ++j) sum += weight[g * size + j] * h[j];
    sums.push_back(sum);
  }
  const auto gate = [&](int64_t i, int64_t j) { return sums[static_cast<size_t>(i * size + j)]; };
  for (int64_t j = 0; j < size; ++j) {
    c[j] = squashed(gate(1, j)) * c[j] + squashed(gate(0, j)) * std::tanh(gate(2, j));
    h[j] = squashed(gate(3, j)) * std::tanh(c[j]);
  }
}

Values all_steps(const std::vector<Values>& in, bool reverse) {
  const int64_t tokens = in[0].shape[0], batch = in[0].shape[1], size = in[1].shape[1];
  Values y({tokens + 1, batch, size}), h = in[1], c = in[2];
  for (int64_t i = 0; i < tokens; ++i) {
    const int64_t t = reverse ? tokens - 1 - i : i;
    for (int64_t b = 0; b < batch; ++b)
      step(&in[0].data[static_cast<size_t>((t * batch + b) * 4 * size)], in[3], in.size() > 4 ? in[4].data.data() : nullptr,
           size, &h.data[static_cast<size_t>(b * size)], &c.data[static_cast<size_t>(b * size)]);
    for (int64_t j = 0; j < batch * size; ++j) y[t * batch * size + j] = h[j];
  }
  for (int64_t j = 0; j < batch * size; ++j) y[tokens * batch * size + j] = c[j];
  return y;
}

OpSample sample(const char* label, int64_t tokens, int64_t batch, int64_t size, bool bias, bool reverse) {
  std::vector<InputSpec> inputs = {
      {{tokens, batch, 4 * size}}, {{batch, size}}, {{batch, size}}, {.shape = {4 * size, size}, .low = -1, .high = 1}};
  if (bias) inputs.push_back({4 * size});
  return {label, inputs,
          [reverse](const std::vector<Tensor>& in) {
            return lstm(in[0], in[1], in[2], in[3], in.size() > 4 ? in[4] : Tensor(), reverse);
          },
          [reverse](const std::vector<Values>& in) { return all_steps(in, reverse); }};
}

/// A call with sizes that fit but for those that are given.
std::function<void()> call(const Shape& gates, const Shape& h, const Shape& c, const Shape& weight, const Shape& bias) {
  return [=] { lstm(zeros(gates), zeros(h), zeros(c), zeros(weight), zeros(bias)); };
}

const RegisterOpCases registered([] {
  return OpCases{
      {"lstm",
       {sample("forwards", 3, 2, 2, true, false), sample("backwards", 3, 2, 2, true, true),
        sample("without bias", 2, 3, 1, false, false), sample("one token", 1, 2, 3, true, true),
        sample("many steps", 8, 9, 2, true, true), sample("no rows", 2, 0, 2, true, false)},
       {{"gates", call({2, 3, 5}, {3, 1}, {3, 1}, {4, 1}, {4}),
         "lstm: needs gates [T, B, 4 hidden] of at least one token: got [2, 3, 5]"},
        {"no token", call({0, 3, 4}, {3, 1}, {3, 1}, {4, 1}, {4}),
         "lstm: needs gates [T, B, 4 hidden] of at least one token: got [0, 3, 4]"},
        {"states", call({2, 3, 4}, {3, 1}, {2, 1}, {4, 1}, {4}), "lstm: needs states [3, 1]: got [3, 1] and [2, 1]"},
        {"weight", call({2, 3, 4}, {3, 1}, {3, 1}, {4, 2}, {4}), "lstm: needs a weight [4, 1]: got [4, 2]"},
        {"bias", call({2, 3, 4}, {3, 1}, {3, 1}, {4, 1}, {3}), "lstm: needs a bias [4]: got [3]"},
        {"dtype",
         [] {
           lstm(zeros({2, 3, 4}, DType::int64), zeros({3, 1}), zeros({3, 1}), zeros({4, 1}));
         },
         "lstm: ", is_a<DTypeError>},
        {"dtypes",
         [] {
           lstm(zeros({2, 3, 4}), zeros({3, 1}), zeros({3, 1}, DType::float64), zeros({4, 1}));
         },
         "lstm: ", is_a<DTypeError>}}},
  };
});

}  // namespace
}  // namespace onestep
