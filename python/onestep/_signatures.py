"""Signatures of ops as inspect and type stubs want them: from `softmax(Tensor input, int dim, dtype? dtype=None)`."""

from __future__ import annotations

import inspect
from typing import NamedTuple


class Parameter(NamedTuple):
    name: str
    kind: str  # Tensor, int[], ...
    none: bool  # takes None
    default: str | None
    by_name: bool  # keyword only


def parse(signature: str) -> tuple[str, list[Parameter]]:
    """The name and the parameters."""
    name, _, rest = signature.partition("(")
    parameters, by_name = [], False
    for part in filter(None, (part.strip() for part in rest[:-1].split(","))):
        if part == "*":
            by_name = True
            continue
        kind, _, named = part.partition(" ")
        parameter, _, default = named.partition("=")
        parameters.append(Parameter(parameter, kind.rstrip("?"), kind.endswith("?"), default or None, by_name))
    return name, parameters


class _Text:
    """A default that prints as it is written."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


def signature(text: str) -> inspect.Signature:
    """The inspect.Signature of an op."""
    kinds = inspect.Parameter
    return inspect.Signature(
        [
            kinds(
                p.name if p.name != "from" else "from_",
                kinds.KEYWORD_ONLY if p.by_name else kinds.POSITIONAL_OR_KEYWORD,
                default=kinds.empty if p.default is None else _Text(p.default),
            )
            for p in parse(text)[1]
        ]
    )
