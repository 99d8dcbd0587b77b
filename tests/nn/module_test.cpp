#include "nn/module.h"

#include <sstream>

#include "nn/activation.h"
#include "nn/dropout.h"
#include "nn/layer_norm.h"
#include "nn/linear.h"
#include "nn/sequential.h"
#include "tests/nn/check.h"

namespace onestep::nn {
namespace {

using testing::refusal;
using Names = std::vector<std::string>;

/// A parameter, a buffer, three children; fields listed in another order than PyTorch's state_dict has.
struct Toy : Layer {
  explicit Toy(Generator& g) : first(2, 3, true, g), second(3, 2, false, g), drop(0.5, g) {}
  Tensor forward(const Tensor& x) const override { return drop(second(relu(first(x)))) * scale; }
  std::string name() const override { return "Toy"; }
  void visit(Visitor& visitor) override {
    visitor.child("first", first);
    visitor.child("second", second);
    visitor.child("drop", drop);
    visitor.buffer("steps", steps);
    visitor.parameter("scale", scale);
  }

  Linear first, second;
  Dropout drop;
  Tensor scale = full({2}, 1.5).requires_grad_();
  Tensor steps = tensor({1, 2, 3});
};

/// One tensor under two names, as GPT-2 ties its embedding and its head.
struct Tied : Module {
  std::string name() const override { return "Tied"; }
  void visit(Visitor& visitor) override {
    visitor.parameter("wte", wte);
    visitor.parameter("head", head);
  }
  Tensor wte = ones({3, 2}).requires_grad_();
  Tensor head = wte;
};

Names names(const NamedTensors& list) {
  Names result;
  for (const auto& [name, _] : list) result.push_back(name);
  return result;
}

TEST_CASE("module: names are PyTorch's and own fields come before those of children") {
  Generator g(1);
  Toy toy(g);
  CHECK(names(toy.named_parameters()) == Names{"scale", "first.weight", "first.bias", "second.weight"});
  CHECK(names(toy.named_buffers()) == Names{"steps"});
  CHECK(names(toy.state_dict()) == Names{"scale", "steps", "first.weight", "first.bias", "second.weight"});
  CHECK(toy.parameters().size() == 4);
  CHECK(toy.num_parameters() == 2 + 6 + 3 + 6);
}

TEST_CASE("module: a tied parameter is listed once but saved under both names") {
  Tied tied;
  CHECK(names(tied.named_parameters()) == Names{"wte"});
  CHECK(tied.num_parameters() == 6);
  CHECK(names(tied.state_dict()) == Names{"wte", "head"});
  tied.to(DType::float64);
  CHECK(tied.head.dtype() == DType::float64);
  CHECK(tied.head.shares_storage(tied.wte));
  sum(tied.head * tied.wte).backward();
  CHECK(tied.wte.grad().to_vector<double>() == std::vector<double>(6, 2.0));
}

TEST_CASE("module: train and eval reach every module below") {
  Generator g(1);
  Toy toy(g);
  CHECK(toy.is_training());
  toy.eval();
  CHECK_FALSE(toy.is_training());
  CHECK_FALSE(toy.first.is_training());
  CHECK_FALSE(toy.drop.is_training());
  const Tensor x = ones({1, 2});
  CHECK(equal(toy(x), toy(x)));
  toy.train();
  CHECK(toy.drop.is_training());
}

TEST_CASE("module: after an evaluation each module has its own mode again") {
  Generator generator(1);
  Sequential model(Linear(2, 2, true, generator), Dropout(0.5, generator), Linear(2, 2, true, generator));
  const std::vector<Module*> modules = model.modules();
  REQUIRE(modules.size() == 4);
  modules[1]->eval();  // frozen
  {
    const EvaluationMode mode(model);
    for (const Module* module : modules) CHECK(!module->is_training());
  }
  for (const Module* module : modules) CHECK(module->is_training() == (module != modules[1]));
}

TEST_CASE("module: zero_grad forgets every gradient") {
  Generator g(1);
  Toy toy(g);
  toy.eval();
  sum(toy(ones({1, 2}))).backward();
  for (const Tensor& parameter : toy.parameters()) CHECK(parameter.grad().defined());
  toy.zero_grad();
  for (const Tensor& parameter : toy.parameters()) CHECK_FALSE(parameter.grad().defined());
}

TEST_CASE("module: to widens values and gradients in place and leaves integers alone") {
  Generator g(1);
  Toy toy(g);
  toy.eval();
  sum(toy(ones({1, 2}))).backward();
  const std::vector<Tensor> held = toy.parameters();  // as an optimizer holds them
  const std::vector<float> weight = toy.first.weight.to_vector<float>(), grad = toy.first.weight.grad().to_vector<float>();
  toy.to(DType::float64);
  CHECK(toy.steps.dtype() == DType::int64);
  for (const Tensor& parameter : held) {
    CHECK(parameter.dtype() == DType::float64);
    CHECK(parameter.grad().dtype() == DType::float64);
    CHECK(parameter.is_leaf());
  }
  CHECK(toy.first.weight.to_vector<double>() == std::vector<double>(weight.begin(), weight.end()));
  CHECK(toy.first.weight.grad().to_vector<double>() == std::vector<double>(grad.begin(), grad.end()));
  toy.zero_grad();
  sum(toy(ones({1, 2}, DType::float64))).backward();
  CHECK(held[1].grad().defined());
  CHECK(refusal<DTypeError>([&] { toy.to(DType::int64); }) == "Module.to: needs a floating dtype: got int64");
}

TEST_CASE("module: a state dict goes into another module and copies") {
  Generator g(1);
  Toy source(g), target(g);
  {
    NoGradGuard no_grad;
    fill_(source.scale, 0.25);
    fill_(source.steps, 9);
  }
  REQUIRE_FALSE(equal(source.first.weight, target.first.weight));
  target.load_state_dict(source.state_dict());
  const NamedTensors a = source.state_dict(), b = target.state_dict();
  for (size_t i = 0; i < a.size(); ++i) {
    CHECK(equal(a[i].second, b[i].second));
    CHECK_FALSE(a[i].second.shares_storage(b[i].second));
    CHECK_FALSE(a[i].second.requires_grad());
  }
  CHECK(target.scale.requires_grad());
}

TEST_CASE("module: a state dict sees later changes and is converted on loading") {
  Generator g(1);
  Toy toy(g), wide(g);
  const NamedTensors state = toy.state_dict();
  {
    NoGradGuard no_grad;
    fill_(toy.scale, 7.0);
  }
  CHECK(state[0].second.to_vector<float>() == std::vector<float>{7, 7});
  wide.to(DType::float64);
  wide.load_state_dict(state);
  CHECK(wide.scale.dtype() == DType::float64);
  CHECK(wide.scale.to_vector<double>() == std::vector<double>{7, 7});
}

TEST_CASE("module: load_state_dict names everything that does not fit and then copies nothing") {
  Generator g(1);
  Toy toy(g);
  const std::vector<float> before = toy.first.weight.to_vector<float>();
  const NamedTensors state = {{"scale", ones({3})},       {"first.weight", ones({3, 2})}, {"first.wieght", ones({3, 2})},
                              {"second.weight", ones(6)}, {"steps", tensor({1, 2, 3})},   {"steps", tensor({1, 2, 3})}};
  CHECK(refusal<ConfigError>([&] { toy.load_state_dict(state); }) ==
        "load_state_dict: does not fit Toy: missing keys first.bias; unexpected keys first.wieght; repeated keys steps; "
        "shapes differ: scale has [2] but [3] is given, second.weight has [2, 3] but [6] is given");
  CHECK(toy.first.weight.to_vector<float>() == before);
  CHECK(refusal<ConfigError>([&] {
          toy.load_state_dict({{"scale", ones({3})}}, /*strict=*/false);
        }).ends_with(" Toy: shapes differ: scale has [2] but [3] is given"));
}

TEST_CASE("module: without strict only the keys that fit are loaded and the others reported") {
  Generator g(1);
  Toy toy(g);
  const LoadReport report = toy.load_state_dict({{"other", ones({1})}, {"scale", full({2}, 3.0)}}, /*strict=*/false);
  CHECK(report.missing == Names{"steps", "first.weight", "first.bias", "second.weight"});
  CHECK(report.unexpected == Names{"other"});
  CHECK(toy.scale.to_vector<float>() == std::vector<float>{3, 3});
}

TEST_CASE("module: a field's name is used once and has no dot") {
  Visitor visitor;
  Tensor a = ones(1), none;
  visitor.parameter("none", none);
  CHECK(visitor.parameters().empty());
  visitor.parameter("a", a);
  CHECK(refusal<ConfigError>([&] { visitor.parameter("a", a); }) == "Visitor: field listed twice: a");
  CHECK(refusal<ConfigError>([&] { visitor.buffer("a.b", a); }) ==
        "Visitor: a field's name is not empty and has no dot: \"a.b\"");
}

TEST_CASE("module: prints as PyTorch prints") {
  const auto& printed = testing::golden("modules.json").at("printed");
  const auto text = [](const Module& module) {
    std::ostringstream out;
    out << module;
    return out.str();
  };
  CHECK(text(GELU()) == printed.at("GELU"));
  CHECK(text(GELU(GeluApproximation::tanh)) == printed.at("GELU tanh"));
  CHECK(text(ReLU()) == printed.at("ReLU"));
  CHECK(text(SiLU()) == printed.at("SiLU"));
  CHECK(text(Tanh()) == printed.at("Tanh"));
  CHECK(text(Sigmoid()) == printed.at("Sigmoid"));
  CHECK(text(LayerNorm(4)) == printed.at("LayerNorm"));
  CHECK(text(LayerNorm({2, 4}, 0.001, true, false)) == printed.at("LayerNorm without bias"));
  CHECK(text(LayerNorm(4, 1e-5, false)) == printed.at("LayerNorm plain"));
  CHECK(text(Dropout(0.1)) == printed.at("Dropout 0.1"));
  CHECK(text(Dropout(0.0)) == printed.at("Dropout 0"));
  CHECK(text(Dropout(1e-5)) == printed.at("Dropout 1e-5"));
  CHECK(text(Dropout(1e-4)) == printed.at("Dropout 1e-4"));
  CHECK(text(Sequential()) == printed.at("Sequential empty"));
  Sequential layers;
  layers.emplace_back<Linear>(2, 2);
  layers.emplace_back<Linear>(2, 2);
  CHECK(text(layers) == printed.at("Sequential"));
  ModuleList<Linear> list;
  CHECK(text(list) == printed.at("ModuleList empty"));
  for (const int64_t out_features : {2, 2, 3, 2}) list.emplace_back(2, out_features);
  CHECK(text(list) == printed.at("ModuleList"));
}

TEST_CASE("module: a module with arguments and children prints both") {
  struct Both : Module {
    std::string name() const override { return "Both"; }
    std::string extra_repr() const override { return "width=2"; }
    void visit(Visitor& visitor) override { visitor.child("act", act); }
    ReLU act;
  };
  CHECK(Both().repr() == "Both(\n  width=2\n  (act): ReLU()\n)");
}

TEST_CASE("module: numbers print as in Python") {
  CHECK(python_repr(0.0) == "0.0");
  CHECK(python_repr(1.0) == "1.0");
  CHECK(python_repr(-0.25) == "-0.25");
  CHECK(python_repr(0.30000000000000004) == "0.30000000000000004");
  CHECK(python_repr(0.0001) == "0.0001");
  CHECK(python_repr(0.00001) == "1e-05");
  CHECK(python_repr(1e15) == "1000000000000000.0");
  CHECK(python_repr(1e16) == "1e+16");
}

}  // namespace
}  // namespace onestep::nn
