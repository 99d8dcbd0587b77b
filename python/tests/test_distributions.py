"""Distributions beside PyTorch's (goldens/distributions.py)."""

import json
import sys
from pathlib import Path

import pytest

import onestep as torch
from onestep import distributions

GOLDENS = Path(__file__).parent / "goldens"
sys.path.insert(0, str(GOLDENS))
from distributions import results  # noqa: E402

WANTED = json.loads((GOLDENS / "distributions.json").read_text())["results"]
FOUND = results(torch)


@pytest.mark.parametrize("name", WANTED)
def test_draws_and_gradients_are_those_of_pytorch(name):
    assert len(FOUND[name]) == len(WANTED[name])
    for found, wanted in zip(FOUND[name], WANTED[name]):
        assert found == pytest.approx(wanted, rel=2e-6, abs=1e-6)


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="but not both"):
        distributions.Categorical()
    with pytest.raises(ValueError, match="at least one-dimensional"):
        distributions.Categorical(torch.tensor(1.0))
    with pytest.raises(NotImplementedError, match="torch.distributions.Gamma"):
        distributions.Gamma


def test_parameters_and_values_that_cannot_be_are_refused():
    nan = float("nan")
    for make in (
        lambda: distributions.Normal(0.0, -1.0),
        lambda: distributions.Normal(nan, 1.0),
        lambda: distributions.Categorical(logits=torch.tensor([nan, 1.0])),
        lambda: distributions.Categorical(torch.tensor([-1.0, 2.0])),
        lambda: distributions.Bernoulli(torch.tensor(1.5)),
        lambda: distributions.Categorical(torch.ones(3)).log_prob(torch.tensor(1.7)),
        lambda: distributions.Bernoulli(0.5).log_prob(torch.tensor(0.5)),
    ):
        with pytest.raises(ValueError, match="invalid values"):
            make()
    assert distributions.Normal(0.0, -1.0, validate_args=False).scale == -1
