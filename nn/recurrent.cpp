#include "nn/recurrent.h"

#include <cmath>

#include "autograd/autocast.h"
#include "autograd/grad_mode.h"
#include "autograd/operators.h"
#include "autograd/ops_shape.h"
#include "nn/init.h"

namespace onestep::nn {
namespace {

/// All gates: [B, gates hidden_size]
Tensor summed(const Tensor& input_gates, const RecurrentState& state, const RecurrentWeights& w) {
  return input_gates + linear(state.h, w.weight_hh, w.bias_hh);
}

/// Gates `first` up to `end` of those in x.
Tensor gates(const Tensor& x, int64_t first, int64_t end, int64_t hidden_size) {
  return narrow(x, -1, first * hidden_size, (end - first) * hidden_size);
}

}  // namespace

RecurrentWeights::RecurrentWeights(const Sizes& s) {
  const int64_t rows = s.gates * s.hidden_size;
  weight_ih = empty({rows, s.input_size}).requires_grad_();
  weight_hh = empty({rows, s.proj_size > 0 ? s.proj_size : s.hidden_size}).requires_grad_();
  if (s.bias) {
    bias_ih = empty({rows}).requires_grad_();
    bias_hh = empty({rows}).requires_grad_();
  }
  if (s.proj_size > 0) weight_hr = empty({s.proj_size, s.hidden_size}).requires_grad_();
}

void RecurrentWeights::draw(int64_t hidden_size, Generator& generator) {
  const double bound = 1 / std::sqrt(static_cast<double>(hidden_size));
  for (Tensor* parameter : {&weight_ih, &weight_hh, &bias_ih, &bias_hh, &weight_hr})
    if (parameter->defined()) init::uniform_(*parameter, -bound, bound, generator);
}

void RecurrentWeights::visit(Visitor& visitor, const std::string& suffix) {
  visitor.parameter("weight_ih" + suffix, weight_ih);
  visitor.parameter("weight_hh" + suffix, weight_hh);
  visitor.parameter("bias_ih" + suffix, bias_ih);
  visitor.parameter("bias_hh" + suffix, bias_hh);
  visitor.parameter("weight_hr" + suffix, weight_hr);
}

Tensor weight_of_steps(const Tensor& weight, int64_t steps) {
  constexpr int64_t least_steps = 8, most_elements = int64_t{1} << 18;
  const bool recorded = grad_enabled() && weight.requires_grad();
  if (recorded || autocast_enabled() || steps < least_steps || weight.numel() > most_elements) return weight;
  return t(contiguous(t(weight)));
}

RecurrentState rnn_tanh_step(const Tensor& input_gates, const RecurrentState& state, const RecurrentWeights& w) {
  return {tanh(summed(input_gates, state, w))};
}

RecurrentState rnn_relu_step(const Tensor& input_gates, const RecurrentState& state, const RecurrentWeights& w) {
  return {relu(summed(input_gates, state, w))};
}

RecurrentState lstm_step(const Tensor& input_gates, const RecurrentState& state, const RecurrentWeights& w) {
  const int64_t size = state.c.size(-1);
  const Tensor all = summed(input_gates, state, w), in_and_forget = sigmoid(gates(all, 0, 2, size));
  const Tensor in = gates(in_and_forget, 0, 1, size), forget = gates(in_and_forget, 1, 2, size);
  const Tensor c = forget * ops::autocast_operand(state.c) + in * tanh(gates(all, 2, 3, size));
  const Tensor h = sigmoid(gates(all, 3, 4, size)) * tanh(c);
  return {w.weight_hr.defined() ? linear(h, w.weight_hr) : h, c};
}

RecurrentState gru_step(const Tensor& input_gates, const RecurrentState& state, const RecurrentWeights& w) {
  const int64_t size = state.h.size(-1);
  const Tensor of_state = linear(state.h, w.weight_hh, w.bias_hh);
  const Tensor both = sigmoid(gates(input_gates, 0, 2, size) + gates(of_state, 0, 2, size));
  const Tensor reset = gates(both, 0, 1, size), update = gates(both, 1, 2, size);
  const Tensor fresh = tanh(gates(input_gates, 2, 3, size) + reset * gates(of_state, 2, 3, size));
  return {fresh + update * (ops::autocast_operand(state.h) - fresh)};
}

RecurrentStep rnn_step(const char* module, const std::string& nonlinearity) {
  if (nonlinearity == "tanh") return rnn_tanh_step;
  if (nonlinearity == "relu") return rnn_relu_step;
  fail<ConfigError>(module, ": unknown nonlinearity: \"", nonlinearity, "\" (tanh or relu)");
}

}  // namespace onestep::nn
