// Derivatives of functions as a whole, against torch.autograd.functional (tests/goldens/functional.json).
#include "autograd/functional.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "autograd/grad.h"
#include "autograd/ops.h"
#include "tests/goldens.h"

namespace onestep::autograd {
namespace {

using namespace functional;
using Inputs = std::vector<Tensor>;

const nlohmann::json& data() { return testing::golden("functional.json"); }

Tensor matrix(const char* name) { return from_values(testing::numbers<double>(data().at(name)), {2, 3}); }

void check_values(const Tensor& got, const nlohmann::json& want) {
  const std::vector<double> a = got.to_vector<double>(), b = testing::numbers<double>(want);
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-11).scale(1));
}

const std::map<std::string, UnaryFunction> kUnary = {
    {"tanh", [](const Tensor& x) { return tanh(x) * x; }},
    {"softmax", [](const Tensor& x) { return softmax(x, 1); }},
    {"row", [](const Tensor& x) { return (x * x)[0]; }},
    {"gelu", [](const Tensor& x) { return gelu(x, GeluApproximation::tanh); }},
    {"norm", [](const Tensor& x) { return layer_norm(x, 3); }},
};
const std::map<std::string, functional::Function> kScalar = {
    {"products", [](const Inputs& in) { return pow(sum(in[0] * in[1]), 2) + sum(pow(in[0], 3)); }},
    {"loss",
     [](const Inputs& in) {
       return cross_entropy(matmul(in[0], t(in[1])), tensor({1, 0}));
     }},
    {"linear in w", [](const Inputs& in) { return sum(exp(in[0]) * in[1]); }},
    {"attention", [](const Inputs& in) { return sum(pow(scaled_dot_product_attention(in[0], in[1], in[1]), 2)); }},
    {"without w", [](const Inputs& in) { return sum(sin(in[0])); }},
};

}  // namespace

TEST_CASE("functional: functions of one tensor as in PyTorch") {
  const Tensor x = matrix("x"), v = matrix("v");
  CHECK(kUnary.size() == data().at("unary").size());
  for (const auto& entry : kUnary) {
    const auto& name = entry.first;  // no structured binding: clang 14 has none captured
    const auto& f = entry.second;
    CAPTURE(name);
    const nlohmann::json& want = data().at("unary").at(name);
    const Tensor all = jacobian(f, x);
    Shape shape = f(x).shape();
    shape.push_back(2);
    shape.push_back(3);
    CHECK(all.shape() == shape);
    check_values(all, want.at("jacobian"));
    const Tensor weights = from_values(testing::numbers<double>(want.at("v")), f(x).shape());
    const auto [output, product] = vjp(f, x, weights);
    check_values(output, want.at("output"));
    check_values(product, want.at("vjp"));
    check_values(jvp(f, x, v).product, want.at("jvp"));
    CHECK_FALSE(product.requires_grad());
    CHECK_FALSE(output.requires_grad());
  }
}

TEST_CASE("functional: functions of several tensors as in PyTorch") {
  const Inputs in = {matrix("x"), matrix("w")}, v = {matrix("v"), matrix("u")};
  CHECK(kScalar.size() == data().at("scalar").size());
  for (const auto& entry : kScalar) {
    const auto& name = entry.first;  // no structured binding: clang 14 has none captured
    const auto& f = entry.second;
    CAPTURE(name);
    const nlohmann::json& want = data().at("scalar").at(name);
    const std::vector<Tensor> first = jacobian(f, in);
    const std::vector<std::vector<Tensor>> second = hessian(f, in);
    const auto [output, products] = hvp(f, in, v);
    check_values(output, want.at("output"));
    check_values(jvp(f, in, v).product, want.at("jvp"));
    for (size_t i = 0; i < 2; ++i) {
      check_values(first[i], want.at("jacobian")[i]);
      check_values(vjp(f, in).products[i], want.at("jacobian")[i]);
      check_values(products[i], want.at("hvp")[i]);
      for (size_t k = 0; k < 2; ++k) {
        CHECK(second[i][k].shape() == Shape{2, 3, 2, 3});
        check_values(second[i][k], want.at("hessian")[i][k]);
      }
    }
  }
}

TEST_CASE("functional: with create_graph results can be differentiated") {
  const Tensor x = tensor({0.5, 2.0}, DType::float64).requires_grad_();
  const UnaryFunction cube = [](const Tensor& y) { return sum(pow(y, 3)); };
  const Tensor second = hessian(cube, x, /*create_graph=*/true);  // 6 x on the diagonal
  CHECK(equal(grad({sum(second)}, {x})[0], tensor({6.0, 6.0}, DType::float64)));
  const Tensor product = hvp(cube, x, x.detach(), /*create_graph=*/true).product;  // 6 x v
  CHECK(equal(grad({sum(product)}, {x})[0], tensor({3.0, 12.0}, DType::float64)));
  const Tensor changes = jvp(cube, x, ones({2}, DType::float64), /*create_graph=*/true).product;  // sum(3 x^2)
  CHECK(equal(grad({changes}, {x})[0], tensor({3.0, 12.0}, DType::float64)));
  CHECK_FALSE(x.grad().defined());
  const NoGradGuard no_grad;  // they record for themselves
  CHECK(equal(vjp(cube, x).product, tensor({0.75, 12.0}, DType::float64)));
}

TEST_CASE("functional: nothing, integers, and what does not fit") {
  const UnaryFunction twice = [](const Tensor& x) { return x * 2; };
  CHECK(jacobian(twice, zeros({0, 2})).shape() == Shape{0, 2, 0, 2});
  CHECK(equal(jacobian(twice, tensor(3.0)), tensor(2.0)));
  CHECK(equal(jacobian([](const Tensor& x) { return argmax(x, 0); }, ones({3})), zeros({3})));
  CHECK_THROWS_WITH_AS(jacobian(twice, tensor({1, 2})), "jacobian: input 0 is int64 (only floating tensors have derivatives)",
                       DTypeError);
  CHECK_THROWS_WITH_AS(vjp(twice, ones({2})), "vjp: a result of shape [2] needs a v of that shape", GradError);
  CHECK_THROWS_WITH_AS(vjp(twice, ones({2}), ones({3})), "vjp: a v of shape [3] for a result of shape [2]", ShapeError);
  CHECK_THROWS_WITH_AS(jvp(twice, ones({2}), ones({3})), "jvp: a direction of shape [3] for input 0 of shape [2]", ShapeError);
  CHECK_THROWS_WITH_AS(jvp(kScalar.at("loss"), Inputs{ones({2})}, Inputs{}), "jvp: 0 directions for 1 inputs", ShapeError);
  CHECK_THROWS_WITH_AS(hvp(twice, ones({2}), ones({2})), "hvp: needs a function whose result has one element: got shape [2]",
                       ShapeError);
  CHECK_THROWS_WITH_AS(hessian(twice, ones({2})), doctest::Contains("hessian: "), ShapeError);
}

}  // namespace onestep::autograd
