"""Tensors: values, printing and errors as PyTorch has them (goldens/expressions.json), and what Python asks of objects."""

import copy
import gc
import json
import math
import os
import pickle
import sys
import weakref

import numpy
import pytest

import onestep as torch

GOLDENS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "goldens")
sys.path.insert(0, GOLDENS)
from expressions import EXPRESSIONS, evaluate  # noqa: E402

with open(os.path.join(GOLDENS, "expressions.json"), encoding="utf-8") as file:
    EXPECTED = json.load(file)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expression_as_in_pytorch(expression):
    found, expected = evaluate(expression, torch), EXPECTED[expression]
    if expected.startswith("raises"):  # what PyTorch raises can be caught as such
        assert found.startswith("raises") and set(expected.split()) <= set(found.split())
    else:
        assert found == expected


# ---- objects


def test_a_tensor_has_one_object():
    x = torch.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    assert x.grad is x.grad
    assert x.requires_grad_() is x
    assert x.contiguous() is x
    assert x.to("cpu") is x
    y = torch.zeros(2)
    assert y.add_(1) is y
    z = y
    y += 1
    assert y is z and y.tolist() == [2, 2]


def test_objects_can_be_keys_and_have_attributes():
    x, y = torch.ones(2), torch.ones(2)
    assert {x: 1, y: 2}[x] == 1
    x.label = "name"
    assert x.label == "name"
    alive = weakref.ref(x)
    del x
    gc.collect()
    assert alive() is None


def test_subclass():
    class Named(torch.Tensor):
        pass

    x = torch.Tensor._make_subclass(Named, torch.ones(2), True)
    assert type(x) is Named and x.is_leaf and x.requires_grad
    assert type(x * 2) is torch.Tensor
    assert type(copy.deepcopy(x)) is Named
    x.data = torch.zeros(3, 2)
    (x + 1).sum().backward()
    assert x.grad.shape == (3, 2)


def test_deepcopy_keeps_views_views():  # strides, offsets and values of torch 2.13
    x = torch.arange(12.0).reshape(3, 4)
    whole, row, corner, detached = copy.deepcopy((x, x[1], x[1:, ::2], x[1:, 1:3].detach()))
    assert (corner.stride(), corner.storage_offset(), corner.tolist()) == ((4, 2), 4, [[4, 6], [8, 10]])
    row[0], whole[1, 1] = 77, 55
    assert whole[1, 0] == corner[0, 0] == 77 and detached.tolist() == [[55, 6], [9, 10]] and x[1].tolist() == [4, 5, 6, 7]
    assert copy.deepcopy(torch.ones(1, 3).expand(4, 3)).stride() == (0, 1)
    assert copy.deepcopy(x.t()).stride() == (1, 4)
    strided = torch.from_numpy(numpy.arange(12.0).reshape(3, 4).T[1:])
    assert copy.deepcopy(strided).tolist() == strided.tolist() == [[1, 5, 9], [2, 6, 10], [3, 7, 11]]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint8", "bool", "float16", "bfloat16"])
def test_pickle_and_deepcopy(dtype):
    x = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(getattr(torch, dtype))
    for y in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert y.dtype == x.dtype and torch.equal(x, y) and y.data_ptr() != x.data_ptr()


def test_deepcopy_keeps_grad_and_refuses_results():
    x = torch.ones(2, requires_grad=True)
    (3 * x).sum().backward()
    assert copy.deepcopy(x).grad.tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(x * 2)


def test_dtype_and_size_objects():
    assert pickle.loads(pickle.dumps(torch.float32)) is torch.float32
    assert torch.float is torch.float32 and torch.float32 != torch.float64
    assert isinstance(torch.ones(2, 3).shape, tuple) and torch.ones(2, 3).shape == (2, 3)
    assert torch.Size([2, 3, 4])[1:].numel() == 12
    assert torch.device("cpu") == torch.ones(1).device and torch.device("cuda", 1).index == 1


def test_keywords_and_numpy_names():
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(torch.sum(input=x, dim=0), x.sum(axis=0))
    assert torch.equal(x.mean(1, keepdim=True), x.mean(axis=1, keepdims=True))
    with pytest.raises(TypeError, match="unexpected keyword argument 'dimm'"):
        torch.cumsum(x, dimm=0)
    with pytest.raises(TypeError, match="expected one of:\n \\* add"):
        torch.add(x, "1")


def test_help():
    import inspect

    assert str(inspect.signature(torch.cumsum)) == "(input, dim, *, dtype=None)"
    assert "exp(x_j" in torch.softmax.__doc__ and torch.softmax.__name__ == "softmax"


# ---- indexing


def test_assignment():
    x = torch.zeros(3, 4)
    x[0] = 1
    x[1, 1:3] = torch.tensor([5.0, 6.0])
    x[:, -1] = 9.0
    x[x == 0] = -1
    x[[2], [0]] = 7
    x[..., 2] += 10
    assert x.tolist() == [[1, 1, 11, 9], [-1, 5, 16, 9], [7, -1, 9, 9]]
    with pytest.raises(IndexError):
        x[3] = 0


def test_views_share_and_record():
    x = torch.zeros(2, 3)
    x[1][0] = 5
    x.view(-1)[5] = 6
    assert x.tolist() == [[0, 0, 0], [5, 0, 6]]
    w = torch.ones(2, 3, requires_grad=True)
    (w[0, 1:] * 2).sum().backward()
    assert w.grad.tolist() == [[0, 2, 2], [0, 0, 0]]


def test_print_options():
    x = torch.tensor([1e-5, 1.0])
    torch.set_printoptions(sci_mode=False, precision=2)
    assert repr(x) == "tensor([0.00, 1.00])"
    torch.set_printoptions(profile="default")
    assert repr(x) == "tensor([1.0000e-05, 1.0000e+00])"


def test_random_state():
    state = torch.get_rng_state()
    first = torch.rand(5)
    torch.set_rng_state(state)
    assert torch.equal(first, torch.rand(5))
    g = torch.Generator()
    g.manual_seed(3)
    state = g.get_state()
    first = torch.randn(3, generator=g)
    assert torch.equal(first, torch.randn(3, generator=torch.Generator().set_state(state)))


def test_typed_tensors():
    assert torch.LongTensor([1, 2]).dtype == torch.int64 and torch.FloatTensor(2, 3).shape == (2, 3)
    assert isinstance(torch.ones(1), torch.FloatTensor) and not isinstance(torch.ones(1), torch.LongTensor)


def test_an_object_that_dies_is_not_found_again():
    x = torch.ones(2, requires_grad=True)
    y, found = x * 2, []  # the graph keeps the tensor of x alive

    class Finder:
        def __del__(self):
            y.sum().backward(retain_graph=True)
            found.append(1)

    x.finder = Finder()
    x.register_post_accumulate_grad_hook(lambda leaf: None)
    del x
    gc.collect()
    assert found == [1]
    y.sum().backward()


def test_composed_ops():
    x = torch.tensor([[0.25, 0.75], [1.0, -0.0]])
    assert torch.logit(x[0]).tolist() == pytest.approx([-1.0986123, 1.0986123])
    assert torch.logit(torch.tensor([-1, 0, 1, 2])).tolist() == pytest.approx([math.nan, -math.inf, math.inf, math.nan], nan_ok=True)
    assert torch.signbit(x).tolist() == [[False, False], [False, True]]
    assert torch.copysign(torch.ones(2), x[1]).tolist() == [1, -1]
    assert torch.cov(torch.tensor([[1.0, 2.0, 3.0]])).item() == 1
    assert torch.cdist(x[:1], x).tolist() == [[0.0, pytest.approx(1.0606602)]]
    points = [torch.randn(n, 3, generator=torch.Generator().manual_seed(n)).requires_grad_() for n in (30, 4)]
    exact = torch.cdist(*points, compute_mode="donot_use_mm_for_euclid_dist")
    want = torch.autograd.grad(exact.sum(), points)
    assert torch.allclose(torch.cdist(*points), exact, atol=1e-5)  # by a product
    assert all(torch.allclose(a, b, atol=1e-4) for a, b in zip(torch.autograd.grad(torch.cdist(*points).sum(), points), want))
    same = torch.ones(26, 2, requires_grad=True)
    torch.cdist(same, same).sum().backward()
    assert same.grad.count_nonzero() == 0
    with pytest.raises(ValueError, match="compute_mode must be one of use_mm"):
        torch.cdist(x, x, compute_mode="mm")
    assert x.quantile(0.5).item() == 0.5
    assert torch.unique_consecutive(torch.tensor([1, 1, 2, 1]), return_counts=True)[1].tolist() == [2, 1, 1]
    w = torch.zeros(3).index_put_((torch.tensor([0, 0, 2]),), torch.tensor([1.0, 2.0, 3.0]), accumulate=True)
    v = torch.ones(3, 2, requires_grad=True)
    added = torch.zeros(4, 2).index_put((torch.tensor([1, -1, 1]),), v, accumulate=True)
    added.backward(torch.arange(8.0).reshape(4, 2))
    assert added.tolist() == [[0, 0], [2, 2], [0, 0], [1, 1]] and v.grad.tolist() == [[2, 3], [6, 7], [2, 3]]
    assert w.tolist() == [3, 0, 3]
    assert torch.arange(4.0).cumsum_(0).tolist() == [0, 1, 3, 6]
    assert torch.zeros(2, 2).fill_diagonal_(1).tolist() == [[1, 0], [0, 1]]


def test_missing_names_say_so():
    with pytest.raises(NotImplementedError, match="torch.lobpcg"):
        torch.lobpcg
    assert not hasattr(torch, "lobpcg") and not hasattr(torch, "no_such_name")


def test_numbers_are_not_converted_to_what_they_divide():
    assert torch.tensor([1, 2], dtype=torch.uint8).div(-1).tolist() == [-1, -2]
    assert torch.tensor([3, 7], dtype=torch.uint8).div(300).tolist() == pytest.approx([0.01, 7 / 300])
    assert torch.tensor([3], dtype=torch.int32).div(2**33).item() == 3 / 2**33
    assert torch.isnan(torch.tensor([2], dtype=torch.uint8).xlogy(-1)).item()


@pytest.mark.parametrize("number", [1e-8, torch.tensor(1e-8)])
def test_halves_times_a_number_are_rounded_once(number):
    x = torch.tensor([6e4, 3e4], dtype=torch.float16)
    expected = (x.float() * 1e-8).half()
    assert expected[0] > 0
    for y in (x * number, number * x, x.clone().mul_(number), x.clone() * number):
        assert y.dtype == torch.float16 and torch.equal(y, expected)
    large = torch.tensor(1e6) if isinstance(number, torch.Tensor) else 1e6
    for y in (x / large, x.clone().div_(large), x.div(large)):
        assert y.dtype == torch.float16 and torch.equal(y, (x.float() / 1e6).half())


def test_dims_of_size_one_in_front_of_what_is_assigned():
    x = torch.zeros(2, 3)
    x[0] = torch.ones(1, 3)
    x[[1]] = torch.full((1, 1, 3), 2.0)
    assert x.tolist() == [[1, 1, 1], [2, 2, 2]]
    x[0, 0] = torch.full((1, 1), 5.0)
    x[:2] = torch.full((1, 1, 1, 3), 4.0)
    assert x.tolist() == [[4, 4, 4], [4, 4, 4]]


def test_a_mask_without_dims():
    x = torch.tensor(3.0)
    assert (x * 2)[x > 2].tolist() == [6] and (x * 2)[x > 4].tolist() == []
    x[x > 2] = 0
    assert x.item() == 0
    y = torch.arange(6).reshape(2, 3)
    assert y[torch.tensor(True)].shape == (1, 2, 3) and y[torch.tensor(False)].shape == (0, 2, 3)
    assert y[0, torch.tensor(True)].tolist() == [[0, 1, 2]]


def test_the_diagonal_of_a_cube():
    cube = torch.zeros(3, 3, 3).fill_diagonal_(5)
    assert cube.sum() == 15 and all(cube[i, i, i] == 5 for i in range(3))
    with pytest.raises(RuntimeError, match="of equal length"):
        torch.zeros(2, 3, 4).fill_diagonal_(5)
    assert torch.tensor([True]).copysign(torch.tensor([0.1], dtype=torch.float64)).dtype == torch.float64


def test_numbers_that_an_element_cannot_hold_are_no_bounds():
    x = torch.tensor([1, 2, 200], dtype=torch.uint8)
    for call in (lambda: x.clamp(max=300), lambda: x.clamp_max_(300), lambda: torch.ones(2, dtype=torch.int32).clamp(max=2**40),
                 lambda: torch.ones(2).half().clamp(max=1e6)):
        with pytest.raises(RuntimeError, match="overflow"):
            call()
    assert x.clamp(max=300.0).dtype == torch.float32


def test_products_and_quotients_that_are_added_meet_in_one_dtype():
    x, one, three = torch.ones(2), torch.ones(2, dtype=torch.bfloat16), torch.full((2,), 3.0, dtype=torch.bfloat16)
    assert torch.addcdiv(x, one, three).tolist() == (x + 1 / torch.full((2,), 3.0)).tolist()
    assert one.clone().addcdiv_(one, three, value=0.3).tolist() == [1.1015625] * 2
    n = torch.tensor([1, 2])
    assert torch.equal(n.addcmul(n, n, value=2.5), torch.tensor([3, 10]))
    with pytest.raises(RuntimeError, match="needs a floating dtype"):
        n.addcdiv(n, n)
    with pytest.raises(RuntimeError, match="does not fit"):
        n.addcmul_(torch.tensor([0.5, 0.5]), n)


def test_numbers_beyond_float32_are_infinite_operands():
    assert torch.ones(2).div_(1e60).tolist() == [0, 0] and torch.ones(2).add_(-1e60).tolist() == [-float("inf")] * 2
    assert torch.where(torch.tensor([True, False]), torch.ones(2).half(), 1e6).tolist() == [1, float("inf")]
    with pytest.raises(RuntimeError, match="overflow"):
        torch.where(torch.tensor([True]), torch.ones(1, dtype=torch.uint8), 300)


def test_a_bool_among_positions_is_no_dim():
    x = torch.arange(6.0).view(2, 3)
    assert x.var(1, False).tolist() == x.var(1, correction=0).tolist() and x.std(-1, True).shape == (2,)
    assert torch.std(x, 1, True, True).shape == (2, 1) and torch.var_mean(x, 1, False)[0].shape == (2,)


def test_places_and_products_where_no_dim_is_given():
    x = torch.arange(9.0).view(3, 3)
    assert torch.cross(x, torch.eye(3)).tolist() == [[0, -7, 5], [6, 0, -2], [-3, 1, 0]]
    assert torch.cross(torch.ones(3, 4), torch.ones(3, 4)).shape == (3, 4)
    assert x.argmax(keepdim=True).tolist() == [[8]] and torch.argmin(x, keepdim=True).shape == (1, 1)


def test_halves_meet_other_floats_before_they_are_rounded():
    assert torch.tensor([6e4]).half().mul_(torch.tensor([1e-8])).item() == pytest.approx(6e-4, rel=1e-3)
    assert torch.tensor([6e4]).half().div_(torch.tensor([1e8])).item() == pytest.approx(6e-4, rel=1e-3)
    assert (torch.tensor([-3.0]).bfloat16() // 0.999).item() == -4
    assert torch.div(torch.tensor([-3.0]).bfloat16(), 0.999, rounding_mode="floor").item() == -4


def test_a_bound_that_is_nan_and_arrays_beside_tensors():
    assert torch.clamp(torch.tensor([1.0, 2.0]), float("nan"), 5.0).isnan().all()
    array = numpy.array([1.0, 3.0])
    assert (torch.tensor([1.0, 2.0]) == array).tolist() == [True, False]
    assert (array == torch.tensor([1.0, 2.0])).tolist() == [True, False]


def test_composed_ops_in_place_refuse_what_an_integer_cannot_hold():
    for name, arguments in (("true_divide_", (2,)), ("arccos_", ()), ("logit_", ())):
        with pytest.raises(RuntimeError, match="does not fit"):
            getattr(torch.tensor([3, 5]), name)(*arguments)
    assert torch.tensor([3, 5]).eq_(3).tolist() == [1, 0]


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16"])
def test_default_dtype_is_that_of_floats_and_of_what_integers_become(dtype):
    i = torch.arange(1, 5)
    try:
        torch.set_default_dtype(getattr(torch, dtype))
        made = [torch.zeros(2), torch.full((2,), 1.5), torch.tensor([1, 2.5]), torch.arange(4.0), torch.Tensor(2), torch.scalar_tensor(1)]
        made += [i / 2, 2 / i, i * 1.5, i**0.5, i.sqrt(), i.logsumexp(0), torch.where(i > 2, 1.5, 0.0), torch.bernoulli(torch.ones(2))]
        made += [torch.nn.Linear(2, 2)(torch.ones(1, 2)), torch.empty(3).exponential_()]
        assert {str(x.dtype) for x in made} == {f"torch.{dtype}"}
        assert (torch.ones(2, dtype=torch.float32) * 1.5).dtype == torch.float32
        assert repr(torch.ones(1)) == "tensor([1.])" and "float32" in repr(torch.ones(1, dtype=torch.float32))
    finally:
        torch.set_default_dtype(torch.float32)
    with pytest.raises(TypeError):
        torch.set_default_dtype(torch.int64)


def test_tensors_and_large_integers_in_lists():
    one = torch.ones(1, dtype=torch.float64)
    assert torch.tensor([one, 2.0]).tolist() == [1, 2] and torch.tensor([one, one]).dtype == torch.float64
    assert torch.tensor([range(2), range(2)]).tolist() == [[0, 1], [0, 1]]
    assert torch.tensor([10**30], dtype=torch.float32).item() == pytest.approx(1e30)
    assert torch.tensor([-1, 255], dtype=torch.uint8).tolist() == [255, 255]
    for make in (lambda: torch.tensor([torch.ones(2), torch.ones(2)]), lambda: torch.tensor([2**63]), lambda: torch.tensor(b"ab")):
        with pytest.raises((ValueError, TypeError)):
            make()
    for value, dtype in ((256, torch.uint8), (2**31, torch.int32), (float("nan"), torch.int64), (300.5, torch.uint8)):
        with pytest.raises(RuntimeError, match="without overflow"):
            torch.tensor([value], dtype=dtype)


def test_arguments_by_the_names_and_in_the_order_of_torch():
    x, i = torch.tensor([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]]), torch.tensor([3, 1, 2])
    assert (x > 0).any(keepdim=True).shape == (x > 0).all(None, True).shape == x.amax(keepdim=True).shape == (1, 1)
    assert x.clone().pow_(exponent=2).equal(x * x) and x.clone().clamp_min_(min=0).equal(x.relu())
    assert [part.shape[1] for part in x.split(split_size=2, dim=1)] == [2, 1]
    assert torch.bernoulli(x, 1.0).equal(torch.ones(2, 3)) and x.bernoulli(p=0.0).equal(torch.zeros(2, 3))
    assert torch.repeat_interleave(i).tolist() == [0, 0, 0, 1, 2, 2]
    assert torch.result_type(2.5, i) == torch.result_type(1, 2.0) == torch.float32 and torch.result_type(2, i) == torch.int64
    mean, var, weight, bias = torch.zeros(3), torch.ones(3), torch.full((3,), 2.0), torch.full((3,), 1.0)
    assert torch.batch_norm(x, weight, bias, mean, var, False, 0.1, 0.0, False).equal(2 * x + 1)
    assert torch.instance_norm(x[None], None, None, torch.zeros(2), torch.ones(2), False, 0.1, 0.0, False).equal(x[None])
    assert torch.embedding(x, torch.tensor([1])).equal(x[1:])
    assert torch.layer_norm(x, (3,), None, None, 1e-5, False).equal(torch.nn.functional.layer_norm(x, (3,)))
    assert torch.clamp_(x.clone(), 0).equal(x.relu()) and torch.rms_norm(weight, (3,)).tolist() == pytest.approx([1, 1, 1])


def test_choices_and_membership():
    x = torch.tensor([1, 2, 3])
    assert torch.combinations(x).tolist() == [[1, 2], [1, 3], [2, 3]] and torch.combinations(x[:1], with_replacement=True).tolist() == [[1, 1]]
    assert torch.combinations(x, 4).shape == (0, 4)
    assert torch.isin(x, torch.tensor([3.0, 5.0, 1.0])).tolist() == [True, False, True]
    assert torch.isin(x, 2, invert=True).tolist() == [True, False, True] and not torch.isin(x, torch.tensor([])).any()
    assert torch.isin(2, x).item() and not torch.isin(torch.tensor(torch.nan), torch.tensor([torch.nan])).item()


def test_factors_of_halves_are_halves():
    x, y, exact = torch.tensor([1.0]).bfloat16(), torch.tensor([3.0]).bfloat16(), torch.tensor(0.1).bfloat16().item()
    # PyTorch 2.13: 1 + 3 alpha with alpha as a bfloat16, rounded once, and in float32 with alpha as it is
    assert exact != 0.1 and x.add(y, alpha=0.1).item() == torch.tensor(1 + 3 * exact).bfloat16().item() == 1.296875
    assert x.add(3.0, alpha=0.1).item() == x.clone().sub_(3.0, alpha=-0.1).item() == 1.296875
    assert torch.ones(1).add(torch.full((1,), 3.0), alpha=0.1).item() == pytest.approx(1.3, rel=1e-7)


def test_tensors_of_bytes_and_halves():
    assert torch.ByteTensor([1, 255]).dtype == torch.uint8 and torch.ByteTensor(2, 3).shape == (2, 3)
    assert isinstance(torch.ones(1).half(), torch.HalfTensor) and not isinstance(torch.ones(1), torch.BFloat16Tensor)
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.ByteTensor([256])
