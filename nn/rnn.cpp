#include "nn/rnn.h"

#include <sstream>

#include "autograd/autocast.h"
#include "autograd/ops_shape.h"

namespace onestep::nn {
namespace {

/// Whether the steps of an LSTM are one op, which computes as float32 or float64 and does not project.
bool is_one_op(const Tensor& input_gates, const RecurrentWeights& w) {
  return !w.weight_hr.defined() && !is_narrow(input_gates.dtype()) && !autocast_enabled();
}

}  // namespace

RecurrentLayers::RecurrentLayers(const char* name, RecurrentStep step, int64_t gates, int64_t input_size, int64_t hidden_size,
                                 const RNNOptions& o, Generator& generator)
    : name_(name), step_(step), input_size_(input_size), hidden_size_(hidden_size), options_(o), generator_(&generator) {
  ONESTEP_CHECK(ShapeError, input_size > 0 && hidden_size > 0 && o.num_layers > 0, name,
                ": sizes must be positive: input_size=", input_size, ", hidden_size=", hidden_size,
                ", num_layers=", o.num_layers);
  ONESTEP_CHECK(ShapeError, 0 <= o.proj_size && o.proj_size < hidden_size, name, ": proj_size must be below hidden_size: got ",
                o.proj_size, " and ", hidden_size);
  ONESTEP_CHECK(ConfigError, 0 <= o.dropout && o.dropout <= 1, name, ": dropout must be between 0 and 1: got ", o.dropout);
  const int64_t directions = o.bidirectional ? 2 : 1, output_size = o.proj_size > 0 ? o.proj_size : hidden_size;
  for (int64_t i = 0; i < o.num_layers * directions; ++i)
    weights.emplace_back(RecurrentWeights::Sizes{gates, i < directions ? input_size : directions * output_size, hidden_size,
                                                 o.proj_size, o.bias});
  for (RecurrentWeights& w : weights) w.draw(hidden_size, generator);
}

void RecurrentLayers::visit(Visitor& visitor) {
  const size_t directions = options_.bidirectional ? 2 : 1;
  for (size_t i = 0; i < weights.size(); ++i)
    weights[i].visit(visitor, "_l" + std::to_string(i / directions) + (i % directions == 1 ? "_reverse" : ""));
}

Tensor RecurrentLayers::first_state(const Tensor& given, const Tensor& x, int64_t size, bool batched) const {
  const Shape shape = {static_cast<int64_t>(weights.size()), x.size(1), size};
  if (!given.defined()) return zeros(shape, x.dtype());
  const Tensor state = batched || given.dim() != 2 ? given : unsqueeze(given, 1);
  ONESTEP_CHECK(ShapeError, state.shape() == shape, name_, ": needs a state ", shape, batched ? "" : " or without its dim 1",
                ": got ", given.shape());
  return state;
}

RecurrentLayers::Direction RecurrentLayers::run_direction(const Tensor& x, const RecurrentState& first,
                                                          const RecurrentWeights& w, bool backwards) const {
  const Tensor input_gates = w.of_input(x);  // of all tokens in one product
  const int64_t tokens = x.size(0);
  if (first.c.defined() && is_one_op(input_gates, w)) {
    const Tensor states = lstm(input_gates, first.h, first.c, w.weight_hh, w.bias_hh, backwards);
    return {clone(narrow(states, 0, 0, tokens)), {states[backwards ? 0 : tokens - 1], states[tokens]}};
  }
  RecurrentWeights of_steps = w;
  of_steps.weight_hh = weight_of_steps(w.weight_hh, tokens);
  std::vector<Tensor> outputs(static_cast<size_t>(tokens));
  RecurrentState last = first;
  for (int64_t i = 0; i < tokens; ++i) {
    const int64_t t = backwards ? tokens - 1 - i : i;
    last = step_(select(input_gates, 0, t), last, of_steps);
    outputs[static_cast<size_t>(t)] = last.h;
  }
  return {stack(outputs), last};
}

LSTMOutput RecurrentLayers::run(const Tensor& input, const RecurrentState& state, bool with_cell) const {
  const bool batched = input.dim() == 3;
  ONESTEP_CHECK(ShapeError, (batched || input.dim() == 2) && input.size(-1) == input_size_, name_, ": needs an input ",
                options_.batch_first ? "[B, T, " : "[T, B, ", input_size_, "] or [T, ", input_size_, "]: got ", input.shape());
  Tensor x = !batched ? unsqueeze(input, 1) : options_.batch_first ? transpose(input, 0, 1) : input;
  ONESTEP_CHECK(ShapeError, x.size(0) > 0, name_, ": needs at least one token: got ", input.shape());
  const Tensor h = first_state(state.h, x, options_.proj_size > 0 ? options_.proj_size : hidden_size_, batched);
  const Tensor c = with_cell ? first_state(state.c, x, hidden_size_, batched) : Tensor();
  const int64_t directions = options_.bidirectional ? 2 : 1;
  std::vector<Tensor> last_h, last_c;
  for (int64_t layer = 0; layer < options_.num_layers; ++layer) {
    if (layer > 0) x = dropout(x, options_.dropout, is_training(), *generator_);
    std::vector<Tensor> outputs;
    for (int64_t d = 0; d < directions; ++d) {
      const int64_t i = layer * directions + d;
      const RecurrentState first = {h[i], with_cell ? c[i] : Tensor()};
      const Direction done = run_direction(x, first, weights[static_cast<size_t>(i)], d == 1);
      outputs.push_back(done.output);
      last_h.push_back(done.last.h);
      if (with_cell) last_c.push_back(done.last.c);
    }
    x = directions == 1 ? outputs[0] : cat(outputs, -1);
  }
  const auto joined = [&](const std::vector<Tensor>& states) { return batched ? stack(states) : squeeze(stack(states), 1); };
  const Tensor output = !batched ? squeeze(x, 1) : options_.batch_first ? transpose(x, 0, 1) : x;
  return {output, {joined(last_h), with_cell ? joined(last_c) : Tensor()}};
}

std::string RecurrentLayers::extra_repr() const {
  std::ostringstream text;
  text << input_size_ << ", " << hidden_size_;
  if (options_.proj_size != 0) text << ", proj_size=" << options_.proj_size;
  if (options_.num_layers != 1) text << ", num_layers=" << options_.num_layers;
  if (!options_.bias) text << ", bias=False";
  if (options_.batch_first) text << ", batch_first=True";
  if (options_.dropout != 0) text << ", dropout=" << python_repr(options_.dropout);
  if (options_.bidirectional) text << ", bidirectional=True";
  return text.str();
}

namespace {

/// Options that the module has.
const RNNOptions& only(const char* name, const RNNOptions& o, bool nonlinearity, bool projection) {
  ONESTEP_CHECK(ConfigError, nonlinearity || o.nonlinearity == "tanh", name, ": nonlinearity is an option of RNN: got ",
                o.nonlinearity);
  ONESTEP_CHECK(ConfigError, projection || o.proj_size == 0, name, ": proj_size is an option of LSTM: got ", o.proj_size);
  return o;
}

}  // namespace

RNN::RNN(int64_t input_size, int64_t hidden_size, const RNNOptions& options, Generator& generator)
    : RecurrentLayers("RNN", rnn_step("RNN", options.nonlinearity), 1, input_size, hidden_size,
                      only("RNN", options, true, false), generator) {}

RNNOutput RNN::forward(const Tensor& x, const Tensor& h) const {
  const LSTMOutput done = run(x, {h}, false);
  return {done.output, done.state.h};
}

RNNOutput RNN::operator()(const Tensor& x, const Tensor& h) const {
  const RunningModule running(*this);
  return forward(x, h);
}

GRU::GRU(int64_t input_size, int64_t hidden_size, const RNNOptions& options, Generator& generator)
    : RecurrentLayers("GRU", gru_step, 3, input_size, hidden_size, only("GRU", options, false, false), generator) {}

RNNOutput GRU::forward(const Tensor& x, const Tensor& h) const {
  const LSTMOutput done = run(x, {h}, false);
  return {done.output, done.state.h};
}

RNNOutput GRU::operator()(const Tensor& x, const Tensor& h) const {
  const RunningModule running(*this);
  return forward(x, h);
}

LSTM::LSTM(int64_t input_size, int64_t hidden_size, const RNNOptions& options, Generator& generator)
    : RecurrentLayers("LSTM", lstm_step, 4, input_size, hidden_size, only("LSTM", options, false, true), generator) {}

LSTMOutput LSTM::operator()(const Tensor& x, const RecurrentState& state) const {
  const RunningModule running(*this);
  return forward(x, state);
}

}  // namespace onestep::nn
