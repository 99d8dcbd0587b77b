// Losses of yes and no, and of one distribution against another.
#include "autograd/autocast.h"
#include "autograd/operators.h"
#include "autograd/ops/loss_common.h"
#include "autograd/ops/pointwise.h"

namespace onestep {
namespace {

constexpr double kLeastLog = -100;         // log(0) in binary_cross_entropy
constexpr double kLeastVariance = 1e-12f;  // p (1 - p) in its gradient; PyTorch's constant is a float, too

/// (t - 1) max(log(1 - p), -100) - t max(log p, -100)
Tensor binary_losses(const Tensor& p, const Tensor& t) {
  const NoGradGuard no_grad;
  const Tensor yes = clamp(log(p), kLeastLog), no = clamp(log1p(neg(p)), kLeastLog);
  return (t - 1.0) * no - t * yes;
}

/// losses * weight, where there is one. Throws ShapeError naming `op` unless it broadcasts to them.
Tensor weighted(const char* op, const Tensor& losses, const Tensor& weight) {
  if (!weight.defined()) return losses;
  ops::expand_values(op, weight, losses.shape());
  return mul(losses, weight);
}

void check_probabilities(const char* op, const char* which, const Tensor& p) {
  ONESTEP_CHECK(ConfigError, all(logical_and(ge(p, 0), le(p, 1))).item<bool>(), op, ": the ", which, " must lie in [0, 1]");
}

}  // namespace

Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const BinaryCrossEntropyOptions& options) {
  constexpr const char* op = "binary_cross_entropy";
  if (ops::autocast_widens(input, target))
    return binary_cross_entropy(ops::autocast_loss_operand(input), ops::autocast_loss_operand(target), options);
  ops::check_same_shape(op, input, target);
  check_probabilities(op, "input", input);
  check_probabilities(op, "target", target);
  const Tensor losses =
      record(op, binary_losses(input, target), {input, target}, {input, target}, [](const Backward& b) -> Grads {
        const Tensor &dy = b.grad(), &p = b.saved(0), &t = b.saved(1);
        Grads grads(2);  // dp = dy (p - t) / (p (1 - p)), dt = dy (log(1 - p) - log p)
        if (b.needs(0)) grads[0] = dy * (p - t) / clamp(p * (1.0 - p), kLeastVariance);
        if (b.needs(1)) grads[1] = dy * (clamp(log(1.0 - p), kLeastLog) - clamp(log(p), kLeastLog));
        return grads;
      });
  return ops::reduced(op, weighted(op, losses, options.weight), options.reduction);
}

namespace {

/// -t log s(x) - (1 - t) log(1 - s(x)), s the sigmoid, as softplus(-x) + (1 - t) x in one pass.
Tensor logit_losses(const char* op, const Tensor& x, const Tensor& t) {
  const auto values = [](auto v, auto yes) { return portable::formulas::softplus(-v) + (1 - yes) * v; };
  return record(op, ops::zip_floating(op, x, t, ops::Vectorized{values}), {x, t}, {x, t}, [](const Backward& b) -> Grads {
    Grads grads(2);  // dx = dy (s(x) - t), dt = -dy x
    if (b.needs(0)) grads[0] = b.grad() * (sigmoid(b.saved(0)) - b.saved(1));
    if (b.needs(1)) grads[1] = neg(b.grad() * b.saved(0));
    return grads;
  });
}

}  // namespace

Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const BinaryCrossEntropyWithLogitsOptions& options) {
  constexpr const char* op = "binary_cross_entropy_with_logits";
  if (ops::autocast_widens(input, target))
    return binary_cross_entropy_with_logits(ops::autocast_loss_operand(input), ops::autocast_loss_operand(target), options);
  ops::check_same_shape(op, input, target);
  const auto losses = [&] {
    if (!options.pos_weight.defined()) return logit_losses(op, input, target);
    // (1 - t) x - (1 + (w - 1) t) log s(x), w the weight of the positive class
    const Tensor weight = weighted(op, target, options.pos_weight - 1.0) + 1.0;
    return (1.0 - target) * input - logsigmoid(input) * weight;
  };
  return ops::reduced(op, weighted(op, losses(), options.weight), options.reduction);
}

Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target, const BinaryCrossEntropyOptions& options) {
  constexpr const char* op = "multilabel_soft_margin_loss";
  if (input.is_floating() && compute_type(target.dtype()) == DType::int64)
    return multilabel_soft_margin_loss(input, to(target, input.dtype()), options);
  ops::check_same_shape(op, input, target);
  ONESTEP_CHECK(ShapeError, input.dim() > 0, op, ": needs a class dim: got shape []");
  if (is_half(input.dtype()))
    return to(multilabel_soft_margin_loss(ops::wide(input), ops::wide(target), {options.reduction, ops::wide(options.weight)}),
              input.dtype());
  const Tensor losses = weighted(op, logit_losses(op, input, target), options.weight);
  return ops::reduced(op, mean(losses, -1), options.reduction);
}

Tensor soft_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  constexpr const char* op = "soft_margin_loss";
  ops::check_floating(op, input);
  broadcast_shapes(op, input.shape(), target.shape());
  return 0.0 - ops::reduced(op, logsigmoid(mul(input, target)), reduction);
}

Tensor kl_div(const Tensor& input, const Tensor& target, const KlDivOptions& options) {
  constexpr const char* op = "kl_div";
  if (ops::autocast_widens(input, target))
    return kl_div(ops::autocast_loss_operand(input), ops::autocast_loss_operand(target), options);
  ops::check_floating(op, input);
  broadcast_shapes(op, input.shape(), target.shape());
  const auto losses = [&] {
    if (options.log_target) return exp(target) * (target - input);
    return target * log(masked_fill(target, eq(target, 0), 1)) - target * input;
  };
  if (options.reduction != Reduction::batchmean) return ops::reduced(op, losses(), options.reduction);
  return input.dim() == 0 ? sum(losses()) : div(sum(losses()), input.size(0));
}

}  // namespace onestep
