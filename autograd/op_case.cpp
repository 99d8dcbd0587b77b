#include "autograd/op_case.h"

#include <algorithm>

namespace onestep {
namespace {
std::vector<OpCase>& registry() {
  static std::vector<OpCase> cases;
  return cases;
}
}  // namespace

const std::vector<OpCase>& op_cases() { return registry(); }

RegisterOpCases::RegisterOpCases(std::initializer_list<OpCase> cases) {
  registry().insert(registry().end(), cases.begin(), cases.end());
  std::sort(registry().begin(), registry().end(), [](const OpCase& a, const OpCase& b) { return a.op < b.op; });
}

}  // namespace onestep
