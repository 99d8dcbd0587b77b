#pragma once
#include "nn/recurrent.h"

namespace onestep::nn {

/// What the cells have in common: one step for a batch x [B, input_size] or a single x [input_size].
class RecurrentCell : public Module {
 public:
  std::string extra_repr() const override;
  void visit(Visitor& visitor) override { weights.visit(visitor, ""); }
  std::string name() const override { return name_; }

  RecurrentWeights weights;

 protected:
  /// Draws every parameter within +-1/sqrt(hidden_size). Throws ShapeError unless the sizes are positive.
  RecurrentCell(const char* name, RecurrentStep step, int64_t gates, int64_t input_size, int64_t hidden_size, bool bias,
                Generator& generator);
  /// An undefined state is 0; `with_cell` says that it has a c. Throws ShapeError on shapes that do not fit.
  RecurrentState next(const Tensor& x, const RecurrentState& state, bool with_cell) const;

 private:
  const char* name_;
  RecurrentStep step_;
};

/// tanh(W x + b + W_h h + b_h), or relu (torch.nn.RNNCell).
class RNNCell : public RecurrentCell {
 public:
  RNNCell(int64_t input_size, int64_t hidden_size, bool bias = true, const std::string& nonlinearity = "tanh",
          Generator& generator = default_generator());
  /// h [B, hidden_size] or [hidden_size], 0 if undefined -> the next h.
  Tensor forward(const Tensor& x, const Tensor& h = {}) const { return next(x, {h}, false).h; }
  Tensor operator()(const Tensor& x, const Tensor& h = {}) const {
    const RunningModule running(*this);
    return forward(x, h);
  }
  std::string extra_repr() const override;

 private:
  std::string nonlinearity_;
};

/// A gated recurrent unit: see gru_step (torch.nn.GRUCell).
class GRUCell : public RecurrentCell {
 public:
  GRUCell(int64_t input_size, int64_t hidden_size, bool bias = true, Generator& generator = default_generator());
  /// h [B, hidden_size] or [hidden_size], 0 if undefined -> the next h.
  Tensor forward(const Tensor& x, const Tensor& h = {}) const { return next(x, {h}, false).h; }
  Tensor operator()(const Tensor& x, const Tensor& h = {}) const {
    const RunningModule running(*this);
    return forward(x, h);
  }
};

/// A long short-term memory: see lstm_step (torch.nn.LSTMCell).
class LSTMCell : public RecurrentCell {
 public:
  LSTMCell(int64_t input_size, int64_t hidden_size, bool bias = true, Generator& generator = default_generator());
  /// h and c [B, hidden_size] or [hidden_size], 0 if undefined -> the next ones.
  RecurrentState forward(const Tensor& x, const RecurrentState& state = {}) const { return next(x, state, true); }
  RecurrentState operator()(const Tensor& x, const RecurrentState& state = {}) const {
    const RunningModule running(*this);
    return forward(x, state);
  }
};

}  // namespace onestep::nn
