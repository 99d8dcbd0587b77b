#pragma once
// What recurrent cells and layers share: the weights of one direction and the step from one token to the next.
#include <string>
#include <vector>

#include "autograd/ops_math.h"
#include "nn/module.h"

namespace onestep::nn {

/// What a recurrent module remembers: h [..., B, hidden_size] (or proj_size) and, of an LSTM, the cell's state c [..., B,
/// hidden_size].
struct RecurrentState {
  Tensor h, c = {};
};

/// The parameters of one cell, or of one direction of one layer, for `gates` gates of hidden_size rows each.
struct RecurrentWeights {
  Tensor weight_ih;         // [gates hidden_size, input_size]
  Tensor weight_hh;         // [gates hidden_size, hidden_size or proj_size]
  Tensor bias_ih, bias_hh;  // [gates hidden_size], or undefined
  Tensor weight_hr;         // [proj_size, hidden_size], or undefined

  struct Sizes {
    int64_t gates, input_size, hidden_size, proj_size = 0;
    bool bias = true;
  };
  /// Draws nothing: see draw().
  explicit RecurrentWeights(const Sizes& sizes);
  /// Every parameter within +-1/sqrt(hidden_size), in the order of visit().
  void draw(int64_t hidden_size, Generator& generator);
  /// Names end in `suffix`: `_l0_reverse`.
  void visit(Visitor& visitor, const std::string& suffix);

  /// The part of the gates that comes from the input: [..., input_size] -> [..., gates hidden_size].
  Tensor of_input(const Tensor& x) const { return linear(x, weight_ih, bias_ih); }
};

/// The weight of the state as `steps` steps read it: where it is not recorded and stays in the L2 cache, a copy with columns
/// behind columns, which products pack in half the time. No bit of them depends on it.
Tensor weight_of_steps(const Tensor& weight, int64_t steps);

/// The next state from the input's part of the gates [B, gates hidden_size] and the state before.
using RecurrentStep = RecurrentState (*)(const Tensor& input_gates, const RecurrentState& state,
                                         const RecurrentWeights& weights);

/// h' = tanh(W x + b + W_h h + b_h) (Elman 1990), and with relu.
RecurrentState rnn_tanh_step(const Tensor& input_gates, const RecurrentState& state, const RecurrentWeights& weights);
RecurrentState rnn_relu_step(const Tensor& input_gates, const RecurrentState& state, const RecurrentWeights& weights);
/// With gates i, f, g, o of W x + b + W_h h + b_h: c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c'), which
/// weight_hr projects if it is there (Hochreiter and Schmidhuber 1997; Sak et al. 2014).
RecurrentState lstm_step(const Tensor& input_gates, const RecurrentState& state, const RecurrentWeights& weights);
/// With gates r, z, n of W x + b and of W_h h + b_h: r and z are the sigmoids of the sums, n' = tanh(n + r n_h) and
/// h' = (1 - z) n' + z h (Cho et al. 2014).
RecurrentState gru_step(const Tensor& input_gates, const RecurrentState& state, const RecurrentWeights& weights);

/// The step of an RNN with this nonlinearity, `tanh` or `relu`. Throws ConfigError naming `module` on another one.
RecurrentStep rnn_step(const char* module, const std::string& nonlinearity);

}  // namespace onestep::nn
