"""Distributions to draw from, with their log probabilities (torch.distributions).

What each draws is what PyTorch draws after the same `manual_seed`."""

from __future__ import annotations

import sys

from onestep._missing import module_getattr
from onestep.distributions import (
    constraints, continuous, counts, discrete, distribution, gamma, kl, mixture, transformed, transforms
)  # fmt: skip
from onestep.distributions.continuous import (
    Cauchy, Exponential, HalfCauchy, HalfNormal, Laplace, MultivariateNormal, Normal, Uniform
)  # fmt: skip
from onestep.distributions.counts import Binomial, Multinomial, NegativeBinomial, Poisson
from onestep.distributions.discrete import (
    Bernoulli, Categorical, Geometric, OneHotCategorical, OneHotCategoricalStraightThrough
)  # fmt: skip
from onestep.distributions.distribution import Distribution, Independent
from onestep.distributions.gamma import Beta, Chi2, Dirichlet, FisherSnedecor, Gamma, StudentT
from onestep.distributions.kl import kl_divergence, register_kl
from onestep.distributions.mixture import MixtureSameFamily
from onestep.distributions.transformed import (
    Gumbel, InverseGamma, Kumaraswamy, LogNormal, Pareto, RelaxedBernoulli, RelaxedOneHotCategorical, TransformedDistribution,
    Weibull
)  # fmt: skip
from onestep.distributions.transforms import (
    AbsTransform, AffineTransform, ComposeTransform, ExpTransform, PowerTransform, SigmoidTransform, SoftplusTransform,
    TanhTransform, Transform
)  # fmt: skip

__getattr__ = module_getattr("torch.distributions")

# PyTorch has a module for each.
for _module, _names in {
    continuous: "cauchy exponential half_cauchy half_normal laplace multivariate_normal normal uniform",
    discrete: "bernoulli categorical geometric one_hot_categorical",
    counts: "binomial multinomial negative_binomial poisson",
    distribution: "independent",
    gamma: "beta chi2 dirichlet fishersnedecor studentT",
    mixture: "mixture_same_family",
    transformed: "gumbel inverse_gamma kumaraswamy log_normal pareto relaxed_bernoulli relaxed_categorical transformed_distribution weibull",
}.items():
    for _name in _names.split():
        sys.modules[f"{__name__}.{_name}"] = globals()[_name] = _module
