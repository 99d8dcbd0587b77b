"""The default generator (torch.random)."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Iterator

from onestep._C import default_generator, manual_seed
from onestep._functions import get_rng_state, initial_seed, seed, set_rng_state

__all__ = ["default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, *_: Any, **__: Any) -> Iterator[None]:
    """A context after which the default generator has the state from before it."""
    state = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if state is not None:
            set_rng_state(state)
