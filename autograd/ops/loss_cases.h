#pragma once
// What the op cases of losses share.
#include <string>
#include <vector>

#include "autograd/ops/naive.h"
#include "autograd/ops_loss.h"

namespace onestep::loss_cases {

/// The losses, their sum, or their sum over `counted`.
inline Values reduced(const Values& losses, Reduction reduction, double counted) {
  if (reduction == Reduction::none) return losses;
  Values y{Shape()};
  for (double loss : losses.data) y[0] += loss;
  if (reduction == Reduction::mean) y[0] /= counted;
  return y;
}
inline Values reduced(const Values& losses, Reduction reduction) {
  return reduced(losses, reduction, static_cast<double>(losses.data.size()));
}

/// op(a, b, reduction), element by element f(a, b).
template <class Op, class F>
OpSample pair(const std::string& label, const InputSpec& a, const InputSpec& b, Reduction reduction, Op op, F f) {
  return {label,
          {a, b},
          [=](const std::vector<Tensor>& in) { return op(in[0], in[1], reduction); },
          [=](const std::vector<Values>& in) { return reduced(naive::zip(in[0], in[1], f), reduction); }};
}

/// Every reduction of a loss of two tensors of one shape, and the sum over nothing.
template <class Op, class F>
std::vector<OpSample> every_reduction(const std::string& label, InputSpec a, InputSpec b, Op op, F f) {
  std::vector<OpSample> samples = {pair("mean" + label, a, b, Reduction::mean, op, f),
                                   pair("sum" + label, a, b, Reduction::sum, op, f),
                                   pair("none" + label, a, b, Reduction::none, op, f)};
  a.shape = b.shape = {0, 3};
  a.values = b.values = {};
  samples.push_back(pair("sum over nothing" + label, a, b, Reduction::sum, op, f));
  return samples;
}

}  // namespace onestep::loss_cases
