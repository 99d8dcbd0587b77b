"""Programs of layers and helpers: their results under PyTorch (goldens/layers.json)."""

import json
import os
import sys

import pytest

import onestep as torch

GOLDENS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "goldens")
sys.path.insert(0, GOLDENS)
import layers  # noqa: E402

with open(os.path.join(GOLDENS, "layers.json"), encoding="utf-8") as file:
    EXPECTED = json.load(file)


def difference(found, expected, place="result"):
    """Where two structures first differ, numbers by more than roundings of float32; "" where they agree."""
    if isinstance(expected, dict) and isinstance(found, dict) and list(found) == list(expected):
        rows = ((found[key], expected[key], f"{place}[{key!r}]") for key in expected)
    elif isinstance(expected, list) and isinstance(found, list) and len(found) == len(expected):
        rows = ((f, e, f"{place}[{i}]") for i, (f, e) in enumerate(zip(found, expected)))
    elif isinstance(expected, float) and found == pytest.approx(expected, rel=2e-5, abs=4e-6, nan_ok=True):
        return ""
    else:
        return "" if found == expected else f"{place}: {found!r} and not {expected!r}"
    return next(filter(None, (difference(*row) for row in rows)), "")


def test_every_case_has_a_golden():
    assert list(layers.CASES) == list(EXPECTED)


@pytest.mark.parametrize("name", sorted(EXPECTED))
@pytest.mark.filterwarnings("ignore")
def test_as_in_pytorch(name):
    assert not difference(json.loads(json.dumps(layers.result(torch, name))), EXPECTED[name])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_golden_is_what_pytorch_gives(name):
    pytorch = pytest.importorskip("torch")
    if pytorch is torch:
        pytest.skip("PyTorch itself is needed")
    assert not difference(json.loads(json.dumps(layers.result(pytorch, name))), EXPECTED[name])


def packed(*batch_sizes):
    return torch.nn.utils.rnn.PackedSequence(torch.ones(3, 2), torch.tensor(batch_sizes, dtype=torch.int64))


volume, kernel = torch.ones(1, 2, 3, 3, 3), torch.ones(4, 2, 2, 2, 2)
F = torch.nn.functional
REFUSED = {
    "conv3d of two strides": lambda: F.conv3d(volume, kernel, stride=(1, 2)),
    "conv3d of no stride": lambda: F.conv3d(volume, kernel, stride=0),
    "conv3d without a kernel": lambda: F.conv3d(volume, kernel[:, :, :0]),
    "conv3d of a large kernel": lambda: F.conv3d(volume, torch.ones(4, 2, 4, 1, 1)),
    "conv_transpose3d of channels": lambda: F.conv_transpose3d(volume, torch.ones(3, 2, 2, 2, 2)),
    "conv_transpose3d cut away": lambda: F.conv_transpose3d(volume, torch.ones(2, 2, 2, 2, 2), padding=9),
    "max_pool3d of no kernel": lambda: F.max_pool3d(volume, 0),
    "max_pool3d of two sizes": lambda: F.max_pool3d(volume, (2, 2)),
    "adaptive_max_pool3d of two sizes": lambda: F.adaptive_max_pool3d(volume, (1, 2)),
    "max_unpool2d outside": lambda: F.max_unpool2d(torch.ones(1, 1, 2, 2), torch.full((1, 1, 2, 2), -1), 2),
    "embedding_bag outside": lambda: F.embedding_bag(torch.tensor([7]), torch.ones(2, 3), torch.tensor([0])),
    "pack beyond the end": lambda: torch.nn.utils.rnn.pack_padded_sequence(torch.ones(2, 2), [3, 1]),
    "packed rows that are not there": lambda: torch.nn.LSTM(2, 2)(packed(5, 1)),
    "packed steps that grow": lambda: torch.nn.LSTM(2, 2)(packed(1, 2)),
    "packed nothing": lambda: torch.nn.LSTM(2, 2)(packed()),
    "matrix_power of a rectangle": lambda: torch.matrix_power(torch.ones(2, 3), 2),
    "matrix_power of an inverse": lambda: torch.matrix_power(torch.ones(2, 2), -1),
}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_refused(name):
    with pytest.raises((RuntimeError, IndexError)) as error:
        REFUSED[name]()
    assert str(error.value)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample_of_places_that_are_no_numbers(mode, padding):
    grid = torch.tensor([float("nan"), float("inf"), -1e30, 0.0] * 2).reshape(1, 2, 2, 2)
    y = F.grid_sample(torch.ones(1, 2, 3, 3), grid, mode, padding, False)
    assert y.shape == (1, 2, 2, 2)
    assert mode == "nearest" or y[:, :, :, 0].isnan().all()  # black pixels would hide it


def test_grid_sample_on_the_border_and_of_two_dtypes():
    grid = torch.tensor([1.0, 0.3, -1.0, 0.2]).reshape(1, 1, 2, 2).requires_grad_()
    F.grid_sample(torch.arange(9.0).reshape(1, 1, 3, 3), grid, "bilinear", "border", True).sum().backward()
    assert grid.grad[..., 0].tolist() == [[[0.0, 0.0]]] and grid.grad[..., 1].tolist() == [[[3.0, 3.0]]]  # PyTorch 2.13
    for mode in ("bilinear", "nearest"):
        with pytest.raises(RuntimeError, match="same floating dtype"):
            F.grid_sample(torch.ones(1, 1, 3, 3), grid.double(), mode, "zeros", True)


def test_embedding_bag_in_its_corners():
    weight = torch.ones(3, 2, requires_grad=True)
    with torch.no_grad():
        assert F.embedding_bag(torch.tensor([[0, 1]]), weight, scale_grad_by_freq=True).tolist() == [[1.0, 1.0]]
    for padding in (2, -1):
        with pytest.raises(IndexError):
            F.embedding_bag(torch.tensor([[0, -1, 1]]), weight, padding_idx=padding)
    with pytest.raises(RuntimeError, match="padding_idx must be within the number of embeddings, -3 through 2, but got 5"):
        F.embedding_bag(torch.tensor([[0, 1]]), weight, padding_idx=5)
    with pytest.raises(RuntimeError, match="at least 1"):
        F.embedding_bag(torch.tensor([0]), weight, torch.tensor([], dtype=torch.int64), include_last_offset=True)
    table = torch.tensor([[3.0, 4.0], [30.0, 40.0], [6.0, 8.0]])
    F.embedding_bag(torch.tensor([0, 1, 2]), table, torch.tensor([0, 2]), max_norm=1, padding_idx=1, include_last_offset=True)
    assert torch.allclose(table, torch.tensor([0.6, 0.8]).expand(3, 2))  # what does not count is scaled, too, as in PyTorch


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("n, c, places", [(0, 3, 2), (2, 0, 2), (2, 3, 0)])
def test_grid_sample_of_nothing(mode, n, c, places):
    assert F.grid_sample(torch.ones(n, c, 4, 5), torch.ones(n, places, 2, 2), mode, "zeros", False).shape == (n, c, places, 2)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_second_derivatives_of_grid_sample(mode, padding):
    torch.manual_seed(0)
    image = torch.randn(2, 2, 3, 4, dtype=torch.float64).requires_grad_()
    grid = torch.randn(2, 2, 3, 2, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x, g: F.grid_sample(x, g, mode, padding, False), (image, grid))


def test_one_device():
    layer, x = torch.nn.Linear(2, 2), torch.ones(3, 2)
    for inputs in (x, (x,)):
        assert torch.equal(torch.nn.parallel.data_parallel(layer, inputs, module_kwargs={}), layer(x))
    assert not (x.is_xpu or x.is_mkldnn or x.is_vulkan or x.is_sparse_csr)


@pytest.mark.parametrize("create_graph", (False, True))
def test_an_lstm_is_that_of_its_steps_and_its_output_may_be_written_to(create_graph):
    torch.manual_seed(1)
    lstm = torch.nn.LSTM(3, 4, 2, bidirectional=True)
    x = torch.randn(9, 5, 3, requires_grad=True)
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, [9] * 5)  # computed step by step
    results = []
    for given in (x, packed):
        out, (h, c) = lstm(given)
        out = out.data.view(9, 5, 8) if given is packed else out
        values = [out.detach().clone(), h.detach(), c.detach()]
        out.mul_(2)
        loss = (out * out).sum() + h.sum() + (c * c).sum()
        grads = torch.autograd.grad(loss, [x, *lstm.parameters()], create_graph=create_graph)
        if create_graph:
            grads = torch.autograd.grad(sum((g * g).sum() for g in grads), [x, *lstm.parameters()])
        results.append((values, grads))
    (values, grads), (values_of_steps, grads_of_steps) = results
    assert all(torch.equal(a, b) for a, b in zip(values, values_of_steps))
    for a, b in zip(grads, grads_of_steps):
        assert torch.allclose(a, b, rtol=1e-4, atol=1e-5 * b.abs().max().item())
