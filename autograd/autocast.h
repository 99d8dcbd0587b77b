#pragma once
// Mixed precision (Micikevicius et al. 2018): parameters stay float32, products round their operands to bfloat16.
#include <array>
#include <cstdint>
#include <string_view>

#include "autograd/tensor.h"

namespace onestep {

/// True while linear, matmul, attention and convolutions of this thread round float32 operands to bfloat16, sum in float32 and
/// give bfloat16, and losses widen theirs to float32; float64 stays (torch.is_autocast_enabled("cpu")).
bool autocast_enabled();
/// Switches it on or off (torch.set_autocast_enabled as a function), and forgets the rounded parameters.
void set_autocast_enabled(bool on);

/// Lets go of the rounded parameters (torch.clear_autocast_cache): a graph keeps those that its backward pass needs until then.
void forget_rounded_parameters();

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

/// The order in which products of bfloat16 are added up in float32. Every CPU computes the bits of either.
///   avx512: sum = even + (odd + sum) for two numbers at a time, as VDPBF16PS of AVX512-BF16 does
///   amx: sum = sum + (evens + odds) for 32 numbers at a time, as TDPBF16PS of AMX does: on a CPU that has it several times as
///        fast as the other, elsewhere slower
enum class Bf16Order : uint8_t { avx512, amx };
constexpr auto names(Bf16Order /*all*/) { return std::to_array<std::string_view>({"avx512", "amx"}); }
/// That of this thread, at first avx512.
Bf16Order bf16_order();
/// The one that is added up the faster here: amx where AMX is used, which the CPU, the system and the instruction set chosen
/// (ONESTEP_ISA) have to allow.
Bf16Order fastest_bf16_order();
/// Sets it. The backward pass takes the order that is set when it runs, not that of the forward pass.
void set_bf16_order(Bf16Order order);

/// Sets it in its scope, which both passes should be in.
class Bf16OrderGuard {
 public:
  explicit Bf16OrderGuard(Bf16Order order) : previous_(bf16_order()) { set_bf16_order(order); }
  ~Bf16OrderGuard() { set_bf16_order(previous_); }
  Bf16OrderGuard(const Bf16OrderGuard&) = delete;
  Bf16OrderGuard& operator=(const Bf16OrderGuard&) = delete;

 private:
  Bf16Order previous_;
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
