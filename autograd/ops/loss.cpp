// Losses. Cross entropy never forms log-probabilities: of each row of logits it keeps the exps, of x - max, and their sum.
#include <algorithm>

#include "autograd/kernels/kernels.h"
#include "autograd/ops/common.h"

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
    ONESTEP_CHECK(ShapeError, 0 <= t[i] && t[i] < classes, op, ": target ", t[i], " at position ", i, " is out of range for ",
                  classes, " classes");
    ++targets.counted;
  }
  return targets;
}

/// One loss a row -> the reduced loss; the sum has one fixed order.
Tensor reduced(const Tensor& losses, const Shape& shape, Reduction reduction, int64_t counted) {
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

constexpr int64_t kChunk = 1024;  // of a row: stays in the L1 cache; the sums of chunks are added in order

/// What a row of logits x comes to: its maximum m, the sum of exp(x - m), and the sum of x - m.
template <class T>
struct RowSums {
  T max = 0, exps = 0, shifted = 0;
};

/// Leaves exp(x - m) in `exps` unless that is null.
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
// `exps` and `sums` keep exp(x - m) and s for the gradient; exps may be undefined.
template <class T>
void cross_entropy_rows(const Tensor& logits, const Tensor& targets, const CrossEntropyOptions& options, Tensor& exps,
                        Tensor& sums, Tensor& losses) {
  const T* x = logits.data<T>();
  const auto* target = targets.data<int64_t>();
  T *exp = exps.defined() ? exps.mutable_data<T>() : nullptr, *sum = sums.mutable_data<T>(), *loss = losses.mutable_data<T>();
  const int64_t n = logits.shape().back();
  const T smooth = static_cast<T>(options.label_smoothing);
  kernels::parallel_for(losses.numel(), 2.0 * static_cast<double>(n), [&, x, target, exp, sum, loss](int64_t r, int64_t end) {
    for (; r < end; ++r) {
      loss[r] = 0;
      if (target[r] == options.ignore_index) continue;
      const RowSums<T> row = row_sums(x + r * n, exp ? exp + r * n : nullptr, n, smooth != 0);
      sum[r] = row.exps;
      T log_sum;
      kernels::log(&row.exps, &log_sum, 1);
      loss[r] = log_sum - (x[r * n + target[r]] - row.max);
      if (smooth != 0) loss[r] = (1 - smooth) * loss[r] + smooth * (log_sum - row.shifted / static_cast<T>(n));
    }
  });
}

// dx = dloss (softmax(x) - (1 - e) onehot(t) - e / V), and 0 in ignored rows.
template <class T>
void cross_entropy_grad_rows(const Tensor& exps, const Tensor& targets, const Tensor& sums, const RowGradients<T>& dloss,
                             const CrossEntropyOptions& options, Tensor& grad) {
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
      scale_and_shift(exp + r * n, g / sum[r], g * smooth / static_cast<T>(n), dx + r * n, n);
      dx[r * n + target[r]] -= g * (1 - smooth);
    }
  });
}

// For passes that are recorded: the same in ops, with the classes where they stand in the scores.

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
Tensor recorded_cross_entropy_grad(const Backward& b, const CrossEntropyOptions& options, int64_t counted) {
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

/// The scores with classes last, in contiguous rows.
Tensor class_rows(const Tensor& scores) {
  const NoGradGuard no_grad;
  return ops::contiguous_values(permute(scores, class_last(scores.dim())));
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& options) {
  ONESTEP_CHECK(ConfigError, 0 <= options.label_smoothing && options.label_smoothing <= 1,
                "cross_entropy: label_smoothing must lie in [0, 1]: got ", options.label_smoothing);
  const Targets targets = checked_targets("cross_entropy", logits, target, options.ignore_index);
  if (is_narrow(logits.dtype())) return to(cross_entropy(ops::wide(logits), target, options), logits.dtype());
  const int64_t counted = targets.counted;
  // The exps are kept rather than the logits: those may be written to, and no exp is computed twice.
  Tensor exps = detail::should_record({logits}) ? empty(with_class_last(logits.shape()), logits.dtype()) : Tensor();
  Tensor sums = empty(target.numel(), logits.dtype()), losses = empty(target.numel(), logits.dtype());
  dispatch_floating(logits.dtype(), "cross_entropy",
                    [&]<class T>() { cross_entropy_rows<T>(class_rows(logits), targets.values, options, exps, sums, losses); });
  return record("cross_entropy", reduced(losses, target.shape(), options.reduction, counted), {logits}, {exps, targets.values, sums},
                [options, counted](const Backward& b) -> Grads {
                  if (b.recording()) return {recorded_cross_entropy_grad(b, options, counted)};
                  const Tensor &kept = b.saved(0), t = ops::contiguous_values(b.saved(1));
                  Tensor dx = empty(kept.shape(), kept.dtype());
                  dispatch_floating(dx.dtype(), "cross_entropy", [&]<class T>() {
                    const RowGradients<T> dloss(b.grad(), options.reduction, counted);
                    cross_entropy_grad_rows<T>(kept, t, b.saved(2), dloss, options, dx);
                  });
                  return {permute(dx, ops::inverse_order(class_last(dx.dim())))};
                });
}

Tensor nll_loss(const Tensor& log_probabilities, const Tensor& target, Reduction reduction, int64_t ignore_index) {
  const Targets targets = checked_targets("nll_loss", log_probabilities, target, ignore_index);
  if (is_narrow(log_probabilities.dtype()))
    return to(nll_loss(ops::wide(log_probabilities), target, reduction, ignore_index), log_probabilities.dtype());
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
      "nll_loss", reduced(losses, target.shape(), reduction, counted), {log_probabilities}, {targets.values},
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

Tensor mse_loss(const Tensor& prediction, const Tensor& target, Reduction reduction) {
  broadcast_shapes("mse_loss", prediction.shape(), target.shape());  // so that it is not sub that refuses them
  const Tensor difference = sub(prediction, target), squares = mul(difference, difference);
  return reduction == Reduction::mean ? mean(squares) : reduction == Reduction::sum ? sum(squares) : squares;
}

}  // namespace onestep
