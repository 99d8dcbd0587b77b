"""Derivatives of functions (torch.func), also of functions that use more than their arguments; the numbers are those of PyTorch 2.13."""

import pytest

import onestep as T
from onestep import nn
from onestep.func import functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, vmap


def test_gradients_reach_the_tensors_that_a_function_uses():
    w, x = T.tensor(3.0, requires_grad=True), T.tensor(2.0)
    found = grad(lambda x: w * x * x)(x)
    assert found.item() == 12 and found.requires_grad and not x.requires_grad
    found.backward()
    assert w.grad.item() == 4

    doubled = w * 2
    w.grad = None
    grad(lambda x: doubled * x)(x).backward()
    assert w.grad.item() == 2

    w.grad = None
    second = grad(grad(lambda x: w * x**3))(x)
    second.backward()
    assert second.item() == 36 and w.grad.item() == 12


def test_gradients_reach_a_modules_parameters():
    layer = nn.Linear(2, 1)
    found, value = grad_and_value(lambda x: layer(x).sum())(T.ones(2))
    assert T.equal(found, layer.weight[0]) and value.requires_grad
    found.sum().backward()
    assert layer.weight.grad.tolist() == [[1.0, 1.0]]


def test_gradients_of_a_function_of_its_arguments_alone_are_no_part_of_a_graph():
    constant = T.tensor(3.0)
    found, (value, aux) = grad_and_value(lambda x: (constant * x * x, {"twice": [x * 2]}), has_aux=True)(T.tensor(2.0))
    assert found.item() == 12 and value.item() == 12 and aux["twice"][0].item() == 4
    assert not (found.requires_grad or value.requires_grad or aux["twice"][0].requires_grad)
    w = T.tensor(3.0, requires_grad=True)
    with T.no_grad():
        assert not grad(lambda x: w * x)(T.tensor(2.0)).requires_grad
    assert grad(lambda x: w)(T.tensor(2.0)).item() == 0


def both(x, y):
    return x.outer(y) ** 2, {"s": x.sum() * y.sum()}


X, Y = T.tensor([1.0, 2.0]), T.tensor([3.0, 4.0, 5.0])


def test_products_with_the_jacobian_from_both_sides():
    output, product = vjp(both, X, Y)
    assert output[1]["s"].item() == 36
    of_x, of_y = product((T.ones(2, 3), {"s": T.tensor(2.0)}))
    assert of_x.tolist() == [124, 224] and of_y.tolist() == [36, 46, 56]
    output, (squares, nest) = jvp(both, (X, Y), (T.ones(2), T.ones(3)))
    assert squares.tolist() == [[24, 40, 60], [60, 96, 140]] and nest["s"].item() == 33

    output, product, aux = vjp(lambda x: (x * x, [x + 1]), X, has_aux=True)
    assert product(T.ones(2))[0].tolist() == [2, 4] and aux[0].tolist() == [2, 3] and not output.requires_grad
    assert [v.tolist() for v in jvp(lambda x: (x * x, x), (X,), (X,), has_aux=True)] == [[1, 4], [2, 8], [1, 2]]
    assert vjp(lambda x: T.ones(2), X)[1](T.ones(2))[0].tolist() == [0, 0]


@pytest.mark.parametrize("jacobian", [jacrev, jacfwd])
def test_jacobians_and_second_derivatives(jacobian):
    of_x, of_y = jacobian(both, argnums=(0, 1))(X, Y)[1]["s"]
    assert of_x.tolist() == [12, 12] and of_y.tolist() == [3, 3, 3]
    squares = jacobian(both)(X, Y)[0]
    assert squares.shape == (2, 3, 2) and squares[1, 2].tolist() == [0, 100]
    assert jacobian(lambda x: (x**2, x), has_aux=True)(X)[1].tolist() == [1, 2]
    assert jacobian(lambda x: T.ones(2))(X).tolist() == [[0, 0], [0, 0]]
    assert jacobian(jacobian(lambda x: x**3))(X)[1, 1].tolist() == [0, 12]
    assert vmap(jacobian(lambda x: x**2))(T.ones(3, 2)).shape == (3, 2, 2)
    assert hessian(lambda x: (x**3).sum() * x[0])(X).tolist() == [[12, 12], [12, 12]]
    (xx, xy), (yx, yy) = hessian(lambda x, y: (x.sum() * y).pow(2).sum(), argnums=(0, 1))(X, Y)
    assert xx.tolist() == [[100, 100], [100, 100]] and T.equal(xy, yx.T) and yy.tolist() == T.diag(T.full((3,), 18.0)).tolist()
    assert hessian(lambda x: (x**4).sum())(X).trace().item() == 60


def test_jacobians_reach_the_tensors_that_a_function_uses():
    w = T.tensor(2.0, requires_grad=True)
    jacrev(lambda x: w * x**2)(X).sum().backward()
    assert w.grad.item() == 6
    assert vjp(lambda x: x * w, X)[0].requires_grad and not vjp(lambda x: x * 2, X)[1](T.ones(2))[0].requires_grad


def test_gradients_for_each_sample_of_a_modules_parameters():
    layer = nn.Linear(2, 1)
    parameters = {name: p.detach() for name, p in layer.named_parameters()}
    x, t = T.randn(4, 2), T.randn(4, 1)

    def loss(parameters, x, t):
        return (functional_call(layer, parameters, (x,)) - t).square().sum()

    found = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, x, t)
    error = 2 * (layer(x) - t).detach()
    assert T.allclose(found["weight"], (error * x).unsqueeze(1)) and T.allclose(found["bias"], error)


def test_what_cannot_be_differentiated_is_refused():
    with pytest.raises(ValueError, match="expected tensors, got <class 'float'>"):
        grad(lambda x: x)(2.0)
    with pytest.raises(RuntimeError, match="expected tensors, got <class 'float'>"):
        vjp(lambda x: 3.0, X)
    with pytest.raises(RuntimeError, match="has to return"):
        grad(lambda x: x.sum(), has_aux=True)(X)
    with pytest.raises(RuntimeError, match="cotangents"):
        vjp(lambda x: x, X)[1](Y)
    with pytest.raises(RuntimeError, match="primals to be a tuple"):
        jvp(lambda x: x, X, X)
    with pytest.raises(RuntimeError, match="shapes of primals"):
        jvp(lambda x: x, (X,), (Y,))
