// Losses of numbers, made of public ops.
#include <cmath>
#include <numbers>

#include "autograd/autocast.h"
#include "autograd/operators.h"
#include "autograd/ops/loss_common.h"
#include "autograd/ops/pointwise.h"

namespace onestep {
namespace {

/// a - b; throws ShapeError naming `op` unless they broadcast.
Tensor difference(const char* op, const Tensor& a, const Tensor& b) {
  broadcast_shapes(op, a.shape(), b.shape());
  return sub(ops::autocast_loss_operand(a), ops::autocast_loss_operand(b));
}

/// f(a - b) and the gradient of a, grad(dy, a - b), formulas as those of function_of_input: in one pass, but for differences
/// that are rounded to a narrow dtype, as PyTorch's.
template <class F, class Grad>
Tensor function_of_difference(const char* op, const Tensor& prediction, const Tensor& target, const F& f, const Grad& grad) {
  const Tensor x = ops::autocast_loss_operand(prediction), y = ops::autocast_loss_operand(target);
  const DType dtype = result_type(x, y);
  const Tensor a = to(x, dtype), b = to(y, dtype);
  if (is_narrow(dtype)) return ops::function_of_input(op, sub(a, b), ops::Vectorized{f}, grad);
  const Tensor losses = ops::zip_floating(op, a, b, ops::Vectorized{[f](auto u, auto v) { return f(u - v); }});
  return record(op, losses, {a, b}, {a, b}, [grad](const Backward& back) -> Grads {
    const Tensor da = ops::chain<ops::Vectorized>(back, sub(back.saved(0), back.saved(1)), grad);
    return {ops::grad_of(back, 0, [&] { return da; }), ops::grad_of(back, 1, [&] { return neg(da); })};
  });
}

/// d^2 / 2 for d = |a - b| up to delta, from there on the tangent: m (d - m / 2) with m = min(d, delta); over `scale`.
Tensor huber(const char* op, const Tensor& a, const Tensor& b, double delta, double scale) {
  const auto loss = [delta, scale]<class T>(T v) {
    const T d = std::abs(v), most = static_cast<T>(delta), m = d > most ? most : d;
    return m * (d - m * T(0.5)) / static_cast<T>(scale);
  };
  return function_of_difference(op, a, b, loss, [delta, scale](auto dy, auto v) {
    const auto least = ops::select_if(v < -delta, ops::number_like(v, -delta), v);
    return dy / ops::number_like(v, scale) * ops::select_if(v > delta, ops::number_like(v, delta), least);
  });
}

}  // namespace

Tensor mse_loss(const Tensor& prediction, const Tensor& target, Reduction reduction) {
  const Tensor losses = function_of_difference(
      "mse_loss", prediction, target, [](auto v) { return v * v; }, [](auto dy, auto v) { return dy * (v + v); });
  return ops::reduced("mse_loss", losses, reduction);
}

Tensor l1_loss(const Tensor& prediction, const Tensor& target, Reduction reduction) {
  return ops::reduced("l1_loss", abs(difference("l1_loss", prediction, target)), reduction);
}

Tensor smooth_l1_loss(const Tensor& prediction, const Tensor& target, const SmoothL1Options& options) {
  constexpr const char* op = "smooth_l1_loss";
  ops::check_floating(op, prediction);
  ONESTEP_CHECK(ConfigError, options.beta >= 0, op, ": beta cannot be negative: got ", options.beta);
  if (options.beta == 0) return ops::reduced(op, abs(difference(op, prediction, target)), options.reduction);
  return ops::reduced(op, huber(op, prediction, target, options.beta, options.beta), options.reduction);
}

Tensor huber_loss(const Tensor& prediction, const Tensor& target, const HuberOptions& options) {
  constexpr const char* op = "huber_loss";
  ops::check_floating(op, prediction);
  ONESTEP_CHECK(ConfigError, options.delta > 0, op, ": delta must be positive: got ", options.delta);
  return ops::reduced(op, huber(op, prediction, target, options.delta, 1), options.reduction);
}

Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, const PoissonNllOptions& o) {
  constexpr const char* op = "poisson_nll_loss";
  broadcast_shapes(op, input.shape(), target.shape());
  Tensor losses = o.log_input ? exp(input) - target * input : input - target * log(input + o.eps);
  if (o.full) {
    const Tensor stirling = target * log(target) - target + log(target * (2 * std::numbers::pi)) * 0.5;
    losses = losses + masked_fill(stirling, le(target, 1), 0);
  }
  return ops::reduced(op, losses, o.reduction);
}

Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var, const GaussianNllOptions& o) {
  constexpr const char* op = "gaussian_nll_loss";
  ops::check_floating(op, input);
  broadcast_shapes(op, input.shape(), target.shape());
  const Tensor spread = var.dim() + 1 == input.dim() ? unsqueeze(var, -1) : var;
  int different = 0;
  for (int i = 0; i < input.dim() && spread.dim() == input.dim(); ++i)
    if (spread.shape()[i] != input.shape()[i]) different += spread.shape()[i] == 1 ? 1 : input.dim();
  ONESTEP_CHECK(ShapeError, spread.dim() == input.dim() && different <= 1, op, ": var of shape ", var.shape(),
                " for an input of shape ", input.shape(), " (the same, or one size is 1 or the last one is not there)");
  ONESTEP_CHECK(ConfigError, !any(lt(var, 0)).item<bool>(), op, ": var has a negative element");
  const Tensor v = ops::raised(spread, o.eps), d = sub(input, target);
  Tensor losses = (log(v) + d * d / v) * 0.5;
  if (o.full) losses = losses + 0.5 * std::log(2 * std::numbers::pi);
  return ops::reduced(op, losses, o.reduction);
}

}  // namespace onestep
