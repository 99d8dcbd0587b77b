#pragma once
// Optimizers with PyTorch's update rules, defaults and arithmetic order.
#include <array>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nn/module.h"

namespace onestep::kernels {
struct AdamUpdate;
struct SgdUpdate;
}  // namespace onestep::kernels

namespace onestep::optim {

/// Parameters that share a weight decay; the optimizer's own unless given.
struct ParameterGroup {
  std::vector<Tensor> parameters;
  std::optional<double> weight_decay = {};
};

/// What an optimizer trains: `net.parameters()`, a braced list of tensors, or groups.
class ParameterGroups {
 public:
  ParameterGroups(const std::vector<Tensor>& parameters) : groups_{{parameters}} {}
  ParameterGroups(std::initializer_list<Tensor> parameters) : groups_{{parameters}} {}
  ParameterGroups(std::vector<ParameterGroup> groups) : groups_(std::move(groups)) {}
  ParameterGroups(std::initializer_list<ParameterGroup> groups) : groups_(groups) {}
  size_t size() const { return groups_.size(); }
  const ParameterGroup* begin() const { return groups_.data(); }
  const ParameterGroup* end() const { return groups_.data() + groups_.size(); }

 private:
  std::vector<ParameterGroup> groups_;
};

/// Base of all optimizers: owns what each parameter remembers between steps and walks over the parameters. Constructors throw
/// ConfigError on a number that is NaN or out of its range: lr, eps, momentum and weight_decay are at least 0, betas
/// from 0 to below 1, alpha from 0 to 1.
class Optimizer {
 public:
  /// `state_names` are the tensors kept per parameter, by PyTorch's names (`exp_avg`, ...). Throws ConfigError where there are
  /// no parameters (of several groups all may be empty, as in PyTorch) and on one that is listed twice.
  Optimizer(const ParameterGroups& groups, double lr, double weight_decay, std::vector<std::string_view> state_names);
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Updates every parameter that has a gradient.
  void step();
  /// Forgets all gradients.
  void zero_grad();
  /// What all parameters remember, as `PARAMETER.step` (int64, []) and `PARAMETER.exp_avg` and so on (the parameter's shape);
  /// `parameters` gives the names. Handles, which see later steps.
  nn::NamedTensors state_dict(const nn::NamedTensors& parameters) const;
  /// Goes on from what state_dict() gave, to the bit. Throws ConfigError naming what is missing, left over or of another shape
  /// or dtype; nothing is changed then.
  void load_state_dict(const nn::NamedTensors& parameters, const nn::NamedTensors& state);
  double lr() const { return lr_; }
  void set_lr(double lr) { lr_ = lr; }

  /// What one parameter remembers.
  struct Slot {
    Tensor parameter;
    double weight_decay;
    int64_t step = 0;           ///< Updates so far.
    std::vector<Tensor> state;  ///< In the order of state_names(); zero at first.
  };
  const std::vector<std::string_view>& state_names() const { return state_names_; }
  const std::vector<Slot>& slots() const { return slots_; }
  std::vector<Slot>& slots() { return slots_; }

 private:
  /// One update; slot.step already counts it, grad is contiguous.
  virtual void update(Slot& slot, const Tensor& grad) = 0;
  static const std::string& name_of(const Tensor& parameter, const nn::NamedTensors& parameters);

  std::vector<Slot> slots_;
  std::vector<std::string_view> state_names_;
  double lr_;
};

/// What an optimizer remembers about one parameter.
struct ParameterState {
  int64_t step = 0;
  std::vector<Tensor> tensors;  ///< In the order of state_names().
};

/// Finds in `state`, an optimizer's state_dict(), what it remembers about each parameter. Throws ConfigError naming what is
/// missing, left over or of another shape or dtype.
std::vector<ParameterState> read_optimizer_state(const nn::NamedTensors& parameters,
                                                 const std::vector<std::string_view>& state_names,
                                                 const nn::NamedTensors& state);

struct SGDOptions {
  double lr = 1e-3, momentum = 0.0, dampening = 0.0, weight_decay = 0.0;
  bool nesterov = false;
};
/// b = momentum b + (1 - dampening) g (first step: b = g); p -= lr b, or lr (g + momentum b) with Nesterov; weight decay is
/// added to g (torch.optim.SGD).
class SGD : public Optimizer {
 public:
  explicit SGD(const ParameterGroups& parameters, const SGDOptions& options = {});

 private:
  void update(Slot& slot, const Tensor& grad) override;
  SGDOptions options_;
};

struct AdamOptions {
  double lr = 1e-3;
  std::array<double, 2> betas{0.9, 0.999};
  double eps = 1e-8, weight_decay = 0.0;
  bool amsgrad = false;
};
/// m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; p -= lr m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps). Weight decay is added
/// to g (Kingma and Ba 2015, torch.optim.Adam). With amsgrad, v is the largest v so far (Reddi et al. 2018).
class Adam : public Optimizer {
 public:
  explicit Adam(const ParameterGroups& parameters, const AdamOptions& options = {}) : Adam(parameters, options, false) {}

 protected:
  Adam(const ParameterGroups& parameters, const AdamOptions& options, bool decoupled);

 private:
  void update(Slot& slot, const Tensor& grad) override;
  AdamOptions options_;
  bool decoupled_;
};

struct AdamWOptions {
  double lr = 1e-3;
  std::array<double, 2> betas{0.9, 0.999};
  double eps = 1e-8, weight_decay = 0.01;
  bool amsgrad = false;
};
/// Adam whose weight decay, decoupled from the gradient, shrinks p by 1 - lr weight_decay (Loshchilov and Hutter 2019,
/// torch.optim.AdamW).
class AdamW : public Adam {
 public:
  explicit AdamW(const ParameterGroups& parameters, const AdamWOptions& o = {})
      : Adam(parameters, {o.lr, o.betas, o.eps, o.weight_decay, o.amsgrad}, true) {}
};

struct RMSpropOptions {
  double lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0.0;
};
/// v = alpha v + (1 - alpha) g^2; p -= lr g / (sqrt(v) + eps) (Tieleman and Hinton 2012, torch.optim.RMSprop).
class RMSprop : public Optimizer {
 public:
  explicit RMSprop(const ParameterGroups& parameters, const RMSpropOptions& options = {});

 private:
  void update(Slot& slot, const Tensor& grad) override;
  RMSpropOptions options_;
};

struct AdagradOptions {
  double lr = 1e-2, eps = 1e-10, weight_decay = 0.0;
};
/// s += g^2; p -= lr g / (sqrt(s) + eps) (Duchi et al. 2011, torch.optim.Adagrad).
class Adagrad : public Optimizer {
 public:
  explicit Adagrad(const ParameterGroups& parameters, const AdagradOptions& options = {});

 private:
  void update(Slot& slot, const Tensor& grad) override;
  AdagradOptions options_;
};

/// The updates of Adam and SGD for one parameter whose state somebody else keeps; all are contiguous. `max_exp_avg_sq` is
/// undefined without amsgrad, `buffer` without momentum.
void adam_update(Tensor parameter, const Tensor& grad, Tensor exp_avg, Tensor exp_avg_sq, Tensor max_exp_avg_sq,
                 const kernels::AdamUpdate& update);
void sgd_update(Tensor parameter, const Tensor& grad, Tensor buffer, const kernels::SgdUpdate& update);

/// So many elements of a gradient are summed together: a part that begins at a multiple can be summed elsewhere.
inline constexpr int64_t kNormChunk = 65536;

/// sum g^2 of every kNormChunk elements of a parameter's gradient, in order; zeros where it has none. clip_grad_norm_ adds
/// those of a parameter in order, then the parameters.
std::vector<double> squared_sums(const Tensor& parameter);

/// What clip_grad_norm_ multiplies gradients of this norm by, unless it is 1 or more.
double clip_factor(double max_norm, double norm);

/// Scales all gradients by min(1, max_norm / (norm + 1e-6)), norm = (sum |g|^norm_type)^(1 / norm_type) over all of them, and
/// returns the norm before (torch.nn.utils.clip_grad_norm_). A max_norm of infinity only measures. The order of summation is
/// fixed: the result does not depend on threads.
double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type = 2.0);

}  // namespace onestep::optim
