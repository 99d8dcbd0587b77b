#include <cmath>

#include "autograd/ops/pointwise_cases.h"
#include "autograd/ops_pointwise.h"

namespace onestep {
namespace {

using namespace pointwise;

using Binary = Tensor (*)(const Tensor&, const Tensor&);
using WithNumber = Tensor (*)(const Tensor&, Scalar);

/// Bit by bit, on numbers of 20 bits in two's complement.
template <class F>
double bit_by_bit(double a, double b, F f) {
  constexpr int kBits = 20;
  const double wrap = std::ldexp(1, kBits);
  const auto bit = [wrap](double x, int i) { return std::fmod(std::floor((x < 0 ? x + wrap : x) / std::ldexp(1, i)), 2) != 0; };
  double y = 0;
  for (int i = 0; i < kBits; ++i) y += f(bit(a, i), bit(b, i)) ? std::ldexp(1, i) : 0;
  return y >= wrap / 2 ? y - wrap : y;
}
double and_of(double a, double b) {
  return bit_by_bit(a, b, [](bool u, bool v) { return u && v; });
}
double or_of(double a, double b) {
  return bit_by_bit(a, b, [](bool u, bool v) { return u || v; });
}
double xor_of(double a, double b) {
  return bit_by_bit(a, b, [](bool u, bool v) { return u != v; });
}
double shifted_left(double a, double b) { return b < 0 || b >= 64 ? 0 : a * std::ldexp(1, static_cast<int>(b)); }
double shifted_right(double a, double b) {
  return b < 0 || b >= 64 ? std::floor(a / 0x1p63) : std::floor(a / std::ldexp(1, static_cast<int>(b)));
}

InputSpec ints(const Shape& shape) { return {.shape = shape, .low = -300, .high = 300, .dtype = DType::int64}; }
InputSpec few(const Shape& shape) { return {.shape = shape, .low = 0, .high = 12, .dtype = DType::int64}; }

/// An op on integers and, unless it shifts, bools; its in-place form too.
OpCases cases(const std::string& name, Binary op, WithNumber with_number, Binary op_, WithNumber with_number_,
              double (*f)(double, double), bool shifts) {
  const auto right = shifts ? few : ints;
  std::vector<OpSample> all = {
      two("same shape", ints({3, 4}), right({3, 4}), op, f, false),
      two("broadcast", ints({3, 1}), right({1, 4}), op, f, false),
      two("empty", ints({0, 4}), right({4}), op, f, false),
      two("numbers", ints({}), right({}), op, f, false),
      two("long rows", ints({2, 300}), right({300}), op, f, false),
      two("bool and int64", truths({6}), right({6}), op, f, false),
      one(
          "a number", ints({6}), [=](const Tensor& x) { return with_number(x, 5); }, [f](double x) { return f(x, 5); }, false)};
  if (shifts)
    all.push_back(two("far", values({-5, 5, 5, -5, 1}, DType::int64), values({64, 64, -1, -1, 3}, DType::int64), op, f, false));
  else
    all.push_back(two("bool", truths({3, 1}), truths({1, 4}), op, f, false));
  const auto written = [op_](const Tensor& x, const Tensor& y) { return op_(clone(x), y); };
  const std::string types = shifts ? "integers" : "integers or bools";
  return {{name,
           all,
           {error(
               "floats", [op] { op(ones({2}), ones({2}, DType::int64)); },
               name + ": needs " + types + ": got float32 (convert with to())")}},
          {name + "_",
           {two("row", ints({3, 4}), right({4}), written, f, false), two("empty", ints({0, 4}), right({4}), written, f, false),
            one(
                "a number", ints({6}), [=](const Tensor& x) { return with_number_(clone(x), 3); },
                [f](double x) { return f(x, 3); }, false)},
           {}}};
}

#define ONESTEP_CASES(NAME, F, SHIFTS) cases(#NAME, NAME, NAME, NAME##_, NAME##_, F, SHIFTS)

const RegisterOpCases registered([] {
  const auto inverted = [](double x) { return -x - 1; };
  const auto opposite = [](double x) { return 1 - x; };
  OpCases all = {
      {"bitwise_not",
       {one("int64", ints({3, 4}), function<bitwise_not>, inverted, false),
        one("empty", ints({0, 4}), function<bitwise_not>, inverted, false),
        one("bool", truths({5}), function<bitwise_not>, opposite, false)},
       {error(
           "floats", [] { bitwise_not(ones({2})); }, "bitwise_not: needs integers or bools: got float32 (convert with to())")}},
      {"bitwise_not_",
       {one(
            "int64", ints({3, 4}), [](const Tensor& x) { return bitwise_not_(clone(x)); }, inverted, false),
        one(
            "empty", ints({0, 4}), [](const Tensor& x) { return bitwise_not_(clone(x)); }, inverted, false)},
       {}}};
  for (const OpCases& more : {ONESTEP_CASES(bitwise_and, and_of, false), ONESTEP_CASES(bitwise_or, or_of, false),
                              ONESTEP_CASES(bitwise_xor, xor_of, false), ONESTEP_CASES(bitwise_left_shift, shifted_left, true),
                              ONESTEP_CASES(bitwise_right_shift, shifted_right, true)})
    all.insert(all.end(), more.begin(), more.end());
  return all;
});

}  // namespace
}  // namespace onestep
