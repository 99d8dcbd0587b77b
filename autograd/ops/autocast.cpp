// Whether products round their operands, and the operands that they then take.
#include "autograd/autocast.h"

#include <unordered_map>

#include "autograd/kernels/isa.h"
#include "autograd/ops/common.h"
#include "autograd/ops_math.h"
#include "autograd/tensor.h"

namespace onestep {
namespace {

/// A parameter as bfloat16, and the version of it that was rounded. It keeps the parameter, so that its address is not
/// another's.
struct RoundedParameter {
  Tensor parameter, value;
  uint32_t version;
};

/// Whether autocast is on, and whether a guard lives: apart from the parameters, so that asking costs nothing.
struct State {
  bool on, scoped;
};
thread_local State state = {false, false};
thread_local std::unordered_map<const void*, RoundedParameter> rounded_parameters;

}  // namespace

bool autocast_enabled() { return state.on; }

void forget_rounded_parameters() { rounded_parameters.clear(); }

void set_autocast_enabled(bool on) {
  forget_rounded_parameters();
  state.on = on;
}

AutocastGuard::AutocastGuard(bool on) : previous_(state.on), outermost_(!state.scoped) {
  state.on = on;
  state.scoped = true;
}

AutocastGuard::~AutocastGuard() {
  state.on = previous_;
  if (!outermost_) return;
  state.scoped = false;
  forget_rounded_parameters();
}

Bf16Order bf16_order() { return kernels::bf16_in_tiles() ? Bf16Order::amx : Bf16Order::avx512; }

Bf16Order fastest_bf16_order() { return kernels::amx_bf16_in_use() ? Bf16Order::amx : Bf16Order::avx512; }

void set_bf16_order(Bf16Order order) { kernels::set_bf16_in_tiles(order == Bf16Order::amx); }

namespace ops {

Tensor rounded_operand(const Tensor& x) {
  if (!state.on || x.dtype() != DType::float32) return x;
  if (!x.is_leaf() || !x.requires_grad()) return converted(x, DType::bfloat16);
  RoundedParameter& known = rounded_parameters[&x.impl()];
  if (!known.value.defined() || known.version != x.version()) known = {x, converted(x, DType::bfloat16), x.version()};
  return known.value;
}

DType operand_dtype(const Tensor& x) { return state.on && x.dtype() == DType::float32 ? DType::bfloat16 : x.dtype(); }

Tensor autocast_operand(const Tensor& x) {
  return state.on && x.defined() && x.dtype() == DType::float32 ? to(x, DType::bfloat16) : x;
}

Tensor autocast_loss_operand(const Tensor& x) { return to(x, loss_dtype(x)); }

bool autocast_widens(const Tensor& input, const Tensor& target) {
  return loss_dtype(input) != input.dtype() || loss_dtype(target) != target.dtype();
}

DType loss_dtype(const Tensor& x) { return state.on && is_half(x.dtype()) ? DType::float32 : x.dtype(); }

}  // namespace ops
}  // namespace onestep
