// The op cases are complete: every function that ops.h declares has one.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include "autograd/ops.h"
#include "autograd/testing/op_case.h"
#include "tests/paths.h"
#include "tests/support.h"

namespace onestep {
namespace {

std::set<std::string> case_names() {
  std::set<std::string> names;
  for (const OpCase& c : op_cases()) names.insert(c.op);
  return names;
}

/// The headers that ops.h includes: operators.h, creation.h and ops_GROUP.h.
std::vector<std::filesystem::path> op_headers() {
  std::vector<std::filesystem::path> headers;
  for (const auto& entry : std::filesystem::directory_iterator(ONESTEP_SOURCE_DIR "/autograd")) {
    const std::string name = entry.path().filename().string();
    const bool group = name.starts_with("ops_") && name.ends_with(".h");
    if (group || name == "operators.h" || name == "creation.h") headers.push_back(entry.path());
  }
  return headers;
}

/// The names of all functions that they declare.
std::set<std::string> declared_ops() {
  std::set<std::string> names;
  for (const std::filesystem::path& header : op_headers()) {
    const std::string text = testing::read(header);
    REQUIRE(!text.empty());
    names.merge(testing::matches(text, R"(^(?:inline )?(?:const )?[\w:<>]+&? (operator[^(\s]+|\w+)\()"));
  }
#define ONESTEP_INSERT(NAME) names.insert(#NAME "_");  // declared by these lists
  ONESTEP_UNARY_OPS(ONESTEP_INSERT)
  ONESTEP_BINARY_OPS(ONESTEP_INSERT)
  ONESTEP_SCALAR_OPS(ONESTEP_INSERT)
#undef ONESTEP_INSERT
  return names;
}

bool has_input(const OpCase& c) {
  return std::any_of(c.samples.begin(), c.samples.end(), [](const OpSample& s) { return !s.inputs.empty(); });
}

bool has_zero_size_sample(const OpCase& c) {
  for (const OpSample& sample : c.samples)
    for (const InputSpec& input : sample.inputs)
      if (input.shape.numel() == 0) return true;
  return false;
}

// Functions without a case, each with the reason.
const std::map<std::string, std::string> kNoCase{
    {"result_type", "gives a dtype, tested in dtype_test.cpp"},
    {"operator+", "add under another name: tested below"},
    {"operator-", "sub and neg under another name: tested below"},
    {"operator*", "mul under another name: tested below"},
    {"operator/", "div under another name: tested below"},
    {"operator+=", "add_ under another name: tested below"},
    {"operator-=", "sub_ under another name: tested below"},
    {"operator*=", "mul_ under another name: tested below"},
    {"operator/=", "div_ under another name: tested below"},
    {"operator==", "eq under another name: tested below"},
    {"operator!=", "ne under another name: tested below"},
    {"operator<", "lt under another name: tested below"},
    {"operator<=", "le under another name: tested below"},
    {"operator%", "remainder: tested below"},
    {"operator&", "bitwise_and: tested below"},
    {"operator|", "bitwise_or: tested below"},
    {"operator^", "bitwise_xor: tested below"},
    {"operator~", "bitwise_not: tested below"},
    {"operator<<", "bitwise_left_shift: tested below"},
    {"operator>>", "bitwise_right_shift: tested below"},
    {"operator&=", "bitwise_and_: tested below"},
    {"operator|=", "bitwise_or_: tested below"},
    {"operator^=", "bitwise_xor_: tested below"},
    {"operator>", "gt under another name: tested below"},
    {"operator>=", "ge under another name: tested below"},
};

}  // namespace

TEST_CASE("op cases: every op of ops.h has one") {
  const std::set<std::string> declared = declared_ops(), cases = case_names();
  CHECK(declared.size() > 100);
  for (const std::string& op : declared) {
    CAPTURE(op);
    CHECK(cases.count(op) + kNoCase.count(op) == 1);
  }
  for (const std::string& op : cases) CHECK_MESSAGE(declared.count(op) == 1, op << " has a case but is not in ops.h");
  for (const auto& exempt : kNoCase)
    CHECK_MESSAGE(declared.count(exempt.first) == 1, exempt.first << " is exempt but not in ops.h");
}

// Ops that refuse nothing, each with the reason.
const std::map<std::string, std::string> kNeverEmpty{{"ctc_loss", "as in PyTorch; one of its errors"}};

TEST_CASE("op cases: every op with an input is tried on nothing") {
  std::map<std::string, bool> tried;
  for (const OpCase& c : op_cases())
    if (has_input(c)) tried[c.op] = tried[c.op] || has_zero_size_sample(c);
  CHECK(tried.size() > 80);
  for (const auto& op : tried)
    CHECK_MESSAGE(op.second != (kNeverEmpty.count(op.first) == 1),
                  op.first << " has no zero-size sample, or need not be exempt");
}

TEST_CASE("op cases: labels and messages are there") {
  for (const OpCase& c : op_cases()) {
    CAPTURE(c.op);
    CHECK_FALSE(c.samples.empty());
    for (const OpSample& sample : c.samples) CHECK((!sample.label.empty() && sample.forward && sample.reference));
    for (const OpError& error : c.errors)  // a Shape refuses to grow beyond rank 8 for any caller
      CHECK_MESSAGE((error.message.starts_with(c.op + ": ") || error.message.starts_with("shape: ")), error.message);
  }
}

TEST_CASE("operators: each is the op of its name") {
  const Tensor a = tensor({{1.5, -2.0}, {3.0, 0.5}}).requires_grad_(), b = tensor({4.0, -0.25}).requires_grad_();
  const auto same = [&](const Tensor& got, const Tensor& want) {
    CHECK(equal(got, want));
    const auto grads = [&](const Tensor& y) {
      Tensor x = a, z = b;
      x.zero_grad();
      z.zero_grad();
      y.backward(ones(y.shape()));
      return std::vector{x.grad(), z.grad()};
    };
    const std::vector<Tensor> left = grads(got), right = grads(want);
    for (size_t i = 0; i < 2; ++i) {
      REQUIRE(left[i].defined() == right[i].defined());
      if (left[i].defined()) CHECK(equal(left[i], right[i]));
    }
  };
  same(a + b, add(a, b));
  same(a - b, sub(a, b));
  same(a * b, mul(a, b));
  same(a / b, div(a, b));
  same(a + 2, add(a, 2));
  same(a - 2.5, sub(a, 2.5));
  same(a * -3, mul(a, -3));
  same(a / 4, div(a, 4));
  same(2 + a, add(a, 2));
  same(-3 * a, mul(a, -3));
  same(2 - a, add(neg(a), 2));
  same(3 / a, div(full({}, 3.0), a));
  same(-a, neg(a));
  CHECK((tensor({1, 2}) + 1).dtype() == DType::int64);
  CHECK((7 - tensor({1, 2})).dtype() == DType::int64);
  CHECK((7 / tensor({1, 2})).dtype() == DType::float32);
}

TEST_CASE("operators: bits and remainders are the ops of their names") {
  const Tensor a = tensor({5, -3, 12}), b = tensor({3, 2, 1});
  CHECK(equal(a % b, remainder(a, b)));
  CHECK(equal(a % 4, remainder(a, 4)));
  CHECK(equal(7 % b, remainder(7, b)));
  CHECK(equal(a & b, bitwise_and(a, b)));
  CHECK(equal(a | b, bitwise_or(a, b)));
  CHECK(equal(a ^ b, bitwise_xor(a, b)));
  CHECK(equal(a & 6, bitwise_and(a, 6)));
  CHECK(equal(6 & a, bitwise_and(a, 6)));
  CHECK(equal(a | 6, bitwise_or(a, 6)));
  CHECK(equal(6 | a, bitwise_or(a, 6)));
  CHECK(equal(a ^ 6, bitwise_xor(a, 6)));
  CHECK(equal(6 ^ a, bitwise_xor(a, 6)));
  CHECK(equal(~a, bitwise_not(a)));
  CHECK(equal(a << b, bitwise_left_shift(a, b)));
  CHECK(equal(a >> b, bitwise_right_shift(a, b)));
  CHECK(equal(a << 2, bitwise_left_shift(a, 2)));
  CHECK(equal(a >> 2, bitwise_right_shift(a, 2)));
  const Tensor c = clone(a);
  c &= b;
  CHECK(equal(c, a & b));
  c |= a;
  CHECK(equal(c, a));
  c ^= b;
  CHECK(equal(c, a ^ b));
  c &= 7;
  c |= 8;
  c ^= 1;
  CHECK(equal(c, (((a ^ b) & 7) | 8) ^ 1));
}

TEST_CASE("operators: comparisons are the ops of their names") {
  const Tensor a = tensor({1, 2, 3}), b = tensor({3, 2, 1});
  CHECK(equal(a == b, eq(a, b)));
  CHECK(equal(a != b, ne(a, b)));
  CHECK(equal(a < b, lt(a, b)));
  CHECK(equal(a <= b, le(a, b)));
  CHECK(equal(a > b, gt(a, b)));
  CHECK(equal(a >= b, ge(a, b)));
  CHECK(equal(a == 2, tensor({false, true, false})));
  CHECK(equal(a != 2, tensor({true, false, true})));
  CHECK(equal(2 == a, a == 2));
  CHECK(equal(2 != a, a != 2));
  CHECK(equal(a < 2, tensor({true, false, false})));
  CHECK(equal(a <= 2, tensor({true, true, false})));
  CHECK(equal(2 < a, tensor({false, false, true})));
  CHECK(equal(2 <= a, tensor({false, true, true})));
  CHECK(equal(2 > a, a < 2));
  CHECK(equal(2 >= a, a <= 2));
}

TEST_CASE("operators: assignments change the memory that others see") {
  Tensor x = tensor({1.0, 2.0, 3.0});
  const Tensor seen = x;
  x += tensor({1.0, 1.0, 1.0});
  x *= 2;
  x -= 1;
  x /= tensor({1.0, 5.0, 7.0});
  CHECK(equal(seen, tensor({3.0, 1.0, 1.0})));
  x *= tensor({2.0, 2.0, 0.5});
  x -= tensor({6.0, 1.0, 0.5});
  x += 1;
  x /= 2;
  CHECK(equal(seen, tensor({0.5, 1.0, 0.5})));
  seen[1] += 4;  // a row, on the way
  CHECK(equal(x, tensor({0.5, 5.0, 0.5})));
}

}  // namespace onestep
