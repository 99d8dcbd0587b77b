"""Ops of numbers beside NumPy's, and draws beside those that PyTorch 2.13 printed."""
import math

import pytest

import onestep as torch

np = pytest.importorskip("numpy")


def test_divisors_and_multiples():
    a, b = np.arange(-6, 7), np.array([[0], [4], [-6], [9]])
    x, y = torch.tensor(a), torch.tensor(b)
    assert torch.gcd(x, y).tolist() == np.gcd(a, b).tolist()
    assert x.lcm(y).tolist() == np.lcm(a, b).tolist()
    assert torch.gcd(torch.tensor(12, dtype=torch.int32), torch.tensor(18, dtype=torch.uint8)).dtype == torch.int32
    with pytest.raises(torch.DTypeError, match="gcd: needs whole numbers"):
        torch.gcd(x, torch.tensor(0.5))


def test_parts_of_numbers():
    a = np.array([0.0, -0.0, 1.0, -1.5, 8.0, np.nextafter(8, 0), 5e-324, -1e308, np.inf, np.nan])
    mantissa, exponent = torch.tensor(a).frexp()
    want = np.frexp(a)
    np.testing.assert_array_equal(mantissa.numpy(), want[0])
    assert exponent.tolist() == want[1].tolist() and exponent.dtype == torch.int32
    assert torch.frexp(torch.tensor([3.0, 2.0**-140])).mantissa.tolist() == [0.75, 0.5]


def test_places_of_counted_elements():
    places = torch.tensor([[0, 5], [17, 23]])
    assert [i.tolist() for i in torch.unravel_index(places, (2, 3, 4))] == [i.tolist() for i in np.unravel_index(places.numpy(), (2, 3, 4))]
    assert torch.unravel_index(torch.tensor(3), 5)[0].item() == 3


def test_slices_with_bounded_norms():
    x = torch.tensor([[3.0, 4.0], [0.3, 0.4]], requires_grad=True)
    y = torch.renorm(x, 2, 0, 1.0)
    np.testing.assert_allclose(y.detach().numpy(), [[0.6, 0.8], [0.3, 0.4]], rtol=1e-6)
    assert torch.autograd.gradcheck(lambda v: torch.renorm(v, 2, 0, 1.0), x.detach().double().requires_grad_())


@pytest.mark.parametrize("edge_order", (1, 2))
def test_derivatives_along_dims(edge_order):
    rng = np.random.default_rng(0)
    a, places = rng.normal(size=(4, 5)), np.cumsum(rng.uniform(0.1, 1, 5))
    x = torch.tensor(a)
    for got, want in zip(torch.gradient(x, spacing=0.5, edge_order=edge_order), np.gradient(a, 0.5, edge_order=edge_order)):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)
    (along,) = torch.gradient(x, spacing=(torch.tensor(places),), dim=1, edge_order=edge_order)
    np.testing.assert_allclose(along.numpy(), np.gradient(a, places, axis=1, edge_order=edge_order), rtol=1e-10)
    assert torch.autograd.gradcheck(lambda v: torch.gradient(v, edge_order=edge_order)[1], x.clone().requires_grad_())
    with pytest.raises(torch.ShapeError, match="elements along dim 0"):
        torch.gradient(torch.ones(1), edge_order=edge_order)


def test_histograms():
    a = np.random.default_rng(0).normal(size=200).astype(np.float32)
    for density in (False, True):
        hist, edges = torch.histogram(torch.tensor(a), 7, range=(-1, 2), density=density)
        want = np.histogram(a, 7, (-1, 2), density=density)
        np.testing.assert_allclose(hist.numpy(), want[0], rtol=1e-6)
        np.testing.assert_allclose(edges.numpy(), want[1], rtol=1e-6)
    bins, weights = np.array([-2, 0, 0.5, 3], dtype=np.float32), np.abs(a)
    got = torch.tensor(a).histogram(torch.tensor(bins), weight=torch.tensor(weights)).hist
    np.testing.assert_allclose(got.numpy(), np.histogram(a, bins, weights=weights)[0], rtol=1e-5)
    assert torch.histogram(torch.tensor([2.0, 2.0]), 2).bin_edges.tolist() == [1.5, 2.0, 2.5]


def test_medians_and_modes():
    x = torch.tensor([[1.0, math.nan, 3.0, 2.0], [math.nan] * 4, [4.0, 4.0, 0.0, 0.0]], requires_grad=True)
    assert torch.nanmedian(x).item() == 2
    values, indices = x.nanmedian(1)
    np.testing.assert_array_equal(values.detach().numpy(), [2, math.nan, 0])
    assert indices.tolist()[0] == 3
    values[0].backward()
    assert x.grad[0].tolist() == [0, 0, 0, 1]
    values, indices = torch.mode(torch.tensor([[2, 1, 2, 1, 3], [5, 4, 4, 5, 5]]), dim=1, keepdim=True)
    assert values.tolist() == [[1], [5]] and indices.tolist() == [[3], [4]]
    assert torch.mode(torch.tensor([[2, 1], [2, 0]]), 0).values.tolist() == [2, 0]


def test_draws_that_are_functions_of_uniforms():
    torch.manual_seed(3)
    assert torch.empty(6).geometric_(0.3).tolist() == [10, 4, 1, 5, 1, 2]
    torch.manual_seed(3)
    torch.empty(6).geometric_(0.3)
    drawn = torch.empty(4, dtype=torch.float64).cauchy_(1, 2).tolist()
    np.testing.assert_allclose(drawn, [-1.7760404039133486, 0.5754266448637684, 0.38363241369399803, 3.395277222780039], rtol=1e-14)
    assert torch.rand(1).item() == 0.6483104228973389
    with pytest.raises(torch.Error, match="p must lie between 0 and 1"):
        torch.empty(1).geometric_(1.0)
    with pytest.raises(torch.Error, match="sigma must be positive"):
        torch.empty(1).cauchy_(0, -1)
