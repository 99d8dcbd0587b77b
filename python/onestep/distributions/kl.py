"""Divergences (torch.distributions.kl): kl_divergence(p, q) is the mean of log p(x) - log q(x) for x of p."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, Tuple

import onestep
from onestep.distributions.continuous import (
    Exponential, HalfNormal, Laplace, MultivariateNormal, Normal, Uniform
)  # fmt: skip
from onestep.distributions.counts import Binomial, Poisson
from onestep.distributions.discrete import Bernoulli, Categorical, Geometric, OneHotCategorical
from onestep.distributions.distribution import Distribution, Independent, Tensor, sum_last
from onestep.distributions.gamma import Beta, Dirichlet, Gamma
from onestep.distributions.transformed import TransformedDistribution

softplus = onestep.nn.functional.softplus
_FORMULAS: Dict[Tuple[type, type], Callable[[Any, Any], Tensor]] = {}


def register_kl(type_p: type, type_q: type) -> Callable:
    """A decorator for the formula of two classes and those that are derived from them."""
    for kind in (type_p, type_q):
        if not (isinstance(kind, type) and issubclass(kind, Distribution)):
            raise TypeError(f"Expected a Distribution class but got {kind}")

    def add(formula: Callable) -> Callable:
        _FORMULAS[type_p, type_q] = formula
        return formula

    return add


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The divergence of q from p, batch by batch; NotImplementedError where no formula is known."""
    pairs = ((of_p, of_q) for of_p in type(p).__mro__ for of_q in type(q).__mro__)
    formula = next((_FORMULAS[pair] for pair in pairs if pair in _FORMULAS), None)
    if formula is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
        )
    return formula(p, q)


def _unless(impossible: Tensor, needless: Tensor, term: Tensor) -> Tensor:
    """`term`, infinite where q has no such value, and 0 where p has none."""
    return onestep.where(needless, 0.0, onestep.where(impossible, math.inf, term))


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    ones = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    zeros = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    return _unless(q.probs == 0, p.probs == 0, ones) + _unless(q.probs == 1, p.probs == 1, zeros)


@register_kl(Categorical, Categorical)
@register_kl(OneHotCategorical, OneHotCategorical)
def _categorical(p: Any, q: Any) -> Tensor:
    return _unless(q.probs == 0, p.probs == 0, p.probs * (p.logits - q.logits)).sum(-1)


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - onestep.log1p(-q.probs) / p.probs - q.logits


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    variances = (p.scale / q.scale).pow(2)
    distance = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (variances + distance - 1 - variances.log())


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError("KL-divergence between two Multivariate Normals with different event shapes cannot be computed")
    ratio = onestep.linalg.solve_triangular(q.scale_tril, p.scale_tril, upper=False).pow(2).sum((-2, -1))
    return q.half_log_det() - p.half_log_det() + 0.5 * (ratio + q.distance(q.loc - p.loc) - p.event_shape[0])


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * onestep.exp(-distance / p.scale) - 1


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return onestep.where((q.low > p.low) | (q.high < p.high), math.inf, found)


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
    difference = q.concentration.lgamma() - p.concentration.lgamma()
    powers = q.concentration * (p.rate / q.rate).log() + (p.concentration - q.concentration) * p.concentration.digamma()
    return powers + difference + (q.rate - p.rate) * (p.concentration / p.rate)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    norms = p._total.lgamma() - q._total.lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return norms + ((a - b) * (a.digamma() - p._total.digamma().unsqueeze(-1))).sum(-1)


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    found = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return onestep.where(p.total_count > q.total_count, math.inf, found)


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("kl_divergence: both Independent have to have the same reinterpreted_batch_ndims")
    return sum_last(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms:
        raise NotImplementedError("kl_divergence: both TransformedDistribution have to have the same transforms")
    return kl_divergence(p.base_dist, q.base_dist)
