#include <algorithm>

#include "autograd/ops_shape.h"
#include "autograd/testing/op_case.h"

namespace onestep {
namespace {

/// Where matrix `i` of the broadcast batch starts in a row-major operand of `shape`.
int64_t matrix_start(const Shape& shape, const Shape& batch, int64_t i) {
  int64_t start = 0, step = shape[shape.rank() - 1] * shape[shape.rank() - 2];
  for (int d = 1; d <= batch.rank(); ++d) {
    const int own = shape.rank() - 2 - d;
    const int64_t size = batch[batch.rank() - d], place = i % size;
    i /= size;
    if (own < 0) continue;
    if (shape[own] != 1) start += place * step;
    step *= shape[own];
  }
  return start;
}

Values matmul_reference(const std::vector<Values>& in) {
  Shape a = in[0].shape, b = in[1].shape, batch;
  if (a.rank() == 1) a.insert(0, 1);
  if (b.rank() == 1) b.push_back(1);
  for (int d = std::max(a.rank(), b.rank()); d > 2; --d) {
    const int64_t na = d > a.rank() ? 1 : a[a.rank() - d], nb = d > b.rank() ? 1 : b[b.rank() - d];
    batch.push_back(na == 1 ? nb : na);
  }
  const int64_t m = a[a.rank() - 2], k = a.back(), n = b.back();
  Shape shape = batch;
  if (in[0].shape.rank() > 1) shape.push_back(m);
  if (in[1].shape.rank() > 1) shape.push_back(n);
  Values y(shape);
  for (int64_t i = 0; i < batch.numel(); ++i) {
    const int64_t from_a = matrix_start(a, batch, i), from_b = matrix_start(b, batch, i);
    for (int64_t r = 0; r < m; ++r)
      for (int64_t c = 0; c < n; ++c)
        for (int64_t p = 0; p < k; ++p) y[(i * m + r) * n + c] += in[0][from_a + r * k + p] * in[1][from_b + p * n + c];
  }
  return y;
}

Tensor call_matmul(const std::vector<Tensor>& in) { return matmul(in[0], in[1]); }

OpSample product(const std::string& label, const Shape& a, const Shape& b) {
  return {label, {{a}, {b}}, call_matmul, matmul_reference};
}

/// [rows, cols] -> [cols, rows]
Values transposed(const Values& x) {
  Values y({x.shape[1], x.shape[0]});
  for (int64_t r = 0; r < x.shape[0]; ++r)
    for (int64_t c = 0; c < x.shape[1]; ++c) y[c * x.shape[0] + r] = x[r * x.shape[1] + c];
  return y;
}

/// [B, T, H d] -> [B, H, T, d]
Values split_heads(const Values& x, int64_t heads) {
  const int64_t batch = x.shape[0], tokens = x.shape[1], d = x.shape[2] / heads;
  Values y({batch, heads, tokens, d});
  for (int64_t i = 0, b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t t = 0; t < tokens; ++t)
        for (int64_t c = 0; c < d; ++c) y[i++] = x[((b * tokens + t) * heads + h) * d + c];
  return y;
}

OpSample attention_scores() {
  const auto heads = [](const Tensor& x) { return transpose(view(x, {2, 5, 3, 4}), 1, 2); };
  return {"head-split q times transposed k",
          {{{2, 5, 12}}, {{2, 5, 12}}},
          [heads](const std::vector<Tensor>& in) {
            return matmul(heads(contiguous(in[0])), transpose(heads(contiguous(in[1])), -2, -1));
          },
          [](const std::vector<Values>& in) {
            const Values q = split_heads(in[0], 3), k = split_heads(in[1], 3);
            Values y({2, 3, 5, 5});
            for (int64_t i = 0; i < 6; ++i)
              for (int64_t r = 0; r < 5; ++r)
                for (int64_t c = 0; c < 5; ++c)
                  for (int64_t p = 0; p < 4; ++p) y[(i * 5 + r) * 5 + c] += q[(i * 5 + r) * 4 + p] * k[(i * 5 + c) * 4 + p];
            return y;
          }};
}

OpSample integers() {
  const InputSpec a{.shape = {2, 3, 4}, .low = -9, .high = 10, .dtype = DType::int64};
  const InputSpec b{.shape = {4, 2}, .low = -9, .high = 10, .dtype = DType::int64};
  return {.label = "int64", .inputs = {a, b}, .forward = call_matmul, .reference = matmul_reference, .differentiable = false};
}

Values linear_reference(const std::vector<Values>& in) {
  Values y = matmul_reference({in[0], transposed(in[1])});
  const int64_t n = in[1].shape[0];
  for (int64_t i = 0; in.size() > 2 && i < y.shape.numel(); ++i) y[i] += in[2][i % n];
  return y;
}

Tensor call_linear(const std::vector<Tensor>& in) { return linear(in[0], in[1], in.size() > 2 ? in[2] : Tensor()); }

const RegisterOpCases registered([] {
  return OpCases{
      {"matmul",
       {product("vector vector", {4}, {4}),
        product("matrix vector", {3, 4}, {4}),
        product("vector matrix", {4}, {4, 3}),
        product("vector batch", {4}, {2, 4, 3}),
        product("batch vector", {2, 3, 4}, {4}),
        product("matrices", {3, 4}, {4, 5}),
        product("one column", {5, 4}, {4, 1}),
        product("one row", {1, 4}, {4, 5}),
        product("batches", {2, 3, 4}, {2, 4, 2}),
        product("one right side", {2, 3, 4}, {4, 2}),
        product("one left side", {3, 4}, {2, 4, 2}),
        product("one right side of rank 3", {2, 3, 4}, {1, 4, 2}),
        product("both batches repeat", {2, 1, 3, 4}, {1, 3, 4, 2}),
        product("rank 6", {2, 1, 2, 1, 2, 3}, {1, 2, 2, 2, 3, 2}),
        product("rank 6 with one right side", {2, 1, 2, 1, 2, 3}, {3, 2}),
        product("rows of the output are none", {0, 3}, {3, 2}),
        product("columns of the output are none", {2, 3}, {3, 0}),
        product("nothing to sum", {2, 0}, {0, 3}),
        product("no batch", {0, 2, 3}, {3, 2}),
        {"several k-blocks",
         {{.shape = {3, 600}, .low = -0.1, .high = 0.1}, {.shape = {600, 2}, .low = -0.1, .high = 0.1}},
         call_matmul,
         matmul_reference},
        {"transposed right side",
         {{{3, 4}}, {{5, 4}}},
         [](const std::vector<Tensor>& in) { return matmul(in[0], t(in[1])); },
         [](const std::vector<Values>& in) {
           return matmul_reference({in[0], transposed(in[1])});
         }},
        attention_scores(),
        integers()},
       {{"inner sizes",
         [] {
           matmul(zeros({2, 6, 3}), zeros({2, 3}));
         },
         "matmul: inner dimensions differ: [2, 6, 3] x [2, 3] (transpose the right side?)"},
        {"inner sizes beyond repair",
         [] {
           matmul(zeros({2, 3}), zeros({4, 5}));
         },
         "matmul: inner dimensions differ: [2, 3] x [4, 5]"},
        {"vector sizes", [] { matmul(zeros(2), zeros(3)); }, "matmul: inner dimensions differ: [2] x [3]"},
        {"batch sizes",
         [] {
           matmul(zeros({2, 2, 3}), zeros({3, 3, 3}));
         },
         "matmul: batch dims: ", is_a<ShapeError>},
        {"a number",
         [] {
           matmul(zeros({}), zeros({2, 3}));
         },
         "matmul: needs at least one dim on both sides: [] x [2, 3] (use mul for numbers)"},
        {"two dtypes",
         [] {
           matmul(zeros({2, 2}), zeros({2, 2}, DType::float64));
         },
         "matmul: dtypes differ: float32 and float64 (convert one with to())"},
        {"bool",
         [] {
           matmul(zeros({2, 2}, DType::boolean), zeros({2, 2}, DType::boolean));
         },
         "matmul: does not take bool (convert with to())"}}},
      {"dot",
       {{"vectors", {{5}, {5}}, [](const std::vector<Tensor>& in) { return dot(in[0], in[1]); }, matmul_reference},
        {"empty vectors", {{0}, {0}}, [](const std::vector<Tensor>& in) { return dot(in[0], in[1]); }, matmul_reference},
        {.label = "int64",
         .inputs = {{.shape = 4, .low = -9, .high = 10, .dtype = DType::int64},
                    {.shape = 4, .low = -9, .high = 10, .dtype = DType::int64}},
         .forward = [](const std::vector<Tensor>& in) { return dot(in[0], in[1]); },
         .reference = matmul_reference,
         .differentiable = false}},
       {{"matrices",
         [] {
           dot(zeros({2, 3}), zeros({3, 2}));
         },
         "dot: needs two vectors: [2, 3] and [3, 2] (use matmul for matrices)"},
        {"sizes", [] { dot(zeros(2), zeros(3)); }, "dot: sizes differ: [2] and [3]"}}},
      {"linear",
       {{"with bias", {{{2, 3, 4}}, {{5, 4}}, {5}}, call_linear, linear_reference},
        {"without bias", {{{6, 4}}, {{5, 4}}}, call_linear, linear_reference},
        {"one row", {{4}, {{5, 4}}, {5}}, call_linear, linear_reference},
        {"rank 6", {{{1, 2, 1, 2, 2, 3}}, {{2, 3}}, {2}}, call_linear, linear_reference},
        {"no rows", {{{0, 4}}, {{5, 4}}, {5}}, call_linear, linear_reference},
        {"no input features", {{{3, 0}}, {{2, 0}}, {2}}, call_linear, linear_reference},
        {"no output features", {{{3, 4}}, {{0, 4}}, {0}}, call_linear, linear_reference}},
       {{"input features",
         [] {
           linear(zeros({2, 3}), zeros({5, 4}));
         },
         "linear: input [2, 3] does not fit weight [5, 4] (the last dim of the input must be 4)"},
        {"weight rank",
         [] {
           linear(zeros({2, 3}), zeros(3));
         },
         "linear: weight must be [out, in]: got [3]"},
        {"bias size",
         [] {
           linear(zeros({2, 3}), zeros({5, 3}), zeros(3));
         },
         "linear: bias [3] does not fit weight [5, 3] (needs [5])"},
        {"bias dtype",
         [] {
           linear(zeros({2, 3}), zeros({5, 3}), zeros(5, DType::float64));
         },
         "linear: ", is_a<DTypeError>}}}};
});

}  // namespace
}  // namespace onestep
