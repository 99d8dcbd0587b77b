#include "autograd/ops/cases.h"
#include "autograd/ops/naive.h"
#include "autograd/ops_index.h"
#include "autograd/ops_shape.h"

namespace onestep {
namespace {

InputSpec mask(const Shape& shape) { return {.shape = shape, .low = 0, .high = 2, .dtype = DType::boolean}; }

OpSample filled(const char* label, InputSpec x, const Shape& mask_shape, Scalar value) {
  return {label,
          {std::move(x), mask(mask_shape)},
          [value](const std::vector<Tensor>& in) { return masked_fill(in[0], in[1], value); },
          [value](const std::vector<Values>& in) {
            return naive::zip(in[0], in[1], [value](double v, double masked) { return masked != 0 ? value.value : v; });
          }};
}

/// The same in place, on a copy: also of a tensor that is not contiguous.
OpSample filled_in_place(const char* label, const Shape& shape, const Shape& mask_shape, bool transposed) {
  return {label,
          {{shape}, mask(mask_shape)},
          [transposed](const std::vector<Tensor>& in) {
            Tensor x = transposed ? transpose(clone(transpose(in[0], 0, -1)), 0, -1) : clone(in[0]);
            return masked_fill_(x, in[1], -1.5);
          },
          [](const std::vector<Values>& in) {
            return naive::zip(in[0], in[1], [](double v, double masked) { return masked != 0 ? -1.5 : v; });
          }};
}

OpSample chosen(const char* label, const Shape& condition, InputSpec a, InputSpec b) {
  return {label,
          {mask(condition), std::move(a), std::move(b)},
          [](const std::vector<Tensor>& in) { return where(in[0], in[1], in[2]); },
          [](const std::vector<Values>& in) {
            Values y(naive::broadcast(in[0].shape, naive::broadcast(in[1].shape, in[2].shape)));
            for (int64_t i = 0; i < y.shape.numel(); ++i)
              y[i] = naive::value_at(in[naive::value_at(in[0], y.shape, i) != 0 ? 1 : 2], y.shape, i);
            return y;
          }};
}

/// where of a tensor and the number -1.5.
OpSample chosen_number(const char* label, Tensor (*op)(const Tensor&, const Tensor&), bool tensor_if_true) {
  return {label,
          {mask({2, 3}), {{3}}},
          [op](const std::vector<Tensor>& in) { return op(in[0], in[1]); },
          [=](const std::vector<Values>& in) {
            return naive::zip(in[0], in[1], [=](double c, double v) { return (c != 0) == tensor_if_true ? v : -1.5; });
          }};
}

OpSample filled_by_tensor(const char* label, const Shape& x, const Shape& mask_shape, bool in_place) {
  return {label,
          {{x}, mask(mask_shape), {{}}},
          [in_place](const std::vector<Tensor>& in) {
            return in_place ? masked_fill_(clone(in[0]), in[1], in[2]) : masked_fill(in[0], in[1], in[2]);
          },
          [](const std::vector<Values>& in) {
            return naive::zip(in[0], in[1], [&](double v, double masked) { return masked != 0 ? in[2][0] : v; });
          }};
}

OpSample picked(const char* label, InputSpec x, const Shape& mask_shape) {
  return {label,
          {std::move(x), mask(mask_shape)},
          [](const std::vector<Tensor>& in) { return masked_select(in[0], in[1]); },
          [](const std::vector<Values>& in) {
            const Values all = naive::zip(in[0], in[1], [](double v, double) { return v; });
            std::vector<double> found;
            for (int64_t i = 0; i < all.shape.numel(); ++i)
              if (naive::value_at(in[1], all.shape, i) != 0) found.push_back(all[i]);
            Values y(static_cast<int64_t>(found.size()));
            y.data = found;
            return y;
          }};
}

constexpr auto kAsNew = [](const Tensor& x, const Tensor& m, const Tensor& source) { return masked_scatter(x, m, source); };
constexpr auto kInto = [](const Tensor& x, const Tensor& m, const Tensor& source) {
  return masked_scatter_(clone(x), m, source);
};
constexpr auto kIntoColumns = [](const Tensor& x, const Tensor& m, const Tensor& source) {
  return masked_scatter_(transpose(clone(transpose(x, 0, 1)), 0, 1), m, source);
};

OpSample scattered(const char* label, const Shape& x, const Shape& mask_shape, const Shape& source,
                   Tensor (*op)(const Tensor&, const Tensor&, const Tensor&)) {
  return {label,
          {{x}, mask(mask_shape), {source}},
          [op](const std::vector<Tensor>& in) { return op(in[0], in[1], in[2]); },
          [](const std::vector<Values>& in) {
            Values y = naive::zip(in[0], in[1], [](double v, double) { return v; });
            int64_t next = 0;
            for (int64_t i = 0; i < y.shape.numel(); ++i)
              if (naive::value_at(in[1], y.shape, i) != 0) y[i] = in[2][next++];
            return y;
          }};
}

using Triangle = Tensor (*)(const Tensor&, int64_t);

OpSample triangle(const char* label, Triangle op, bool lower, InputSpec x, int64_t diagonal) {
  return {label,
          {std::move(x)},
          [=](const std::vector<Tensor>& in) { return op(in[0], diagonal); },
          [=](const std::vector<Values>& in) {
            Values y = in[0];
            const int64_t rows = y.shape[y.shape.rank() - 2], cols = y.shape.back();
            for (int64_t i = 0; i < y.shape.numel(); ++i) {
              const int64_t distance = i % cols - i / cols % rows;
              if (lower ? distance > diagonal : distance < diagonal) y[i] = 0;
            }
            return y;
          }};
}

OpCase triangles(const char* name, Triangle op, bool lower) {
  const auto sample = [=](const char* label, const Shape& shape, int64_t diagonal) {
    return triangle(label, op, lower, {shape}, diagonal);
  };
  OpSample integers = triangle("int64", op, lower, {.shape = {3, 3}, .dtype = DType::int64}, 0);
  integers.differentiable = false;
  return {name,
          {sample("square", {4, 4}, 0), sample("wide", {3, 5}, 1), sample("tall", {5, 3}, -2), sample("beyond", {3, 3}, 9),
           sample("far below", {3, 3}, -9), sample("batch", {2, 3, 4}, 0), sample("rank 6", {2, 1, 2, 1, 3, 3}, -1),
           sample("no rows", {0, 3}, 0), sample("no columns", {3, 0}, 0), integers},
          {{"vector", [op] { op(zeros({3}), 0); }, std::string(name) + ": needs a matrix or a batch of them: got shape [3]"}}};
}

OpError wrong_mask(const char* op, Tensor (*call)(const Tensor&)) {
  return {"mask dtype", [call] { call(zeros({2})); },
          std::string(op) + ": the mask must be bool: got float32 (compare it with something, e.g. ne(mask, 0))"};
}

OpSample only_values(OpSample sample) {
  sample.differentiable = false;
  return sample;
}

const RegisterOpCases registered([] {
  return OpCases{
      {"masked_fill",
       {filled("same shape", {{3, 4}}, {3, 4}, 2.5), filled("causal", {{2, 4, 4}}, {4, 4}, -100),
        only_values(filled("with -inf", {{2, 4, 4}}, {4, 4}, -kInf)), filled("mask of a column", {{3, 4}}, {3, 1}, 0),
        filled("mask of higher rank", {{4}}, {2, 3, 4}, 1), filled("number", {{}}, {}, -1), filled("empty", {{0, 4}}, {4}, 1),
        filled("rank 6", {{2, 1, 2, 2, 1, 3}}, {2, 1, 3}, 0.5), filled("long rows", {{2, 300}}, {2, 300}, 0),
        only_values(filled("int64", {.shape = {2, 3}, .dtype = DType::int64}, {3}, 7))},
       {wrong_mask("masked_fill", [](const Tensor& m) { return masked_fill(zeros({2}), m, 0); }),
        {"shapes",
         [] {
           masked_fill(zeros({2, 3}), zeros({2}, DType::boolean), 0);
         },
         "masked_fill: ", is_a<ShapeError>},
        {"infinity in int64", [] { masked_fill(zeros({2}, DType::int64), zeros({2}, DType::boolean), -kInf); },
         "masked_fill: ", is_a<DTypeError>}}},
      {"masked_fill",
       {filled_by_tensor("same shape", {3, 4}, {3, 4}, false), filled_by_tensor("mask of higher rank", {4}, {2, 3, 4}, false),
        filled_by_tensor("numbers", {}, {}, false), filled_by_tensor("empty", {0, 4}, {4}, false)},
       {{"value rank", [] { masked_fill(zeros(2), zeros(2, DType::boolean), zeros(1)); },
         "masked_fill: the value must be a number or a rank-0 tensor: got shape [1]"}}},
      {"masked_fill_",
       {filled_by_tensor("same shape", {3, 4}, {3, 4}, true), filled_by_tensor("row", {2, 3, 4}, {4}, true),
        filled_by_tensor("empty", {0, 4}, {4}, true)},
       {{"infinity in int64", [] { masked_fill_(zeros(2, DType::int64), zeros(2, DType::boolean), full({}, kInf)); },
         "masked_fill_: ", is_a<DTypeError>}}},
      {"masked_select",
       {picked("same shape", {{3, 4}}, {3, 4}), picked("row", {{2, 3, 4}}, {4}), picked("mask of higher rank", {{4}}, {3, 4}),
        picked("numbers", {{}}, {}), picked("empty", {{0, 4}}, {4}),
        only_values(picked("int64", {.shape = {5, 6}, .dtype = DType::int64}, {5, 6}))},
       {wrong_mask("masked_select", [](const Tensor& m) { return masked_select(zeros({2}), m); })}},
      {"masked_scatter",
       {scattered("same shape", {3, 4}, {3, 4}, {4, 4}, kAsNew), scattered("row", {2, 3, 4}, {4}, {25}, kAsNew),
        scattered("mask of higher rank", {4}, {3, 4}, {12}, kAsNew), scattered("numbers", {}, {}, {2}, kAsNew),
        scattered("empty", {0, 4}, {4}, {0}, kAsNew)},
       {wrong_mask("masked_scatter", [](const Tensor& m) { return masked_scatter(zeros({2}), m, zeros({2})); }),
        {"too few", [] { masked_scatter(zeros(3), ones(3, DType::boolean), zeros(2)); },
         "masked_scatter: 3 elements of the mask are true, but source has only 2"},
        {"dtypes",
         [] {
           masked_scatter(zeros(3), ones(3, DType::boolean), tensor({1, 2, 3}));
         },
         "masked_scatter: ", is_a<DTypeError>}}},
      {"masked_scatter_",
       {scattered("same shape", {3, 4}, {3, 4}, {4, 4}, kInto), scattered("row", {2, 3, 4}, {4}, {25}, kInto),
        scattered("into columns", {3, 4}, {3, 4}, {4, 4}, kIntoColumns), scattered("empty", {0, 4}, {4}, {0}, kInto)},
       {wrong_mask("masked_scatter_", [](const Tensor& m) { return masked_scatter_(zeros({2}), m, zeros({2})); }),
        {"mask larger than the tensor",
         [] {
           masked_scatter_(zeros(3), ones({2, 3}, DType::boolean), zeros(6));
         },
         "masked_scatter_: ", is_a<ShapeError>}}},
      {"masked_fill_",
       {filled_in_place("same shape", {3, 4}, {3, 4}, false), filled_in_place("row", {2, 3, 4}, {4}, false),
        filled_in_place("transposed", {3, 4}, {3, 4}, true), filled_in_place("empty", {2, 0}, {1, 1}, false),
        filled_in_place("number", {}, {}, false)},
       {wrong_mask("masked_fill_",
                   [](const Tensor& m) {
                     Tensor x = zeros({2});
                     return masked_fill_(x, m, 0);
                   }),
        {"too large",
         [] {
           Tensor x = zeros({2});
           masked_fill_(x, zeros({2}, DType::boolean), 1e300);
         },
         "masked_fill_: ", is_a<DTypeError>},
        {"mask larger than the tensor",
         [] {
           Tensor x = zeros({3});
           masked_fill_(x, zeros({2, 3}, DType::boolean), 0);
         },
         "masked_fill_: ", is_a<ShapeError>}}},
      {"where",
       {chosen("same shape", {3, 4}, {{3, 4}}, {{3, 4}}), chosen("all broadcast", {4}, {{3, 1}}, {{2, 1, 1}}),
        chosen("numbers", {2, 3}, {{}}, {{}}), chosen("condition is a number", {}, {{2, 3}}, {{2, 3}}),
        chosen("empty", {0, 1}, {{2}}, {{}}), chosen("rank 6", {2, 1, 2, 1, 1, 3}, {{2, 2, 3}}, {{2, 1, 1, 1, 1, 1}})},
       {{"condition dtype", [] { where(zeros({2}), zeros({2}), zeros({2})); },
         "where: the mask must be bool: got float32 (compare it with something, e.g. ne(mask, 0))"},
        {"shapes", [] { where(zeros({2}, DType::boolean), zeros({3}), zeros({})); }, "where: ", is_a<ShapeError>}}},
      {"where",
       {chosen_number(
            "number in place of b", [](const Tensor& c, const Tensor& x) { return where(c, x, -1.5); }, true),
        chosen_number(
            "number in place of a", [](const Tensor& c, const Tensor& x) { return where(c, -1.5, x); }, false),
        {"numbers in place of both",
         {mask({2, 3})},
         [](const std::vector<Tensor>& in) { return where(in[0], 2, -1); },
         [](const std::vector<Values>& in) { return naive::map(in[0], [](double c) { return c != 0 ? 2 : -1; }); },
         false}},
       {}},
      triangles("tril", tril, true),
      triangles("triu", triu, false),
  };
});

}  // namespace
}  // namespace onestep
