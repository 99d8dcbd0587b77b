#pragma once
// Mixed precision (Micikevicius et al. 2018): parameters stay float32, products round their operands to bfloat16.
#include "autograd/tensor.h"

namespace onestep {

/// True while linear, matmul, attention and convolutions of this thread round float32 operands to bfloat16, sum in float32 and
/// give bfloat16, and losses widen theirs to float32; float64 stays (torch.is_autocast_enabled("cpu")).
bool autocast_enabled();
/// Switches it on or off (torch.set_autocast_enabled as a function), and forgets the rounded parameters.
void set_autocast_enabled(bool on);

/// Switches autocast on or off in its scope (torch.autocast("cpu", dtype=torch.bfloat16)). In the outermost scope a parameter
/// is rounded once, and again when it has changed. The backward pass needs none: it takes the dtypes of the forward pass.
/// Gradients of float32 parameters are float32, never rounded.
class AutocastGuard {
 public:
  explicit AutocastGuard(bool on = true);
  ~AutocastGuard();
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  bool previous_, outermost_;
};

namespace ops {

/// x as an operand of a product: where autocast is on, float32 as bfloat16. `rounded_operand` is not recorded, for a rule that
/// knows of it; `autocast_operand` is.
Tensor rounded_operand(const Tensor& x);
Tensor autocast_operand(const Tensor& x);
/// The dtype of rounded_operand(x).
DType operand_dtype(const Tensor& x);
/// x as a loss takes it: where autocast is on, float16 and bfloat16 as float32; recorded.
Tensor autocast_loss_operand(const Tensor& x);
/// Whether that makes another tensor of one of these.
bool autocast_widens(const Tensor& input, const Tensor& target);
/// The dtype of a loss of x, which was computed in a wider one.
DType loss_dtype(const Tensor& x);

}  // namespace ops
}  // namespace onestep
