#include "autograd/testing/op_case.h"

#include <cmath>

#include "autograd/creation.h"
#include "autograd/random/generator.h"
#include "autograd/tensor.h"

namespace onestep {
namespace {

/// Half the width of the neighbourhood of a kink that no drawn value enters.
constexpr double kClearance = 0.05;

double draw(const InputSpec& spec, Generator& generator) {
  if (spec.dtype == DType::boolean) return generator.d53() < 0.5;
  double value = spec.low + generator.d53() * (spec.high - spec.low);
  if (spec.dtype == DType::int64) return std::floor(value);
  for (double kink : spec.avoid) {
    const double distance = value - kink;
    if (std::abs(distance) < kClearance) value += std::copysign(kClearance, distance);
  }
  return static_cast<float>(value);
}

}  // namespace

const OpCases& op_cases() {
  static const OpCases cases = RegisterOpCases::make_all(&OpCase::op);
  return cases;
}

std::vector<Values> draw_values(const OpSample& sample, int64_t seed) {
  Generator generator(seed);
  std::vector<Values> all;
  for (const InputSpec& spec : sample.inputs) {
    Values values(spec.shape);
    ONESTEP_CHECK(ShapeError, spec.values.empty() || spec.values.size() == values.data.size(), "op case ", sample.label, ": ",
                  spec.values.size(), " values for shape ", spec.shape);
    for (size_t i = 0; i < values.data.size(); ++i)
      values.data[i] = spec.values.empty() ? draw(spec, generator) : static_cast<float>(spec.values[i]);
    all.push_back(values);
  }
  return all;
}

std::vector<Tensor> make_inputs(const OpSample& sample, const std::vector<Values>& values, DType floating, bool requires_grad) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < values.size(); ++i) {
    const DType dtype = is_floating(sample.inputs[i].dtype) ? floating : sample.inputs[i].dtype;
    Tensor x = from_values(values[i].data, values[i].shape).to(dtype);
    if (requires_grad && is_floating(dtype)) x.requires_grad_();
    inputs.push_back(x);
  }
  return inputs;
}

GradcheckResult gradcheck(const OpSample& sample, const GradcheckOptions& options) {
  return gradcheck(sample.forward, make_inputs(sample, draw_values(sample), DType::float64, true), options);
}

GradcheckResult gradgradcheck(const OpSample& sample, const GradcheckOptions& options) {
  return gradgradcheck(sample.forward, make_inputs(sample, draw_values(sample), DType::float64, true), options);
}

}  // namespace onestep

template class std::vector<onestep::InputSpec>;
template class std::vector<onestep::OpSample>;
template class std::vector<onestep::OpError>;
template class std::vector<onestep::OpCase>;
