"""Data loading, recomputation and hooks."""

from onestep.utils import checkpoint, data, hooks

__all__ = ["checkpoint", "data", "hooks"]
