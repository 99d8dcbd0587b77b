// Losses under PyTorch's signatures.
#include "python/src/op.h"

namespace onestep::python {

using T = const Tensor&;

namespace {

/// The reduction that size_average and reduce ask for, which PyTorch has deprecated, or `r` where neither is given.
Reduction asked(PyObject* average, PyObject* reduce, Reduction r) {
  if (average == Py_None && reduce == Py_None) return r;
  const auto refused = [](PyObject* choice) { return choice != Py_None && PyObject_IsTrue(choice) == 0; };
  return refused(reduce) ? Reduction::none : refused(average) ? Reduction::sum : Reduction::mean;
}

/// The mean, sum or neither of each element's loss times its weight; the mean is one of the weights, too, where `by_weight`.
Tensor weighted(T each, T input, T weight, Reduction r, bool by_weight) {
  if (weight.shape() != input.shape()) fail<ShapeError>("Weights and input must have the same size.");
  const Tensor losses = mul(each, weight);
  if (r == Reduction::none) return losses;
  if (r == Reduction::sum) return sum(losses);
  return by_weight ? div(sum(losses), sum(weight)) : mean(losses);
}

/// The dtype in which scores meet targets that are probabilities; that of the scores where the targets are classes.
DType met(T scores, T target) { return target.is_floating() ? promote_types(scores.dtype(), target.dtype()) : scores.dtype(); }
/// x in a dtype, if it is floating.
Tensor floats_in(T x, DType dtype) { return x.defined() && x.is_floating() ? to(x, dtype) : x; }

template <Tensor (*kLoss)(T, T, Reduction)>
Tensor weighted_or_plain(T x, T y, PyObject* average, PyObject* reduce, Reduction reduction, T weight) {
  const Reduction r = asked(average, reduce, reduction);
  return weight.defined() ? weighted(kLoss(x, y, Reduction::none), x, weight, r, /*by_weight=*/true) : kLoss(x, y, r);
}

}  // namespace

void bind_loss() {
  function(
      "cross_entropy(Tensor input, Tensor target, Tensor? weight=None, any size_average=None, int ignore_index=-100, "
      "any reduce=None, str reduction=\"mean\", float label_smoothing=0.0)",
      +[](T x, T y, T weight, PyObject* average, int64_t ignore, PyObject* reduce, Reduction reduction, double smoothing) {
        const DType dtype = met(x, y);
        const Tensor targets = y.is_floating() ? to(y, dtype) : y.dtype() == DType::uint8 ? to(y, DType::int64) : y;
        return cross_entropy(to(x, dtype), targets,
                             {asked(average, reduce, reduction), ignore, smoothing, floats_in(weight, dtype)});
      });
  function(
      "nll_loss(Tensor input, Tensor target, Tensor? weight=None, any size_average=None, int ignore_index=-100, "
      "any reduce=None, str reduction=\"mean\")",
      +[](T x, T y, T weight, PyObject* average, int64_t ignore, PyObject* reduce, Reduction reduction) {
        return nll_loss(x, y, asked(average, reduce, reduction), ignore, weight);
      });
  function(
      "multi_margin_loss(Tensor input, Tensor target, int p=1, float margin=1.0, Tensor? weight=None, "
      "any size_average=None, any reduce=None, str reduction=\"mean\")",
      +[](T x, T y, int64_t p, double margin, T weight, PyObject* average, PyObject* reduce, Reduction reduction) {
        return multi_margin_loss(x, y, {asked(average, reduce, reduction), static_cast<int>(p), margin, weight});
      });
  function(
      "binary_cross_entropy(Tensor input, Tensor target, Tensor? weight=None, any size_average=None, any reduce=None, "
      "str reduction=\"mean\")",
      +[](T x, T y, T weight, PyObject* average, PyObject* reduce, Reduction r) {
        return binary_cross_entropy(x, y, {asked(average, reduce, r), weight});
      });
  function(
      "binary_cross_entropy_with_logits(Tensor input, Tensor target, Tensor? weight=None, any size_average=None, "
      "any reduce=None, str reduction=\"mean\", Tensor? pos_weight=None)",
      +[](T x, T y, T weight, PyObject* average, PyObject* reduce, Reduction r, T positive) {
        const DType dtype = met(x, y);  // the result has the target's, as PyTorch's formula, which begins with it
        const Tensor loss =
            binary_cross_entropy_with_logits(to(x, dtype), floats_in(y, dtype),
                                             {asked(average, reduce, r), floats_in(weight, dtype), floats_in(positive, dtype)});
        return x.dtype() == y.dtype() ? loss : floats_in(loss, y.is_floating() ? y.dtype() : dtype);
      });
  function(
      "multilabel_soft_margin_loss(Tensor input, Tensor target, Tensor? weight=None, any size_average=None, "
      "any reduce=None, str reduction=\"mean\")",
      +[](T x, T y, T weight, PyObject* average, PyObject* reduce, Reduction r) {
        const DType dtype = met(x, y);
        return multilabel_soft_margin_loss(to(x, dtype), floats_in(y, dtype),
                                           {asked(average, reduce, r), floats_in(weight, dtype)});
      });
  const auto plain = [](const std::string& name, auto f) {
    function((name + "(Tensor input, Tensor target, any size_average=None, any reduce=None, str reduction=\"mean\")").c_str(),
             f);
  };
  function(
      "mse_loss(Tensor input, Tensor target, any size_average=None, any reduce=None, str reduction=\"mean\", "
      "Tensor? weight=None)",
      weighted_or_plain<mse_loss>);
  function(
      "l1_loss(Tensor input, Tensor target, any size_average=None, any reduce=None, str reduction=\"mean\", "
      "Tensor? weight=None)",
      weighted_or_plain<l1_loss>);
  plain(
      "multilabel_margin_loss", +[](T x, T y, PyObject* average, PyObject* reduce, Reduction r) {
        return multilabel_margin_loss(x, y, asked(average, reduce, r));
      });
  function(
      "ctc_loss(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, "
      "str reduction=\"mean\", bool zero_infinity=False)",
      +[](T x, T y, T input, T target, int64_t blank, Reduction r, bool zero_infinity) {
        return ctc_loss(x, y, input, target, {r, blank, zero_infinity});
      });
  plain(
      "soft_margin_loss", +[](T x, T y, PyObject* average, PyObject* reduce, Reduction r) {
        return soft_margin_loss(x, y, asked(average, reduce, r));
      });
  function(
      "kl_div(Tensor input, Tensor target, any size_average=None, any reduce=None, str reduction=\"mean\", "
      "bool log_target=False)",
      +[](T x, T y, PyObject* average, PyObject* reduce, Reduction r, bool log_target) {
        return kl_div(x, y, {asked(average, reduce, r), log_target});
      });
  function(
      "smooth_l1_loss(Tensor input, Tensor target, any size_average=None, any reduce=None, str reduction=\"mean\", "
      "float beta=1.0)",
      +[](T x, T y, PyObject* average, PyObject* reduce, Reduction r, double beta) {
        return smooth_l1_loss(x, y, {asked(average, reduce, r), beta});
      });
  function(
      "huber_loss(Tensor input, Tensor target, str reduction=\"mean\", float delta=1.0, Tensor? weight=None)",
      +[](T x, T y, Reduction r, double delta, T weight) {
        if (!weight.defined()) return huber_loss(x, y, {r, delta});
        return weighted(huber_loss(x, y, {Reduction::none, delta}), x, weight, r, /*by_weight=*/false);
      });
  function(
      "poisson_nll_loss(Tensor input, Tensor target, bool log_input=True, bool full=False, any size_average=None, "
      "float eps=1e-08, any reduce=None, str reduction=\"mean\")",
      +[](T x, T y, bool log_input, bool full, PyObject* average, double eps, PyObject* reduce, Reduction r) {
        return poisson_nll_loss(x, y, {asked(average, reduce, r), log_input, full, eps});
      });
  function(
      "gaussian_nll_loss(Tensor input, Tensor target, Tensor var, bool full=False, float eps=1e-06, str reduction=\"mean\")",
      +[](T x, T y, T var, bool full, double eps, Reduction r) {
        return gaussian_nll_loss(x, y, var, {r, full, eps});
      });
  function(
      "gaussian_nll_loss(Tensor input, Tensor target, float var, bool full=False, float eps=1e-06, str reduction=\"mean\")",
      +[](T x, T y, double var, bool full, double eps, Reduction r) {
        return gaussian_nll_loss(x, y, onestep::full_like(x, var), {r, full, eps});
      });
  function(
      "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0, any size_average=None, "
      "any reduce=None, str reduction=\"mean\")",
      +[](T a, T b, T y, double margin, PyObject* average, PyObject* reduce, Reduction r) {
        ONESTEP_CHECK(ShapeError, a.dim() == b.dim() && a.dim() == y.dim(),
                      "margin_ranking_loss: tensors of different dims: ", a.shape(), ", ", b.shape(), " and ", y.shape());
        return margin_ranking_loss(a, b, y, {asked(average, reduce, r), margin});
      });
  function(
      "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0, any size_average=None, "
      "any reduce=None, str reduction=\"mean\")",
      +[](T a, T b, T y, double margin, PyObject* average, PyObject* reduce, Reduction r) {
        return cosine_embedding_loss(a, b, y, {asked(average, reduce, r), margin});
      });
  function(
      "hinge_embedding_loss(Tensor input, Tensor target, float margin=1.0, any size_average=None, any reduce=None, "
      "str reduction=\"mean\")",
      +[](T x, T y, double margin, PyObject* average, PyObject* reduce, Reduction r) {
        return hinge_embedding_loss(x, y, {asked(average, reduce, r), margin});
      });
  function(
      "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2, float eps=1e-06, "
      "bool swap=False, any size_average=None, any reduce=None, str reduction=\"mean\")",
      +[](T a, T p, T n, double margin, double norm, double eps, bool swap, PyObject* average, PyObject* reduce, Reduction r) {
        return triplet_margin_loss(a, p, n, {asked(average, reduce, r), margin, norm, eps, swap});
      });
}

}  // namespace onestep::python
