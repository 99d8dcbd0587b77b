// Gradients as functions, hooks, ops of a user's own, and recording as a switch.
#include "autograd/anomaly.h"
#include "autograd/checkpoint.h"
#include "autograd/function.h"
#include "autograd/functional.h"
#include "autograd/grad.h"
#include "autograd/grad_mode.h"
#include "autograd/testing/gradcheck.h"
#include "python/src/caster.h"
#include "python/src/convert.h"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace onestep::python {
namespace {

using Tensors = std::vector<Tensor>;
using ManyToMany = std::function<Tensors(const Tensors&)>;
using ManyToOne = std::function<Tensor(const Tensors&)>;

/// A function of Python's that may be let go of by whatever thread drops the graph.
std::shared_ptr<PyObject> shared(nb::callable function) {
  return {function.release().ptr(), [](PyObject* held) {
            if (!Py_IsInitialized()) return;
            const nb::gil_scoped_acquire locked;
            Py_DECREF(held);
          }};
}

/// What a function returned as a tensor, undefined for None.
Tensor returned_tensor(const char* from, nb::handle value) {
  if (value.is_none()) return {};
  if (is_tensor(value.ptr())) return tensor_of(value.ptr());
  PyErr_Format(PyExc_TypeError, "%s must return a tensor or None, not %s", from, Py_TYPE(value.ptr())->tp_name);
  throw nb::python_error();
}

/// A hook on a gradient.
struct Hook {
  std::shared_ptr<PyObject> function;
  Tensor operator()(const Tensor& grad) const {
    const nb::gil_scoped_acquire locked;
    return returned_tensor("a hook", nb::handle(function.get())(grad));
  }
};
/// A hook on a leaf, whose result does not matter.
struct LeafHook {
  std::shared_ptr<PyObject> function;
  void operator()(const Tensor& leaf) const {
    const nb::gil_scoped_acquire locked;
    nb::handle(function.get())(leaf);
  }
};

/// An op whose two functions are Python's.
class PythonOp : public autograd::CustomOp {
 public:
  PythonOp(ManyToMany forward, ManyToMany backward) : forward_(std::move(forward)), backward_(std::move(backward)) {}
  Tensors forward(autograd::Context&, const Tensors& inputs) override {
    const ManyToMany once = std::move(forward_);  // what it holds need not live as long as the graph
    return once(inputs);
  }
  Tensors backward(autograd::Context&, const Tensors& grads) override { return backward_(grads); }

 private:
  ManyToMany forward_, backward_;
};

using Ctx = std::shared_ptr<autograd::Context>;
struct ContextHandle {
  Ctx context = std::make_shared<autograd::Context>();
};

void add_functions_of_functions(nb::module_& m) {
  namespace fn = autograd::functional;
  m.def(
      "_vjp",
      [](const ManyToOne& f, const Tensors& inputs, const Tensor& v, bool create) {
        const fn::Products p = fn::vjp(f, inputs, v, create);
        return nb::make_tuple(p.output, p.products);
      },
      "func"_a, "inputs"_a, "v"_a.none(), "create_graph"_a);
  m.def("_jvp", [](const ManyToOne& f, const Tensors& inputs, const Tensors& v, bool create) {
    const fn::Product p = fn::jvp(f, inputs, v, create);
    return nb::make_tuple(p.output, p.product);
  });
  m.def("_hvp", [](const ManyToOne& f, const Tensors& inputs, const Tensors& v, bool create) {
    const fn::Products p = fn::hvp(f, inputs, v, create);
    return nb::make_tuple(p.output, p.products);
  });
  m.def("_jacobian", [](const ManyToOne& f, const Tensors& inputs, bool create) { return fn::jacobian(f, inputs, create); });
  m.def("_hessian", [](const ManyToOne& f, const Tensors& inputs, bool create) { return fn::hessian(f, inputs, create); });
  const auto report = [](const GradcheckResult& result) { return nb::make_tuple(result.passed, result.message); };
  m.def("_gradcheck", [report](const ManyToOne& f, const Tensors& inputs) { return report(gradcheck(f, inputs)); });
  m.def("_gradgradcheck", [report](const ManyToOne& f, const Tensors& inputs) { return report(gradgradcheck(f, inputs)); });
  m.def(
      "_checkpoint", [](ManyToMany f, const Tensors& inputs) { return autograd::checkpoint(std::move(f), inputs); },
      "function"_a, "inputs"_a, "What checkpoint of autograd/checkpoint.h gives: a list of tensors.");
}

}  // namespace

void add_autograd(nb::module_& m) {
  m.def("is_grad_enabled", &grad_enabled, "Whether ops are recorded.");
  m.def("_set_grad_enabled", &set_grad_enabled, "on"_a);
  m.def("_refuse_nan_gradients", &refuse_nan_gradients, "on"_a);
  m.def("is_anomaly_enabled", &nan_gradients_refused, "Whether backward passes raise where an op's gradient is NaN.");
  m.def("is_inference_mode_enabled", &inference_enabled, "Whether in inference mode.");
  nb::class_<Switch<InferenceGuard>>(m, "_InferenceSwitch")
      .def(nb::init<>())
      .def("enter", &Switch<InferenceGuard>::enter)
      .def("exit", &Switch<InferenceGuard>::exit);
  m.def(
      "_grad",
      [](const Tensors& outputs, const Tensors& inputs, const Tensors& grad_outputs, std::optional<bool> retain, bool create,
         bool unused, bool materialize) {
        return unlocked([&] { return autograd::grad(outputs, inputs, grad_outputs, {retain, create, unused, materialize}); });
      },
      "outputs"_a, "inputs"_a, "grad_outputs"_a, "retain_graph"_a.none(), "create_graph"_a, "allow_unused"_a,
      "materialize_grads"_a);
  m.def(
      "_backward",
      [](const Tensors& tensors, const Tensors& grads, std::optional<bool> retain, bool create, const Tensors& inputs) {
        unlocked([&] { autograd::backward(tensors, grads, retain, create, inputs); });
      },
      "tensors"_a, "grad_tensors"_a, "retain_graph"_a.none(), "create_graph"_a, "inputs"_a);

  nb::class_<HookHandle>(m, "RemovableHandle", "Removes a hook again.")
      .def("remove", &HookHandle::remove)
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__exit__", [](HookHandle& self, const nb::args&) { self.remove(); });
  m.def("_register_hook", [](Tensor x, nb::callable hook) { return x.register_hook(Hook{shared(std::move(hook))}); });
  m.def("_register_post_accumulate_grad_hook",
        [](Tensor x, nb::callable hook) { return x.register_post_accumulate_grad_hook(LeafHook{shared(std::move(hook))}); });

  nb::class_<ContextHandle>(m, "_Context")
      .def(nb::init<>())
      .def("save_for_backward", [](ContextHandle& c, Tensors tensors) { c.context->save_for_backward(std::move(tensors)); })
      .def("mark_non_differentiable",
           [](ContextHandle& c, Tensors tensors) { c.context->mark_non_differentiable(std::move(tensors)); })
      .def("mark_dirty", [](ContextHandle& c, Tensors tensors) { c.context->mark_dirty(std::move(tensors)); })
      .def("set_materialize_grads", [](ContextHandle& c, bool on) { c.context->set_materialize_grads(on); })
      .def("saved_tensors", [](const ContextHandle& c) { return c.context->saved_tensors(); });
  m.def("_apply", [](const std::string& name, const ContextHandle& context, ManyToMany forward, ManyToMany backward,
                     const Tensors& inputs) {
    return autograd::CustomOp::apply(name, std::make_shared<PythonOp>(std::move(forward), std::move(backward)), context.context,
                                     inputs);
  });
  add_functions_of_functions(m);
}

}  // namespace onestep::python
