#include <cmath>

#include "autograd/operators.h"
#include "autograd/ops/cases.h"
#include "autograd/ops/naive.h"
#include "autograd/ops_shape.h"

namespace onestep {
namespace {

using Spec = InputSpec (*)(const Shape&);

InputSpec any(const Shape& shape) { return {shape}; }
InputSpec positive(const Shape& shape) { return {shape, 0.5, 2}; }
/// Away from the two values that `half` takes: neither a tie nor close to one.
InputSpec not_half(const Shape& shape) { return {shape, -2, 2, {-0.5, 0.5}}; }
InputSpec half(const Shape& shape) {
  InputSpec spec{shape};
  for (int64_t i = 0; i < shape.numel(); ++i) spec.values.push_back(i % 3 == 0 ? 0.5 : -0.5);
  return spec;
}

template <class Op, class F>
OpSample pair(const char* label, InputSpec a, InputSpec b, Op op, F f, bool differentiable = true) {
  return {label,
          {std::move(a), std::move(b)},
          [op](const std::vector<Tensor>& in) { return op(in[0], in[1]); },
          [f](const std::vector<Values>& in) { return naive::zip(in[0], in[1], f); },
          differentiable};
}

/// `op` against `f` on every kind of broadcasting, in floats and (unless `f` leaves the integers) in int64.
template <class Op, class F>
std::vector<OpSample> pairs(Op op, F f, Spec a, Spec b, bool integers = true) {
  struct Case {
    const char* label;
    Shape a, b;
  };
  const Case cases[] = {{"same shape", {3, 4}, {3, 4}},
                        {"row", {3, 4}, {4}},
                        {"outer", {3, 1}, {1, 4}},
                        {"middle dim", {2, 3, 2}, {3, 1}},
                        {"two numbers", {}, {}},
                        {"number first", {}, {2, 3}},
                        {"one element", {2, 3}, {1, 1, 1}},
                        {"empty", {0, 3}, {1, 3}},
                        {"empty with a number", {2, 0}, {}},
                        {"long rows", {2, 300}, {300}},
                        {"long columns", {300, 2}, {300, 1}},
                        {"rank 6", {2, 1, 3, 1, 2, 2}, {1, 2, 1, 2, 2, 1}}};
  std::vector<OpSample> all;
  for (const Case& c : cases) all.push_back(pair(c.label, a(c.a), b(c.b), op, f));
  const InputSpec small{.shape = {2, 3}, .dtype = DType::int64, .values = {-3, -1, 0, 1, 2, 5}};
  const InputSpec other{.shape = 3, .dtype = DType::int64, .values = {2, 1, 3}};
  if (integers) all.push_back(pair("int64", small, other, op, f, false));
  InputSpec mixed = b({2, 3});
  all.push_back(pair("int64 and float", other, mixed, op, f, false));
  return all;
}

/// op(x, number) against f.
template <class Op, class F>
OpSample with_number(const char* label, InputSpec x, Op op, F f, bool differentiable = true) {
  return {label,
          {std::move(x)},
          [op](const std::vector<Tensor>& in) { return op(in[0]); },
          [f](const std::vector<Values>& in) { return naive::map(in[0], f); },
          differentiable};
}

OpSample power(const char* label, InputSpec x, double p) {
  return with_number(
      label, std::move(x), [p](const Tensor& t) { return pow(t, p); }, [p](double v) { return std::pow(v, p); });
}

OpError shapes_differ(const std::string& op, Tensor (*call)(const Tensor&, const Tensor&)) {
  return {"shapes", [call] { call(zeros({2, 3}), zeros({2, 4})); }, op + ": ", is_a<ShapeError>};
}

double sum_of(double a, double b) { return a + b; }
double difference_of(double a, double b) { return a - b; }
double product_of(double a, double b) { return a * b; }
double quotient_of(double a, double b) { return a / b; }
double larger(double a, double b) { return a != a || a > b ? a : b; }
double smaller(double a, double b) { return a != a || a < b ? a : b; }

using Binary = Tensor (*)(const Tensor&, const Tensor&);
constexpr Binary kAdd = add, kSub = sub, kMul = mul, kDiv = div, kPow = pow;

const InputSpec kMatrix{{3, 4}};
const InputSpec kIntegers = values({-3, 0, 4}, DType::int64);
const InputSpec kSigns = values({-1, 0, 1, kInf, -kInf, kNan});
const InputSpec kOthers = values({kNan, 0, kInf, 1, -1, 2});

const RegisterOpCases registered([] {
  return OpCases{
      {"add",
       joined(pairs(kAdd, sum_of, any, any),
              {pair("large", any({300, 250}), any({250}), kAdd, sum_of),
               pair("special values", kSigns, kOthers, kAdd, sum_of, false),
               with_number(
                   "a number", kMatrix, [](const Tensor& x) { return x + 2.5; }, [](double x) { return x + 2.5; }),
               with_number(
                   "number first", kMatrix, [](const Tensor& x) { return 2 + x; }, [](double x) { return 2 + x; }),
               with_number(
                   "int64 and a number", kIntegers, [](const Tensor& x) { return x + 7; }, [](double x) { return x + 7; },
                   false)}),
       {shapes_differ("add", add)}},
      {"sub",
       joined(pairs(kSub, difference_of, any, any),
              {with_number(
                   "a number", kMatrix, [](const Tensor& x) { return x - 2.5; }, [](double x) { return x - 2.5; }),
               with_number(
                   "number first", kMatrix, [](const Tensor& x) { return 2.5 - x; }, [](double x) { return 2.5 - x; })}),
       {shapes_differ("sub", sub),
        {"bool", [] { sub(zeros({2}, DType::boolean), zeros({2}, DType::boolean)); },
         "sub: has no meaning for bool operands (use logical_xor)"}}},
      {"mul",
       joined(pairs(kMul, product_of, any, any),
              {pair("special values", kSigns, kOthers, kMul, product_of, false),
               with_number(
                   "a number", kMatrix, [](const Tensor& x) { return x * 2.5; }, [](double x) { return x * 2.5; }),
               with_number(
                   "number first", kMatrix, [](const Tensor& x) { return -3 * x; }, [](double x) { return -3 * x; })}),
       {shapes_differ("mul", mul)}},
      {"div",
       joined(pairs(kDiv, quotient_of, any, positive, false),
              {pair("special values", kSigns, kOthers, kDiv, quotient_of, false),
               with_number(
                   "a number", kMatrix, [](const Tensor& x) { return x / 3; }, [](double x) { return x / 3; }),
               with_number(
                   "number first", positive({3, 4}), [](const Tensor& x) { return 3 / x; }, [](double x) { return 3 / x; })}),
       {shapes_differ("div", div)}},
      {"neg",
       {with_number("matrix", kMatrix, neg, [](double x) { return -x; }),
        with_number(
            "operator", {{}}, [](const Tensor& x) { return -x; }, [](double x) { return -x; }),
        with_number("empty", {{0, 2}}, neg, [](double x) { return -x; }),
        with_number(
            "int64", kIntegers, neg, [](double x) { return -x; }, false)},
       {{"bool", [] { neg(zeros({2}, DType::boolean)); }, "neg: has no meaning for bool operands (use logical_not)"}}},
      {"pow",
       joined(pairs(
                  kPow, [](double a, double b) { return std::pow(a, b); }, positive, any, false),
              {power("square", kMatrix, 2), power("cube", kMatrix, 3), power("square root", positive({3, 4}), 0.5),
               power("inverse root", positive({3, 4}), -0.5), power("inverse", positive({3, 4}), -1),
               power("inverse square", positive({3, 4}), -2), power("1.75", positive({3, 4}), 1.75), power("1", kMatrix, 1),
               power("0", kMatrix, 0), power("a number", {{}}, 4), power("empty", {{3, 0}}, 2.5),
               pair(
                   "special values", values({0, 0, -8, -2, kInf, kNan, 1}), values({-1, 0, 1.5, 3, 0, 0, kNan}), kPow,
                   [](double a, double b) { return std::pow(a, b); }, false),
               pair(
                   "one exponent a row", values({-kInf, -0.0, 4, kInf}), {.shape = {5, 1}, .values = {0.5, -0.5, 2, -1, 1.5}},
                   kPow, [](double a, double b) { return std::pow(a, b); }, false),
               pair(
                   "int64", values({-2, -1, 0, 1, 2, 3}, DType::int64), values({3, -3, 0, -1, -2, 4}, DType::int64), kPow,
                   [](double a, double b) { return std::trunc(std::pow(a, b)); }, false),
               with_number(
                   "int64 and a number", kIntegers, [](const Tensor& x) { return pow(x, 3); },
                   [](double x) { return x * x * x; }, false)}),
       {shapes_differ("pow", pow),
        {"negative power of int64", [] { pow(ones({2}, DType::int64), -1); },
         "pow: an int64 tensor to the negative integer power -1 (convert with x.to(DType::float32))"},
        {"bool", [] { pow(ones({2}, DType::boolean), ones({2}, DType::boolean)); },
         "pow: has no meaning for bool operands (convert with x.to(DType::int64))"}}},
      {"maximum",
       joined(pairs(maximum, larger, not_half, half), {pair("special values", kSigns, kOthers, maximum, larger, false)}),
       {shapes_differ("maximum", maximum)}},
      {"minimum",
       joined(pairs(minimum, smaller, not_half, half), {pair("special values", kSigns, kOthers, minimum, smaller, false)}),
       {shapes_differ("minimum", minimum)}},
  };
});

}  // namespace
}  // namespace onestep
