#pragma once
#include <vector>

#include "autograd/tensor.h"

namespace onestep::attention {

/// While it lives, every forward() of an attention module on this thread is unfused and adds its weights here, whatever model
/// the module is in (what forward hooks are used for in PyTorch); forward_cached() does not. The innermost one records.
class WeightsRecorder {
 public:
  WeightsRecorder();
  ~WeightsRecorder();
  WeightsRecorder(const WeightsRecorder&) = delete;
  WeightsRecorder& operator=(const WeightsRecorder&) = delete;

  /// One tensor [..., T, T] or [..., H, T, T] a call, in order: row = query, column = key.
  const std::vector<Tensor>& weights() const { return weights_; }
  void add(const Tensor& weights) { weights_.push_back(weights); }

  /// The one in use in this thread, or null.
  static WeightsRecorder* active();

 private:
  std::vector<Tensor> weights_;
  WeightsRecorder* previous_;
};

}  // namespace onestep::attention
