// Optimizers and clipping against PyTorch 2.13.0's trajectories (tests/goldens/reference.json: optimisers, clip).
#include "optim/optimizer.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>

#include "autograd/ops.h"
#include "tests/goldens.h"

using namespace onestep;
using namespace onestep::optim;
using nlohmann::json;
using onestep::testing::golden;
using onestep::testing::number;
using onestep::testing::numbers;

namespace {

template <class T>
Tensor tensor_of(const json& values) {
  Shape shape;
  for (const json* level = &values; level->is_array(); level = &level->front())
    shape.push_back(static_cast<int64_t>(level->size()));
  return from_values(numbers<T>(values), shape);
}

void check_close(const Tensor& actual, const std::vector<double>& expected, double rtol, double atol) {
  const auto values = actual.to_vector<double>();
  REQUIRE(values.size() == expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(values[i] - expected[i]) <= atol + rtol * std::abs(expected[i]));
  }
}

std::unique_ptr<Optimizer> make(const json& run, const std::vector<Tensor>& parameters) {
  const json& o = run["options"];
  const std::string kind = run["class"];
  const double lr = o.value("lr", 1e-3), eps = o.value("eps", 1e-8),
               decay = o.value("weight_decay", kind == "AdamW" ? 0.01 : 0.0);
  const auto betas = o.value("betas", std::array<double, 2>{0.9, 0.999});
  const bool amsgrad = o.value("amsgrad", false);
  if (kind == "SGD")
    return std::make_unique<SGD>(
        parameters, SGDOptions{lr, o.value("momentum", 0.0), o.value("dampening", 0.0), decay, o.value("nesterov", false)});
  if (kind == "RMSprop")
    return std::make_unique<RMSprop>(parameters, RMSpropOptions{.lr = o.value("lr", 1e-2), .weight_decay = decay});
  if (kind == "Adagrad")
    return std::make_unique<Adagrad>(parameters, AdagradOptions{.lr = o.value("lr", 1e-2), .weight_decay = decay});
  if (kind == "Adam") return std::make_unique<Adam>(parameters, AdamOptions{lr, betas, eps, decay, amsgrad});
  REQUIRE(kind == "AdamW");
  return std::make_unique<AdamW>(parameters, AdamWOptions{lr, betas, eps, decay, amsgrad});
}

/// Follows one run: loss = sum over parameters of 0.5 coef (p - goal)^2.
template <class T>
void follow(const json& all, const json& run, const char* precision, double rtol, double atol) {
  std::vector<Tensor> parameters, coefs, goals;
  for (const char* name : {"p1", "p2"}) {
    parameters.push_back(tensor_of<T>(all["start"][name]));
    parameters.back().requires_grad_();
    coefs.push_back(tensor_of<T>(all["coef"][name]));
    goals.push_back(tensor_of<T>(all["goal"][name]));
  }
  const auto optimizer = make(run, parameters);
  for (const json& step : run[precision]) {
    optimizer->zero_grad();
    Tensor loss = zeros({}, dtype_of<T>());
    for (size_t i = 0; i < 2; ++i) loss = loss + sum(coefs[i] * pow(parameters[i] - goals[i], 2)) * 0.5;
    loss.backward();
    check_close(loss, {number(step["loss"])}, rtol, atol);
    optimizer->step();
    check_close(parameters[0], numbers<double>(step["p1"]), rtol, atol);
    check_close(parameters[1], numbers<double>(step["p2"]), rtol, atol);
  }
}

template <class T>
void check_clip(const json& all, const json& clip_case, const char* precision, double rtol) {
  std::vector<Tensor> parameters;
  for (const char* name : {"g1", "g2"}) {
    const Tensor grad = tensor_of<T>(all["grads"][name]);
    parameters.push_back(zeros_like(grad).requires_grad_());
    parameters.back().set_grad(grad);
  }
  const json& expected = clip_case[precision];
  const double norm = clip_grad_norm_(parameters, clip_case["max_norm"], number(clip_case["norm_type"]));
  CHECK(norm == doctest::Approx(number(expected["total_norm"])).epsilon(rtol));
  check_close(parameters[0].grad(), numbers<double>(expected["g1"]), rtol, 0);
  check_close(parameters[1].grad(), numbers<double>(expected["g2"]), rtol, 0);
}

}  // namespace

TEST_CASE("optimizers follow PyTorch's trajectories") {
  const json& all = golden("reference.json")["optimisers"];
  REQUIRE(all["runs"].size() == 15);
  for (const json& run : all["runs"]) {
    CAPTURE(run["id"].get<std::string>());
    follow<float>(all, run, "f32", 2e-6, 1e-6);
    follow<double>(all, run, "f64", 1e-13, 1e-14);
  }
}

TEST_CASE("clip_grad_norm_ is PyTorch's for every norm type") {
  const json& all = golden("reference.json")["clip"];
  for (const json& clip_case : all["cases"]) {
    CAPTURE(clip_case["norm_type"].dump());
    check_clip<float>(all, clip_case, "f32", 1e-6);
    check_clip<double>(all, clip_case, "f64", 1e-13);
  }
}

TEST_CASE("clip_grad_norm_ with an infinite limit only measures") {
  Tensor p = zeros({2}).requires_grad_();
  p.set_grad(tensor({3.0, 4.0}));
  CHECK(clip_grad_norm_({p}, std::numeric_limits<double>::infinity()) == 5.0);
  CHECK(p.grad().to_vector<float>() == std::vector<float>{3, 4});
}

TEST_CASE("an optimizer refuses bad numbers as PyTorch does, and takes a learning rate of 0") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Tensor> groups{ones({2}).requires_grad_()};
  CHECK_THROWS_WITH_AS(SGD(groups, {.lr = nan}), "optimizer: lr must be at least 0: got nan", ConfigError);
  CHECK_THROWS_WITH_AS(Adagrad(groups, {.lr = -1}), doctest::Contains("optimizer: lr "), ConfigError);
  CHECK_THROWS_WITH_AS(SGD(groups, {.momentum = -0.5}), doctest::Contains("optimizer: momentum "), ConfigError);
  CHECK_THROWS_WITH_AS(Adam(groups, {.betas = {1, 0.9}}), "optimizer: betas[0] must be at least 0 and below 1: got 1",
                       ConfigError);
  CHECK_THROWS_WITH_AS(Adam(groups, {.betas = {0.9, 2}}), doctest::Contains("optimizer: betas[1] "), ConfigError);
  CHECK_THROWS_WITH_AS(RMSprop(groups, {.alpha = 2}), "optimizer: alpha must be from 0 to 1: got 2", ConfigError);
  CHECK_THROWS_WITH_AS(SGD(groups, {.weight_decay = -1}), doctest::Contains("optimizer: weight_decay "), ConfigError);
  CHECK_THROWS_WITH_AS(Adam(groups, {.eps = -1}), doctest::Contains("optimizer: eps "), ConfigError);
  CHECK_THROWS_WITH_AS(RMSprop(groups, {.eps = -1}), doctest::Contains("optimizer: eps "), ConfigError);
  CHECK_THROWS_WITH_AS(Adagrad(groups, {.eps = -1}), doctest::Contains("optimizer: eps "), ConfigError);
  CHECK_NOTHROW(SGD(groups, {.lr = 0}));
}

TEST_CASE("an optimizer refuses to have no parameters or one of them twice") {
  const Tensor parameter = ones({2}).requires_grad_();
  CHECK_THROWS_WITH_AS(SGD(std::vector<ParameterGroup>{}, {}), "optimizer: there are no parameters", ConfigError);
  CHECK_THROWS_AS(SGD(std::vector<ParameterGroup>(1), {}), ConfigError);
  CHECK_NOTHROW(SGD(std::vector<ParameterGroup>(2), {}));  // as a rank may have that owns nothing
  CHECK_THROWS_WITH_AS(SGD({parameter, parameter}), "optimizer: a parameter of shape [2] is listed twice", ConfigError);
  CHECK_THROWS_WITH_AS(SGD(std::vector<ParameterGroup>{{{parameter}}, {{parameter}}}),
                       doctest::Contains("optimizer: a parameter of shape [2] "), ConfigError);
}

TEST_CASE("optimizer: a group has its own weight decay or the optimizer's") {
  const Tensor decayed = ones({1}).requires_grad_(), plain = ones({1}).requires_grad_();
  AdamW adamw({{{decayed}}, {{plain}, 0.0}}, {.lr = 0.5, .weight_decay = 0.5});
  for (Tensor parameter : {decayed, plain}) parameter.set_grad(zeros({1}));
  adamw.step();
  CHECK(decayed.item() == 0.75);
  CHECK(plain.item() == 1.0);
}

TEST_CASE("an optimizer refuses what is not a parameter and skips what has no gradient") {
  CHECK_THROWS_WITH_AS(SGD({zeros({2})}),
                       "optimizer: a tensor of shape [2] is not a parameter (needs a leaf with requires_grad_())", GradError);
  Tensor used = ones({1}).requires_grad_(), unused = ones({1}).requires_grad_();
  SGD sgd({used, unused}, {.lr = 0.5});
  sum(used).backward();
  sgd.step();
  CHECK(used.item() == 0.5);
  CHECK(unused.item() == 1.0);
  sgd.zero_grad();
  CHECK_FALSE(used.grad().defined());
}
