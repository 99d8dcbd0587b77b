#include "nn/rnn_cell.h"

#include <sstream>

namespace onestep::nn {

namespace {

RecurrentWeights::Sizes checked(const char* name, const RecurrentWeights::Sizes& sizes) {
  ONESTEP_CHECK(ShapeError, sizes.input_size > 0 && sizes.hidden_size > 0, name,
                ": sizes must be positive: input_size=", sizes.input_size, ", hidden_size=", sizes.hidden_size);
  return sizes;
}

}  // namespace

RecurrentCell::RecurrentCell(const char* name, RecurrentStep step, int64_t gates, int64_t input_size, int64_t hidden_size,
                             bool bias, Generator& generator)
    : weights(checked(name, {.gates = gates, .input_size = input_size, .hidden_size = hidden_size, .bias = bias})),
      name_(name),
      step_(step) {
  weights.draw(hidden_size, generator);
}

RecurrentState RecurrentCell::next(const Tensor& x, const RecurrentState& state, bool with_cell) const {
  const int64_t input_size = weights.weight_ih.size(1), hidden_size = weights.weight_hh.size(1);
  ONESTEP_CHECK(ShapeError, (x.dim() == 1 || x.dim() == 2) && x.size(-1) == input_size, name_, ": needs an input [B, ",
                input_size, "] or [", input_size, "]: got ", x.shape());
  Shape shape = x.shape();
  shape[x.dim() - 1] = hidden_size;
  const auto given = [&](const Tensor& s) {
    if (!s.defined()) return zeros(shape, x.dtype());
    ONESTEP_CHECK(ShapeError, s.shape() == shape, name_, ": needs a state ", shape, ": got ", s.shape());
    return s;
  };
  return step_(weights.of_input(x), {given(state.h), with_cell ? given(state.c) : Tensor()}, weights);
}

std::string RecurrentCell::extra_repr() const {
  std::ostringstream text;
  text << weights.weight_ih.size(1) << ", " << weights.weight_hh.size(1);
  if (!weights.bias_ih.defined()) text << ", bias=False";
  return text.str();
}

RNNCell::RNNCell(int64_t input_size, int64_t hidden_size, bool bias, const std::string& nonlinearity, Generator& generator)
    : RecurrentCell("RNNCell", rnn_step("RNNCell", nonlinearity), 1, input_size, hidden_size, bias, generator),
      nonlinearity_(nonlinearity) {}

std::string RNNCell::extra_repr() const {
  return RecurrentCell::extra_repr() + (nonlinearity_ == "tanh" ? "" : ", nonlinearity=" + nonlinearity_);
}

GRUCell::GRUCell(int64_t input_size, int64_t hidden_size, bool bias, Generator& generator)
    : RecurrentCell("GRUCell", gru_step, 3, input_size, hidden_size, bias, generator) {}

LSTMCell::LSTMCell(int64_t input_size, int64_t hidden_size, bool bias, Generator& generator)
    : RecurrentCell("LSTMCell", lstm_step, 4, input_size, hidden_size, bias, generator) {}

}  // namespace onestep::nn
