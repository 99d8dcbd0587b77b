"""Arguments that all ops share, and ops that are written in Python."""

import math
import subprocess
import sys
from pathlib import Path

import pytest

import onestep as torch
import onestep.nn.functional as F


def test_out_takes_the_result():
    x = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
    out = torch.empty(2, 2)
    assert torch.add(x, 1, out=out) is out
    assert out.tolist() == [[2, -1], [4, 5]]
    assert torch.matmul(x, x, out=out) is out
    empty = torch.empty(0)
    assert torch.sum(x, 1, out=empty) is empty
    assert empty.tolist() == [-1, 7]
    values, places = torch.empty(0), torch.empty(0, dtype=torch.int64)
    result = torch.max(x, 1, out=(values, places))
    assert result.values is values and result.indices is places
    assert (values.tolist(), places.tolist()) == ([1, 4], [0, 1])
    counted = torch.empty(3, dtype=torch.int64)
    torch.arange(3, out=counted)
    assert counted.tolist() == [0, 1, 2]
    wide = torch.empty(2, 2, dtype=torch.float64)
    assert torch.exp(x, out=wide).dtype == torch.float64
    assert torch.inner(x, x, out=out).tolist() == [[5, -5], [-5, 25]]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda x: torch.add(x, x, out=torch.empty(2, dtype=torch.int64)), "a result of dtype float32 cannot be stored in out"),
        (lambda x: torch.add(x, x, out=torch.empty(1).expand(2)), "refers to a single memory location"),
        (lambda x: torch.add(x[:-1], 1, out=x[1:]), "refer to a single memory location"),
        (lambda x: torch.take(x, torch.tensor([0, 1]), out=x), "refer to a single memory location"),
        (lambda x, nothing=torch.empty(0): torch.cat((nothing, x), out=nothing), "out is one of the inputs"),
        (lambda x: torch.take(x, torch.tensor([0, 1]), out=torch.empty(2, dtype=torch.float64)), "out must have dtype float32"),
        (lambda x: torch.exp(x, out=torch.empty(2).requires_grad_()), "don't support automatic differentiation"),
        (lambda x: torch.max(x, 0, out=torch.empty(1)), "out must be a tuple of 2 tensors"),
        (lambda x: torch.exp(x, out=3), "out must be a tensor"),
    ],
)
def test_out_is_refused(call, message):
    with pytest.raises(RuntimeError, match=message):
        call(torch.tensor([1.0, 2.0, 3.0]))


def test_numbers_stand_for_tensors():
    assert torch.add(2, 3).tolist() == 5
    assert torch.mul(0.1, torch.tensor([3.0], dtype=torch.float64)).item() == 0.1 * 3.0
    assert torch.sub(1, torch.tensor([3])).tolist() == [-2]
    with pytest.raises(TypeError):
        torch.bitwise_and(1, 2)


def test_statistics():
    x = torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])
    assert torch.cov(x).tolist() == [[1, -1], [-1, 1]]
    assert torch.cov(x, fweights=torch.tensor([1, 0, 1])).tolist() == [[2, -2], [-2, 2]]
    assert torch.corrcoef(x).tolist() == [[1, -1], [-1, 1]]
    q = torch.tensor([0.0, 0.5, 0.75])
    assert torch.quantile(x[0], q).tolist() == [0, 1, 1.5]
    expected = {"lower": 1, "higher": 2, "nearest": 2, "midpoint": 1.5, "linear": 1.5}
    for interpolation, value in expected.items():
        assert torch.quantile(x[0], 0.75, interpolation=interpolation).item() == value
    x[0, 2] = math.nan
    assert math.isnan(torch.quantile(x[0], 0.5).item())
    assert torch.nanquantile(x, 0.5, dim=1, keepdim=True).tolist() == [[0.5], [1.0]]
    rows, inverse, counts = torch.unique_consecutive(torch.tensor([[1, 1, 2], [3, 3, 4]]), True, True, dim=1)
    assert (rows.tolist(), inverse.tolist(), counts.tolist()) == ([[1, 2], [3, 4]], [0, 0, 1], [2, 1])
    assert torch.trapezoid(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.0, 1.0, 3.0])).item() == 6.5


def test_shapes_and_modes():
    assert torch.broadcast_shapes((1,), (), (3, 1)) == (3, 1)
    assert [t.shape for t in torch.atleast_2d(torch.tensor(1), torch.ones(3))] == [(1, 1), (1, 3)]
    assert [p.tolist() for p in torch.tensor_split(torch.arange(5), torch.tensor([1, 3]))] == [[0], [1, 2], [3, 4]]
    assert F.adaptive_avg_pool2d(torch.ones(1, 4, 6), (2, None)).shape == (1, 2, 6)
    line = torch.tensor([[[0.0, 1.0]]])
    assert F.interpolate(line, size=4, mode="linear", align_corners=False).tolist() == [[[0, 0.25, 0.75, 1]]]
    assert F.interpolate(line, size=1, mode="area").tolist() == [[[0.5]]]
    assert torch.linalg.matrix_norm(torch.tensor([[1.0, -2.0], [3.0, 4.0]]), math.inf).item() == 7


def test_random_programs_end_in_results_or_exceptions():
    fuzz = Path(__file__).with_name("programs") / "fuzz.py"
    done = subprocess.run([sys.executable, str(fuzz), "500", "7"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_factors_may_come_first_as_before_pytorch_1_5():
    x, y, z = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 5.0]), torch.tensor([2.0, 4.0])
    assert torch.add(x, 2, y).tolist() == x.add(2, y).tolist() == x.clone().add_(2, y).tolist() == [7, 12]
    assert torch.sub(x, 2, y).tolist() == x.sub(2, y).tolist() == x.clone().sub_(2, y).tolist() == [-5, -8]
    assert torch.addcmul(x, 2, y, z).tolist() == x.addcmul(2, y, z).tolist() == x.clone().addcmul_(2, y, z).tolist() == [13, 42]
    assert torch.addcdiv(x, 2, y, z).tolist() == x.addcdiv(2, y, z).tolist() == x.clone().addcdiv_(2, y, z).tolist() == [4, 4.5]


def test_random_integers_like_another_tensor():
    x = torch.empty(50)
    assert set(torch.randint_like(x, high=2).tolist()) == {0, 1} == set(torch.randint_like(x, 2).tolist())
    assert set(torch.randint_like(x, low=3, high=5, dtype=torch.int64).tolist()) == {3, 4} == set(torch.randint_like(x, 3, 5).tolist())


def test_halves_are_rounded_once_by_combining_ops():
    a, b = torch.tensor([-700.0], dtype=torch.bfloat16), torch.tensor([3.0], dtype=torch.bfloat16)
    assert torch.lerp(a, b, 0.3).item() == a.clone().lerp_(b, 0.3).item() == -490  # -489.1; the difference is 703, no bfloat16
    x = torch.tensor([256.0], dtype=torch.bfloat16)
    third = torch.tensor([1.5], dtype=torch.bfloat16)
    assert x.clone().addcmul_(third, third, value=0.46).item() == x.addcmul(third, third, value=0.46).item() == 258  # 257.035
