"""torch.special beside mpmath 1.3 with 60 to 400 digits."""
import math

import pytest

import onestep as torch

np = pytest.importorskip("numpy")

ARGUMENTS = [-30, -3, -0.5, 0.001, 0.5, 3, 30]
VALUES = {
    "erfcx": [math.inf, 16205.988853999586, 1.952360489182557, 0.9988726200811514, 0.6156903441929259, 0.17900115118138996, 0.01879588886141675],
    "ndtr": [4.906713927148187e-198, 0.0013498980316300946, 0.3085375387259869, 0.500398942213911, 0.6914624612740131, 0.9986501019683699, 1.0],
    "log_ndtr": [-454.3212439563432, -6.607726221510349, -1.1759117615936185, -0.6923496142726883, -0.3689464152886564, -0.0013508099647481938, -4.906713927148187e-198],
    "i0": [781672297823.9775, 4.8807925858650245, 1.0634833707413236, 1.0000002500000156, 1.0634833707413236, 4.8807925858650245, 781672297823.9775],
    "i0e": [0.0731459464822373, 0.2430003541618254, 0.6450352704491501, 0.9990007495835156, 0.6450352704491501, 0.2430003541618254, 0.0731459464822373],
    "i1": [-768532038938.957, -3.9533702174026093, -0.2578943053908963, 0.0005000000625000026, 0.2578943053908963, 3.9533702174026093, 768532038938.957],
    "i1e": [-0.07191633059864755, -0.19682671329730086, -0.1564208031848717, 0.0004995003123542213, 0.1564208031848717, 0.19682671329730086, 0.07191633059864755],
}
PARTS = [1e-300, 1e-10, 0.003, 0.25, 0.75, 1 - 2**-40]
QUANTILES = [-37.0470962993612, -6.361340902404057, -2.7477813854449926, -0.6744897501960817, 0.6744897501960817, 7.047700256664409]


@pytest.mark.parametrize("name", VALUES)
def test_values_and_gradients(name):
    function = getattr(torch.special, name)
    np.testing.assert_allclose(function(torch.tensor(ARGUMENTS, dtype=torch.float64)).numpy(), VALUES[name], rtol=1e-13)
    np.testing.assert_allclose(function(torch.tensor(ARGUMENTS[1:])).numpy(), np.float32(VALUES[name][1:]), rtol=3e-5)  # 0.001 and a float32 of it
    assert function(torch.tensor([1, 2])).dtype == torch.float32
    inner = torch.tensor([-2.5, -0.3, 0.7, 5.5], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(function, inner) and torch.autograd.gradgradcheck(function, inner)


def test_quantiles_of_the_normal_distribution():
    p = torch.tensor(PARTS, dtype=torch.float64)
    np.testing.assert_allclose(torch.special.ndtri(p).numpy(), QUANTILES, rtol=1e-14)
    assert str(torch.special.ndtri(torch.tensor([0, 1, -0.5, 2]))) == "tensor([-inf, inf, nan, nan])"
    inner = torch.tensor([0.05, 0.25, 0.75], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(torch.special.ndtri, inner) and torch.autograd.gradgradcheck(torch.special.ndtri, inner)


def test_entropies():
    np.testing.assert_allclose(torch.special.entr(torch.tensor([-1, 0, 0.5, math.inf])).numpy(), [-math.inf, 0, 0.34657359, -math.inf])
    y = torch.special.xlog1py(torch.tensor([0.0, 0.0, 2.0]), torch.tensor([-1.0, math.nan, 0.5]))
    np.testing.assert_allclose(y.numpy(), [0, math.nan, 0.81093022], rtol=1e-6)
    assert torch.special.xlog1py(2, torch.tensor(0.5)).item() == y[2].item()
    assert torch.i0(torch.tensor(3.0)).item() == torch.tensor(3.0).i0().item() == pytest.approx(4.88079258586502)


def test_gradients_at_0_and_far_out():
    slopes = {"i0": 0, "i0e": 0, "i1": 0.5, "i1e": 0.5, "erfcx": -2 / math.sqrt(math.pi), "ndtr": 1 / math.sqrt(2 * math.pi)}
    for name, slope in slopes.items():
        for dtype in (torch.float64, torch.float32, torch.float16):
            x = torch.zeros(1, dtype=dtype, requires_grad=True)
            for create_graph in (False, True):
                (grad,) = torch.autograd.grad(getattr(torch.special, name)(x).sum(), x, create_graph=create_graph)
                assert grad.item() == pytest.approx(slope, rel=1e-3 if dtype == torch.float16 else 1e-6)
    x = torch.tensor([100.0, 1000.0], requires_grad=True)
    torch.special.erfcx(x).sum().backward()  # the difference of nearly equal numbers: computed in double
    np.testing.assert_allclose(x.grad.numpy(), [-5.6410499e-05, -5.6418874e-07], rtol=1e-6)


def test_gradients_of_gradients():
    cases = {  # the second derivatives, by mpmath
        "log_ndtr": {-30.0: -0.998896228, 0.0: -2 / math.pi, 1.0: -0.370313714, 12.0: -2.57566048e-31, 40.0: 0.0},
        "i1": {0.0: 0.0, 1e-8: 3.75e-9, 1e-4: 3.75e-5, 0.01: 0.00375005208, 0.1: 0.0375521061, 3.0: 3.20496607},
        "i1e": {1e-30: -1.0, 1e-8: -0.999999981, 0.01: -0.981423911, 0.1: -0.828955918},
        "erfcx": {100.0: 1.12804078e-06},
    }
    for name, points in cases.items():
        for dtype in (torch.float32, torch.float64):
            for x, second in points.items():
                at = torch.tensor([x], dtype=dtype, requires_grad=True)
                (first,) = torch.autograd.grad(getattr(torch.special, name)(at).sum(), at, create_graph=True)
                (grad,) = torch.autograd.grad(first.sum(), at)
                assert grad.item() == pytest.approx(second, rel=1e-6, abs=1e-44)
