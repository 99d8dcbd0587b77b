"""torch.utils._pytree: nested lists, tuples and dicts as their leaves and what holds them."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from typing import Any, Callable, NamedTuple


class TreeSpec(NamedTuple):
    """What holds the leaves: `rebuild` makes it again of its parts; None: it is a leaf."""

    rebuild: Any
    children: tuple

    @property
    def num_leaves(self) -> int:
        return 1 if self.rebuild is None else sum(child.num_leaves for child in self.children)


def _parts(tree: Any) -> tuple | None:
    """(parts, how to make it again), or None of a leaf."""
    kind = type(tree)
    if kind in (list, tuple, deque):
        return list(tree), kind
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return list(tree), lambda parts: kind(*parts)
    if kind in (dict, OrderedDict, defaultdict):
        keys = list(tree)
        empty: Any = defaultdict(tree.default_factory) if kind is defaultdict else kind()
        return list(tree.values()), lambda parts: (lambda new: (new.update(zip(keys, parts)), new)[1])(empty.copy())
    return None


def tree_flatten(tree: Any, is_leaf: Callable | None = None) -> tuple[list, TreeSpec]:
    """The leaves from left to right, and what holds them."""
    found = None if is_leaf is not None and is_leaf(tree) else _parts(tree)
    if found is None:
        return [tree], TreeSpec(None, ())
    leaves, children = [], []
    for part in found[0]:
        below, spec = tree_flatten(part, is_leaf)
        leaves += below
        children.append(spec)
    return leaves, TreeSpec(found[1], tuple(children))


def tree_unflatten(leaves: Any, treespec: TreeSpec) -> Any:
    """The tree again, of other leaves."""
    rest = iter(leaves)

    def build(spec: TreeSpec) -> Any:
        return next(rest) if spec.rebuild is None else spec.rebuild([build(child) for child in spec.children])

    return build(treespec)


def tree_leaves(tree: Any, is_leaf: Callable | None = None) -> list:
    """The leaves from left to right."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Callable | None = None) -> TreeSpec:
    """What holds the leaves."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable, tree: Any, *rests: Any, is_leaf: Callable | None = None) -> Any:
    """The tree of func(leaf, leaves of the others)."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return tree_unflatten(map(func, leaves, *(tree_leaves(rest, is_leaf) for rest in rests)), spec)


def tree_map_only(kind: Any, func: Callable, tree: Any, is_leaf: Callable | None = None) -> Any:
    """tree_map of the leaves of one type; the others stay."""
    return tree_map(lambda leaf: func(leaf) if isinstance(leaf, kind) else leaf, tree, is_leaf=is_leaf)
