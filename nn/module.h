#pragma once
// Module: a struct of fields and one visit() that lists them. Parameters, buffers, state dicts, modes, conversion and
// printing all walk that list, so a module is written by naming its fields once.
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "autograd/creation.h"
#include "autograd/tensor.h"
#include "nn/hooks.h"

namespace onestep::nn {

class Module;

/// Tensors under their dotted names (`heads.0.W_query.weight`), in order.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// Receives the fields of one module. Names are PyTorch's attribute names, hence its state_dict keys.
class Visitor {
 public:
  template <class T>
  using Fields = std::vector<std::pair<std::string, T*>>;

  /// A trained tensor; an undefined one (a Linear without bias) is skipped, as PyTorch skips None.
  void parameter(const std::string& name, Tensor& tensor);
  /// A tensor that is saved but not trained; an undefined one is skipped.
  void buffer(const std::string& name, Tensor& tensor);
  /// A module within the module.
  void child(const std::string& name, Module& module);
  /// A module within the module whose tensors all belong to others, which list them: part of modules() alone.
  void tied(Module& module) { tied_.push_back(&module); }

  const Fields<Tensor>& parameters() const { return parameters_; }
  const Fields<Tensor>& buffers() const { return buffers_; }
  const Fields<Module>& children() const { return children_; }
  const std::vector<Module*>& tied() const { return tied_; }

 private:
  Fields<Tensor> parameters_, buffers_;
  Fields<Module> children_;
  std::vector<Module*> tied_;
};

/// The keys that load_state_dict(strict = false) did not match.
struct LoadReport {
  std::vector<std::string> missing;     ///< Keys of the module that were not given.
  std::vector<std::string> unexpected;  ///< Given keys that the module does not have.
};

/// Base of all modules (torch.nn.Module). A module has its children by value (or in a ModuleList). As a Tensor is a handle, so
/// is a module: a copy has the same parameters, mode and hooks, so that a layer can have a name and be part of a network, as in
/// Python. A const module has no copies: it could be trained through them. One that is moved from has no parameters any more.
class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(Module&) = default;
  // NOLINTNEXTLINE(performance-move-constructor-init): what is left has a mode, too
  Module(Module&& other) noexcept : state_(other.state_) {}
  Module& operator=(const Module&) = delete;

  /// The type's name as PyTorch prints it: `Linear`.
  virtual std::string name() const = 0;
  /// Lists the fields, in the order in which PyTorch registers them.
  virtual void visit(Visitor&) {}
  /// What PyTorch prints between the brackets: `in_features=3, out_features=2, bias=False`.
  virtual std::string extra_repr() const { return {}; }
  /// The module as PyTorch prints it, children indented by two.
  virtual std::string repr() const;

  /// Own parameters first, then those of the children; a shared tensor is listed once. Not const: the handles allow training.
  NamedTensors named_parameters();
  NamedTensors named_buffers();
  std::vector<Tensor> parameters();
  /// This module and all below it, in the order of visit().
  std::vector<Module*> modules();
  /// Number of elements of all parameters.
  int64_t num_parameters() const;
  /// The dotted name of a module below this one (`h.0.attn`); empty if it is not there.
  std::string path_to(const Module& inner) const;
  /// Drops the gradient of every parameter.
  void zero_grad();

  /// Training mode (dropout draws) for this module and all below, or evaluation mode. A new module is in training mode.
  void train(bool mode = true);
  void eval() { train(false); }
  bool is_training() const { return state_->training; }

  /// Converts every floating parameter, its gradient and every floating buffer. Handles held elsewhere (by an optimizer)
  /// follow. Throws DTypeError unless `dtype` is floating.
  void to(DType dtype);

  /// All parameters and buffers: detached handles that share the memory (torch.nn.Module.state_dict).
  NamedTensors state_dict() const;
  /// Copies the given values into the parameters and buffers of the same names, converting the dtype. Throws ConfigError
  /// naming every missing, unexpected or repeated key and every shape that differs; nothing is copied then. With
  /// strict = false missing and unexpected keys are only reported. Tensors of a state that is moved here are released one by
  /// one as they are copied.
  LoadReport load_state_dict(NamedTensors state, bool strict = true);

 private:
  friend class EvaluationMode;

  /// What visit() lists: writable fields, which const functions only read.
  Visitor fields() const;
  /// Calls `f(prefix, fields)` for this module and then, with their names as dotted prefix, for all below.
  using Walk = std::function<void(const std::string& prefix, const Visitor& fields)>;
  void walk(const Walk& f, const std::string& prefix = {}) const;
  NamedTensors distinct_parameters() const;

  friend class Layer;
  /// What all copies have in common.
  struct State {
    bool training = true;
    std::shared_ptr<LayerHooks> hooks;  // null: none
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

/// The module whose forward runs on this thread, while the scope lives.
class RunningModule {
 public:
  explicit RunningModule(const Module& module);
  ~RunningModule();
  RunningModule(const RunningModule&) = delete;
  RunningModule& operator=(const RunningModule&) = delete;
  /// The innermost one, or nullptr.
  static const Module* current();

 private:
  const Module* outer_;
};

/// A module that maps one tensor to one tensor.
class Layer : public Module {
 public:
  virtual Tensor forward(const Tensor& x) const = 0;
  Tensor operator()(const Tensor& x) const {
    return between_hooks(x, [this](const Tensor& input) { return forward(input); });
  }

  // Called around operator(), not forward(); the layer must stay where it is while a graph made with its hooks lives.

  /// hook(layer, input) before the forward pass (torch.nn.Module.register_forward_pre_hook).
  LayerHookHandle register_forward_pre_hook(LayerHooks::ForwardPre hook);
  /// hook(layer, input, output) after it (torch.nn.Module.register_forward_hook).
  LayerHookHandle register_forward_hook(LayerHooks::Forward hook);
  /// hook(layer, grad_output) before the backward pass through the layer (torch.nn.Module.register_full_backward_pre_hook).
  LayerHookHandle register_full_backward_pre_hook(LayerHooks::BackwardPre hook);
  /// hook(layer, grad_input, grad_output) after it; grad_input is undefined where the input needs no gradient
  /// (torch.nn.Module.register_full_backward_hook).
  LayerHookHandle register_full_backward_hook(LayerHooks::Backward hook);

 protected:
  /// f(x) as the layer's forward pass, for an operator() that takes more than x.
  template <class F>
  Tensor between_hooks(const Tensor& x, F f) const {
    const RunningModule running(*this);
    return state_->hooks ? state_->hooks->run(*this, x, f) : f(x);
  }
};

std::ostream& operator<<(std::ostream& out, const Module& module);

/// `True` or `False`.
const char* python_repr(bool value);
/// The shortest decimals that read back to the same double, as Python prints them: `0.1`, `1e-05`, `0.0`.
std::string python_repr(double value);
/// The sizes as a Python tuple: `(2, 4)`, `(4,)`.
std::string python_repr(const Shape& shape);
/// `text` with two spaces after each line break.
std::string indented(const std::string& text);

/// Puts a model into evaluation mode (no dropout) until the end of its scope; then each of its modules has its own mode again.
class EvaluationMode {
 public:
  explicit EvaluationMode(Module& model);
  ~EvaluationMode();
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  std::vector<Module*> were_training_;
};

}  // namespace onestep::nn
