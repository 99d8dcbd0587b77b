"""Distributions beside PyTorch's (goldens/distributions.py)."""

import json
import math
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
    rel = 3e-2 if name.startswith("gradients of") else 2e-6  # PyTorch approximates these
    for found, wanted in zip(FOUND[name], WANTED[name]):
        assert found == pytest.approx(wanted, rel=rel, abs=1e-6, nan_ok=True)


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="but not both"):
        distributions.Categorical()
    with pytest.raises(ValueError, match="at least one-dimensional"):
        distributions.Categorical(torch.tensor(1.0))
    with pytest.raises(ValueError, match="low>= high"):
        distributions.Uniform(1.0, 1.0)
    with pytest.raises(ValueError, match="Exactly one of"):
        distributions.MultivariateNormal(torch.zeros(2))
    with pytest.raises(NotImplementedError, match="torch.distributions.VonMises"):
        distributions.VonMises


def test_what_the_others_gamma_functions_give():
    assert distributions.Kumaraswamy(2.0, 3.0).mode == pytest.approx(math.sqrt(1 / 5))
    assert distributions.StudentT(1.0).mean.isnan() and distributions.StudentT(1.5).variance == math.inf
    assert repr(distributions.Chi2(3.0)) == "Chi2(df: 3.0)"
    assert repr(distributions.Binomial(5, 0.5)) == "Binomial(total_count: 5.0, probs: 0.5)"
    assert repr(distributions.Binomial(5, logits=torch.zeros(2))) == "Binomial(total_count: torch.Size([2]), logits: torch.Size([2]))"
    assert distributions.Dirichlet(torch.tensor([[0.5, 0.25], [3.0, 2.0]])).mode.tolist() == [[1, 0], pytest.approx([2 / 3, 1 / 3])]
    assert distributions.Binomial(torch.tensor([2.0, 4.0]), 0.5).mean.tolist() == [1, 2]
    gamma = distributions.Gamma(torch.tensor(2.0, requires_grad=True), 1.0)
    (slope,) = torch.autograd.grad(gamma.rsample(), gamma.concentration, create_graph=True)
    with pytest.raises(RuntimeError, match="its gradient has no derivative"):
        slope.backward()
    a, x, h = (torch.tensor([v] * 3, dtype=torch.float64, requires_grad=True) for v in (2.5, 1.75, 1e-5))
    for f in (torch.igamma, torch.igammac):
        (slope,) = torch.autograd.grad(f(a, x).sum(), a)
        assert slope.tolist() == pytest.approx(((f(a + h, x) - f(a - h, x)) / (2 * h)).tolist())
    torch.manual_seed(1)
    assert torch._sample_dirichlet(torch.full((20, 2), 1e-5)).sum(-1).tolist() == pytest.approx([1] * 20)
    for draw in (torch._standard_gamma, torch._sample_dirichlet):
        half = torch.ones(3, dtype=torch.float16, requires_grad=True)
        draw(half).square().sum().backward()
        assert half.grad.dtype == torch.float16 and bool(half.grad.isfinite().all())
    assert torch.poisson(torch.tensor(1e20)) == pytest.approx(1e20)
    with pytest.raises(ValueError, match="poisson: rate must be finite and at least 0: got -1"):
        torch.poisson(torch.tensor(-1.0))
    with pytest.raises(ValueError, match="at least one-dimensional"):
        distributions.Dirichlet(torch.tensor(1.0))
    with pytest.raises(NotImplementedError, match="total count not supported by `entropy`"):
        distributions.Binomial(torch.tensor([2.0, 4.0]), 0.5).entropy()
    with pytest.raises(NotImplementedError, match="inhomogeneous total_count"):
        distributions.Multinomial(torch.tensor(2.0), torch.ones(2))
    with pytest.raises(NotImplementedError, match="q.total_count > p.total_count"):
        distributions.kl_divergence(distributions.Binomial(2, 0.5), distributions.Binomial(3, 0.5))
    with pytest.raises(ValueError, match="instance of torch.distributions.Categorical"):
        distributions.MixtureSameFamily(gamma, gamma)
    with pytest.raises(ValueError, match="does not equal"):
        distributions.MixtureSameFamily(distributions.Categorical(torch.ones(2)), gamma)
    assert torch.special.gammainc(torch.tensor(3.0), torch.tensor(2.0)) == pytest.approx(1 - 5 * math.exp(-2))


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
        lambda: distributions.Gamma(0.0, 1.0),
        lambda: distributions.Dirichlet(torch.ones(2)).log_prob(torch.tensor([0.5, 0.6])),
        lambda: distributions.Beta(1.0, 1.0).log_prob(torch.tensor(1.5)),
        lambda: distributions.Poisson(-1.0),
        lambda: distributions.Binomial(3, 0.5).log_prob(torch.tensor(4.0)),
        lambda: distributions.Binomial(-1, 0.5),
        lambda: distributions.Multinomial(3, torch.ones(2)).log_prob(torch.tensor([1.0, 1.0])),
    ):
        with pytest.raises(ValueError, match="invalid values"):
            make()
    assert distributions.Normal(0.0, -1.0, validate_args=False).scale == -1


def test_helpers_of_distributions():
    from onestep.distributions.utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits, tril_matrix_to_vec, vec_to_tril_matrix

    a, b = broadcast_all(1.0, torch.zeros(2, dtype=torch.float64))
    assert a.tolist() == [1, 1] and a.dtype == torch.float64 and b.shape == (2,)
    p = torch.tensor([0.25, 0.75])
    assert torch.allclose(logits_to_probs(probs_to_logits(p)), p) and torch.allclose(logits_to_probs(probs_to_logits(p, True), True), p)
    matrix = torch.arange(9.0).reshape(3, 3)
    for diagonal, expected in ((0, [0, 3, 4, 6, 7, 8]), (-1, [3, 6, 7])):
        triangle = tril_matrix_to_vec(matrix, diagonal)
        assert triangle.tolist() == expected and torch.equal(vec_to_tril_matrix(triangle, diagonal), matrix.tril(diagonal))
    with pytest.raises(ValueError, match="4 numbers are no lower triangle"):
        vec_to_tril_matrix(torch.zeros(4))

    class Once:
        calls = 0

        @lazy_property
        def value(self):
            self.calls += 1
            return self.calls

    once = Once()
    assert once.value == once.value == 1
