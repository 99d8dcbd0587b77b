// The room on the backward pass: what it shows is the engine's own pass.

#include "web/engine/backward_steps.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "autograd/ops.h"
#include "base/error.h"
#include "tests/support.h"
#include "web/engine/evaluate.h"
#include "web/engine/expression.h"

using namespace onestep;
using nlohmann::json;
using onestep::testing::refusal;

namespace {

json watch(const std::string& program, const std::string& order = "newest first") {
  return web::backward({{"program", program}, {"order", order}});
}

json leaf_of(const json& watched, const std::string& name) {
  for (const json& leaf : watched.at("leaves"))
    if (leaf.at("name") == name) return leaf;
  return nullptr;
}

double value_of(const std::string& program) { return web::evaluate(program, web::parse_program(program)).result.item(); }

json example(const std::string& name) {
  for (const json& e : web::backward_examples(json::object()))
    if (e.at("name") == name) return web::backward({{"program", e.at("program")}, {"order", e.at("order")}});
  return nullptr;
}

}  // namespace

TEST_CASE("web: expressions follow the usual precedence") {
  CHECK(value_of("2 + 3 * 4") == 14);
  CHECK(value_of("(2 + 3) * 4") == 20);
  CHECK(value_of("-2 ^ 2") == -4);
  CHECK(value_of("2 ** 3 ^ 2") == 512);
  CHECK(value_of("2 ^ -1") == 0.5);
  CHECK(value_of("7 - 2 - 1") == 4);
  CHECK(value_of("12 / 3 / 2") == 2);
  CHECK(value_of("sum([1, 2] @ [[1, 0], [0, 1]])") == 3);
  CHECK(value_of("[[1, 2], [3, 4]].T[0, 1]") == 3);
  CHECK(value_of("softmax([1, 1], dim=-1)[0]") == 0.5);
  CHECK(value_of("a = 2  # a comment\nb = 3; a * b") == 6);
  CHECK(value_of("(1 +\n 2)") == 3);
  CHECK(value_of("x = [1, 2]\ny = x * 2\ny[1] += 3\ny[0] = 9\nsum(y)") == 16);
}

TEST_CASE("web: a program that cannot be read is refused with its place") {
  const auto says = [](const std::string& program) { return refusal<ConfigError>([&] { watch(program); }); };
  CHECK(says("x = 2\ny = * 3") == "expression: line 2, column 5: expected a number, a name or a bracket, found \"*\"");
  for (const char* program : {"", "x =", "2 = x", "f(x) += 1", "x = (2", "x = [1, 2", "x..y", "1e999", "2 3", "é", "x.5"})
    CHECK(says(program).starts_with("expression: "));
  CHECK(says(std::string(200, '(')).find("too deeply") != std::string::npos);
  CHECK(says(std::string(200, '-') + "1").find("too deeply") != std::string::npos);
  CHECK(says(std::string(5000, ' ')).starts_with("arguments: /program: "));
}

TEST_CASE("web: errors of a program are told where they arise") {
  const auto failure = [](const std::string& program) { return watch(program).at("failure"); };
  CHECK(failure("x = 2\nx + q").at("span") == json::array({10, 11}));
  CHECK(failure("x = 2\nx + q").at("type") == "ConfigError");
  CHECK(failure("tahn(2)").at("message") == "expression: line 1, column 1: there is no function tahn (did you mean tanh?)");
  CHECK(failure("exp(1, 2)").at("stage") == "forward");
  const json shapes = failure("x = [1, 2]\ny = 2 * (x @ [1, 2, 3])");
  CHECK(shapes.at("type") == "ShapeError");
  CHECK(shapes.at("span") == json::array({19, 34}));
  CHECK(failure("x = [1, [2]]").at("type") == "ShapeError");
  CHECK(failure("x = 2; y = x[0.5]").at("type") == "ConfigError");
  CHECK(failure("3 + 4").at("stage") == "backward");
  CHECK(failure("x = 2").is_null());
}

TEST_CASE("web: gradients are those of the engine and agree with finite differences") {
  const json neuron = example("neuron");
  Tensor x = tensor({0.5, -1.5}, DType::float64), w = tensor({0.8, 0.3}, DType::float64), b = tensor(0.4, DType::float64);
  for (Tensor* leaf : {&x, &w, &b}) leaf->requires_grad_();
  tanh(dot(w, x) + b).backward();
  CHECK(leaf_of(neuron, "w").at("gradient").get<std::vector<double>>() == w.grad().to_vector<double>());
  CHECK(leaf_of(neuron, "x").at("gradient").get<std::vector<double>>() == x.grad().to_vector<double>());
  for (const char* name : {"product", "twice", "neuron", "cross_entropy", "layers", "attention", "view", "vanishing"})
    for (const json& leaf : example(name).at("leaves")) {
      CAPTURE(name);
      CHECK(leaf.at("error").get<double>() < 1e-8);
    }
}

TEST_CASE("web: every node has its value and every gradient is the sum of what arrived") {
  for (const json& e : web::backward_examples(json::object())) {
    const json watched = web::backward({{"program", e.at("program")}});
    CAPTURE(e.at("name").dump());
    for (const json& node : watched.at("nodes")) CHECK(!node.at("values").is_null());
    std::map<size_t, json> arrived;
    for (const json& visit : watched.at("visits")) {
      const size_t node = visit.at("node");
      if (arrived.contains(node)) CHECK(arrived.at(node) == visit.at("gradient"));
      for (const json& gives : visit.at("gives")) {
        CHECK(gives.at("late") == false);
        arrived[gives.at("input")] = gives.at("sum");
      }
    }
  }
}

TEST_CASE("web: a value used twice adds up what arrives") {
  const json watched = example("twice");
  REQUIRE(watched.at("visits").size() == 4);
  const json& square = watched.at("visits")[2];
  for (size_t i = 0; i < 2; ++i)
    CHECK(square.at("local")[i] == json({{"input", 0}, {"position", i}, {"diagonal", true}, {"values", {3.0}}}));
  CHECK(square.at("gives")[0].at("sum") == 7.0);
  CHECK(square.at("gives")[1] == json({{"input", 0}, {"position", 1}, {"gradient", 3.0}, {"sum", 10.0}, {"late", false}}));
  CHECK(watched.at("visits")[3].at("gradient") == 10.0);
}

TEST_CASE("web: local derivatives are the whole matrix where it is not diagonal") {
  const json watched = watch("x = [1, 2]\nsum(softmax(x) * [1, 3])");
  const json& softmax = watched.at("visits")[2];
  CHECK(softmax.at("local")[0].at("diagonal") == false);
  const double p = 1 / (1 + std::exp(1.0));
  CHECK(softmax.at("local")[0].at("values")[0][1].get<double>() == doctest::Approx(-p * (1 - p)).epsilon(1e-12));
}

TEST_CASE("web: a broken order of visits loses what comes late") {
  const json broken = example("order");
  CHECK(leaf_of(broken, "x").at("gradient") == 4.0);
  CHECK(leaf_of(broken, "x").at("numeric").get<double>() == doctest::Approx(16).epsilon(1e-8));
  int late = 0;
  for (const json& visit : broken.at("visits"))
    for (const json& gives : visit.at("gives")) late += gives.at("late") == true;
  CHECK(late == 1);
  CHECK(leaf_of(watch("x = 2\ny = x * x\nz = y * 3\ny + z"), "x").at("gradient") == 16.0);
}

TEST_CASE("web: the engine's errors stop the pass at their node") {
  const json saved = example("saved");
  CHECK(saved.at("failure").at("type") == "GradError");
  CHECK(saved.at("nodes")[saved.at("failure").at("node").get<size_t>()].at("op") == "exp");
  CHECK(saved.at("visits").back().at("node") == saved.at("failure").at("node"));
  CHECK(leaf_of(saved, "x").at("gradient").is_null());
  const json leaf = example("leaf");
  CHECK(leaf.at("failure").at("stage") == "forward");
  CHECK(leaf.at("root").is_null());
  const json again = example("again");
  CHECK(again.at("nodes")[again.at("failure").at("node").get<size_t>()].at("op") == "mul");
  CHECK(example("scalar").at("failure").at("message").get<std::string>().starts_with("backward: a tensor of shape [3]"));
}

TEST_CASE("web: programs too large for the page are refused") {
  std::string many = "x = 1\n";
  for (int i = 0; i < 300; ++i) many += "x + 1\n";
  CHECK(watch(many).at("failure").at("type") == "ConfigError");
  const std::string row = "[1, 1, 1, 1, 1, 1, 1, 1, 1, 1]";
  CHECK(watch("x = [" + row + "," + row + "," + row + "," + row + "," + row + "," + row + "," + row + "]\nsum(x)")
            .at("failure")
            .at("type") == "ConfigError");
}
