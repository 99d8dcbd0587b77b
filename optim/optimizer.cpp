#include "optim/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "autograd/creation.h"
#include "autograd/kernels/kernels.h"
#include "autograd/node.h"
#include "autograd/ops_index.h"
#include "autograd/ops_math.h"
#include "autograd/ops_shape.h"
#include "autograd/portable_math.h"
#include "autograd/tensor.h"

namespace onestep::optim {
namespace {

/// Rough nanoseconds of one element of the rarer updates, which are plain loops here; SGD and Adam have kernels.
constexpr double kUpdateCost = 2.0;

void check_at_least_0(const char* name, double value) {
  ONESTEP_CHECK(ConfigError, value >= 0, "optimizer: ", name, " must be at least 0: got ", value);
}

void check_decay_rate(const char* name, double rate) {
  ONESTEP_CHECK(ConfigError, rate >= 0 && rate < 1, "optimizer: ", name, " must be at least 0 and below 1: got ", rate);
}

}  // namespace

Optimizer::Optimizer(const ParameterGroups& groups, double lr, double weight_decay, std::vector<std::string_view> state_names)
    : state_names_(std::move(state_names)), lr_(lr) {
  check_at_least_0("lr", lr);
  ONESTEP_CHECK(ConfigError, groups.size() > 1 || (groups.size() == 1 && !groups.begin()->parameters.empty()),
                "optimizer: there are no parameters");
  std::set<const Node*> listed;
  for (const ParameterGroup& group : groups) {
    const double decay = group.weight_decay.value_or(weight_decay);
    check_at_least_0("weight_decay", decay);
    for (const Tensor& parameter : group.parameters) {
      ONESTEP_CHECK(GradError, parameter.requires_grad() && parameter.is_leaf(), "optimizer: a tensor of shape ",
                    parameter.shape(), " is not a parameter (needs a leaf with requires_grad_())");
      ONESTEP_CHECK(ShapeError, parameter.is_contiguous(), "optimizer: a parameter of shape ", parameter.shape(),
                    " is not contiguous");
      ONESTEP_CHECK(ConfigError, listed.insert(parameter.node().get()).second, "optimizer: a parameter of shape ",
                    parameter.shape(), " is listed twice");
      Slot& slot = slots_.emplace_back(Slot{parameter, decay, 0, {}});
      for (size_t i = 0; i < state_names_.size(); ++i) slot.state.push_back(zeros_like(parameter));
    }
  }
}

void Optimizer::step() {
  const NoGradGuard no_grad;
  for (Slot& slot : slots_) {
    const Tensor grad = slot.parameter.grad();
    if (!grad.defined()) continue;
    ++slot.step;
    update(slot, contiguous(grad));
  }
}

void Optimizer::zero_grad() {
  for (Slot& slot : slots_) slot.parameter.zero_grad();
}

const std::string& Optimizer::name_of(const Tensor& parameter, const nn::NamedTensors& parameters) {
  const auto same = [&](const auto& named) { return &named.second.impl() == &parameter.impl(); };
  const auto found = std::find_if(parameters.begin(), parameters.end(), same);
  ONESTEP_CHECK(ConfigError, found != parameters.end(), "optimizer: a parameter of shape ", parameter.shape(), " has no name");
  return found->first;
}

nn::NamedTensors Optimizer::state_dict(const nn::NamedTensors& parameters) const {
  nn::NamedTensors state;
  for (const Slot& slot : slots_) {
    const std::string prefix = name_of(slot.parameter, parameters) + ".";
    state.emplace_back(prefix + "step", from_values(std::vector<int64_t>{slot.step}, {}));
    for (size_t i = 0; i < state_names_.size(); ++i) state.emplace_back(prefix + std::string(state_names_[i]), slot.state[i]);
  }
  return state;
}

void Optimizer::load_state_dict(const nn::NamedTensors& parameters, const nn::NamedTensors& state) {
  nn::NamedTensors own;
  for (const Slot& slot : slots_) own.emplace_back(name_of(slot.parameter, parameters), slot.parameter);
  const std::vector<ParameterState> read = read_optimizer_state(own, state_names_, state);
  const NoGradGuard no_grad;
  for (size_t s = 0; s < slots_.size(); ++s) {
    slots_[s].step = read[s].step;
    for (size_t i = 0; i < state_names_.size(); ++i) copy_(slots_[s].state[i], read[s].tensors[i]);
  }
}

std::vector<ParameterState> read_optimizer_state(const nn::NamedTensors& parameters,
                                                 const std::vector<std::string_view>& state_names,
                                                 const nn::NamedTensors& state) {
  std::map<std::string, Tensor> given(state.begin(), state.end());
  const auto take = [&given](const std::string& name, const Shape& shape, DType dtype) {
    const auto found = given.find(name);
    ONESTEP_CHECK(ConfigError, found != given.end(), "optimizer: the state ", name, " is missing");
    const Tensor tensor = found->second;
    given.erase(found);
    ONESTEP_CHECK(ConfigError, tensor.shape() == shape && tensor.dtype() == dtype, "optimizer: the state ", name, " is ",
                  tensor.dtype(), ' ', tensor.shape(), ", must be ", dtype, ' ', shape);
    return tensor;
  };
  std::vector<ParameterState> read;
  for (const auto& [name, parameter] : parameters) {
    ParameterState& own = read.emplace_back(ParameterState{take(name + ".step", {}, DType::int64).item<int64_t>(), {}});
    ONESTEP_CHECK(ConfigError, own.step >= 0, "optimizer: the state ", name, ".step is negative: ", own.step);
    for (const std::string_view tensor : state_names)
      own.tensors.push_back(take(name + "." + std::string(tensor), parameter.shape(), parameter.dtype()));
  }
  ONESTEP_CHECK(ConfigError, given.empty(), "optimizer: the state ", given.empty() ? "" : given.begin()->first,
                " belongs to no parameter");
  return read;
}

// ---- SGD

SGD::SGD(const ParameterGroups& groups, const SGDOptions& options)
    : Optimizer(groups, options.lr, options.weight_decay,
                options.momentum != 0 ? std::vector<std::string_view>{"momentum_buffer"} : std::vector<std::string_view>{}),
      options_(options) {
  check_at_least_0("momentum", options.momentum);
  ONESTEP_CHECK(ConfigError, !options.nesterov || (options.momentum > 0 && options.dampening == 0),
                "sgd: nesterov needs momentum > 0 and dampening = 0: got ", options.momentum, " and ", options.dampening);
}

void sgd_update(Tensor parameter, const Tensor& grad, Tensor buffer, const kernels::SgdUpdate& update) {
  dispatch_floating(grad.dtype(), "sgd", [&]<class T>() {
    T* p = parameter.mutable_data<T>();
    T* b = buffer.defined() ? buffer.mutable_data<T>() : nullptr;
    kernels::sgd_step(p, grad.data<T>(), b, grad.numel(), update);
  });
}

void SGD::update(Slot& slot, const Tensor& grad) {
  sgd_update(slot.parameter, grad, slot.state.empty() ? Tensor() : slot.state[0],
             {lr(), options_.momentum, options_.dampening, slot.weight_decay, options_.nesterov, slot.step == 1});
}

// ---- Adam, AdamW

Adam::Adam(const ParameterGroups& groups, const AdamOptions& options, bool decoupled)
    : Optimizer(groups, options.lr, options.weight_decay,
                options.amsgrad ? std::vector<std::string_view>{"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}
                                : std::vector<std::string_view>{"exp_avg", "exp_avg_sq"}),
      options_(options),
      decoupled_(decoupled) {
  check_at_least_0("eps", options.eps);
  check_decay_rate("betas[0]", options.betas[0]);
  check_decay_rate("betas[1]", options.betas[1]);
}

namespace {

/// One AMSGrad update (Reddi et al. 2018): Adam with `largest`, the maximum of v so far, in the denominator.
template <class T>
void amsgrad_step(T* p, const T* g, T* m, T* v, T* largest, int64_t n, const kernels::AdamUpdate& update) {
  const auto s = kernels::adam_scalars<T>(update);
  kernels::parallel_for(n, kUpdateCost, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T gi = s.decoupled ? g[i] : g[i] + s.weight_decay * p[i];
      m[i] += s.one_minus_beta1 * (gi - m[i]);
      v[i] = s.beta2 * v[i] + s.one_minus_beta2 * gi * gi;
      largest[i] = v[i] > largest[i] ? v[i] : largest[i];
      p[i] = (s.decoupled ? s.shrink * p[i] : p[i]) +
             s.minus_step_size * m[i] / (std::sqrt(largest[i]) / s.sqrt_correction2 + s.eps);
    }
  });
}

}  // namespace

void adam_update(Tensor parameter, const Tensor& grad, Tensor exp_avg, Tensor exp_avg_sq, Tensor max_exp_avg_sq,
                 const kernels::AdamUpdate& update) {
  dispatch_floating(grad.dtype(), "adam", [&]<class T>() {
    T* p = parameter.mutable_data<T>();
    T* m = exp_avg.mutable_data<T>();
    T* v = exp_avg_sq.mutable_data<T>();
    if (max_exp_avg_sq.defined())
      amsgrad_step(p, grad.data<T>(), m, v, max_exp_avg_sq.mutable_data<T>(), grad.numel(), update);
    else
      kernels::adam_step(p, grad.data<T>(), m, v, grad.numel(), update);
  });
}

void Adam::update(Slot& slot, const Tensor& grad) {
  adam_update(slot.parameter, grad, slot.state[0], slot.state[1], options_.amsgrad ? slot.state[2] : Tensor(),
              {lr(), options_.betas[0], options_.betas[1], options_.eps, slot.weight_decay, slot.step, decoupled_});
}

// ---- RMSprop

RMSprop::RMSprop(const ParameterGroups& groups, const RMSpropOptions& options)
    : Optimizer(groups, options.lr, options.weight_decay, {"square_avg"}), options_(options) {
  check_at_least_0("eps", options.eps);
  ONESTEP_CHECK(ConfigError, options.alpha >= 0 && options.alpha <= 1, "optimizer: alpha must be from 0 to 1: got ",
                options.alpha);
}

void RMSprop::update(Slot& slot, const Tensor& grad) {
  dispatch_floating(grad.dtype(), "rmsprop", [&]<class T>() {
    T* p = slot.parameter.mutable_data<T>();
    T* v = slot.state[0].mutable_data<T>();
    const T* g = grad.data<T>();
    const auto alpha = static_cast<T>(options_.alpha), rest = static_cast<T>(1 - options_.alpha);
    const auto rate = static_cast<T>(lr()), eps = static_cast<T>(options_.eps), decay = static_cast<T>(slot.weight_decay);
    kernels::parallel_for(grad.numel(), kUpdateCost, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T gi = g[i] + decay * p[i];
        v[i] = alpha * v[i] + rest * gi * gi;
        p[i] -= rate * gi / (std::sqrt(v[i]) + eps);
      }
    });
  });
}

// ---- Adagrad

Adagrad::Adagrad(const ParameterGroups& groups, const AdagradOptions& options)
    : Optimizer(groups, options.lr, options.weight_decay, {"sum"}), options_(options) {
  check_at_least_0("eps", options.eps);
}

void Adagrad::update(Slot& slot, const Tensor& grad) {
  dispatch_floating(grad.dtype(), "adagrad", [&]<class T>() {
    T* p = slot.parameter.mutable_data<T>();
    T* sum = slot.state[0].mutable_data<T>();
    const T* g = grad.data<T>();
    const auto rate = static_cast<T>(lr()), eps = static_cast<T>(options_.eps), decay = static_cast<T>(slot.weight_decay);
    kernels::parallel_for(grad.numel(), kUpdateCost, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T gi = g[i] + decay * p[i];
        sum[i] += gi * gi;
        p[i] -= rate * gi / (std::sqrt(sum[i]) + eps);
      }
    });
  });
}

// ---- gradient clipping

namespace {

/// Folds |g|^power into a running sum, or the largest |g| for an infinite power; NaN wins.
double fold(double total, double value, double power) {
  if (!std::isinf(power)) return total + value;
  return value > total || std::isnan(value) ? value : total;
}

template <class T>
double chunk_power_sum(const T* g, int64_t n, double power) {
  if (power == 2.0) return static_cast<double>(kernels::sum_squares(g, n));
  const T exponent = static_cast<T>(power);
  std::array<T, 256> block;
  double total = 0;
  for (int64_t i = 0; i < n; i += std::ssize(block)) {
    const int64_t count = std::min<int64_t>(std::ssize(block), n - i);
    std::transform(g + i, g + i + count, block.begin(), [](T v) { return std::abs(v); });
    if (power != 1.0 && !std::isinf(power)) kernels::pow(block.data(), 1, &exponent, 0, block.data(), count);
    for (int64_t j = 0; j < count; ++j) total = fold(total, static_cast<double>(block[static_cast<size_t>(j)]), power);
  }
  return total;
}

/// Chunks of one size whatever the number of threads; to be folded in order in double.
std::vector<double> power_sums(const Tensor& parameter, double power) {
  const int64_t n = parameter.numel();
  std::vector<double> parts(static_cast<size_t>((n + kNormChunk - 1) / kNormChunk));
  if (!parameter.grad().defined()) return parts;
  const Tensor grad = contiguous(parameter.grad());
  dispatch_floating(grad.dtype(), "clip_grad_norm_", [&]<class T>() {
    const T* g = grad.data<T>();
    kernels::parallel_for(static_cast<int64_t>(parts.size()), static_cast<double>(std::min(n, kNormChunk)),
                          [&](int64_t begin, int64_t end) {
                            for (int64_t c = begin; c < end; ++c)
                              parts[static_cast<size_t>(c)] =
                                  chunk_power_sum(g + c * kNormChunk, std::min(kNormChunk, n - c * kNormChunk), power);
                          });
  });
  return parts;
}

}  // namespace

std::vector<double> squared_sums(const Tensor& parameter) {
  const NoGradGuard no_grad;
  return power_sums(parameter, 2.0);
}

double clip_factor(double max_norm, double norm) { return max_norm / (norm + 1e-6); }

double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type) {
  ONESTEP_CHECK(ConfigError, norm_type > 0, "clip_grad_norm_: norm_type must be positive: got ", norm_type);
  const NoGradGuard no_grad;
  double total = 0;
  for (const Tensor& parameter : parameters) {
    double sum = 0;
    for (const double part : power_sums(parameter, norm_type)) sum = fold(sum, part, norm_type);
    total = fold(total, sum, norm_type);
  }
  const bool is_norm = std::isinf(norm_type) || norm_type == 1.0;
  const double norm = is_norm ? total : norm_type == 2.0 ? std::sqrt(total) : portable::pow(total, 1.0 / norm_type);
  const double factor = clip_factor(max_norm, norm);
  if (factor < 1.0) {
    for (const Tensor& parameter : parameters) {
      Tensor grad = parameter.grad();
      if (grad.defined()) mul_(grad, factor);
    }
  }
  return norm;
}

}  // namespace onestep::optim
