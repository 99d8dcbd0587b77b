#include <cmath>
#include <limits>

#include "autograd/ops/cases.h"
#include "autograd/ops/naive.h"
#include "autograd/ops_pointwise.h"
#include "autograd/ops_shape.h"

namespace onestep {
namespace {

enum class Target { rows, transposed, window };

/// A copy of x that an op may write to, laid out as asked for; x keeps its gradient.
Tensor target(const Tensor& x, Target layout) {
  if (layout == Target::transposed) return transpose(clone(transpose(x, 0, -1)), 0, -1);
  if (layout == Target::rows) return clone(x);
  Shape wide = x.shape();
  wide[x.dim() - 1] *= 2;
  return narrow(clone(expand(unsqueeze(x, -1),
                             [&] {
                               Shape shape = x.shape();
                               shape.push_back(2);
                               return shape;
                             }()))
                    .reshape(wide),
                0, 0, x.shape()[0])
      .slice(-1, 0, wide.back(), 2);
}

template <class Op, class F>
OpSample in_place(const char* label, Target layout, InputSpec x, InputSpec y, Op op, F f, bool differentiable = true) {
  return {label,
          {std::move(x), std::move(y)},
          [=](const std::vector<Tensor>& in) {
            Tensor written = target(in[0], layout);
            return op(written, in[1]);
          },
          [f](const std::vector<Values>& in) { return naive::zip(in[0], in[1], f); },
          differentiable};
}

/// x op= y for floats, where division is one, too.
template <class Op, class F>
std::vector<OpSample> in_place_floats(Op op, F f, const InputSpec& y) {
  const auto with_shape = [&](const Shape& shape) {
    InputSpec spec = y;
    spec.shape = shape;
    return spec;
  };
  return {in_place("same shape", Target::rows, {{3, 4}}, with_shape({3, 4}), op, f),
          in_place("row", Target::rows, {{2, 3, 4}}, with_shape({4}), op, f),
          in_place("number", Target::rows, {{3, 4}}, with_shape({}), op, f),
          in_place("two numbers", Target::rows, {{}}, with_shape({}), op, f),
          in_place("column", Target::rows, {{3, 4}}, with_shape({3, 1}), op, f),
          in_place("empty", Target::rows, {{0, 4}}, with_shape({4}), op, f),
          in_place("into a transposed tensor", Target::transposed, {{3, 4}}, with_shape({3, 4}), op, f),
          in_place("into every second column", Target::window, {{3, 4}}, with_shape({4}), op, f),
          in_place("large", Target::rows, {{300, 250}}, with_shape({300, 250}), op, f)};
}

template <class Op, class F>
std::vector<OpSample> in_place_pairs(Op op, F f) {
  const InputSpec integers{.shape = {2, 3}, .dtype = DType::int64};
  return {in_place("same shape", Target::rows, {{3, 4}}, {{3, 4}}, op, f),
          in_place("row", Target::rows, {{2, 3, 4}}, {{4}}, op, f),
          in_place("column", Target::rows, {{3, 4}}, {{3, 1}}, op, f),
          in_place("number", Target::rows, {{3, 4}}, {{}}, op, f),
          in_place("two numbers", Target::rows, {{}}, {{}}, op, f),
          in_place("empty", Target::rows, {{0, 4}}, {{4}}, op, f),
          in_place("into a transposed tensor", Target::transposed, {{3, 4}}, {{3, 4}}, op, f),
          in_place("into every second column", Target::window, {{3, 4}}, {{4}}, op, f),
          in_place("rank 6", Target::rows, {{2, 1, 2, 1, 3, 2}}, {{2, 1, 1, 2}}, op, f),
          in_place("int64", Target::rows, integers, integers, op, f, false),
          in_place("int64 into floats", Target::rows, {{2, 3}}, integers, op, f, false),
          in_place("large", Target::rows, {{300, 250}}, {{250}}, op, f)};
}

template <class Op, class F>
OpSample with_number(const char* label, Target layout, InputSpec x, Op op, F f, bool differentiable = true) {
  return {label,
          {std::move(x)},
          [=](const std::vector<Tensor>& in) {
            Tensor written = target(in[0], layout);
            return op(written);
          },
          [f](const std::vector<Values>& in) { return naive::map(in[0], f); },
          differentiable};
}

template <class Op, class F>
std::vector<OpSample> numbers_of_floats(Op op, F f) {
  return {with_number("matrix", Target::rows, {{3, 4}}, op, f), with_number("number", Target::rows, {{}}, op, f),
          with_number("empty", Target::rows, {{2, 0}}, op, f), with_number("transposed", Target::transposed, {{3, 4}}, op, f),
          with_number("every second column", Target::window, {{3, 4}}, op, f)};
}

template <class Op, class F>
std::vector<OpSample> in_place_numbers(Op op, F f) {
  std::vector<OpSample> all = numbers_of_floats(op, f);
  all.push_back(with_number("int64", Target::rows, {.shape = {2, 3}, .dtype = DType::int64}, op, f, false));
  return all;
}

/// To `dtype` and back, so that values show what the first conversion did.
OpSample converted(const char* label, InputSpec x, DType dtype, double (*f)(double), bool differentiable) {
  return {label,
          {std::move(x)},
          [dtype](const std::vector<Tensor>& in) { return to(in[0], dtype).to(DType::float64).to(in[0].dtype()); },
          [f](const std::vector<Values>& in) { return naive::map(in[0], f); },
          differentiable};
}

double same(double x) { return x; }
double rounded(double x) { return static_cast<double>(static_cast<float>(x)); }
double truth(double x) { return x == 0 ? 0 : 1; }
double to_int64(double x) { return x > -0x1p63 && x < 0x1p63 ? std::trunc(x) : -0x1p63; }

const RegisterOpCases registered([] {
  return OpCases{
      {"to",
       {converted("float64", {{3, 4}}, DType::float64, same, true), converted("number", {{}}, DType::float64, same, true),
        converted("empty", {{0, 2}}, DType::float64, same, true),
        converted("through float32", {{2, 3}}, DType::float32, rounded, false),
        converted("bool", values({0, -0.0, 0.25, -3, kInf, kNan}), DType::boolean, truth, false),
        converted("int64", values({1.75, -1.75, 0, 0x1p40, 0x1p80, -0x1p80, kInf, kNan}), DType::int64, to_int64, false),
        converted("from bool", values({1, 0}, DType::boolean), DType::int64, same, false)},
       {}},
      {"add_",
       in_place_pairs([](Tensor& x, const Tensor& y) { return add_(x, y); }, [](double a, double b) { return a + b; }),
       {refused(
            "larger addend",
            [] {
              Tensor x = zeros({3});
              add_(x, zeros({2, 3}));
            },
            "add_: ", is_a<ShapeError>),
        refused(
            "float into int64",
            [] {
              Tensor x = zeros({3}, DType::int64);
              add_(x, zeros({3}));
            },
            "add_: a result of dtype float32 does not fit a tensor of dtype int64 (use the op without trailing _)"),
        refused(
            "expanded",
            [] {
              Tensor x = zeros({1}).expand({3});
              add_(x, ones({3}));
            },
            "add_: ", is_a<ShapeError>),
        refused(
            "leaf",
            [] {
              Tensor x = zeros({3}).requires_grad_();
              add_(x, ones({3}));
            },
            "add_: ", is_a<GradError>)}},
      {"add_", in_place_numbers([](Tensor& x) { return add_(x, 3); }, [](double x) { return x + 3; }), {}},
      {"sub_",
       in_place_pairs([](Tensor& x, const Tensor& y) { return sub_(x, y); }, [](double a, double b) { return a - b; }),
       {refused(
           "bool", [] { sub_(zeros({2}, DType::boolean), true); }, "sub_: a bool tensor (use logical_xor)")}},
      {"sub_", in_place_numbers([](Tensor& x) { return sub_(x, 3); }, [](double x) { return x - 3; }), {}},
      {"mul_",
       joined(in_place_floats([](Tensor& x, const Tensor& y) { return mul_(x, y); }, [](double a, double b) { return a * b; },
                              {{}, -2, 2}),
              {in_place(
                  "int64", Target::rows, {.shape = {2, 3}, .dtype = DType::int64}, {.shape = {2, 3}, .dtype = DType::int64},
                  [](Tensor& x, const Tensor& y) { return mul_(x, y); }, [](double a, double b) { return a * b; }, false)}),
       {}},
      {"div_",
       in_place_floats([](Tensor& x, const Tensor& y) { return div_(x, y); }, [](double a, double b) { return a / b; },
                       {{}, 0.5, 2}),
       {refused(
           "int64", [] { div_(ones({2}, DType::int64), 2); }, "div_: ", is_a<DTypeError>)}},
      {"div_", numbers_of_floats([](Tensor& x) { return div_(x, 4); }, [](double x) { return x / 4; }), {}},
      {"mul_",
       in_place_numbers([](Tensor& x) { return mul_(x, 3); }, [](double x) { return 3 * x; }),
       {refused(
            "fraction into int64",
            [] {
              Tensor x = zeros({3}, DType::int64);
              mul_(x, 0.5);
            },
            "mul_: ", is_a<DTypeError>),
        refused(
            "expanded",
            [] {
              Tensor x = ones({1, 2}).expand({3, 2});
              mul_(x, 2);
            },
            "mul_: ", is_a<ShapeError>)}},
      {"fill_",
       in_place_numbers([](Tensor& x) { return fill_(x, -2); }, [](double) { return -2; }),
       {refused(
           "infinity into int64",
           [] {
             Tensor x = zeros({3}, DType::int64);
             fill_(x, std::numeric_limits<double>::infinity());
           },
           "fill_: ", is_a<DTypeError>)}},
      {"copy_",
       in_place_pairs([](Tensor& x, const Tensor& y) { return copy_(x, y); }, [](double, double b) { return b; }),
       {refused(
            "larger source",
            [] {
              Tensor x = zeros({3});
              copy_(x, zeros({2, 3}));
            },
            "copy_: ", is_a<ShapeError>),
        refused(
            "expanded",
            [] {
              Tensor x = zeros({1}).expand({3});
              copy_(x, ones({3}));
            },
            "copy_: ", is_a<ShapeError>)}},
  };
});

}  // namespace
}  // namespace onestep
