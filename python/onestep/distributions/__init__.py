"""Distributions to draw from, with their log probabilities (torch.distributions): those that need no gamma function.

What each draws is what PyTorch draws after the same `manual_seed`."""

from __future__ import annotations

import sys

from onestep._missing import module_getattr
from onestep.distributions import constraints, continuous, discrete, distribution, kl, transformed, transforms
from onestep.distributions.continuous import (
    Cauchy, Exponential, HalfNormal, Laplace, MultivariateNormal, Normal, Uniform
)  # fmt: skip
from onestep.distributions.discrete import (
    Bernoulli, Categorical, Geometric, OneHotCategorical, OneHotCategoricalStraightThrough
)  # fmt: skip
from onestep.distributions.distribution import Distribution, Independent
from onestep.distributions.kl import kl_divergence, register_kl
from onestep.distributions.transformed import (
    Gumbel, LogNormal, RelaxedBernoulli, RelaxedOneHotCategorical, TransformedDistribution
)  # fmt: skip
from onestep.distributions.transforms import (
    AbsTransform, AffineTransform, ComposeTransform, ExpTransform, PowerTransform, SigmoidTransform, SoftplusTransform,
    TanhTransform, Transform
)  # fmt: skip

__getattr__ = module_getattr("torch.distributions")

# PyTorch has a module for each.
for _module, _names in {
    continuous: "cauchy exponential half_normal laplace multivariate_normal normal uniform",
    discrete: "bernoulli categorical geometric one_hot_categorical",
    distribution: "independent",
    transformed: "gumbel log_normal relaxed_bernoulli relaxed_categorical transformed_distribution",
}.items():
    for _name in _names.split():
        sys.modules[f"{__name__}.{_name}"] = globals()[_name] = _module
