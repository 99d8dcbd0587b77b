"""Hooks of modules: what they are called with and in which order. The lists are what PyTorch 2.13 gave for the same calls."""

import copy
import io
import pickle

import pytest

import onestep as T
from onestep import nn
from onestep.nn.modules import module as of_all
from onestep.nn.utils import parametrize

NO_INPUTS = "Full backward hook is firing when gradients are computed with respect to module outputs"


class Twice(nn.Module):
    def forward(self, a, b=None, k=1):
        return a * 2 * k


class Fails(nn.Module):
    def forward(self, a, k=1):
        raise ValueError("boom")


class Pair(nn.Module):
    def forward(self, a, b):
        return a * 2, b * 3


def lists(value):
    if isinstance(value, (tuple, list)):
        return type(value)(map(lists, value))
    return value.tolist() if isinstance(value, T.Tensor) else value


def ones(*size):
    return T.ones(*size, requires_grad=True)


class Log:
    """Hooks that note what they get."""

    def __init__(self):
        self.seen = []

    def note(self, name, result=None):
        def hook(module, *args):
            self.seen.append((name, *lists(args)))
            return None if result is None else result(*args)

        return hook


@pytest.fixture
def log():
    return Log()


def test_gradients_of_unused_outputs_are_none_and_of_unused_inputs_zero(log):
    m = Pair()
    m.register_full_backward_hook(log.note("hook"))
    m.register_full_backward_pre_hook(log.note("pre"))
    a, b = ones(1), ones(1)
    m(a, b)[0].sum().backward()
    assert log.seen == [("pre", ([1.0], None)), ("hook", ([2.0], [0.0]), ([1.0], None))]
    assert lists([a.grad, b.grad]) == [[2.0], [0.0]]
    log.seen.clear()
    m(a, T.tensor([3]))[0].sum().backward()  # an input that has no gradient
    assert log.seen[1] == ("hook", ([2.0], [0]), ([1.0], None))


@pytest.mark.parametrize("output", [lambda a: {"x": a * 2}, lambda a: [a * 2]])
def test_backward_hooks_are_not_called_for_dicts_and_lists(log, output):
    m = nn.Module()
    m.forward = output
    m.register_full_backward_hook(log.note("hook"))
    a = ones(1)
    with pytest.warns(UserWarning, match="module output should be a Tensor or a tuple of Tensors"):
        (result,) = getattr(m(a), "values", m(a).__iter__)()
    result.sum().backward()
    assert log.seen == [] and a.grad.tolist() == [2.0]


def test_nested_and_other_outputs_have_no_gradient(log):
    m = nn.Module()
    m.forward = lambda a: (a * 2, (a * 3,), 5, None, a.detach())
    m.register_full_backward_hook(log.note("hook"))
    a = ones(1)
    y = m(a)
    assert not y[4].requires_grad
    (y[0] + y[1][0]).sum().backward()
    assert log.seen == [("hook", ([5.0],), ([1.0], None, None, None, None))]


def test_backward_hooks_change_gradients_one_after_another(log):
    m = Twice()
    m.register_full_backward_hook(log.note("1", lambda gi, go: (gi[0] + 1,)))
    m.register_full_backward_hook(log.note("2", lambda gi, go: [gi[0] * 10]))
    m.register_full_backward_hook(log.note("0"), prepend=True)
    m.register_full_backward_pre_hook(log.note("pre 1", lambda go: (go[0] + 1,)))
    m.register_full_backward_pre_hook(log.note("pre 2", lambda go: (go[0] * 10,)))
    first = m.register_full_backward_pre_hook(log.note("pre 0"), prepend=True)
    a = ones(2)
    m(a).sum().backward()
    names = ["pre 0", "pre 1", "pre 2", "0", "1", "2"]
    assert [call[0] for call in log.seen] == names
    assert log.seen[3] == ("0", ([40.0, 40.0],), ([20.0, 20.0],)) and log.seen[5][1] == ([41.0, 41.0],)
    assert a.grad.tolist() == [410.0, 410.0]
    first.remove()
    first.remove()
    log.seen.clear()
    m(a).sum().backward()
    assert [call[0] for call in log.seen] == names[1:]


def test_what_backward_hooks_must_not_return():
    def backward(size, hook, pre=False):
        m = Twice()
        (m.register_full_backward_pre_hook if pre else m.register_full_backward_hook)(hook)
        m(ones(size)).sum().backward()

    with pytest.raises(RuntimeError, match="invalid number of grad_input, got 2, but expected 1"):
        backward(2, lambda m, gi, go: gi[0])  # a tensor is taken as a sequence
    with pytest.raises(RuntimeError, match="invalid number of grad_output, got 2, but expected 1"):
        backward(1, lambda m, go: go * 2, pre=True)
    with pytest.raises(RuntimeError, match="has changed the size of value"):
        backward(1, lambda m, gi, go: gi[0])


def test_without_inputs_that_need_a_gradient_the_outputs_call_the_hook(log):
    m = nn.Linear(2, 1)
    handle = m.register_full_backward_hook(log.note("hook", lambda gi, go: (None,)))
    with pytest.warns(UserWarning, match=NO_INPUTS):
        m(T.ones(1, 2)).sum().backward()
    assert log.seen == [("hook", (None,), ([[1.0]],))] and m.weight.grad.tolist() == [[1.0, 1.0]]
    handle.remove()
    m.register_full_backward_hook(lambda m, gi, go: (go[0],))
    with pytest.warns(UserWarning, match=NO_INPUTS), pytest.raises(RuntimeError, match="always return None"):
        m(T.ones(1, 2)).sum().backward()


def test_a_second_derivative_calls_the_hook_once(log):
    m = nn.Module()
    m.forward = lambda a: a**3
    m.register_full_backward_hook(log.note("hook"))
    a = ones(1)
    (grad,) = T.autograd.grad(m(a).sum(), a, create_graph=True)
    grad.sum().backward()
    assert len(log.seen) == 1 and a.grad.tolist() == [6.0]


def test_regular_and_full_backward_hooks_are_not_mixed():
    m = Twice()
    m.register_full_backward_hook(lambda *_: None)
    with pytest.raises(RuntimeError, match="both regular backward hooks and full backward hooks on a single Module"):
        m.register_backward_hook(lambda *_: None)


def test_hooks_of_all_modules_come_before_a_modules_own(log):
    handles = [
        of_all.register_module_forward_pre_hook(log.note("pre")),
        of_all.register_module_forward_hook(log.note("forward")),
        of_all.register_module_forward_hook(log.note("with kwargs"), with_kwargs=True),
        of_all.register_module_full_backward_pre_hook(log.note("backward pre")),
        of_all.register_module_full_backward_hook(log.note("backward")),
    ]
    m = Twice()
    m.register_forward_pre_hook(log.note("own pre", lambda args: args[0] + 1))
    m.register_forward_hook(log.note("own forward"))
    m.register_full_backward_pre_hook(log.note("own backward pre"))
    m.register_full_backward_hook(log.note("own backward"))
    m(ones(1), k=2).sum().backward()
    assert log.seen == [
        ("pre", ([1.0],)),
        ("own pre", ([1.0],)),
        ("forward", ([2.0],), [8.0]),
        ("with kwargs", ([2.0],), {"k": 2}, [8.0]),
        ("own forward", ([2.0],), [8.0]),
        ("backward pre", ([1.0],)),
        ("own backward pre", ([1.0],)),
        ("backward", ([4.0],), ([1.0],)),
        ("own backward", ([4.0],), ([1.0],)),
    ]
    log.seen.clear()
    for handle in handles:
        handle.remove()
    nn.Sequential(Twice())(ones(1)).sum().backward()
    assert log.seen == []


def test_hooks_of_all_modules_replace_what_passes():
    with of_all.register_module_forward_hook(lambda m, args, out: out + 1):
        assert nn.Sequential(Twice(), Twice())(ones(1)).tolist() == [8.0]
    with of_all.register_module_forward_pre_hook(lambda m, args: args[0] + 1):
        assert Twice()(ones(1)).tolist() == [4.0]
    assert Twice()(ones(1)).tolist() == [2.0]


def test_hooks_on_registrations():
    seen = []

    def note(m, name, value):
        seen.append((name, type(value).__name__))

    with of_all.register_module_parameter_registration_hook(note), of_all.register_module_buffer_registration_hook(note):
        with of_all.register_module_module_registration_hook(lambda m, name, child: nn.ReLU()):
            m = nn.Module()
            m.a = nn.Parameter(T.ones(1))
            m.register_buffer("b", T.zeros(1))
            m.b = T.ones(1)
            m.register_parameter("none", None)
            m.c, m.d = Twice(), Twice()
    assert seen == [("a", "Parameter"), ("b", "Tensor"), ("b", "Tensor")]
    assert type(m.c) is type(m.d) is nn.ReLU


def test_hooks_that_are_always_called(log):
    m = Fails()
    m.register_forward_hook(log.note("always"), always_call=True)
    m.register_forward_hook(log.note("with kwargs"), always_call=True, with_kwargs=True)
    m.register_forward_hook(log.note("never"))
    with of_all.register_module_forward_hook(log.note("of all"), always_call=True), pytest.raises(ValueError, match="boom"):
        m(ones(1), k=3)
    assert log.seen == [("of all", ([1.0],), None), ("always", ([1.0],), None), ("with kwargs", ([1.0],), {"k": 3}, None)]


def test_hooks_that_are_always_called_after_one_that_fails(log):
    def fail(*_):
        raise KeyError("k")

    m = Twice()
    m.register_forward_hook(log.note("first"), always_call=True)
    m.register_forward_hook(fail)
    m.register_forward_hook(log.note("second", lambda args, out: 7), always_call=True)
    m.register_forward_hook(fail, always_call=True)
    m.register_forward_hook(log.note("third"), always_call=True)
    with pytest.raises(KeyError), pytest.warns(UserWarning, match="^module forward hook with ``always_call=True`` raised"):
        m(ones(1))
    assert log.seen == [("first", ([1.0],), [2.0]), ("second", ([1.0],), [2.0]), ("third", ([1.0],), 7)]


def test_forward_hooks_in_front_and_with_kwargs(log):
    m = Twice()
    for i in range(4):
        m.register_forward_hook(log.note(i), prepend=i % 2 == 1)
        m.register_forward_pre_hook(log.note(10 + i), prepend=i % 2 == 1)
    m(ones(1))
    assert [call[0] for call in log.seen] == [13, 11, 10, 12, 3, 1, 0, 2]
    m = Twice()
    m.register_forward_pre_hook(lambda m, args, kwargs: (args, {"k": 5}), with_kwargs=True)
    handle = m.register_forward_hook(lambda m, args, kwargs, out: out + kwargs["k"], with_kwargs=True, always_call=True)
    assert m(ones(1), k=2).tolist() == [15.0]
    handle.remove()
    assert not (m._forward_hooks or m._forward_hooks_with_kwargs or m._forward_hooks_always_called)
    m._forward_hooks[-1] = lambda m, args, out: out * 0
    assert m(ones(1)).tolist() == [0.0]


def add_one(m, args, out):
    return out + 1


def times_seven(m, args, kwargs):
    return args, {"k": 7}


def negated(m, grad_input, grad_output):
    return (-grad_input[0],)


def saved_and_loaded(m):
    file = io.BytesIO()
    T.save(m, file)
    file.seek(0)
    return T.load(file, weights_only=False)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m)), saved_and_loaded])
def test_copies_have_hooks_and_handles_of_their_own(duplicate):
    m = Twice()
    m.register_forward_hook(add_one, always_call=True)
    m.register_full_backward_hook(negated)
    m.handle = m.register_forward_pre_hook(times_seven, with_kwargs=True)
    new, a = duplicate(m), ones(1)
    out = new(a)
    out.sum().backward()
    assert out.tolist() == [15.0] and a.grad.tolist() == [-14.0]
    m.handle.remove()
    assert m(a).tolist() == [3.0] and new(a).tolist() == [15.0]
    new.handle.remove()
    assert new(a).tolist() == [3.0] and not new._forward_pre_hooks_with_kwargs


def test_a_hook_that_is_a_method_belongs_to_the_copy():
    class Counts(Twice):
        def __init__(self):
            super().__init__()
            self.calls = 0
            self.register_forward_hook(self.count)

        def count(self, *_):
            self.calls += 1

    m = Counts()
    new = copy.deepcopy(m)
    new(ones(1))
    assert (m.calls, new.calls) == (0, 1)


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).T


class Exponential(nn.Module):
    def forward(self, x):
        return x.exp()

    def right_inverse(self, x):
        return x.log()


def test_a_parametrization_without_right_inverse_is_only_read():
    m = nn.Linear(2, 2, bias=False)
    m.weight = nn.Parameter(T.tensor([[1.0, 2.0], [3.0, 4.0]]))
    parametrize.register_parametrization(m, "weight", Symmetric())
    with pytest.raises(RuntimeError, match="parametrization Symmetric does not implement right_inverse"):
        m.weight = T.ones(2, 2)
    assert m.weight.tolist() == [[1.0, 2.0], [2.0, 4.0]]
    assert list(m.state_dict()) == ["parametrizations.weight.original"]
    m(T.ones(1, 2)).sum().backward()
    assert m.parametrizations.weight.original.grad.tolist() == [[1.0, 2.0], [0.0, 1.0]]
    with pytest.raises(RuntimeError, match="only supported through state_dict"):
        pickle.dumps(m)
    new = copy.deepcopy(m)
    new.parametrizations.weight.original.data.zero_()
    assert m.weight.tolist() == [[1.0, 2.0], [2.0, 4.0]] and new.weight.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    parametrize.remove_parametrizations(m, "weight")
    assert m.weight.tolist() == [[1.0, 2.0], [2.0, 4.0]]


def test_one_of_several_parametrizations_without_right_inverse():
    m = nn.Linear(1, 1, bias=False)
    parametrize.register_parametrization(m, "weight", Exponential())
    m.weight = T.ones(1, 1)
    parametrize.register_parametrization(m, "weight", Symmetric())
    with pytest.raises(RuntimeError, match="Symmetric does not implement"):
        m.weight = T.ones(1, 1)
    assert m.weight.tolist() == [[1.0]]


def test_attention_takes_the_weights_of_its_projection_and_calls_no_module():
    seen = []
    with of_all.register_module_forward_hook(lambda module, args, out: seen.append(type(module).__name__)):
        nn.MultiheadAttention(4, 2)(*[T.ones(2, 1, 4)] * 3)
    assert seen == ["MultiheadAttention"]
