#include <cmath>

#include "autograd/ops/pointwise_cases.h"
#include "autograd/ops_pointwise.h"

namespace onestep {
namespace {

using namespace pointwise;

using Unary = Tensor (*)(const Tensor&);
using Binary = Tensor (*)(const Tensor&, const Tensor&);
using WithNumber = Tensor (*)(const Tensor&, Scalar);

const Domain kBetween = {-2, 2, {-2, -1, 0, 1, 2}};
/// Quotients between -2.97 and -2.02: no finite difference crosses a whole number.
const Domain kWhole2 = {-2.85, -2.1}, kNearOne = {0.96, 1.04};
const std::vector<double> kSpecial = {-kInf, -2.5, -1.5, -0.5, -0.0, 0, 0.25, 0.5, 1.5, 2.5, 0x1.8p52, kInf, kNan};

double rounded(double x) { return std::nearbyint(x); }
double fraction(double x) { return x - std::trunc(x); }
double sign_of(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }
double floored_quotient(double a, double b) { return std::floor(a / b); }
double truncated_quotient(double a, double b) { return std::trunc(a / b); }
double floored_rest(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
double truncated_rest(double a, double b) { return std::fmod(a, b); }

std::string not_bool(const std::string& op) { return op + ": has no meaning for bool operands (convert with to())"; }

OpCases whole(const std::string& name, Unary op, Unary op_, double (*f)(double)) {
  return {{name,
           joined(samples(op, f, kBetween, kSpecial), {one("int64", integers({6}), op, f, false)}),
           {error(
               "bool", [op] { op(zeros({2}, DType::boolean)); }, not_bool(name))}},
          {name + "_",
           joined(in_place(op_, f, kBetween),
                  {one(
                      "int64", integers({6}), [op_](const Tensor& x) { return op_(clone(x)); }, f, false)}),
           {}}};
}

InputSpec divisors(const Shape& shape) { return {.shape = shape, .low = 1, .high = 10, .dtype = DType::int64}; }
InputSpec factors(const Shape& shape) { return {shape, 0.5, 2}; }

/// An op of quotient or rest, by a tensor and by a number, and its in-place form.
OpCases division(const std::string& name, Binary op, WithNumber op_number, Binary op_, double (*f)(double, double),
                 bool differentiable) {
  const auto by_number = [op_number](const Tensor& x) { return op_number(x, -3); };
  const auto number = [f](double x) { return f(x, -3); };
  std::vector<OpSample> all =
      joined(pairs(op, f, kWhole2, kNearOne, {}, differentiable),
             {two("negative divisors", {{3, 4}, -9, 9}, {{3, 4}, -2, -0.5}, op, f, differentiable),
              two("int64", integers({4, 5}), divisors({4, 5}), op, f, false),
              two("int64 by negative ones", integers({6}), values({-1, -2, -3, -4, -5, -6}, DType::int64), op, f, false),
              two("bool by int64", truths({5}), divisors({5}), op, f, false),
              two("int64 by floats", integers({3, 5}), {{5}, 0.5, 2}, op, f, false),
              one("a number", {{3, 4}, -9, 9}, by_number, number, differentiable),
              one("int64 by a number", integers({7}), by_number, number, false)});
  std::vector<OpSample> written = in_place_pairs(op_, f, +factors, differentiable);
  written.push_back(two(
      "int64", integers({5}), divisors({5}), [op_](const Tensor& x, const Tensor& y) { return op_(clone(x), y); }, f, false));
  const auto message = name + ": an integer division by zero";
  return {{name,
           all,
           {error(
                "zero", [op] { op(ones({2}, DType::int64), zeros({2}, DType::int64)); }, message),
            error(
                "bools", [op] { op(ones({2}, DType::boolean), ones({2}, DType::boolean)); }, not_bool(name))}},
          {name + "_",
           written,
           {error(
               "floats into int64", [op_] { op_(ones({2}, DType::int64), ones({2})); }, name + "_: ", is_a<DTypeError>)}}};
}

template <RoundingMode mode>
constexpr auto divided = [](const Tensor& a, const Tensor& b) { return div(a, b, mode); };

#define ONESTEP_WHOLE(NAME, F) whole(#NAME, NAME, NAME##_, F)

const RegisterOpCases registered([] {
  OpCases all;
  for (const OpCases& cases :
       {ONESTEP_WHOLE(floor, [](double x) { return std::floor(x); }),
        ONESTEP_WHOLE(ceil, [](double x) { return std::ceil(x); }),
        ONESTEP_WHOLE(trunc, [](double x) { return std::trunc(x); }),
        division("remainder", remainder, remainder, remainder_, floored_rest, true),
        division("fmod", fmod, fmod, fmod_, truncated_rest, true),
        division(
            "floor_divide", [](const Tensor&a, const Tensor&b) { return floor_divide(a, b).detach(); },
            [](const Tensor&a, Scalar b) { return floor_divide(a, b).detach(); },
            [](const Tensor&a, const Tensor&b) { return floor_divide_(a, b).detach(); }, floored_quotient, false),
        OpCases{
            {"round",
             joined(samples(function<round>, rounded, {-2, 2, {-1.5, -0.5, 0.5, 1.5}}, kSpecial),
                    {one("int64", integers({6}), function<round>, rounded, false),
                     one(
                         "decimals", {{3, 4}, -2, 2}, [](const Tensor&x) { return round(x, 2); },
                         [](double x) { return std::nearbyint(x * 100) / 100; }, false),
                     one(
                         "tens", {{3, 4}, -200, 200}, [](const Tensor&x) { return round(x, -1); },
                         [](double x) { return std::nearbyint(x / 10) * 10; }, false)}),
             {error(
                  "bool", [] { round(zeros({2}, DType::boolean)); }, not_bool("round")),
              error(
                  "decimals of int64", [] { round(zeros({2}, DType::int64), 1); }, "round: ", is_a<DTypeError>)}},
            {"round_",
             joined(in_place(function<round_>, rounded, {-2, 2, {-1.5, -0.5, 0.5, 1.5}}),
                    {one(
                        "decimals", {{3, 4}, -2, 2}, [](const Tensor&x) { return round_(clone(x), 1); },
                        [](double x) { return std::nearbyint(x * 10) / 10; }, false)}),
             {}},
            {"frac", samples(function<frac>, fraction, kBetween, kSpecial), {}},
            {"frac_", in_place(function<frac_>, fraction, kBetween), {}},
            {"sign",
             joined(samples(function<sign>, sign_of, kBetween, kSpecial),
                    {one("int64", integers({6}), function<sign>, sign_of, false),
                     one("bool", truths({4}), function<sign>, sign_of, false)}),
             {}},
            {"sign_", in_place(function<sign_>, sign_of, kBetween), {}},
            {"sgn", samples(function<sgn>, sign_of, kBetween, kSpecial), {}},
            {"sgn_", in_place(function<sgn_>, sign_of, kBetween), {}},
            {"remainder",
             {one(
                 "of a number", {{3, 4}, 0.96, 1.04}, [](const Tensor&x) { return remainder(2.5, x); },
                 [](double x) { return floored_rest(2.5, x); })},
             {}},
            {"div",
             joined(
                 joined(pairs(divided<RoundingMode::floor>, floored_quotient, kWhole2, kNearOne, {}),
                        pairs(divided<RoundingMode::trunc>, truncated_quotient, kWhole2, kNearOne, {})),
                 {two("none", {{3, 4}}, {{4}, 0.5, 2}, divided<RoundingMode::none>, [](double a, double b) { return a / b; }),
                  two("int64 floor", integers({4, 5}), divisors({5}), divided<RoundingMode::floor>, floored_quotient, false),
                  two("int64 trunc", integers({4, 5}), divisors({5}), divided<RoundingMode::trunc>, truncated_quotient, false),
                  one(
                      "a number", integers({7}), [](const Tensor&x) { return div(x, 2, RoundingMode::trunc); },
                      [](double x) { return std::trunc(x / 2); }, false)}),
             {error(
                  "zero", [] { div(ones({2}, DType::int64), 0, RoundingMode::floor); }, "div: an integer division by zero"),
              error(
                  "bools", [] { div(ones({2}, DType::boolean), true, RoundingMode::trunc); }, not_bool("div"))}},
            {"div_",
             {two(
                  "int64 floor", integers({4, 5}), divisors({5}),
                  [](const Tensor&x, const Tensor&y) { return div_(clone(x), y, RoundingMode::floor); }, floored_quotient,
                  false),
              two(
                  "trunc", {{3, 4}, -2.85, -2.1}, {{4}, 0.96, 1.04},  // a quotient of halves is rounded before it is truncated
                  [](const Tensor&x, const Tensor&y) { return div_(clone(x), y, RoundingMode::trunc); }, truncated_quotient),
              one(
                  "a number", integers({0, 2}), [](const Tensor&x) { return div_(clone(x), 2, RoundingMode::floor); },
                  [](double x) { return std::floor(x / 2); }, false)},
             {}}}})
    all.insert(all.end(), cases.begin(), cases.end());
  return all;
});

}  // namespace
}  // namespace onestep
