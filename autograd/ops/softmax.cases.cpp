#include <algorithm>
#include <cmath>

#include "autograd/ops/cases.h"
#include "autograd/ops_nn.h"
#include "autograd/testing/op_case.h"

namespace onestep {
namespace {

/// log(sum(exp(x))) of `n` values `step` apart; `biggest` is their maximum.
double log_sum(const Values& x, int64_t start, int64_t step, int64_t n, double& biggest) {
  biggest = -kInf;
  for (int64_t i = 0; i < n; ++i) biggest = std::max(biggest, x[start + i * step]);
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += std::exp(x[start + i * step] - biggest);
  return biggest + std::log(total);
}

/// f(x, logsumexp of its slice) for every element, slices along `dim`.
template <class F>
auto along(int dim, F f) {
  return [dim, f](const std::vector<Values>& in) {
    const Values& x = in[0];
    Values y(x.shape);
    const int d = x.shape.empty() ? 0 : dim < 0 ? dim + x.shape.rank() : dim;
    const int64_t n = x.shape.empty() ? 1 : x.shape[d];
    int64_t inner = 1;
    for (int i = d + 1; i < x.shape.rank(); ++i) inner *= x.shape[i];
    for (int64_t i = 0; i < x.shape.numel(); ++i) {
      double biggest = 0;
      const int64_t start = i / (inner * n) * inner * n + i % inner;
      y[i] = f(x[i], log_sum(x, start, inner, n, biggest));
    }
    return y;
  };
}

OpSample softmax_sample(const std::string& label, const Shape& shape, int dim) {
  return {label,
          {{shape}},
          [dim](const std::vector<Tensor>& in) { return softmax(in[0], dim); },
          along(dim, [](double x, double lse) { return std::exp(x - lse); })};
}

OpSample softmin_sample(const std::string& label, const Shape& shape, int dim) {
  return {label,
          {{shape}},
          [dim](const std::vector<Tensor>& in) { return softmin(in[0], dim); },
          [dim](const std::vector<Values>& in) {
            Values x = in[0];
            for (double& v : x.data) v = -v;
            return along(dim, [](double v, double lse) { return std::exp(v - lse); })({x});
          }};
}

OpSample log_softmax_sample(const std::string& label, const Shape& shape, int dim) {
  return {label,
          {{shape}},
          [dim](const std::vector<Tensor>& in) { return log_softmax(in[0], dim); },
          along(dim, [](double x, double lse) { return x - lse; })};
}

/// Over `dims` of a shape of rank up to 3, keeping nothing or size-1 dims.
OpSample logsumexp_sample(const std::string& label, const Shape& shape, const Shape& dims, bool keepdim) {
  const auto reference = [dims, keepdim](const std::vector<Values>& in) {
    Shape full = in[0].shape, kept;
    while (full.rank() < 3) full.insert(0, 1);
    const int added = 3 - in[0].shape.rank();
    Shape steps = {full[1] * full[2], full[2], 1}, out = full;
    for (int i = added; i < 3; ++i) {
      const bool reduced = dims.empty() || std::find(dims.begin(), dims.end(), i - added) != dims.end();
      if (reduced) out[i] = 1;
      if (!reduced || keepdim) kept.push_back(out[i]);
    }
    Values y(kept);
    for (int64_t i = 0; i < out.numel(); ++i) {
      const int64_t place[] = {i / (out[1] * out[2]), i / out[2] % out[1], i % out[2]};
      double total = 0;
      for (int64_t a = 0; a < full[0]; ++a)
        for (int64_t b = 0; b < full[1]; ++b)
          for (int64_t c = 0; c < full[2]; ++c)
            if ((out[0] == 1 || a == place[0]) && (out[1] == 1 || b == place[1]) && (out[2] == 1 || c == place[2]))
              total += std::exp(in[0][a * steps[0] + b * steps[1] + c]);
      y[i] = std::log(total);
    }
    return y;
  };
  return {
      label, {{shape}}, [dims, keepdim](const std::vector<Tensor>& in) { return logsumexp(in[0], dims, keepdim); }, reference};
}

InputSpec given(const Shape& shape, std::vector<double> values) { return {.shape = shape, .values = std::move(values)}; }

const RegisterOpCases registered([] {
  return OpCases{{"softmax",
                  {softmax_sample("last dim", {2, 3, 4}, -1),
                   softmax_sample("first dim", {2, 3, 4}, 0),
                   softmax_sample("middle dim", {2, 3, 4}, 1),
                   softmax_sample("columns", {2, 3, 35}, 1),
                   softmax_sample("a number", {}, 0),
                   softmax_sample("one column", {3, 1}, 1),
                   softmax_sample("a long row", {2, 67}, 1),
                   softmax_sample("rank 6", {2, 1, 2, 3, 1, 2}, 3),
                   softmax_sample("no rows", {0, 3}, 1),
                   softmax_sample("empty rows", {3, 0}, 1),
                   {.label = "widely spread and masked values",
                    .inputs = {given({2, 3}, {-1000, 1000, 999, -kInf, 2, 1})},
                    .forward = [](const std::vector<Tensor>& in) { return softmax(in[0], -1); },
                    .reference = along(-1, [](double x, double lse) { return std::exp(x - lse); }),
                    .differentiable = false},
                   {.label = "a row of -inf is nan",
                    .inputs = {given({2, 2}, {-kInf, -kInf, 1, 1})},
                    .forward = [](const std::vector<Tensor>& in) { return softmax(in[0], -1); },
                    .reference =
                        [](const std::vector<Values>&) {
                          Values y({2, 2});
                          y.data = {std::nan(""), std::nan(""), 0.5, 0.5};
                          return y;
                        },
                    .differentiable = false}},
                  {{"dim",
                    [] {
                      softmax(zeros({2, 3}), 2);
                    },
                    "softmax: ", is_a<IndexError>},
                   {"integers",
                    [] {
                      softmax(zeros({2, 3}, DType::int64), 1);
                    },
                    "softmax: needs a floating dtype: got int64 (convert with x.to(DType::float32))"}}},
                 {"softmin",
                  {softmin_sample("last dim", {2, 3, 4}, -1), softmin_sample("first dim", {2, 3}, 0),
                   softmin_sample("no rows", {0, 3}, 1)},
                  {{"dim",
                    [] {
                      softmin(zeros({2, 3}), 2);
                    },
                    "softmin: ", is_a<IndexError>},
                   {"integers",
                    [] {
                      softmin(zeros({2, 3}, DType::int64), 1);
                    },
                    "softmin: ", is_a<DTypeError>}}},
                 {"log_softmax",
                  {log_softmax_sample("last dim", {2, 3, 4}, -1),
                   log_softmax_sample("first dim", {2, 3, 4}, 0),
                   log_softmax_sample("middle dim", {2, 3, 4}, 1),
                   log_softmax_sample("columns", {2, 3, 35}, 1),
                   log_softmax_sample("a number", {}, -1),
                   log_softmax_sample("a long row", {2, 67}, 1),
                   log_softmax_sample("no rows", {0, 3}, 1),
                   log_softmax_sample("empty rows", {3, 0}, 1),
                   {.label = "widely spread values",
                    .inputs = {given({2, 3}, {-1000, 1000, 999, -50, 2, 1})},
                    .forward = [](const std::vector<Tensor>& in) { return log_softmax(in[0], -1); },
                    .reference = along(-1, [](double x, double lse) { return x - lse; }),
                    .differentiable = false}},
                  {{"dim",
                    [] {
                      log_softmax(zeros({2, 3}), -3);
                    },
                    "log_softmax: ", is_a<IndexError>},
                   {"integers",
                    [] {
                      log_softmax(zeros({2, 3}, DType::int64), 1);
                    },
                    "log_softmax: ", is_a<DTypeError>}}},
                 {"logsumexp",
                  {logsumexp_sample("last dim", {2, 3, 4}, 2, false),
                   logsumexp_sample("first dim", {2, 3, 4}, 0, false),
                   logsumexp_sample("middle dim kept", {2, 3, 4}, 1, true),
                   logsumexp_sample("two dims", {2, 3, 4}, {0, 2}, false),
                   logsumexp_sample("all dims", {2, 3, 4}, {}, false),
                   logsumexp_sample("all dims kept", {3, 4}, {}, true),
                   logsumexp_sample("no rows", {0, 3}, 1, false),
                   {.label = "int64",
                    .inputs = {{.shape = {2, 3},
                                .dtype = DType::int64,
                                .values = {100, 2, 3, -400, -300, 7}}},  // whose results are exact in float32
                    .forward = [](const std::vector<Tensor>& in) { return logsumexp(in[0], 1); },
                    .reference =
                        [](const std::vector<Values>& in) {
                          double biggest = 0;
                          Values y(2);
                          for (int64_t i = 0; i < 2; ++i) y[i] = log_sum(in[0], 3 * i, 1, 3, biggest);
                          return y;
                        },
                    .differentiable = false},
                   {.label = "over nothing",
                    .inputs = {{{3, 0}}},
                    .forward = [](const std::vector<Tensor>& in) { return logsumexp(in[0], 1); },
                    .reference =
                        [](const std::vector<Values>&) {
                          Values y(3);
                          y.data = {-kInf, -kInf, -kInf};
                          return y;
                        },
                    .differentiable = false},
                   {.label = "widely spread values and a row of -inf",
                    .inputs = {given({2, 3}, {-1000, 1000, 999, -kInf, -kInf, -kInf})},
                    .forward = [](const std::vector<Tensor>& in) { return logsumexp(in[0], -1); },
                    .reference =
                        [](const std::vector<Values>&) {
                          Values y(2);
                          y.data = {1000 + std::log1p(std::exp(-1.0)), -kInf};
                          return y;
                        },
                    .differentiable = false}},
                  {{"dim",
                    [] {
                      logsumexp(zeros({2, 3}), 5);
                    },
                    "logsumexp: ", is_a<IndexError>},
                   {"repeated dim",
                    [] {
                      logsumexp(zeros({2, 3}), {1, -1});
                    },
                    "logsumexp: ", is_a<ShapeError>}}}};
});

}  // namespace
}  // namespace onestep
