"""Mixtures of distributions of one kind (torch.distributions.MixtureSameFamily)."""

from __future__ import annotations

from typing import Any, Sequence

import onestep
from onestep.distributions.discrete import Categorical
from onestep.distributions.distribution import Distribution, Tensor


class MixtureSameFamily(Distribution):
    """The last dim of component_distribution's batch shape, of which each draw takes the one that mixture_distribution draws."""

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: Any = None
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution need to be an instance of torch.distributions.Distribution")
        batch = component_distribution.batch_shape
        components = mixture_distribution.logits.shape[-1]
        if not batch or batch[-1] != components:
            raise ValueError(
                f"`mixture_distribution component` ({components}) does not equal `component_distribution.batch_shape[-1]` "
                f"({batch[-1] if batch else None})"
            )
        self.mixture_distribution, self.component_distribution = mixture_distribution, component_distribution
        super().__init__(batch[:-1], component_distribution.event_shape, validate_args)

    def _of_component(self, x: Tensor) -> Tensor:
        """[..., event_shape] with a dim of components before the event's."""
        return x.unsqueeze(-1 - len(self.event_shape))

    def _mean_of(self, each: Tensor) -> Tensor:
        """The mean over the components, before the event's dims."""
        probs, event = self.mixture_distribution.probs, len(self.event_shape)
        return (probs.reshape(*probs.shape, *[1] * event) * each).sum(-1 - event)

    mean = property(lambda self: self._mean_of(self.component_distribution.mean))

    @property
    def variance(self) -> Tensor:
        each = self.component_distribution
        return self._mean_of(each.variance) + self._mean_of((each.mean - self._of_component(self.mean)).pow(2))

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> "MixtureSameFamily":
        components = self.component_distribution.batch_shape[-1:]
        each = self.component_distribution.expand([*batch_shape, *components])
        return MixtureSameFamily(self.mixture_distribution.expand(batch_shape), each, validate_args=False)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = self.mixture_distribution.sample(sample_shape)
        each = self.component_distribution.sample(sample_shape)
        dim = len(self._shape(sample_shape)) - len(self.event_shape)
        index = drawn.reshape(*drawn.shape, *[1] * (each.dim() - drawn.dim()))
        return each.gather(dim, index.expand(*self._shape(sample_shape)[:dim], 1, *self.event_shape)).squeeze(dim)

    def log_prob(self, value: Tensor) -> Tensor:
        each = self.component_distribution.log_prob(self._of_component(value))
        return onestep.logsumexp(each + onestep.log_softmax(self.mixture_distribution.logits, dim=-1), dim=-1)

    def cdf(self, value: Tensor) -> Tensor:
        return (self.component_distribution.cdf(self._of_component(value)) * self.mixture_distribution.probs).sum(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
