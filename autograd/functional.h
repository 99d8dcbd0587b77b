#pragma once
// Derivatives of functions as a whole (torch.autograd.functional). Inputs are any floating tensors, whether or not they require
// grad; an input without influence has derivative 0. With `create_graph` the results have their places in the graph of those
// inputs that require grad and can be differentiated again, else they are constants. There are two of every function: for a
// function of several tensors, and for one of a single tensor. Throws DTypeError on an input that is not floating.
#include <functional>
#include <vector>

#include "autograd/tensor.h"

namespace onestep::autograd::functional {

using Function = std::function<Tensor(const std::vector<Tensor>&)>;
using UnaryFunction = std::function<Tensor(const Tensor&)>;

struct Product {
  Tensor output;  ///< f(inputs)
  Tensor product;
};
struct Products {
  Tensor output;                 ///< f(inputs)
  std::vector<Tensor> products;  ///< One an input, of its shape.
};

/// v^T J, J the Jacobian of f: what a backward pass computes. `v` has the output's shape; it may be left out where that has one
/// element (torch.autograd.functional.vjp). Throws GradError or ShapeError on a v that is missing or does not fit.
Products vjp(const Function& f, const std::vector<Tensor>& inputs, const Tensor& v = {}, bool create_graph = false);
Product vjp(const UnaryFunction& f, const Tensor& input, const Tensor& v = {}, bool create_graph = false);

/// J v: how f changes along v, one tensor of every input's shape. v^T J is linear in v, and its own derivative along `v` is J
/// v, so that two backward passes give it (torch.autograd.functional.jvp). Throws ShapeError on a v that does not fit.
Product jvp(const Function& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& v, bool create_graph = false);
Product jvp(const UnaryFunction& f, const Tensor& input, const Tensor& v, bool create_graph = false);

/// H v, H the matrix of second derivatives of f, whose result has one element: the gradient of (gradient of f) . v. H itself is
/// never there (Pearlmutter 1994; torch.autograd.functional.vhp, and hvp, since H is symmetric). Throws ShapeError on a v that
/// does not fit, and on a result with several elements.
Products hvp(const Function& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& v, bool create_graph = false);
Product hvp(const UnaryFunction& f, const Tensor& input, const Tensor& v, bool create_graph = false);

/// All derivatives of the output with respect to every input: shape [output..., input...], a backward pass for every element of
/// the output (torch.autograd.functional.jacobian).
std::vector<Tensor> jacobian(const Function& f, const std::vector<Tensor>& inputs, bool create_graph = false);
Tensor jacobian(const UnaryFunction& f, const Tensor& input, bool create_graph = false);

/// All second derivatives of f, whose result has one element: hessian[i][j] has the shapes of inputs i and j, [input i...,
/// input j...] (torch.autograd.functional.hessian). Throws ShapeError on a result with several elements.
std::vector<std::vector<Tensor>> hessian(const Function& f, const std::vector<Tensor>& inputs, bool create_graph = false);
Tensor hessian(const UnaryFunction& f, const Tensor& input, bool create_graph = false);

}  // namespace onestep::autograd::functional
