"""Gradients as functions (torch.autograd)."""

from __future__ import annotations

from typing import Any, Iterator, Sequence, Union

from onestep import _C
from onestep._C import Tensor
from onestep.autograd import functional
from onestep.autograd.function import Function
from onestep.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from onestep.autograd.gradcheck import gradcheck, gradgradcheck

__all__ = [
    "Function", "Variable", "backward", "detect_anomaly", "enable_grad", "functional", "grad", "gradcheck", "gradgradcheck",
    "inference_mode", "no_grad", "set_detect_anomaly", "set_grad_enabled",
]  # fmt: skip

Tensors = Union[Tensor, Sequence[Tensor]]


def _as_list(tensors) -> list:
    if tensors is None:
        return []
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _is_complex(x: Any) -> bool:
    return isinstance(x, Tensor) and x.is_complex()


def _parts(tensors: list) -> list:
    """Real tensors, of a complex one its two parts."""
    return [part for x in tensors for part in ((x.real, x.imag) if _is_complex(x) else (x,))]


def _outputs(outputs: list, grads: list) -> tuple[list, list]:
    """The same of what gradients begin with, without parts that are constant."""
    if len(grads) not in (0, len(outputs)) or not any(map(_is_complex, outputs)):
        return outputs, grads
    if not grads:
        raise RuntimeError("grad can be implicitly created only for real scalar outputs: some are complex")
    grads = [g.to(y.dtype) if isinstance(g, Tensor) and _is_complex(y) else g for y, g in zip(outputs, grads)]
    pairs = [(y, g) for y, g in zip(_parts(outputs), _parts(grads)) if y.requires_grad]
    return [y for y, _ in pairs], [g for _, g in pairs]


def _joined(inputs: list, grads: list) -> Iterator[Any]:
    """The gradients of `inputs` from those of their parts."""
    rest = iter(grads)
    for x in inputs:
        yield x._grad_of_parts(next(rest), next(rest)) if _is_complex(x) else next(rest)


def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Tensors | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """The gradients of sum(outputs * grad_outputs) for each of `inputs`; no .grad changes."""
    if not only_inputs or is_grads_batched:
        raise NotImplementedError("grad: only_inputs=False and is_grads_batched=True are not there")
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False.")
    unused = materialize_grads if allow_unused is None else allow_unused
    wanted = _as_list(inputs)
    begin, weights = _outputs(_as_list(outputs), _as_list(grad_outputs))
    grads = _C._grad(begin, _parts(wanted), weights, retain_graph, create_graph, unused, materialize_grads)
    return tuple(_joined(wanted, grads))


def backward(
    tensors: Tensors,
    grad_tensors: Tensors | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensors | None = None,
) -> None:
    """Adds the gradients of sum(tensors * grad_tensors) to the .grad of every leaf, or of `inputs` alone."""
    given = _outputs(_as_list(tensors), _as_list(grad_tensors))
    _C._backward(*given, retain_graph, create_graph, _parts(_as_list(inputs)))


def Variable(data: Tensor, requires_grad: bool = False, volatile: bool = False) -> Tensor:
    """A leaf with the same elements (PyTorch before 0.4); `volatile` has no effect."""
    return data.detach().requires_grad_(requires_grad)


class set_detect_anomaly:
    """From here on, or within a `with`, backward passes raise where an op's gradient is NaN, and name the op."""

    def __init__(self, mode: bool, check_nan: bool = True):
        self._before = _C.is_anomaly_enabled()
        _C._refuse_nan_gradients(mode and check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_) -> None:
        _C._refuse_nan_gradients(self._before)


class detect_anomaly(set_detect_anomaly):
    """set_detect_anomaly within a `with`."""

    def __init__(self, check_nan: bool = True):
        self._check_nan = check_nan

    def __enter__(self) -> None:
        self._before = _C.is_anomaly_enabled()
        _C._refuse_nan_gradients(self._check_nan)
