"""A softmax over many classes, of which the rare ones are in clusters."""

from __future__ import annotations

from typing import Any, List, NamedTuple, Sequence

from onestep import _C
from onestep.nn import functional as F
from onestep.nn.modules.container import ModuleList, Sequential
from onestep.nn.modules.linear import Linear
from onestep.nn.modules.module import Module

Tensor = _C.Tensor


class _ASMoutput(NamedTuple):
    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """log p(target) of each row of [N, in_features] and the loss, -mean: classes below cutoffs[0] directly, the others as that
    of their cluster plus that within it, from fewer features the rarer they are (Grave et al. 2017)."""

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            cutoffs != sorted(set(cutoffs))
            or not all(int(c) == c for c in cutoffs)
            or cutoffs[0] <= 0
            or cutoffs[-1] > n_classes - 1
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value "
                "is between 1 and n_classes-1"
            )
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, [*cutoffs, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = cutoffs[0], len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        to = dict(device=device, dtype=dtype)
        self.head = Linear(in_features, self.head_size, bias=head_bias, **to)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            width = int(in_features // div_value ** (i + 1))
            layers = Linear(in_features, width, bias=False, **to), Linear(width, high - low, bias=False, **to)
            self.tail.append(Sequential(*layers))

    def reset_parameters(self) -> None:
        """Draws those of all layers."""
        for layer in [self.head, *(layer for cluster in self.tail for layer in cluster.children())]:
            layer.reset_parameters()

    def _check(self, input: Tensor, target: Tensor) -> None:
        dims = target.dim()
        if dims not in (0, 1):
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if input.dim() != dims + 1:
            raise RuntimeError(
                f"{dims}D target tensor expects {dims + 1}D input tensors, but found inputs with size {input.shape}"
            )
        if dims == 1 and input.size(0) != target.size(0):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if target.numel() and not 0 <= int(target.min()) <= int(target.max()) < self.n_classes:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )

    def forward(self, input: Tensor, target_: Tensor) -> _ASMoutput:
        self._check(input, target_)
        batched = target_.dim() == 1
        x, target = (input, target_) if batched else (input.unsqueeze(0), target_.unsqueeze(0))
        places, found = target, x.new_zeros(target.shape)  # places: of the class or its cluster in the head
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:])):
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if rows.numel():
                inside = self.tail[i](x.index_select(0, rows)).log_softmax(1)
                chosen = inside.gather(1, (target[rows] - low).unsqueeze(1)).squeeze(1)
                places = places.index_fill(0, rows, self.shortlist_size + i)
                found = found.index_add(0, rows, chosen)
        found = found + self.head(x).log_softmax(1).gather(1, places.unsqueeze(1)).squeeze(1)
        return _ASMoutput(found if batched else found.squeeze(0), -found.mean())

    def log_prob(self, input: Tensor) -> Tensor:
        """log p of all classes: [N, in_features] -> [N, n_classes]."""
        head = F.log_softmax(self.head(input), 1)
        parts: List[Tensor] = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            parts.append(cluster(input).log_softmax(1) + head[:, self.shortlist_size + i].unsqueeze(1))
        return _C.cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The likeliest class of each row."""
        return self.log_prob(input).argmax(1)
