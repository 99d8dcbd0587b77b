"""--coverage PROGRAM: what of torch a program uses, and what of it is there."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import onestep
from onestep._missing import MissingAttribute, sentence, torch_names, unavailable
from onestep.as_torch.finder import lookup
from onestep.as_torch.uses import uses_of


def _there(name: str) -> bool:
    try:
        value: Any = lookup(name)
    except (AttributeError, ImportError, NotImplementedError):
        return False
    module = getattr(value, "__name__", None) == name and name in torch_names()
    stub = isinstance(value, type(unavailable("torch.any")))
    return not stub and not (module and getattr(value, "__file__", None) is None and name != "torch")


def _is_method(name: str) -> bool:
    return not name.startswith("__") and name in torch_names()["torch.Tensor"]


def coverage(program: Path) -> tuple[dict[str, str], dict[str, str]]:
    """(there, missing) of the torch names and tensor attributes that `program` uses, each with where it is used first."""
    names, attributes = uses_of(program)
    there: dict[str, str] = {}
    missing: dict[str, str] = {}
    for name, place in sorted(names.items()):
        (there if _there(name) else missing)[name] = place
    for name, place in sorted(attributes.items()):
        if _is_method(name):
            absent = isinstance(vars(onestep.Tensor).get(name), MissingAttribute)
            (missing if absent else there)[f"torch.Tensor.{name}"] = place
    return there, missing


def report(program: Path) -> int:
    """Prints the table; 0 where all is there, else 1."""
    there, missing = coverage(program)
    for name, place in there.items():
        print(f"there    {name}  {place}")
    for name, place in missing.items():
        print(f"missing  {sentence(name)}  {place}")
    print(f"{len(there)} of {len(there) + len(missing)} names are there "
          "(Tensor attributes by their name alone: another object may be meant)")
    return 1 if missing else 0
