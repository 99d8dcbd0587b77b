"""Gradients: functions, modes, hooks and ops of a user's own."""

import gc
import os
import resource
import threading

import pytest

import onestep as torch
from onestep.autograd import Function


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


def test_grad_and_higher_orders():
    x = leaf(1.0, 2.0)
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    assert g.tolist() == [3, 12]
    assert torch.autograd.grad(g.sum(), x)[0].tolist() == [6, 12]
    unused = leaf(1.0)
    assert torch.autograd.grad(x.sum(), [x, unused], allow_unused=True)[1] is None
    with pytest.raises(RuntimeError):
        torch.autograd.grad(x.sum(), unused)


def test_backward_options():
    x = leaf(1.0, 2.0)
    y = x * x
    y.backward(torch.tensor([1.0, 10.0]), retain_graph=True)
    torch.autograd.backward([y], [torch.ones(2)])
    assert x.grad.tolist() == [4, 44]
    with pytest.raises(RuntimeError):
        y.sum().backward()
    with pytest.raises(TypeError, match="inputs"):
        x.sum().backward(inputs=1.5)
    x.grad = None
    assert x.grad is None
    x.grad = torch.zeros(2)
    with pytest.raises(TypeError):
        x.grad = 1


def test_modes():
    x = leaf(1.0)
    with torch.no_grad():
        assert not (x * 2).requires_grad
        with torch.enable_grad():
            assert (x * 2).requires_grad
        with torch.set_grad_enabled(True):
            assert (x * 2).requires_grad
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    assert not (x * 2).requires_grad
    torch.set_grad_enabled(True)

    @torch.no_grad()
    def called():
        return x * 2

    @torch.no_grad
    def bare():
        return x * 2

    @torch.no_grad()
    def generated():
        yield x * 2
        yield x * 3

    @torch.set_grad_enabled(False)
    def switched():
        return x * 2

    assert torch.is_grad_enabled()
    results = [called(), bare(), switched()]
    for value in generated():
        assert torch.is_grad_enabled()  # between its steps
        results.append(value)
    assert not any(result.requires_grad for result in results)
    with torch.inference_mode():
        assert torch.is_inference_mode_enabled() and (x * 2).is_inference()
    with pytest.raises(ValueError):
        with torch.no_grad():
            raise ValueError
    assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()


def test_hooks():
    x, seen = leaf(1.0, 2.0), []
    handle = x.register_hook(lambda grad: grad * 10)
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf))
    y = x * 3
    y.register_hook(lambda grad: seen.append(grad.tolist()))
    y.sum().backward()
    assert x.grad.tolist() == [30, 30] and seen[0] == [1, 1] and seen[1] is x
    handle.remove()
    (x * 1).sum().backward()
    assert x.grad.tolist() == [31, 31]


class Scale(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * x * factor, "label"

    @staticmethod
    def backward(ctx, grad, _):
        (x,) = ctx.saved_tensors
        assert ctx.needs_input_grad == (True, False)
        return 2 * x * grad * ctx.factor, None


def test_function():
    x = leaf(1.0, 2.0)
    y, label = Scale.apply(x, 3)
    assert label == "label" and y.tolist() == [3, 12]
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    assert g.tolist() == [6, 12]
    assert torch.autograd.grad(g.sum(), x)[0].tolist() == [6, 6]
    assert torch.autograd.gradgradcheck(lambda x: Scale.apply(x, 3)[0], leaf(1.0, 2.0).double().detach().requires_grad_())


def test_function_with_setup_context():
    class Cube(Function):
        @staticmethod
        def forward(x):
            return x**3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, grad):
            return 3 * ctx.saved_tensors[0] ** 2 * grad

    x = leaf(2.0)
    Cube.apply(x).backward()
    assert x.grad.tolist() == [12]


def test_function_errors_come_through():
    class Bad(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            raise KeyError("from backward")

    class TooMany(Bad):
        @staticmethod
        def backward(ctx, grad):
            return grad, grad

    with pytest.raises(KeyError, match="from backward"):
        Bad.apply(leaf(1.0)).sum().backward()
    with pytest.raises(RuntimeError, match="incorrect number of gradients"):
        TooMany.apply(leaf(1.0)).sum().backward()
    with pytest.raises(ZeroDivisionError):
        x = leaf(1.0)
        x.register_hook(lambda grad: 1 / 0)
        (x * 2).sum().backward()


def test_functional():
    f = torch.autograd.functional
    x = torch.tensor([1.0, 2.0])
    assert f.jacobian(lambda x: x**2, x).tolist() == [[2, 0], [0, 4]]
    assert f.hessian(lambda x: (x**3).sum(), x).tolist() == [[6, 0], [0, 12]]
    assert f.vjp(lambda x: x**2, x, torch.tensor([1.0, 10.0]))[1].tolist() == [2, 40]
    assert f.jvp(lambda x: x**2, x, torch.tensor([1.0, 10.0]))[1].tolist() == [2, 40]
    assert f.hvp(lambda x: (x**3).sum(), x, torch.ones(2))[1].tolist() == [6, 12]
    a, b = f.jacobian(lambda x, y: x * y, (x, x))
    assert a.tolist() == b.tolist() == [[1, 0], [0, 2]]


def test_functional_of_several_outputs():
    f = torch.autograd.functional
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0, 5.0])

    def both(x, y):
        return x.sum() * y, x * 2

    (a, b), (c, d) = f.jacobian(both, (x, y))
    assert a.tolist() == [[3, 3], [4, 4], [5, 5]] and b.equal(3 * torch.eye(3))
    assert c.equal(2 * torch.eye(2)) and d.equal(torch.zeros(2, 3))
    outputs, products = f.vjp(both, (x, y), (torch.ones(3), torch.ones(2)))
    assert [o.tolist() for o in outputs] == [[9, 12, 15], [2, 4]] and [p.tolist() for p in products] == [[14, 14], [3, 3, 3]]
    outputs, products = f.jvp(lambda x: (x * x, x.sum()), x, torch.ones(2))
    assert [o.tolist() for o in outputs] == [[1, 4], 3] and [p.tolist() for p in products] == [[2, 4], 2]
    (alone,) = f.jacobian(lambda x: (x * x,), x)
    assert alone.tolist() == [[2, 0], [0, 4]]
    assert f.jacobian(lambda x: x * x, x, vectorize=True, strategy="forward-mode").tolist() == [[2, 0], [0, 4]]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda f, x: f.jacobian(lambda x, y: x.sum(), (x, x), strict=True),
        lambda f, x: f.jacobian(lambda x: 3.0, x),
        lambda f, x: f.jacobian(lambda x: x, [x]),
        lambda f, x: f.vjp(lambda x: x * x, x),
        lambda f, x: f.vjp(lambda x: (x, x), x, x),
        lambda f, x: f.jvp(lambda x: x * x, x),
        lambda f, x: f.jvp(lambda x: x * x, x, torch.ones(3)),
        lambda f, x: f.hessian(lambda x: x, x),
        lambda f, x: f.hessian(lambda x: (x.sum(),), x),
    ],
)
def test_functional_refuses(wrong):
    with pytest.raises((RuntimeError, TypeError)):
        wrong(torch.autograd.functional, torch.tensor([1.0, 2.0]))


def test_gradcheck():
    x = torch.tensor([0.5, 1.5], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: x.exp().sin(), (x,))
    assert torch.autograd.gradgradcheck(lambda x: x.exp().sin(), (x,))

    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 3

    with pytest.raises(RuntimeError):
        torch.autograd.gradcheck(Wrong.apply, (x,))
    assert not torch.autograd.gradcheck(Wrong.apply, (x,), raise_exception=False)


def test_two_threads_get_the_bits_that_each_gets_alone():
    def train(seed):
        g = torch.Generator().manual_seed(seed)
        w = torch.randn(64, 64, generator=g).requires_grad_()
        x = torch.randn(32, 64, generator=g)
        for _ in range(30):
            w.grad = None
            ((x @ w).tanh() ** 2).mean().backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
        return w.tolist()

    alone = [train(seed) for seed in (1, 2)]
    together = [None, None]
    threads = [threading.Thread(target=lambda i=i: together.__setitem__(i, train(i + 1))) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone


def test_optimizer_steps():
    p, grad = torch.ones(3), torch.tensor([1.0, -2.0, 3.0])
    m, v = torch.zeros(3), torch.zeros(3)
    torch._C._adamw_step([p], [grad], [m], [v], 1, 0.1, 0.9, 0.999, 1e-8, 0.0)
    assert [round(value, 5) for value in p.tolist()] == [0.9, 1.1, 0.9]
    rows = torch.ones(2, 2).T
    torch._C._sgd_step([rows], [torch.ones(2, 2)], [], True, 0.5)
    assert rows.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    w = torch.zeros(2, requires_grad=True)
    w.grad = torch.tensor([3.0, 4.0])
    assert torch._C._clip_grad_norm_([w], 1.0) == 5.0 and w.grad.norm().item() == pytest.approx(1.0)


def test_a_tensor_of_no_dims_keeps_its_gradient_where_a_number_could_stand():
    x, mask = torch.ones(3, requires_grad=True), torch.tensor([True, False, True])
    for call in (lambda v: x.masked_fill(mask, v), lambda v: x.index_fill(0, torch.tensor([0]), v), lambda v: x.clamp_min(v),
                 lambda v: x.clamp(max=v), lambda v: torch.max(x, v), lambda v: x.add(v)):
        value = torch.tensor(2.0, requires_grad=True)
        call(value).sum().backward()
        assert value.grad is not None
    assert torch.max(torch.tensor([1, 5]), torch.tensor(3)).tolist() == [3, 5]
    assert torch.zeros(2).roll(torch.tensor(1)).shape == (2,)  # a tensor as a number, where nothing else is meant


def test_a_leaf_that_stopped_requiring_grad_takes_other_elements():
    p = torch.ones(2, requires_grad=True)
    (p * 2).sum().backward()
    p.requires_grad_(False)
    p.data, p.grad = torch.ones(3, dtype=torch.float64), None
    p.requires_grad_(True)
    (p * 2).sum().backward()
    assert p.grad.tolist() == [2, 2, 2] and p.grad.dtype == torch.float64


def test_ten_thousand_steps_keep_no_memory():
    """Layers, a Function of one's own, hooks, second derivatives, indexing and errors on the way."""

    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.1), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    model[0].register_forward_hook(lambda module, inputs, output: output * 1.0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x = torch.randn(16, 4, requires_grad=True)

    def step():
        y = Twice.apply(model(x))
        y.register_hook(lambda grad: grad + 0.0)
        loss = y.pow(2).mean() + x[1:3, 0].sum()
        (grad,) = torch.autograd.grad(loss, [x], create_graph=True)
        optimizer.zero_grad()
        (loss + grad.pow(2).sum()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        x.grad = None
        with pytest.raises(RuntimeError):
            x.view(3, 5)
        x.detach().tolist()

    def objects_after(steps):
        for _ in range(steps):
            step()
        gc.collect()
        return len(gc.get_objects()), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    objects, before = objects_after(1000)
    later, after = objects_after(10_000 if os.environ.get("CI") else 2000)
    assert later - objects < 100 and after - before < 2048  # KiB


ACTIVATIONS = "ReLU SiLU Mish Hardswish Hardsigmoid SELU ReLU6 ELU CELU LeakyReLU Hardtanh".split()


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_in_place_have_the_gradients_of_others(name):
    x = torch.linspace(-4, 4, 17)
    results = []
    for inplace in (False, True):
        leaf = x.clone().requires_grad_()
        before = leaf * 1
        after = getattr(torch.nn, name)(inplace=inplace)(before)
        assert (after is before) == inplace
        after.square().sum().backward()
        results.append((after.tolist(), leaf.grad.tolist()))
    assert results[0] == results[1]


@pytest.mark.parametrize(
    "name, arguments", [("cumprod", (0,)), ("copysign", (torch.tensor([1.0, -1.0, 1.0]),)), ("logit", (0.1,)), ("arctan", ())]
)
def test_methods_in_place_have_the_gradients_of_others(name, arguments):
    grads = []
    for end in ("", "_"):
        leaf = torch.tensor([0.25, 0.5, 0.75], requires_grad=True)
        getattr(leaf * 1, name + end)(*arguments).square().sum().backward()
        grads.append(leaf.grad.tolist())
    assert grads[0] == grads[1]


def test_the_gradient_of_what_was_frozen_is_still_there():
    x = torch.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    x.requires_grad_(False)
    assert x.grad.tolist() == [2, 2, 2]
    x.grad = None
    x.requires_grad_(True)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    assert torch.ones(3).grad is None


def test_inference_mode_can_be_left_within():
    x = torch.ones(3, requires_grad=True)
    with torch.inference_mode():
        with torch.inference_mode(False):
            assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
            y = x * 2
        assert torch.is_inference_mode_enabled()
        assert (x * 2).is_inference()
    assert y.requires_grad and not y.is_inference()
    y.sum().backward()
    with torch.no_grad(), torch.inference_mode(False):
        assert torch.is_grad_enabled()


class _HandsOn(Function):
    @staticmethod
    def forward(x, scale=3.0):
        return x.view(-1) if scale else x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.scale = inputs[1]

    @staticmethod
    def backward(ctx, grad):
        return grad.double() * 2, None


@pytest.mark.parametrize("scale", [0, 1])
def test_an_output_that_shows_the_input_cannot_be_changed_in_place(scale):
    x = torch.ones(2, requires_grad=True) * 1
    y = _HandsOn.apply(x, scale)
    with pytest.raises(RuntimeError, match="that a custom op returned"):
        y.mul_(2)
    x.mul_(3)
    with pytest.raises(RuntimeError, match="its base was changed in place"):
        y.sum().backward()


def test_the_gradient_of_a_function_is_converted_and_arguments_have_defaults():
    x = torch.ones(2, requires_grad=True)
    (grad,) = torch.autograd.grad(_HandsOn.apply(x).sum() + _HandsOn.apply(x=x, scale=0).sum(), x)
    assert grad.dtype == torch.float32 and grad.tolist() == [4, 4]
    with pytest.raises(TypeError, match="keyword"):
        Scale.apply(x, factor=3)
    y = x * 2
    y.backward(torch.ones(2, dtype=torch.float64))
    assert x.grad.tolist() == [2, 2]


def test_a_gradient_can_be_given_to_any_tensor():
    frozen, x, g = torch.ones(2), torch.ones(2, requires_grad=True), torch.tensor([3.0, 4.0])
    frozen.grad = g
    assert frozen.grad is g
    y = x * 2
    y.grad = g
    y.sum().backward()
    assert y.grad is g and x.grad.tolist() == [2, 2]
    torch.optim.SGD([frozen], lr=1.0).step()
    assert frozen.tolist() == [-2, -3]
    frozen.grad = None
    assert frozen.grad is None


def test_writes_to_data_pass_unseen():
    b = torch.ones(2, requires_grad=True) * 2
    c = b**2
    b.data.data.mul_(3)
    assert b.tolist() == [6, 6] and b._version == b.detach()._version
    c.sum().backward()
    x = torch.ones(3)
    x.data[1:] = x[:2] * 5
    assert x.tolist() == [1, 5, 5] and x.data.data_ptr() == x.data_ptr()
    x[1:] = x.data[:2]  # the same memory
    assert x.tolist() == [1, 1, 5]


def test_a_result_leaves_the_graph():
    x = torch.ones(2, requires_grad=True)
    h = x * 2
    assert h.detach_() is h and h.is_leaf and not h.requires_grad
    with pytest.raises(RuntimeError, match="views"):
        (x * 2)[0].detach_()


def test_gradients_that_are_nan_are_found():
    x = torch.tensor([-1.0], requires_grad=True)
    with torch.autograd.detect_anomaly():
        with pytest.raises(RuntimeError, match="sqrt: the gradient of its input 0"):
            x.sqrt().sum().backward()
    x.sqrt().sum().backward()
    with torch.autograd.set_detect_anomaly(True):
        assert torch.is_anomaly_enabled()
    assert not torch.is_anomaly_enabled()


def test_gradients_of_functions_and_functions_of_batches():
    from onestep.func import grad, grad_and_value, vmap

    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    assert grad(lambda x: (x**3).sum())(x).tolist() == [3, 12] and not grad(lambda x: x.sum())(x).requires_grad
    (dx, dy), value = grad_and_value(lambda x, y: (x * y).sum(), argnums=(0, 1))(x, y)
    assert dx.equal(y) and dy.equal(x) and value.item() == 11
    assert grad(grad(lambda x: x**3))(torch.tensor(2.0)).item() == 12
    assert grad(lambda x: (x.sum(), x * 2), has_aux=True)(x)[1].tolist() == [2, 4]
    assert vmap(lambda a, b: a @ b)(torch.arange(6.0).reshape(2, 3), torch.ones(2, 3)).tolist() == [3, 12]
    assert vmap(lambda a, b: a * b, in_dims=(1, None), out_dims=1)(torch.ones(2, 3), x).tolist() == [[1, 1, 1], [2, 2, 2]]
    # the gradient of each sample
    assert vmap(grad(lambda w, x: (w * x).sum() ** 2), in_dims=(None, 0))(torch.ones(2), torch.eye(2)).equal(2 * torch.eye(2))
    for wrong in (lambda: grad(lambda x: x)(x), lambda: vmap(lambda x: x)(torch.ones(0, 2))):
        with pytest.raises((RuntimeError, ValueError)):
            wrong()


def test_data_of_a_view_is_its_own_from_then_on():
    base = torch.arange(6.0).reshape(2, 3)
    view = base[0]
    view.data = torch.ones(4)
    assert view.shape == (4,) and view._base is None
    view.add_(1)
    assert view.tolist() == [2] * 4 and base.tolist() == [[0, 1, 2], [3, 4, 5]]
    leaf = torch.ones(2, 2, requires_grad=True)
    row = (leaf * 3)[0]
    row.data = torch.full((2,), 5.0)
    (row * row).sum().backward()
    assert leaf.grad.tolist() == [[30, 30], [0, 0]]


def test_saved_inputs_are_themselves():
    weight, seen = torch.ones(2, requires_grad=True), []

    class Twice(Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w, None)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            x, w, none = ctx.saved_tensors
            with torch.enable_grad():
                (of_w,) = torch.autograd.grad((w * x.detach()).sum(), w)
            seen.append((w is weight, x.shape, none, of_w.tolist()))
            return grad * 2, None

    Twice.apply(torch.full((2,), 3.0, requires_grad=True) * 1, weight).sum().backward()
    assert seen == [(True, (2,), None, [3, 3])]
    x = torch.ones(2, requires_grad=True)
    y = Twice.apply(x, weight)
    with torch.no_grad():
        weight.add_(1)
    with pytest.raises(torch.GradError, match="changed in place"):
        y.sum().backward()


def test_names_of_older_programs():
    t = torch.ones(2)
    v = torch.autograd.Variable(t, requires_grad=True)
    assert v is not t and v.requires_grad and not t.requires_grad and v.data_ptr() == t.data_ptr()
    u = torch.autograd.Variable(v * 2, volatile=True)
    assert u.is_leaf and not u.requires_grad
    v._grad = torch.full((2,), 2.0)
    assert v.grad.tolist() == [2, 2] and v._grad is v.grad
    for made in (torch.Tensor(v * 3), torch.FloatTensor(v * 3)):
        v.grad = None
        made.sum().backward()
        assert v.grad.tolist() == [3, 3]
    assert torch.arange(2).type(torch.Tensor).dtype == torch.float32
    assert not isinstance(t, torch.cuda.FloatTensor)
    torch.set_default_tensor_type("torch.DoubleTensor")
    assert torch.ones(1).dtype == torch.float64
    torch.set_default_tensor_type(torch.FloatTensor)
    assert torch.ones(1).dtype == torch.float32
    with pytest.raises(TypeError, match="is none of torch.FloatTensor"):
        torch.set_default_tensor_type("torch.LongTensor")
