// Backward rules against finite differences in double, many times an op: every sample with several draws, with inputs that do
// not lie in rows, and with one tensor in two places.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "autograd/ops.h"
#include "autograd/testing/op_case.h"
#include "tests/support.h"

namespace onestep {
namespace {

using Function = std::function<Tensor(const std::vector<Tensor>&)>;

constexpr int64_t kDraws = 5;

struct GradientCase {
  std::string label;
  const OpSample* sample;
  Function f;
  int64_t seed = 0;
};

/// x as every second element of a longer row. Differentiable, as the next one is.
Tensor strided(const Tensor& x) { return x.dim() == kMaxRank ? x : select(stack({x, x * 2}, -1), -1, 0); }

Tensor transposed(const Tensor& x) { return transpose(contiguous(transpose(x, 0, -1)), 0, -1); }

Function relaid(const OpSample& sample, Tensor (*layout)(const Tensor&)) {
  return [&sample, layout](std::vector<Tensor> inputs) {
    for (Tensor& x : inputs)
      if (x.is_floating()) x = layout(x);
    return sample.forward(inputs);
  };
}

bool drawn_alike(const InputSpec& a, const InputSpec& b) {
  return is_floating(a.dtype) && is_floating(b.dtype) && a.shape == b.shape && a.low == b.low && a.high == b.high &&
         a.avoid == b.avoid;
}

void add_repeated(std::vector<GradientCase>& cases, const OpSample& sample) {
  for (size_t i = 0; i < sample.inputs.size(); ++i) {
    for (size_t j = i + 1; j < sample.inputs.size(); ++j) {
      if (!drawn_alike(sample.inputs[i], sample.inputs[j])) continue;
      const auto f = [&sample, i, j](std::vector<Tensor> inputs) {
        inputs[j] = inputs[i];
        return sample.forward(inputs);
      };
      cases.push_back({"one tensor twice", &sample, f});
    }
  }
}

std::vector<GradientCase> gradient_cases(const OpCase& op) {
  std::vector<GradientCase> cases;
  for (const OpSample& sample : op.samples) {
    if (!sample.differentiable) continue;
    const auto is = [&](auto property) { return std::any_of(sample.inputs.begin(), sample.inputs.end(), property); };
    const bool empty = is([](const InputSpec& spec) { return spec.shape.numel() == 0; });
    const bool random = is([](const InputSpec& spec) { return spec.values.empty(); });
    for (int64_t seed = 0; seed < (random && !empty ? kDraws : 1); ++seed)
      cases.push_back({"as it is", &sample, sample.forward, seed});
    if (empty) continue;
    if (sample.any_layout) cases.push_back({"strided", &sample, relaid(sample, strided)});
    if (sample.any_layout && is([](const InputSpec& spec) { return spec.shape.rank() >= 2; }))
      cases.push_back({"transposed", &sample, relaid(sample, [](const Tensor& x) { return x.dim() < 2 ? x : transposed(x); })});
    add_repeated(cases, sample);
  }
  return cases;
}

/// The worst relative error.
double checked(const OpCase& op, const GradientCase& c) {
  CAPTURE(op.op);
  CAPTURE(c.sample->label);
  CAPTURE(c.label);
  CAPTURE(c.seed);
  const std::vector<Tensor> inputs = make_inputs(*c.sample, draw_values(*c.sample, c.seed), DType::float64, true);
  const GradcheckResult result = gradcheck(c.f, inputs);
  CHECK_MESSAGE(result.passed, result.message);
  return result.worst_error;
}

}  // namespace

TEST_CASE("gradcheck: more than 1000 cases and at least 8 of every differentiable op") {
  if (testing::skips_without_ci()) return;
  size_t total = 0;
  std::map<std::string, size_t> ops;  // some have several cases
  double worst = 0;
  for (const OpCase& op : op_cases()) {
    const std::vector<GradientCase> cases = gradient_cases(op);
    if (cases.empty()) continue;
    for (const GradientCase& c : cases) worst = std::max(worst, checked(op, c));
    total += cases.size();
    ops[op.op] += cases.size();
  }
  for (const auto& entry : ops) CHECK_MESSAGE(entry.second >= 8, entry.first << " has only " << entry.second);
  MESSAGE(total << " cases of " << ops.size() << " ops, largest relative error " << worst);
  CHECK(total >= 1000);
  CHECK(worst <= 1e-6);
}

}  // namespace onestep
