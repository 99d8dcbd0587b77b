#pragma once
#include <vector>

#include "autograd/ops_nn.h"
#include "nn/recurrent.h"

namespace onestep::nn {

struct RNNOptions {
  int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false;           ///< Input and output are [B, T, ...] instead of [T, B, ...].
  double dropout = 0.0;               ///< In training, on the output of every layer but the last.
  bool bidirectional = false;         ///< A second direction reads from the end; outputs are joined.
  std::string nonlinearity = "tanh";  ///< Of an RNN: tanh or relu.
  int64_t proj_size = 0;              ///< Of an LSTM: the size to which h is projected, 0 = not at all.
};

/// The output of the last layer for every token, and the last state of every layer and direction.
struct RNNOutput {
  Tensor output, h;
};
struct LSTMOutput {
  Tensor output;
  RecurrentState state;
};

/// What RNN, LSTM and GRU have in common (torch.nn.RNNBase): layers of one or two directions over sequences x [T, B,
/// input_size], with batch_first [B, T, input_size], or a single one [T, input_size].
class RecurrentLayers : public Module {
 public:
  std::string name() const override { return name_; }
  std::string extra_repr() const override;
  void visit(Visitor& visitor) override;

  std::vector<RecurrentWeights> weights;  ///< Layer by layer, in each the direction forwards, then the one backwards.

 protected:
  /// Draws every parameter within +-1/sqrt(hidden_size); dropout masks come from `generator`, which must outlive the module.
  /// Throws ShapeError unless the sizes are positive, ConfigError unless 0 <= dropout <= 1.
  RecurrentLayers(const char* name, RecurrentStep step, int64_t gates, int64_t input_size, int64_t hidden_size,
                  const RNNOptions& options, Generator& generator);
  /// An undefined state is 0; `with_cell` says that it has a c. Throws ShapeError on shapes that do not fit.
  LSTMOutput run(const Tensor& x, const RecurrentState& state, bool with_cell) const;

 private:
  struct Direction {
    Tensor output;  ///< [T, B, ...]; it may be written to.
    RecurrentState last;
  };
  /// One direction over x [T, B, ...].
  Direction run_direction(const Tensor& x, const RecurrentState& first, const RecurrentWeights& w, bool backwards) const;
  /// The state before the first token, [layers directions, B, size].
  Tensor first_state(const Tensor& given, const Tensor& x, int64_t size, bool batched) const;

  const char* name_;
  RecurrentStep step_;
  int64_t input_size_, hidden_size_;
  RNNOptions options_;
  Generator* generator_;
};

/// h_t = tanh(W x_t + b + W_h h_(t-1) + b_h), or relu (torch.nn.RNN).
class RNN : public RecurrentLayers {
 public:
  RNN(int64_t input_size, int64_t hidden_size, const RNNOptions& options = {}, Generator& generator = default_generator());
  /// h [num_layers directions, B, hidden_size] (without B for a single sequence), 0 if undefined -> output [T, B, directions
  /// hidden_size] and the last h.
  RNNOutput forward(const Tensor& x, const Tensor& h = {}) const;
  RNNOutput operator()(const Tensor& x, const Tensor& h = {}) const;
};

/// Gated recurrent units: see gru_step (torch.nn.GRU).
class GRU : public RecurrentLayers {
 public:
  GRU(int64_t input_size, int64_t hidden_size, const RNNOptions& options = {}, Generator& generator = default_generator());
  /// As RNN::forward.
  RNNOutput forward(const Tensor& x, const Tensor& h = {}) const;
  RNNOutput operator()(const Tensor& x, const Tensor& h = {}) const;
};

/// Long short-term memories: see lstm_step (torch.nn.LSTM).
class LSTM : public RecurrentLayers {
 public:
  LSTM(int64_t input_size, int64_t hidden_size, const RNNOptions& options = {}, Generator& generator = default_generator());
  /// As RNN::forward, with a state of h [..., proj_size or hidden_size] and c [..., hidden_size].
  LSTMOutput forward(const Tensor& x, const RecurrentState& state = {}) const { return run(x, state, true); }
  LSTMOutput operator()(const Tensor& x, const RecurrentState& state = {}) const;
};

}  // namespace onestep::nn
