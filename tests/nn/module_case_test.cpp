#include "nn/module_case.h"

#include <filesystem>
#include <map>
#include <set>

#include "tests/nn/check.h"
#include "tests/paths.h"
#include "tests/support.h"

namespace onestep::nn {
namespace {

TEST_CASE("module cases: the gradients of every module agree with finite differences") {
  for (const ModuleCase& module_case : module_cases()) {
    CAPTURE(module_case.module);
    CAPTURE(module_case.label);
    const GradcheckResult result = gradcheck(module_case);
    CHECK_MESSAGE(result.passed, result.message);
  }
}

TEST_CASE("module cases: and so do the derivatives of those gradients") {
  for (const ModuleCase& module_case : module_cases()) {
    CAPTURE(module_case.module);
    CAPTURE(module_case.label);
    const GradcheckResult result = gradgradcheck(module_case, {.full_jacobian = 0, .directions = 2});
    CHECK_MESSAGE(result.passed, result.message);
  }
}

TEST_CASE("module cases: a case builds the module that it names") {
  for (const ModuleCase& module_case : module_cases()) {
    Generator generator(1);
    CHECK(module_case.build(generator)->name() == module_case.module);
  }
}

TEST_CASE("module cases: every layer of nn and attention has one") {
  std::set<std::string> covered;
  for (const ModuleCase& module_case : module_cases()) covered.insert(module_case.module);
  std::map<std::string, std::string> base_of;
  for (const char* folder : {"nn", "attention"})
    for (const auto& file : std::filesystem::directory_iterator(std::filesystem::path(ONESTEP_SOURCE_DIR) / folder)) {
      if (file.path().extension() != ".h") continue;
      const std::string source = testing::read(file.path());
      for (const auto& match : testing::all_matches(source, R"(class (\w+) : public (?:nn::)?(\w+) )"))
        base_of[match[1]] = match[2];
      for (const std::string& name : testing::matches(source, R"(using (\w+) = Activation<)")) base_of[name] = "Activation";
    }
  base_of.erase("NonDynamicallyQuantizableLinear");                                            // a Linear under another name
  std::set<std::string> without = {"Attention", "ModuleDict", "ModuleList", "ParameterList"};  // interfaces and containers
  for (const auto& [_, base] : base_of) without.insert(base);
  size_t found = 0;
  for (const auto& entry : base_of) {
    const std::string& name = entry.first;
    std::string root = name;
    while (root != "Module" && root != "Loss" && base_of.count(root) == 1) root = base_of.at(root);
    if (root != "Module" || without.count(name) == 1) continue;
    ++found;
    CHECK_MESSAGE(covered.count(name) == 1, name, " has no module case");
  }
  CHECK(found == covered.size());
}

TEST_CASE("module cases: a wrong gradient is caught") {
  struct Wrong : Layer {
    Tensor forward(const Tensor& x) const override {
      return x * weight * weight.detach();  // the value depends on the weight twice, the graph sees it once
    }
    std::string name() const override { return "Wrong"; }
    void visit(Visitor& visitor) override { visitor.parameter("weight", weight); }
    Tensor weight = full({3}, 0.5).requires_grad_();
  };
  const ModuleCase wrong = {"Wrong", "", [](Generator&) { return std::make_unique<Wrong>(); },
                            [](Generator& generator) {
                              return randn({2, 3}, generator);
                            }};
  const GradcheckResult result = gradcheck(wrong);
  CHECK_FALSE(result.passed);
  CHECK(result.input == 1);
}

}  // namespace
}  // namespace onestep::nn
