"""Distributions beside PyTorch's (goldens/distributions.py)."""

import json
import sys
from pathlib import Path

import pytest

import onestep as torch
from onestep import distributions

pytest.importorskip("numpy")  # for MultivariateNormal

GOLDENS = Path(__file__).parent / "goldens"
sys.path.insert(0, str(GOLDENS))
from distributions import results  # noqa: E402

WANTED = json.loads((GOLDENS / "distributions.json").read_text())["results"]
FOUND = results(torch)


@pytest.mark.parametrize("name", WANTED)
def test_draws_and_gradients_are_those_of_pytorch(name):
    assert len(FOUND[name]) == len(WANTED[name])
    for found, wanted in zip(FOUND[name], WANTED[name]):
        assert found == pytest.approx(wanted, rel=2e-6, abs=1e-6, nan_ok=True)


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="but not both"):
        distributions.Categorical()
    with pytest.raises(ValueError, match="at least one-dimensional"):
        distributions.Categorical(torch.tensor(1.0))
    with pytest.raises(ValueError, match="low>= high"):
        distributions.Uniform(1.0, 1.0)
    with pytest.raises(ValueError, match="Exactly one of"):
        distributions.MultivariateNormal(torch.zeros(2))
    with pytest.raises(NotImplementedError, match="torch.distributions.Gamma"):
        distributions.Gamma


def test_independent_transformed_and_registered_divergences():
    normal = distributions.Normal(torch.zeros(3, 2), torch.ones(2))
    with pytest.raises(ValueError, match="actual 3 vs 2"):
        distributions.Independent(normal, 3)
    with pytest.raises(NotImplementedError, match="p type Normal and q type Uniform"):
        distributions.kl_divergence(normal, distributions.Uniform(0.0, 1.0))
    with pytest.raises(TypeError, match="Expected a Distribution class"):
        distributions.register_kl(int, distributions.Normal)

    class Own(distributions.Normal):
        pass

    assert distributions.kl_divergence(Own(0.0, 1.0), Own(0.0, 1.0)) == 0
    distributions.register_kl(Own, distributions.Normal)(lambda p, q: torch.tensor(7.0))
    assert distributions.kl_divergence(Own(0.0, 1.0), distributions.Normal(0.0, 1.0)) == 7
    assert distributions.kl_divergence(distributions.Normal(0.0, 1.0), Own(0.0, 1.0)) == 0
    from onestep.distributions.multivariate_normal import MultivariateNormal
    from onestep.distributions.normal import Normal

    assert (Normal, MultivariateNormal) == (distributions.Normal, distributions.MultivariateNormal)
    assert repr(normal) == "Normal(loc: torch.Size([3, 2]), scale: torch.Size([3, 2]))"
    assert repr(Normal(0.0, 1.0)) == "Normal(loc: 0.0, scale: 1.0)"
    assert repr(distributions.Categorical(torch.ones(3))) == "Categorical(probs: torch.Size([3]))"
    gaussian = MultivariateNormal(torch.zeros(2), torch.eye(2))
    assert repr(gaussian) == "MultivariateNormal(loc: torch.Size([2]), covariance_matrix: torch.Size([2, 2]))"
    tanh = distributions.TanhTransform(cache_size=1)
    x = torch.tensor([20.0])
    y = tanh(x)
    assert tanh.inv(y) is x and y == 1


def test_constraints_tell_what_is_within():
    c = distributions.constraints
    x = torch.tensor([-1.0, 0.0, 0.5, 1.0, float("nan")])
    inside = {
        c.real: [1, 1, 1, 1, 0], c.positive: [0, 0, 1, 1, 0], c.nonnegative: [0, 1, 1, 1, 0], c.unit_interval: [0, 1, 1, 1, 0],
        c.interval(-1.0, 0.5): [1, 1, 1, 0, 0], c.half_open_interval(-1.0, 0.5): [1, 1, 0, 0, 0], c.less_than(0.5): [1, 1, 0, 0, 0],
        c.boolean: [0, 1, 0, 1, 0], c.nonnegative_integer: [0, 1, 0, 1, 0], c.integer_interval(-1, 0): [1, 1, 0, 0, 0],
    }  # fmt: skip
    for constraint, wanted in inside.items():
        assert constraint.check(x).tolist() == [bool(w) for w in wanted]
    assert c.simplex.check(torch.tensor([[0.5, 0.5], [0.5, 0.6]])).tolist() == [True, False]
    assert c.independent(c.positive, 1).check(torch.tensor([[1.0, 2.0], [1.0, 0.0]])).tolist() == [True, False]
    assert c.lower_cholesky.check(torch.eye(2)) and not c.lower_cholesky.check(torch.ones(2, 2))
    assert repr(c.positive) == "GreaterThan(lower_bound=0.0)" and c.one_hot.event_dim == 1


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
        lambda: distributions.Exponential(0.0),
        lambda: distributions.HalfNormal(torch.tensor([1.0, nan])),
        lambda: distributions.Uniform(0.0, 1.0).log_prob(torch.tensor(2.0)),
        lambda: distributions.Geometric(0.5).log_prob(torch.tensor(-1.0)),
        lambda: distributions.OneHotCategorical(torch.ones(3)).log_prob(torch.tensor([1.0, 1.0, 0.0])),
    ):
        with pytest.raises(ValueError, match="invalid values"):
            make()
    assert distributions.Normal(0.0, -1.0, validate_args=False).scale == -1
