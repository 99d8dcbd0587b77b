// The optimizers' updates for parameters whose state Python keeps.
#include "autograd/kernels/kernels.h"
#include "optim/optimizer.h"
#include "python/src/caster.h"
#include "python/src/op.h"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace onestep::python {
namespace {

using Tensors = std::vector<Tensor>;

/// The kernels take as many elements of every tensor: loaded states and assigned data may be of another shape.
void check_rows(const Tensors& parameters, std::initializer_list<const Tensors*> others) {
  for (const Tensors* rows : others) {
    ONESTEP_CHECK(ConfigError, rows->size() == parameters.size(), "optimizer: ", rows->size(), " tensors for ",
                  parameters.size(), " parameters");
    for (size_t i = 0; i < rows->size(); ++i)
      ONESTEP_CHECK(ShapeError, (*rows)[i].shape() == parameters[i].shape() && (*rows)[i].dtype() == parameters[i].dtype(),
                    "optimizer: a gradient or state is ", (*rows)[i].dtype(), " ", (*rows)[i].shape(), " for a parameter of ",
                    parameters[i].dtype(), " ", parameters[i].shape());
  }
}

/// Calls `update` with tensors whose elements are in order, and writes back those that did not.
template <class F>
void in_order(Tensors tensors, F update) {
  Tensors rows = tensors;
  for (Tensor& x : rows)
    if (x.defined()) x = contiguous(x.detach());
  update(rows);
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows[i].defined() && !rows[i].shares_storage(tensors[i])) copy_(tensors[i], rows[i]);
}

void adam_step(const Tensors& parameters, const Tensors& grads, const Tensors& exp_avgs, const Tensors& exp_avg_sqs,
               const Tensors& max_exp_avg_sqs, int64_t step, double lr, double beta1, double beta2, double eps,
               double weight_decay, bool decoupled) {
  check_rows(parameters, {&grads, &exp_avgs, &exp_avg_sqs, max_exp_avg_sqs.empty() ? &parameters : &max_exp_avg_sqs});
  const nb::gil_scoped_release released;
  const NoGradGuard no_grad;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor largest = max_exp_avg_sqs.empty() ? Tensor() : max_exp_avg_sqs[i];
    in_order({parameters[i], exp_avgs[i], exp_avg_sqs[i], largest}, [&](const Tensors& rows) {
      optim::adam_update(rows[0], contiguous(grads[i]), rows[1], rows[2], rows[3],
                         {lr, beta1, beta2, eps, weight_decay, step, decoupled});
    });
  }
}

void sgd_step(const Tensors& parameters, const Tensors& grads, const Tensors& buffers, bool first, double lr, double momentum,
              double dampening, double weight_decay, bool nesterov) {
  check_rows(parameters, {&grads, buffers.empty() ? &parameters : &buffers});
  const nb::gil_scoped_release released;
  const NoGradGuard no_grad;
  for (size_t i = 0; i < parameters.size(); ++i)
    in_order({parameters[i], buffers.empty() ? Tensor() : buffers[i]}, [&](const Tensors& rows) {
      optim::sgd_update(rows[0], contiguous(grads[i]), rows[1], {lr, momentum, dampening, weight_decay, nesterov, first});
    });
}

}  // namespace

void add_optim(nb::module_& m) {
  m.def(
      "_adamw_step",
      [](const Tensors& params, const Tensors& grads, const Tensors& exp_avgs, const Tensors& exp_avg_sqs, int64_t step,
         double lr, double beta1, double beta2, double eps, double decay, bool decoupled, const Tensors& largest) {
        adam_step(params, grads, exp_avgs, exp_avg_sqs, largest, step, lr, beta1, beta2, eps, decay, decoupled);
      },
      "params"_a, "grads"_a, "exp_avgs"_a, "exp_avg_sqs"_a, "step"_a, "lr"_a, "beta1"_a, "beta2"_a, "eps"_a, "weight_decay"_a,
      "decoupled"_a = true, "max_exp_avg_sqs"_a = nb::list(),
      "One update of each parameter by Adam, or AdamW with `decoupled`; `step` counts from 1. With max_exp_avg_sqs: amsgrad.");
  m.def("_sgd_step", &sgd_step, "params"_a, "grads"_a, "momentum_buffers"_a, "first"_a, "lr"_a, "momentum"_a = 0.0,
        "dampening"_a = 0.0, "weight_decay"_a = 0.0, "nesterov"_a = false,
        "One update of each parameter by SGD; the buffers (an empty list without momentum) are set with `first`.");
  m.def(
      "_clip_grad_norm_",
      [](const Tensors& parameters, double max_norm, double norm_type) {
        return unlocked([&] { return optim::clip_grad_norm_(parameters, max_norm, norm_type); });
      },
      "parameters"_a, "max_norm"_a, "norm_type"_a = 2.0,
      "Scales all gradients to a norm of at most max_norm; returns the norm before.");
  m.attr("clip_grad_norm_") = m.attr("_clip_grad_norm_");
}

}  // namespace onestep::python
