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


def near(found, expected):
    """Whether two structures agree, numbers up to roundings of float32."""
    if isinstance(expected, dict):
        return list(found) == list(expected) and all(near(found[key], expected[key]) for key in expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(near(f, e) for f, e in zip(found, expected))
    if isinstance(expected, float):
        return found == pytest.approx(expected, rel=2e-5, abs=2e-6, nan_ok=True)
    return found == expected


def test_every_case_has_a_golden():
    assert list(layers.CASES) == list(EXPECTED)


@pytest.mark.parametrize("name", sorted(EXPECTED))
@pytest.mark.filterwarnings("ignore")
def test_as_in_pytorch(name):
    found = json.loads(json.dumps(layers.result(torch, name)))
    assert near(found, EXPECTED[name]), found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_golden_is_what_pytorch_gives(name):
    pytorch = pytest.importorskip("torch")
    if pytorch is torch:
        pytest.skip("PyTorch itself is needed")
    assert near(json.loads(json.dumps(layers.result(pytorch, name))), EXPECTED[name])
