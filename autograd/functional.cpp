#include "autograd/functional.h"

#include "autograd/creation.h"
#include "autograd/grad.h"
#include "autograd/grad_mode.h"
#include "autograd/ops_math.h"
#include "autograd/ops_shape.h"
#include "autograd/tensor.h"

namespace onestep::autograd::functional {
namespace {

/// f at tensors of its own, which require grad: gradients stop there.
class Call {
 public:
  Call(const char* op, const Function& f, const std::vector<Tensor>& given, bool create_graph) : create_graph_(create_graph) {
    for (size_t i = 0; i < given.size(); ++i) {
      ONESTEP_CHECK(DTypeError, given[i].is_floating(), op, ": input ", i, " is ", given[i].dtype(),
                    " (only floating tensors have derivatives)");
      const bool placed = create_graph && given[i].requires_grad();
      inputs.push_back(placed ? view(given[i], given[i].shape()) : given[i].detach().requires_grad_());
    }
    output = f(inputs);
  }

  /// The gradients of sum(outputs * weights) with respect to `at`, 0 where there is no influence.
  static std::vector<Tensor> gradients(const std::vector<Tensor>& outputs, const std::vector<Tensor>& weights,
                                       const std::vector<Tensor>& at, bool create_graph) {
    std::vector<Tensor> influenced, weights_of_those, all;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].requires_grad()) continue;
      influenced.push_back(outputs[i]);
      weights_of_those.push_back(weights[i]);
    }
    if (!influenced.empty())
      return grad(influenced, at, weights_of_those,
                  {.retain_graph = true, .create_graph = create_graph, .materialize_grads = true});
    for (const Tensor& x : at) all.push_back(zeros_like(x));
    return all;
  }
  std::vector<Tensor> gradients(const Tensor& weights, bool create_graph) const {
    return gradients({output}, {weights}, inputs, create_graph);
  }

  /// Without a graph unless it was asked for.
  Tensor result(const Tensor& x) const { return create_graph_ ? x : x.detach(); }
  Products result(const std::vector<Tensor>& products) const {
    Products all{result(output), {}};
    for (const Tensor& x : products) all.products.push_back(result(x));
    return all;
  }

  std::vector<Tensor> inputs;
  Tensor output;

 private:
  const EnableGradGuard recorded_;
  const bool create_graph_;
};

void check_directions(const char* op, const std::vector<Tensor>& inputs, const std::vector<Tensor>& v) {
  ONESTEP_CHECK(ShapeError, v.size() == inputs.size(), op, ": ", v.size(), " directions for ", inputs.size(), " inputs");
  for (size_t i = 0; i < v.size(); ++i)
    ONESTEP_CHECK(ShapeError, v[i].shape() == inputs[i].shape(), op, ": a direction of shape ", v[i].shape(), " for input ", i,
                  " of shape ", inputs[i].shape());
}

void check_single(const char* op, const Tensor& output) {
  ONESTEP_CHECK(ShapeError, output.numel() == 1, op, ": needs a function whose result has one element: got shape ",
                output.shape());
}

/// A function of one tensor as one of a list.
Function listed(const UnaryFunction& f) {
  return [&f](const std::vector<Tensor>& in) { return f(in[0]); };
}
Product first(const Products& all) { return {all.output, all.products[0]}; }

}  // namespace

Products vjp(const Function& f, const std::vector<Tensor>& inputs, const Tensor& v, bool create_graph) {
  const Call call("vjp", f, inputs, create_graph);
  ONESTEP_CHECK(GradError, v.defined() || call.output.numel() == 1, "vjp: a result of shape ", call.output.shape(),
                " needs a v of that shape");
  ONESTEP_CHECK(ShapeError, !v.defined() || v.shape() == call.output.shape(), "vjp: a v of shape ",
                v.defined() ? v.shape() : Shape(), " for a result of shape ", call.output.shape());
  return call.result(call.gradients(v.defined() ? v : ones_like(call.output), create_graph));
}

Product jvp(const Function& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& v, bool create_graph) {
  check_directions("jvp", inputs, v);
  const Call call("jvp", f, inputs, create_graph);
  const Tensor weights = zeros_like(call.output).requires_grad_();
  const std::vector<Tensor> products = call.gradients(weights, /*create_graph=*/true);
  return {call.result(call.output), call.result(Call::gradients(products, v, {weights}, create_graph)[0])};
}

Products hvp(const Function& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& v, bool create_graph) {
  check_directions("hvp", inputs, v);
  const Call call("hvp", f, inputs, create_graph);
  check_single("hvp", call.output);
  const std::vector<Tensor> gradient = call.gradients(ones_like(call.output), /*create_graph=*/true);
  return call.result(Call::gradients(gradient, v, call.inputs, create_graph));
}

std::vector<Tensor> jacobian(const Function& f, const std::vector<Tensor>& inputs, bool create_graph) {
  const Call call("jacobian", f, inputs, create_graph);
  std::vector<std::vector<Tensor>> rows(inputs.size());
  for (int64_t i = 0; i < call.output.numel(); ++i) {
    Tensor one = zeros_like(call.output);
    fill_(one.view(-1)[i], 1);
    const std::vector<Tensor> row = call.gradients(one, create_graph);
    for (size_t k = 0; k < row.size(); ++k) rows[k].push_back(call.result(row[k]));
  }
  std::vector<Tensor> all;
  for (size_t k = 0; k < inputs.size(); ++k) {
    Shape shape = call.output.shape();
    for (const int64_t size : inputs[k].shape()) shape.push_back(size);
    all.push_back(rows[k].empty() ? zeros(shape, inputs[k].dtype()) : reshape(stack(rows[k]), shape));
  }
  return all;
}

std::vector<std::vector<Tensor>> hessian(const Function& f, const std::vector<Tensor>& inputs, bool create_graph) {
  const auto single = [&](const std::vector<Tensor>& in) {
    const Tensor y = f(in);
    check_single("hessian", y);
    return y;
  };
  std::vector<std::vector<Tensor>> all;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto gradient = [&](const std::vector<Tensor>& in) { return vjp(single, in, {}, /*create_graph=*/true).products[i]; };
    all.push_back(jacobian(gradient, inputs, create_graph));
  }
  return all;
}

Product vjp(const UnaryFunction& f, const Tensor& input, const Tensor& v, bool create_graph) {
  return first(vjp(listed(f), {input}, v, create_graph));
}
Product jvp(const UnaryFunction& f, const Tensor& input, const Tensor& v, bool create_graph) {
  return jvp(listed(f), {input}, {v}, create_graph);
}
Product hvp(const UnaryFunction& f, const Tensor& input, const Tensor& v, bool create_graph) {
  return first(hvp(listed(f), {input}, {v}, create_graph));
}
Tensor jacobian(const UnaryFunction& f, const Tensor& input, bool create_graph) {
  return jacobian(listed(f), {input}, create_graph)[0];
}
Tensor hessian(const UnaryFunction& f, const Tensor& input, bool create_graph) {
  return hessian(listed(f), {input}, create_graph)[0][0];
}

}  // namespace onestep::autograd::functional
