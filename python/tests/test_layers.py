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
