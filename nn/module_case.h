#pragma once
// Module cases: samples of every module, for the tests and for `onestep gradcheck`, as op cases are for ops. They live in
// nn/*.cases.cpp and attention/*.cases.cpp.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "autograd/testing/case_registry.h"
#include "autograd/testing/gradcheck.h"
#include "nn/module.h"

namespace onestep::nn {

struct ModuleCase {
  std::string module;  ///< The type's name.
  std::string label;   ///< What is special about this sample; may be empty.
  /// Draws the initial values and, later, the dropout masks from `generator`.
  std::function<std::unique_ptr<Layer>(Generator& generator)> build;
  /// Draws x from `generator`; a floating one is checked too.
  std::function<Tensor(Generator& generator)> input;
};

using ModuleCases = std::vector<ModuleCase>;

/// All registered cases, sorted by module and label; made by the first call.
const ModuleCases& module_cases();

/// Compares the gradients of x and of every parameter with finite differences, in float64. Every evaluation draws the same
/// random numbers, so that dropout is deterministic.
GradcheckResult gradcheck(const ModuleCase& module_case, const GradcheckOptions& options = {});
/// Compares the derivatives of those gradients with finite differences.
GradcheckResult gradgradcheck(const ModuleCase& module_case, const GradcheckOptions& options = {});

using RegisterModuleCases = RegisterCases<ModuleCase>;

}  // namespace onestep::nn
