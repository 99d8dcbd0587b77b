// Losses. Cross entropy never forms log-probabilities: of each row of logits it keeps the exps, of x - max, and their sum.
#include <algorithm>
#include <limits>

#include "autograd/autocast.h"
#include "autograd/creation.h"
#include "autograd/kernels/kernels.h"
#include "autograd/operators.h"
#include "autograd/ops/loss_common.h"
#include "autograd/ops_index.h"
#include "autograd/ops_nn.h"

namespace onestep {
namespace {

/// Moves the class dim (1, or 0 of a vector) last: [N, V, ...] -> [N, ..., V].
Shape class_last(int rank) {
  Shape order;
  for (int i = 0; i < rank; ++i)
    if (i != 1) order.push_back(i);
  if (rank > 1) order.push_back(1);
  return order;
}

Shape with_class_last(Shape shape) {
  if (shape.rank() < 2) return shape;
  const int64_t classes = shape[1];
  shape.erase(1);
  shape.push_back(classes);
  return shape;
}

/// The row-major int64 targets and how many of them count. Throws unless they fit `scores` [V], [N, V] or [N, V, ...].
struct Targets {
  Tensor values;
  int64_t counted = 0;
};

Targets checked_targets(const char* op, const Tensor& scores, const Tensor& target, int64_t ignore_index) {
  ops::check_floating(op, scores);
  ONESTEP_CHECK(ShapeError, scores.dim() > 0, op, ": needs a class dim: got shape []");
  ONESTEP_CHECK(DTypeError, target.dtype() == DType::int64 || target.dtype() == DType::uint8, op,
                ": targets must be int64 or uint8 class indices: got ", target.dtype());
  const Shape shape = with_class_last(scores.shape());
  const int64_t classes = shape.back();
  Shape wanted = shape, flattened = scores.shape();
  wanted.erase(wanted.rank() - 1);
  flattened.erase(flattened.rank() - 1);
  ONESTEP_CHECK(ShapeError, target.shape() == wanted, op, ": targets of shape ", target.shape(), " for scores of shape ",
                scores.shape(), target.shape() == flattened ? " (the class dim is dim 1: flatten both to rows first)" : "");
  Targets targets{ops::contiguous_values(to(target, DType::int64))};
  const auto* t = targets.values.data<int64_t>();
  for (int64_t i = 0; i < target.numel(); ++i) {
    if (t[i] == ignore_index) continue;
    ONESTEP_CHECK(IndexError, 0 <= t[i] && t[i] < classes, op, ": target ", t[i], " at position ", i, " is out of range for ",
                  classes, " classes");
    ++targets.counted;
  }
  return targets;
}

/// One loss a row -> the reduced loss; the sum has one fixed order.
Tensor reduced(const char* op, const Tensor& losses, const Shape& shape, Reduction reduction, int64_t counted) {
  ops::check_reduction(op, reduction);
  if (reduction == Reduction::none) return view(losses, shape);
  Tensor y = empty({}, losses.dtype());
  dispatch_floating(y.dtype(), "loss", [&]<class T>() {
    const T total = kernels::sum(losses.data<T>(), losses.numel());
    *y.mutable_data<T>() = reduction == Reduction::mean ? total / static_cast<T>(counted) : total;
  });
  return y;
}

/// The gradient of each row's loss, from the gradient of the reduced one.
template <class T>
struct RowGradients {
  RowGradients(const Tensor& grad, Reduction reduction, int64_t counted)
      : values(ops::contiguous_values(grad)),
        first(values.data<T>()),
        step(reduction == Reduction::none ? 1 : 0),
        divisor(static_cast<T>(reduction == Reduction::mean ? counted : 1)) {}
  T operator[](int64_t row) const { return first[row * step] / divisor; }

  Tensor values;
  const T* first;
  int64_t step;
  T divisor;
};

/// The options of a cross entropy without weights, as its rule keeps them.
struct PlainOptions {
  Reduction reduction;
  int64_t ignore_index;
  double label_smoothing;
};

constexpr int64_t kChunk = 1024;  // of a row: stays in the L1 cache; the sums of chunks are added in order

/// What a row of logits x comes to: its maximum m, the sum of exp(x - m), and the sum of x - m.
template <class T>
struct RowSums {
  T max = 0, exps = 0, shifted = 0;
};

/// Leaves exp(x - m) in `exps` unless that is null; it may be x.
template <class T>
RowSums<T> row_sums(const T* x, T* exps, int64_t n, bool want_shifted) {
  RowSums<T> sums;
  sums.max = kernels::max(x, n);
  T chunk[kChunk];
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t count = std::min(kChunk, n - i);
    T* const buffer = exps ? exps + i : chunk;
    kernels::sub(x + i, 1, &sums.max, 0, buffer, count);
    if (want_shifted) sums.shifted += kernels::sum(buffer, count);
    kernels::exp(buffer, buffer, count);
    sums.exps += kernels::sum(buffer, count);
  }
  return sums;
}

/// dx = scale exps - shift
template <class T>
void scale_and_shift(const T* exps, T scale, T shift, T* dx, int64_t n) {
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t count = std::min(kChunk, n - i);
    kernels::mul(exps + i, 1, &scale, 0, dx + i, count);
    if (shift != 0) kernels::sub(dx + i, 1, &shift, 0, dx + i, count);
  }
}

// -log p_t = log(sum exp(x - m)) - (x_t - m); smoothing e mixes in the mean over all classes:
// loss = (1 - e) (log s - (x_t - m)) + e (log s - mean(x - m)).
// `exps` and `sums` keep exp(x - m) and s for the gradient; exps may be undefined, or the logits.
template <class T>
void cross_entropy_rows(const Tensor& logits, const Tensor& targets, const PlainOptions& options, Tensor& exps, Tensor& sums,
                        Tensor& losses) {
  const T* x = logits.data<T>();
  const auto* target = targets.data<int64_t>();
  T *exp = exps.defined() ? exps.mutable_data<T>() : nullptr, *sum = sums.mutable_data<T>(), *loss = losses.mutable_data<T>();
  const int64_t n = logits.shape().back();
  const T smooth = static_cast<T>(options.label_smoothing);
  kernels::parallel_for(losses.numel(), 2.0 * static_cast<double>(n), [&, x, target, exp, sum, loss](int64_t r, int64_t end) {
    for (; r < end; ++r) {
      loss[r] = 0;
      if (target[r] == options.ignore_index) continue;
      const T own = x[r * n + target[r]];
      const RowSums<T> row = row_sums(x + r * n, exp ? exp + r * n : nullptr, n, smooth != 0);
      sum[r] = row.exps;
      T log_sum;
      kernels::log(&row.exps, &log_sum, 1);
      loss[r] = -((own - row.max) - log_sum);  // -0 where the class has all of the probability, as in PyTorch
      if (smooth != 0) loss[r] = (1 - smooth) * loss[r] + smooth * (log_sum - row.shifted / static_cast<T>(n));
    }
  });
}

// dx = dloss (softmax(x) - (1 - e) onehot(t) - e / V), and 0 in ignored rows; dx may be the exps.
template <class T>
void cross_entropy_grad_rows(const Tensor& exps, const Tensor& targets, const Tensor& sums, const RowGradients<T>& dloss,
                             const PlainOptions& options, Tensor& grad) {
  const T *exp = exps.data<T>(), *sum = sums.data<T>();
  const auto* target = targets.data<int64_t>();
  T* dx = grad.mutable_data<T>();
  const int64_t n = exps.shape().back();
  const T smooth = static_cast<T>(options.label_smoothing);
  kernels::parallel_for(targets.numel(), 0.5 * static_cast<double>(n), [&, exp, sum, target, dx](int64_t r, int64_t end) {
    for (; r < end; ++r) {
      if (target[r] == options.ignore_index) {
        std::fill_n(dx + r * n, n, T(0));
        continue;
      }
      const T g = dloss[r];
      // Without smoothing no shift, even of an infinite g.
      scale_and_shift(exp + r * n, g / sum[r], smooth == 0 ? T(0) : g * smooth / static_cast<T>(n), dx + r * n, n);
      dx[r * n + target[r]] -= g * (1 - smooth);
    }
  });
}

// For passes that are recorded: the same in ops, with the classes where they are in the scores.

int class_dim(const Shape& scores) { return scores.rank() > 1 ? 1 : 0; }

/// True at the target's class of each row that counts: bool, of the scores' shape.
Tensor at_targets(const Tensor& target, const Shape& scores, int64_t ignore_index) {
  const int dim = class_dim(scores);
  Shape classes = Shape::filled(scores.rank(), 1);
  classes[dim] = scores[dim];
  const Tensor rows = unsqueeze(target, dim);
  return logical_and(eq(view(arange(scores[dim]), classes), rows), ne(rows, ignore_index));
}

/// The gradient of each row's loss, to be broadcast over its classes.
Tensor row_gradients(const Tensor& dy, const Shape& scores, Reduction reduction, int64_t counted) {
  if (reduction == Reduction::none) return unsqueeze(dy, class_dim(scores));
  return reduction == Reduction::mean ? dy / static_cast<double>(counted) : dy;
}

/// dx = dloss (softmax(x) - (1 - e) onehot(t) - e / V), the logits being the logarithms of their exps but for the same number
/// in a row.
Tensor recorded_cross_entropy_grad(const Backward& b, const PlainOptions& options, int64_t counted) {
  const Shape& shape = b.input_shape(0);
  const Tensor &target = b.saved(1), ignored = unsqueeze(eq(target, options.ignore_index), class_dim(shape));
  Tensor wanted, logits;
  {
    const NoGradGuard no_grad;
    const Tensor exps = permute(b.saved(0), ops::inverse_order(class_last(shape.rank())));
    logits = log(masked_fill(exps, ignored, 1));
    wanted = to(at_targets(target, shape, options.ignore_index), exps.dtype()) * (1 - options.label_smoothing) +
             options.label_smoothing / static_cast<double>(shape[class_dim(shape)]);
  }
  const Tensor error = softmax(b.input(0, logits), class_dim(shape)) - wanted;
  return masked_fill(error * row_gradients(b.grad(), shape, options.reduction, counted), ignored, 0);
}

/// `weight` [V] as factors of the scores. Throws unless it has one weight a class.
Tensor class_factors(const char* op, const Tensor& weight, const Tensor& scores) {
  const int64_t classes = scores.size(class_dim(scores.shape()));
  ONESTEP_CHECK(ShapeError, weight.shape() == Shape{classes}, op, ": weight needs one value for each of ", classes,
                " classes: got shape ", weight.shape());
  ops::check_same_dtype(op, scores, weight);
  Shape shape = Shape::filled(scores.dim(), 1);
  shape[class_dim(scores.shape())] = classes;
  return view(contiguous(weight), shape);
}

/// The weight of every target's class, 0 where it is ignored.
Tensor target_weights(const Tensor& weight, const Tensor& target, int64_t ignore_index) {
  const Tensor ignored = eq(target, ignore_index), place = masked_fill(target, ignored, 0);
  return masked_fill(view(index_select(weight, 0, flatten(place)), target.shape()), ignored, 0);
}

/// One weighted loss a target -> the reduced loss: the mean is over the weights.
Tensor reduced_by_weight(const char* op, const Tensor& losses, const Tensor& weights, Reduction reduction) {
  return reduction == Reduction::mean ? div(sum(losses), sum(weights)) : ops::reduced(op, losses, reduction);
}

/// Cross entropy of classes with weights, by log_softmax.
Tensor weighted_cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& o) {
  constexpr const char* op = "cross_entropy";
  const Tensor factors = class_factors(op, o.weight, logits), weights = target_weights(o.weight, target, o.ignore_index);
  const Tensor p = log_softmax(logits, class_dim(logits.shape()));
  Tensor losses = mul(nll_loss(p, target, Reduction::none, o.ignore_index), weights);
  if (o.label_smoothing > 0) {
    const Tensor all = masked_fill(neg(sum(mul(p, factors), class_dim(p.shape()))), eq(target, o.ignore_index), 0);
    losses = losses * (1 - o.label_smoothing) + all * (o.label_smoothing / static_cast<double>(o.weight.numel()));
  }
  return reduced_by_weight(op, losses, weights, o.reduction);
}

/// -sum(weight target log softmax(logits)) over the classes, the target a probability for each.
Tensor cross_entropy_of_probabilities(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& o) {
  constexpr const char* op = "cross_entropy";
  ONESTEP_CHECK(ConfigError, o.ignore_index < 0, op, ": ignore_index does not go with probabilities: got ", o.ignore_index);
  const int dim = class_dim(logits.shape());
  const double even = o.label_smoothing / static_cast<double>(std::max<int64_t>(logits.size(dim), 1));
  Tensor p = log_softmax(logits, dim);
  if (o.weight.defined()) p = mul(p, class_factors(op, o.weight, logits));
  const Tensor share = o.label_smoothing > 0 ? target * (1 - o.label_smoothing) + even : target;
  return ops::reduced(op, neg(sum(mul(p, share), dim)), o.reduction);
}

/// The scores with classes last, in contiguous rows.
Tensor class_rows(const Tensor& scores) {
  const NoGradGuard no_grad;
  return ops::contiguous_values(permute(scores, class_last(scores.dim())));
}

}  // namespace

// NOLINTNEXTLINE(performance-unnecessary-value-param): a handle of its own tells whether there are others
Tensor cross_entropy(Tensor logits, const Tensor& target, const CrossEntropyOptions& options) {
  ONESTEP_CHECK(ConfigError, 0 <= options.label_smoothing && options.label_smoothing <= 1,
                "cross_entropy: label_smoothing must lie in [0, 1]: got ", options.label_smoothing);
  if (is_narrow(logits.dtype())) {
    CrossEntropyOptions wide = options;
    wide.weight = ops::wide(options.weight);
    return to(cross_entropy(ops::wide(logits), target.is_floating() ? ops::wide(target) : target, wide),
              ops::loss_dtype(logits));
  }
  if (target.is_floating() && target.shape() == logits.shape() && logits.dim() > 0)
    return cross_entropy_of_probabilities(logits, target, options);
  const Targets targets = checked_targets("cross_entropy", logits, target, options.ignore_index);
  if (options.weight.defined()) return weighted_cross_entropy(logits, target, options);
  const PlainOptions plain = {options.reduction, options.ignore_index, options.label_smoothing};
  const int64_t counted = targets.counted;
  const bool last = logits.is_last();
  const Tensor rows = class_rows(logits);
  // The exps are kept rather than the logits: those may be written to, and no exp is computed twice.
  Tensor exps;
  if (detail::should_record({logits})) exps = last || rows.is_last() ? rows : empty(rows.shape(), rows.dtype());
  Tensor sums = empty(target.numel(), logits.dtype()), losses = empty(target.numel(), logits.dtype());
  dispatch_floating(logits.dtype(), "cross_entropy",
                    [&]<class T>() { cross_entropy_rows<T>(rows, targets.values, plain, exps, sums, losses); });
  return record("cross_entropy", reduced("cross_entropy", losses, target.shape(), options.reduction, counted), {logits},
                {exps, targets.values, sums}, [plain, counted](const Backward& b) -> Grads {
                  if (b.recording()) return {recorded_cross_entropy_grad(b, plain, counted)};
                  const Tensor &kept = b.saved(0), t = ops::contiguous_values(b.saved(1));
                  Tensor dx = b.reused(0);
                  dispatch_floating(dx.dtype(), "cross_entropy", [&]<class T>() {
                    const RowGradients<T> dloss(b.grad(), plain.reduction, counted);
                    cross_entropy_grad_rows<T>(kept, t, b.saved(2), dloss, plain, dx);
                  });
                  return {permute(dx, ops::inverse_order(class_last(dx.dim())))};
                });
}

Tensor nll_loss(const Tensor& log_probabilities, const Tensor& target, Reduction reduction, int64_t ignore_index,
                const Tensor& weight) {
  const Targets targets = checked_targets("nll_loss", log_probabilities, target, ignore_index);
  if (is_narrow(log_probabilities.dtype()))
    return to(nll_loss(ops::wide(log_probabilities), target, reduction, ignore_index, ops::wide(weight)),
              ops::loss_dtype(log_probabilities));
  if (weight.defined()) {
    class_factors("nll_loss", weight, log_probabilities);
    const Tensor weights = target_weights(weight, target, ignore_index);
    const Tensor losses = mul(nll_loss(log_probabilities, target, Reduction::none, ignore_index), weights);
    return reduced_by_weight("nll_loss", losses, weights, reduction);
  }
  const int64_t counted = targets.counted;
  Tensor losses = zeros(target.numel(), log_probabilities.dtype());
  dispatch_floating(losses.dtype(), "nll_loss", [&]<class T>() {
    const Tensor rows = class_rows(log_probabilities);
    const int64_t *t = targets.values.data<int64_t>(), n = rows.shape().back();
    T* loss = losses.mutable_data<T>();
    for (int64_t r = 0; r < losses.numel(); ++r)
      if (t[r] != ignore_index) loss[r] = -rows.data<T>()[r * n + t[r]];
  });
  return record(
      "nll_loss", reduced("nll_loss", losses, target.shape(), reduction, counted), {log_probabilities}, {targets.values},
      [reduction, ignore_index, counted](const Backward& b) -> Grads {  // dx[t] = -dloss, 0 elsewhere
        if (b.recording()) {
          const Shape& shape = b.input_shape(0);
          const Tensor chosen = at_targets(b.saved(0), shape, ignore_index);
          return {where(chosen, neg(row_gradients(b.grad(), shape, reduction, counted)), zeros({}, b.grad().dtype()))};
        }
        const Tensor t = ops::contiguous_values(b.saved(0));
        Tensor dx = zeros(with_class_last(b.input_shape(0)), b.grad().dtype());
        dispatch_floating(dx.dtype(), "nll_loss", [&]<class T>() {
          const RowGradients<T> dloss(b.grad(), reduction, counted);
          T* to = dx.mutable_data<T>();
          for (int64_t r = 0; r < t.numel(); ++r) {
            const int64_t place = t.data<int64_t>()[r];
            if (place != ignore_index) to[r * dx.shape().back() + place] = -dloss[r];
          }
        });
        return {permute(dx, ops::inverse_order(class_last(dx.dim())))};
      });
}

Tensor multi_margin_loss(const Tensor& input, const Tensor& target, const MultiMarginOptions& o) {
  constexpr const char* op = "multi_margin_loss";
  ONESTEP_CHECK(ConfigError, o.p == 1 || o.p == 2, op, ": p must be 1 or 2: got ", o.p);
  ONESTEP_CHECK(ShapeError, input.dim() <= 2 && target.dim() <= 1, op,
                ": needs scores [C] or [N, C] and targets [] or [N]: got ", input.shape(), " and ", target.shape());
  const Tensor x = input.dim() == 2 ? input : reshape(input, {1, -1}), t = flatten(target), place = unsqueeze(t, -1);
  if (o.weight.defined()) class_factors(op, o.weight, x);
  checked_targets(op, x, t, std::numeric_limits<int64_t>::min());
  if (is_narrow(input.dtype())) {
    MultiMarginOptions wide = o;
    wide.weight = ops::wide(o.weight);
    return to(multi_margin_loss(ops::wide(input), target, wide), ops::loss_dtype(input));
  }
  const Tensor over = relu(x - gather(x, -1, place) + o.margin);
  Tensor losses = masked_fill(o.p == 1 ? over : mul(over, over), eq(arange(x.size(-1)), place), 0);
  if (o.weight.defined()) losses = mul(losses, unsqueeze(index_select(o.weight, 0, t), -1));
  return ops::reduced(op, view(div(sum(losses, -1), x.size(-1)), target.shape()), o.reduction);
}

}  // namespace onestep
