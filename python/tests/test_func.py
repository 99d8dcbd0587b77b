"""func.grad of functions that use more than their arguments; the numbers are those of PyTorch 2.13."""

import onestep as T
from onestep import nn
from onestep.func import grad, grad_and_value


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
