import math

import pytest

import onestep as torch
from onestep.testing import assert_allclose, assert_close


def message(*args, **options):
    with pytest.raises(AssertionError) as raised:
        assert_close(*args, **options)
    return str(raised.value)


def test_what_is_close():
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    assert_close(x, x + 1e-6)
    assert_close({"a": [x, 1]}, {"a": [x.detach(), 1]})
    assert_close(torch.tensor([math.nan]), torch.tensor([math.nan]), equal_nan=True)
    assert_close(x, x.double(), check_dtype=False)
    assert_close(None, None)
    assert_close(torch.zeros(0, 2), torch.zeros(0, 2))
    assert_close(torch.tensor([1 + 1j]), torch.tensor([1 + 1j]))
    assert_allclose([1.0, 2.0], torch.tensor([1.0, 2.0], dtype=torch.float64))


def test_what_is_not_close_is_told():
    text = message(torch.tensor([[1, 2], [3, 4]]), torch.tensor([[1, 2], [5, 4]]))
    assert "Mismatched elements: 1 / 4 (25.0%)" in text and "Greatest absolute difference: 2.0 at index (1, 0)" in text
    assert "Absolute difference: 1.0" in message(torch.tensor(1.0), torch.tensor(2.0))
    assert "'shape' do not match in item [0]" in message([torch.ones(2)], [torch.ones(3)])
    assert "'dtype' do not match" in message(torch.ones(2), torch.ones(2).double())
    assert "'stride()' do not match" in message(torch.ones(2, 3), torch.ones(3, 2).t(), check_stride=True)
    assert "keys of the mappings" in message({"a": 1}, {"b": 1})
    assert "length of the sequences" in message([1], [1, 2])
    assert "None mismatch" in message(None, 1)
    assert message(1.0, 2.0, msg="own") == "own"
    with pytest.raises(ValueError, match="must both be specified"):
        assert_close(1, 1, rtol=0.1)
