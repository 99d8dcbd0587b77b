#include "nn/module_case.h"

#include <tuple>

namespace onestep::nn {

const ModuleCases& module_cases() {
  static const ModuleCases cases =
      RegisterModuleCases::make_all([](const ModuleCase& c) { return std::tie(c.module, c.label); });
  return cases;
}

namespace {

using Check = GradcheckResult (*)(const std::function<Tensor(const std::vector<Tensor>&)>& f, const std::vector<Tensor>& inputs,
                                  const GradcheckOptions& options);

/// A check of the module's result as a function of x and of every parameter.
GradcheckResult run(Check check, const ModuleCase& module_case, const GradcheckOptions& options) {
  Generator generator(123);
  Tensor x = module_case.input(generator);
  if (x.is_floating()) x = x.to(DType::float64).requires_grad_();
  const std::unique_ptr<Layer> module = module_case.build(generator);
  module->to(DType::float64);

  std::vector<Tensor> parameters = module->parameters();
  std::vector<Tensor> inputs = {x};
  for (const Tensor& parameter : parameters) inputs.push_back(parameter.detach().clone().requires_grad_());
  const Generator seeded(7);
  const auto f = [&](const std::vector<Tensor>& in) {
    // Every handle of a parameter, the module's own included, becomes the tensor that gradcheck perturbs.
    for (size_t i = 0; i < parameters.size(); ++i) parameters[i].impl() = in[i + 1].impl();
    generator = seeded;
    return module->forward(in[0]);
  };
  return check(f, inputs, options);
}

}  // namespace

GradcheckResult gradcheck(const ModuleCase& module_case, const GradcheckOptions& options) {
  return run(onestep::gradcheck, module_case, options);
}

GradcheckResult gradgradcheck(const ModuleCase& module_case, const GradcheckOptions& options) {
  return run(onestep::gradgradcheck, module_case, options);
}

}  // namespace onestep::nn
