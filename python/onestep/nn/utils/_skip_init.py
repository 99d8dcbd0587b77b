"""Modules whose parameters are set later."""

from __future__ import annotations

from typing import Any

import onestep
from onestep.nn.modules.module import Module


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Module:
    """module_cls(*args, **kwargs) that draws nothing from the generator; its parameters have any values."""
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    state = onestep.get_rng_state()
    module = module_cls(*args, **kwargs)
    onestep.set_rng_state(state)
    return module
