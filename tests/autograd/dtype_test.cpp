// All dtypes against PyTorch (goldens/dtypes.json, made by dtypes.py beside it): where they meet, conversions to the bit,
// arithmetic in the narrow ones, random draws and printing.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <string>

#include "autograd/ops.h"
#include "autograd/ops/elementwise.h"
#include "autograd/random/random_fill.h"
#include "tests/goldens.h"

namespace onestep {
namespace {

using nlohmann::json;
using testing::numbers;

const json& goldens() { return testing::golden("dtypes.json"); }

DType dtype_named(const std::string& text) {
  const auto all = names(DType());
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i] == text) return static_cast<DType>(i);
  FAIL("no dtype ", text);
  return DType::float32;
}

DType dtype_at(size_t i) { return dtype_named(goldens().at("names")[i]); }

Shape shape_of(const json& values) {
  if (!values.is_array()) return {};
  Shape shape = values.empty() ? Shape() : shape_of(values[0]);
  shape.insert(0, static_cast<int64_t>(values.size()));
  return shape;
}

Tensor tensor_of(const json& values, DType dtype) {
  const Shape shape = shape_of(values);
  return from_values(numbers<double>(values), shape).to(dtype);
}

/// Checks dtype, shape and elements, which may lie `units` units in the last place of the largest one, a half, apart.
void check_same(const Tensor& got, const json& want, DType dtype, double units = 0) {
  CHECK(got.dtype() == dtype);
  CHECK(got.shape() == shape_of(want));
  const std::vector<double> a = got.to_vector<double>(), b = numbers<double>(want);
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (const double v : b) largest = std::max(largest, std::abs(v));
  const double bound = units * largest * (dtype == DType::bfloat16 ? 0x1p-7 : 0x1p-10);
  for (size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    if (std::isnan(b[i]))
      CHECK(std::isnan(a[i]));
    else if (!(a[i] == b[i]))
      CHECK(std::abs(a[i] - b[i]) <= bound);
  }
}

// ---- promotion

TEST_CASE("dtypes: where two meet") {
  const json& promotion = goldens().at("promotion");
  const auto one = [](size_t i, int rank) { return ones(Shape::filled(rank, 1), dtype_at(i)); };
  for (size_t i = 0; i < kDTypes; ++i) {
    for (size_t j = 0; j < kDTypes; ++j) {
      CAPTURE(dtype_at(i));
      CAPTURE(dtype_at(j));
      CHECK(promote_types(dtype_at(i), dtype_at(j)) == dtype_named(promotion.at("types")[i][j]));
      CHECK(result_type(one(i, 1), one(j, 1)) == dtype_named(promotion.at("vectors")[i][j]));
      CHECK(result_type(one(i, 1), one(j, 0)) == dtype_named(promotion.at("vector and rank 0")[i][j]));
      CHECK(result_type(one(i, 0), one(j, 1)) == dtype_named(promotion.at("rank 0 and vector")[i][j]));
      CHECK(result_type(one(i, 0), one(j, 0)) == dtype_named(promotion.at("rank 0")[i][j]));
    }
    const Scalar several[] = {true, 2, 2.5};
    for (size_t n = 0; n < 3; ++n) {
      CAPTURE(dtype_at(i));
      CAPTURE(n);
      CHECK(result_type(one(i, 1), several[n]) == dtype_named(promotion.at("vector and number")[i][n]));
      CHECK(result_type(one(i, 0), several[n]) == dtype_named(promotion.at("rank 0 and number")[i][n]));
    }
  }
}

TEST_CASE("dtypes: cat and where meet as the other ops do") {
  const Tensor half = ones({2}, kHalf), other = ones({2}, kBFloat16), bytes = ones({2}, kByte), ints = ones({2}, kInt);
  CHECK(cat({half, other}).dtype() == kFloat);
  CHECK(cat({bytes, ints, bytes}).dtype() == kInt);
  CHECK(where(gt(half, 0), bytes, half).dtype() == kHalf);
  CHECK(stack({ints, half}).dtype() == kHalf);
}

// ---- conversions

template <class T>
void check_half(const char* name, int shift) {
  const json& want = goldens().at("halves").at(name);
  std::vector<T> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i].bits = static_cast<uint16_t>(i);
  std::vector<float> wide = from_values(all, 65536).to(DType::float32).template to_vector<float>();
  for (size_t i = 0; i < all.size(); ++i) CHECK_MESSAGE((std::isnan(wide[i]) || T(wide[i]).bits == i), i);  // there and back
  for (float& v : wide)
    if (std::isnan(v)) v = std::bit_cast<float>(0x7fc00000u);
  CHECK(testing::fnv1a(wide) == want.at("to float32"));

  std::vector<float> near;  // numbers of few bits, ties among them, and both neighbours of each
  for (uint32_t i = 0; i < uint32_t{1} << (32 - shift); ++i)
    for (const uint32_t step : {~0u, 0u, 1u}) near.push_back(std::bit_cast<float>((i << shift) + step));
  const auto count = static_cast<int64_t>(near.size());
  std::vector<uint16_t> bits;
  for (const T v : from_values(near, count).to(dtype_of<T>()).template to_vector<T>())
    bits.push_back(std::isnan(static_cast<float>(v)) ? 0x7fff : v.bits);
  CHECK(testing::fnv1a(bits) == want.at("from float32"));
}

TEST_CASE("dtypes: every float16 as float32 and rounding to it") { check_half<Half>("float16", 12); }
TEST_CASE("dtypes: every bfloat16 as float32 and rounding to it") { check_half<BFloat16>("bfloat16", 15); }

TEST_CASE("dtypes: conversions between all of them") {
  for (const json& c : goldens().at("conversions")) {
    const DType source = dtype_named(c.at("from"));
    CAPTURE(source);
    const json& listed = c.at("values");
    Tensor x = tensor_of(listed, source);
    if (source == DType::int64) x = from_values(listed.get<std::vector<int64_t>>(), shape_of(listed));  // all their digits
    for (const auto& [name, want] : c.at("to").items()) {
      const DType target = dtype_named(name);
      CAPTURE(target);
      check_same(x.to(target), want, target);
      if (target == DType::int64) CHECK(x.to(target).to_vector<int64_t>() == want.get<std::vector<int64_t>>());
      // Other layouts: every second element, and a matrix across.
      const Tensor spread = stack({x, x}, 1).select(1, 0), across = expand(x, {3, x.numel()}).t();
      check_same(spread.to(target), want, target);
      check_same(across.to(target).select(1, 2), want, target);
      Tensor strided = empty({x.numel(), 2}, target).select(1, 1);
      copy_(strided, x);
      check_same(strided, want, target);
    }
  }
}

TEST_CASE("dtypes: elements are read and written as any type") {
  const Tensor x = tensor({{1.5, -2}, {0.25, 300}}, kBFloat16);
  CHECK(x.at({0, 1}) == -2);
  CHECK(x.at<int64_t>({1, 1}) == 300);
  CHECK(x.at<bool>({1, 0}));
  CHECK(x.select(0, 0).select(0, 0).item<float>() == 1.5f);
  CHECK(x.data<BFloat16>()[2].bits == BFloat16(0.25).bits);
  CHECK(x.to_vector<int32_t>() == std::vector<int32_t>{1, -2, 0, 300});
  CHECK(from_values(std::vector<uint8_t>{3, 255}, 2).to_vector<double>() == std::vector<double>{3, 255});
  CHECK_THROWS_WITH_AS(x.data<Half>(), "data: asked for float16 of a tensor of dtype bfloat16 (convert with to())", DTypeError);
  CHECK(x.half().dtype() == DType::float16);
  CHECK(x.byte().to_vector<int64_t>() == std::vector<int64_t>{1, 254, 0, 44});
}

TEST_CASE("dtypes: numbers that an element cannot hold are refused") {
  CHECK_THROWS_WITH_AS(full(2, 300, kByte), "full: 300 cannot be an element of dtype uint8 (it would overflow)", DTypeError);
  CHECK_THROWS_WITH_AS(tensor(-1, kByte), doctest::Contains("tensor: -1 "), DTypeError);
  CHECK_THROWS_WITH_AS(full(2, -300, kByte), doctest::Contains("full: -300 "), DTypeError);
  CHECK_THROWS_WITH_AS(full(2, 3e9, kInt), doctest::Contains("full: 3e+09 "), DTypeError);
  CHECK_THROWS_WITH_AS(full(2, 65519.0, kHalf), doctest::Contains("full: 65519 "), DTypeError);
  CHECK_THROWS_WITH_AS(fill_(ones({2}, kBFloat16), 3.4e38), doctest::Contains("fill_: 3.4e+38 "), DTypeError);
  CHECK(full(2, -1, kByte).at<int64_t>({0}) == 255);
  CHECK(full(2, std::numeric_limits<double>::infinity(), kHalf).at({1}) == std::numeric_limits<double>::infinity());
  CHECK(tensor(1e6, kHalf).item() == std::numeric_limits<double>::infinity());
}

// ---- arithmetic

using Op = std::function<Tensor(const Tensor&, const Tensor&)>;

TEST_CASE("dtypes: ops of halves and their gradients") {
  const std::map<std::string, Op> ops{
      {"add", [](auto& a, auto& b) { return a + b; }},
      {"sub", [](auto& a, auto& b) { return a - b; }},
      {"mul", [](auto& a, auto& b) { return a * b; }},
      {"div", [](auto& a, auto& b) { return a / b; }},
      {"add number", [](auto& a, auto&) { return a + 0.1; }},
      {"mul number", [](auto& a, auto&) { return a * 0.1; }},
      {"pow", [](auto& a, auto&) { return pow(abs(a), 1.7); }},
      {"neg", [](auto& a, auto&) { return -a; }},
      {"exp", [](auto& a, auto&) { return exp(a); }},
      {"tanh", [](auto& a, auto&) { return tanh(a); }},
      {"sqrt", [](auto& a, auto&) { return sqrt(abs(a)); }},
      {"relu", [](auto& a, auto&) { return relu(a); }},
      {"sum", [](auto& a, auto&) { return sum(a); }},
      {"sum over dim", [](auto& a, auto&) { return sum(a, 1); }},
      {"mean", [](auto& a, auto&) { return mean(a, 0); }},
      {"var", [](auto& a, auto&) { return var(a, 1); }},
      {"softmax", [](auto& a, auto&) { return softmax(a, -1); }},
      {"matmul", [](auto& a, auto& b) { return matmul(a, b.t()); }},
      {"amax", [](auto& a, auto&) { return amax(a, 1); }},
      {"layer_norm", [](auto& a, auto&) { return layer_norm(a, 5); }},
      {"linear", [](auto& a, auto& b) { return linear(a, b, b.select(1, 0)); }},
      {"maximum", [](auto& a, auto& b) { return maximum(a, b); }},
      {"cumsum", [](auto& a, auto&) { return cumsum(a, 1); }},
      {"mse_loss", [](auto& a, auto& b) { return mse_loss(a, b); }},
      {"cross_entropy",
       [](auto& a, auto&) {
         return cross_entropy(a, tensor({1, 0, 4}));
       }},
      {"cat",
       [](auto& a, auto& b) {
         return cat({a, b.to(DType::float32)});
       }},
      {"where", [](auto& a, auto& b) { return where(gt(a, b), a, b); }},
      {"used twice", [](auto& a, auto& b) { return a * b + a; }},
  };
  for (const json& c : goldens().at("arithmetic")) {
    const std::string op = c.at("op");
    CAPTURE(op);
    const DType dtype = dtype_named(c.at("dtype"));
    CAPTURE(dtype);
    Tensor a = tensor_of(c.at("a"), dtype), b = tensor_of(c.at("b"), dtype);
    a.requires_grad_();
    b.requires_grad_();
    const Tensor y = ops.at(op)(a, b);
    check_same(y, c.at("result"), dtype_named(c.at("dtype of result")), op == "pow" ? 1 : 0);
    std::vector<double> dy(static_cast<size_t>(y.numel()));
    for (size_t i = 0; i < dy.size(); ++i) dy[i] = (static_cast<double>((i * 37 + 11) % 127) - 63) / 64;
    y.backward(from_values(dy, y.shape()).to(y.dtype()));
    const json& grads = c.at("gradients");
    check_same(a.grad(), grads[0], dtype, 4);  // rules round where PyTorch's do not, and the other way round
    CHECK(b.grad().defined() == !grads[1].is_null());
    if (b.grad().defined()) check_same(b.grad(), grads[1], dtype, 4);
  }
}

/// The bits of a half, any NaN as one.
std::vector<uint16_t> half_bits(const Tensor& x) {
  const Tensor values = ops::contiguous_values(x.detach());
  const auto* const bits = static_cast<const uint16_t*>(values.data_ptr());
  const std::vector<bool> nan = isnan(values).to_vector<bool>();
  std::vector<uint16_t> all(bits, bits + values.numel());
  for (size_t i = 0; i < all.size(); ++i)
    if (nan[i]) all[i] = 0xffff;
  return all;
}

constexpr int64_t kNumbers = 65536;

/// Every number of a dtype of 16 bits in the order of its bits.
Tensor every_number(DType dtype) {
  Tensor all = empty({kNumbers}, dtype);
  auto* const bits = static_cast<uint16_t*>(all.mutable_data_ptr());
  std::iota(bits, bits + kNumbers, uint16_t{0});
  return all;
}

TEST_CASE("dtypes: functions of many halves give the bits of those of few, next to each other or not") {
  using Function = Tensor (*)(const Tensor&);
  const Function functions[] = {[](const Tensor& x) { return gelu(x); },
                                [](const Tensor& x) { return gelu(x, GeluApproximation::tanh); },
                                [](const Tensor& x) { return silu(x); }, [](const Tensor& x) { return sigmoid(x); },
                                [](const Tensor& x) { return neg(x); }};
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    const int64_t numbers = kNumbers, many = 5 * numbers + 3;
    const Tensor all = cat({every_number(dtype), flip(every_number(dtype), {0})});
    const Tensor x = narrow(cat({all, all, all}), 0, 0, many);
    const Tensor dy = to(cos(arange(many)), dtype);
    for (const Function f : functions) {
      Tensor leaf = x.detach().requires_grad_();
      const Tensor y = f(leaf);
      y.backward(dy);
      const Tensor across = f(leaf.detach().slice(0, 0, 5 * numbers).view({5, numbers}).t());  // [65536, 5], strided
      CHECK(half_bits(across.t()) == half_bits(y.slice(0, 0, 5 * numbers)));
      for (int64_t i = 0; i < many; i += numbers) {
        const int64_t end = std::min(i + numbers, many);
        Tensor part = x.slice(0, i, end).detach().requires_grad_();
        const Tensor few = f(part);
        few.backward(dy.slice(0, i, end));
        CHECK(half_bits(y.slice(0, i, end)) == half_bits(few));
        CHECK(half_bits(leaf.grad().slice(0, i, end)) == half_bits(part.grad()));
      }
    }
  }
}

TEST_CASE("dtypes: integers wrap around in their own width") {
  const std::map<std::string, Op> ops{
      {"add", [](auto& a, auto& b) { return a + b; }},
      {"sub", [](auto& a, auto& b) { return a - b; }},
      {"mul", [](auto& a, auto& b) { return a * b; }},
      {"div", [](auto& a, auto& b) { return a / (b + 1); }},
      {"neg", [](auto& a, auto&) { return -a; }},
      {"number", [](auto& a, auto&) { return a + 300; }},
      {"negative number", [](auto& a, auto&) { return a * -1; }},
      {"float", [](auto& a, auto&) { return a * 0.5; }},
      {"lt", [](auto& a, auto&) { return lt(a, 300); }},
      {"eq", [](auto& a, auto&) { return eq(a, -1); }},
      {"gt", [](auto& a, auto& b) { return gt(a, b); }},
      {"pow", [](auto& a, auto&) { return pow(a, 3); }},
      {"sum", [](auto& a, auto&) { return sum(a); }},
      {"prod", [](auto& a, auto&) { return prod(a); }},
      {"cumsum", [](auto& a, auto&) { return cumsum(a, 0); }},
      {"amax", [](auto& a, auto&) { return amax(a, 0); }},
      {"dot", [](auto& a, auto& b) { return matmul(a, b); }},
      {"exp", [](auto&, auto& b) { return exp(b / 50); }},
      {"abs", [](auto& a, auto&) { return abs(a); }},
      {"clamp", [](auto& a, auto&) { return clamp(a, 5, 150); }},
      {"in place", [](auto& a, auto& b) { return a.clone().add_(b); }},
      {"in place, wider",
       [](auto& a, auto&) {
         return a.clone().mul_(tensor({3, 4, 5, 6}));
       }},
      {"with rank 0", [](auto& a, auto&) { return a + tensor(7); }},
      {"with int64",
       [](auto& a, auto&) {
         return a + tensor({1, 2, 3, 4});
       }},
      {"with half",
       [](auto& a, auto&) {
         return a + tensor({0.5, 1, 2, 3}, kHalf);
       }},
  };
  const Tensor u = tensor({200, 100, 3, 255}), v = tensor({100, 0, 7, 2});
  for (const json& c : goldens().at("integers")) {
    const std::string op = c.at("op");
    CAPTURE(op);
    const DType dtype = dtype_named(c.at("dtype")), result = dtype_named(c.at("dtype of result"));
    CAPTURE(dtype);
    check_same(ops.at(op)(u.to(dtype), v.to(dtype)), c.at("result"), result, op == "exp" ? 0x1p-13 : 0);
  }
}

TEST_CASE("dtypes: indexes of int32 and masks of uint8") {
  const Tensor x = tensor({10.5, 20.0, 30.0}, kHalf), places = tensor({2, -1}, kInt), mask = tensor({1, 0, 1}, kByte);
  CHECK(x.index({places}).to_vector<float>() == std::vector<float>{30, 30});
  CHECK(x.index({mask}).to_vector<float>() == std::vector<float>{10.5f, 30});
  CHECK(where(mask, x, 0 * x).to_vector<float>() == std::vector<float>{10.5f, 0, 30});
  CHECK_THROWS_AS(masked_fill(x, mask, 0), DTypeError);
  const Tensor y = x.clone().index_put_({tensor({0, 0}, kInt)}, tensor({0.25, 0.5}, kHalf), /*accumulate=*/true);
  CHECK(y.to_vector<float>() == std::vector<float>{11.25f, 20, 30});
  CHECK(cross_entropy(zeros({1, 4}), tensor({2}, kByte)).item<float>() == doctest::Approx(std::log(4.0)));
}

TEST_CASE("dtypes: an in-place op rounds to its target's dtype") {
  Tensor x = full({3}, 1, kBFloat16);
  add_(x, 0x1p-9);
  CHECK(x.to_vector<float>() == std::vector<float>(3, 1));
  mul_(x, tensor({1.0, 2.0, 3.0}));
  CHECK(x.to_vector<float>() == std::vector<float>{1, 2, 3});
  CHECK_THROWS_AS(add_(tensor({1}, kByte), 1.5), DTypeError);
}

// ---- random draws

TEST_CASE("dtypes: random draws of halves") {
  for (const json& c : goldens().at("random")) {
    const std::string kind = c.at("kind");
    CAPTURE(kind);
    const DType dtype = dtype_named(c.at("dtype"));
    const auto n = c.at("n").get<int64_t>();
    CAPTURE(dtype);
    CAPTURE(n);
    Generator generator(7);
    dispatch_random(dtype, kind, [&]<class T>() {
      if constexpr (!std::is_floating_point_v<T>) {
        std::vector<T> drawn(static_cast<size_t>(n));
        if (kind == "rand") drawn = rand(n, generator, dtype).to_vector<T>();
        if (kind == "randn") drawn = randn(n, generator, dtype).to_vector<T>();
        if (kind == "uniform_") fill_uniform<T>(drawn, -0.3, 1.7, generator);
        if (kind == "normal_") fill_normal<T>(drawn, 0.3, 1.7, generator);
        CHECK(testing::fnv1a(drawn) == c.at("hash"));
      }
    });
    CHECK(rand(1, generator).item<float>() == static_cast<float>(testing::number(c.at("next"))));
  }
}

// ---- printing

TEST_CASE("dtypes: printing") {
  for (const json& c : goldens().at("texts")) {
    CAPTURE(c.dump());
    CHECK(to_string(tensor_of(c.at("values"), dtype_named(c.at("dtype")))) == c.at("text"));
  }
}

}  // namespace
}  // namespace onestep
