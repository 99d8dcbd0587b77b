#pragma once
// Finding the op at which numbers stop being finite, by checking every result.
#include <functional>
#include <string>
#include <unordered_map>

#include "autograd/node.h"

namespace onestep {

/// An op's result, or a gradient that its rule returned, is infinite or NaN.
struct NonFiniteError : Error {
  using Error::Error;
};

/// While it lives, every op that this thread records, and every gradient of a backward pass through such an op, is checked; the
/// first one that is not finite throws NonFiniteError naming the op and its place. masked_fill may give -inf: that is what
/// attention asks of it. (torch.autograd.set_detect_anomaly.)
class AnomalyGuard {
 public:
  /// `place` says where the program is when it records an op.
  explicit AnomalyGuard(std::function<std::string()> place);
  ~AnomalyGuard();
  AnomalyGuard(const AnomalyGuard&) = delete;
  AnomalyGuard& operator=(const AnomalyGuard&) = delete;

  /// The newest guard of this thread, or nullptr.
  static AnomalyGuard* active();
  /// Throws unless the result of the op just recorded as `node` is finite.
  void check_result(const Node& node, const Tensor& result);
  /// Throws unless the gradient for input `i` of `node` is finite.
  void check_gradient(const Node& node, size_t i, const Tensor& gradient);

 private:
  std::function<std::string()> place_;
  std::unordered_map<uint64_t, std::string> places_;  // by the node's sequence
  AnomalyGuard* outer_;
};

/// Whether a backward pass throws NonFiniteError naming an op whose rule returns NaN (torch.autograd.set_detect_anomaly).
bool nan_gradients_refused();
void refuse_nan_gradients(bool on);
/// What looks at the gradient for input `i` of every node then; else null. By pointer, so that a program that never asks for it
/// does not hold it: the page counts bytes.
using GradientCheck = void (*)(const Node& node, size_t i, const Tensor& gradient);
GradientCheck gradient_check();

/// Whether every element is finite; true for what is not floating.
bool all_finite(const Tensor& x);

}  // namespace onestep
