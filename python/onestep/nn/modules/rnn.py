"""Recurrent layers and cells."""

from __future__ import annotations

import math
import warnings
from typing import Any, List, Tuple

from onestep import _C
from onestep.nn import functional as F
from onestep.nn import init
from onestep.nn.modules._recurrence import STEPS, State, is_one_op, lstm, unroll
from onestep.nn.modules.linear import _empty
from onestep.nn.modules.module import Module
from onestep.nn.utils.rnn import PackedSequence

Tensor = _C.Tensor


class RNNBase(Module):
    """Layers of one or two directions over [T, B, input_size], [B, T, input_size] with batch_first, or [T, input_size]."""

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if input_size <= 0:
            raise ValueError("input_size must be greater than zero")
        if hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                stacklevel=3,
            )
        if proj_size < 0 or proj_size >= hidden_size:
            raise ValueError(f"proj_size has to be at least 0 and smaller than hidden_size, but got {proj_size}")
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        gates = STEPS[mode][0] * hidden_size
        out = proj_size or hidden_size
        for layer in range(num_layers):
            for suffix in self._suffixes(layer):
                size = input_size if layer == 0 else out * len(self._suffixes(0))
                shapes: dict = {"weight_ih": (gates, size), "weight_hh": (gates, out)}
                if bias:
                    shapes.update(bias_ih=(gates,), bias_hh=(gates,))
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                for name, shape in shapes.items():
                    self.register_parameter(name + suffix, _empty(*shape, device=device, dtype=dtype))
        self.reset_parameters()

    def _suffixes(self, layer: int) -> List[str]:
        return [f"_l{layer}", f"_l{layer}_reverse"] if self.bidirectional else [f"_l{layer}"]

    def reset_parameters(self) -> None:
        """Draws all uniformly within 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """Nothing: there is no layout to prepare."""

    @property
    def all_weights(self) -> List[list]:
        """The parameters of each layer and direction."""
        return [
            [p for name, p in self._parameters.items() if name[name.index("_l") :] == suffix]
            for layer in range(self.num_layers)
            for suffix in self._suffixes(layer)
        ]

    def _first(self, given: Any, x: Tensor, rows: int, batched: bool) -> State:
        """The states [layers directions, rows, size] before the first token."""
        sizes = [self.proj_size or self.hidden_size] + ([self.hidden_size] if self.mode == "LSTM" else [])
        n = self.num_layers * len(self._suffixes(0))
        if given is None:
            return tuple(x.new_zeros(n, rows, size) for size in sizes)
        given = tuple(given) if self.mode == "LSTM" else (given,)
        for state, size in zip(given, sizes):
            wanted = (n, rows, size) if batched else (n, size)
            if tuple(state.shape) != wanted:
                raise RuntimeError(f"Expected hidden size {wanted}, got {list(state.shape)}")
        return given if batched else tuple(state.unsqueeze(1) for state in given)

    def _layers(self, x: Tensor, first: State, batch_sizes: Any = None) -> Tuple[Tensor, State]:
        """All layers over x [T, B, ...], or over the rows of a packed sequence."""
        last: list = []
        for layer in range(self.num_layers):
            outs = []
            for suffix in self._suffixes(layer):
                names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
                w_ih, w_hh, b_ih, b_hh, w_hr = [getattr(self, name + suffix, None) for name in names]
                gates = F.linear(x, w_ih, b_ih)  # type: ignore[arg-type]
                state = tuple(s[len(last)] for s in first)
                if self.mode == "LSTM":  # a GRU's state keeps its dtype under autocast
                    state = tuple(s.to(gates.dtype) for s in state)
                weights, backwards = (w_hh, b_hh, w_hr), suffix.endswith("reverse")
                if self.mode == "LSTM" and batch_sizes is None and is_one_op(gates, w_hr):
                    out, state = lstm(gates, state, weights, backwards)
                else:
                    steps = gates.unbind(0) if batch_sizes is None else gates.split(batch_sizes)
                    found, state = unroll(self.mode, steps, state, weights, backwards)
                    out = _C.stack(found) if batch_sizes is None else _C.cat(found)
                outs.append(out)
                last.append(state)
            x = outs[0] if len(outs) == 1 else _C.cat(outs, -1)
            if self.dropout and self.training and layer + 1 < self.num_layers:
                x = F.dropout(x, self.dropout, True)
        return x, tuple(_C.stack([state[i] for state in last]) for i in range(len(first)))

    def _check_features(self, input: Tensor) -> None:
        if input.size(-1) != self.input_size:
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}")

    def _packed(self, input: PackedSequence, hx: Any) -> Tuple[PackedSequence, State]:
        """Takes and gives the states in the order of the sequences, which are in the data by their length."""
        x, batch_sizes, order, back = input
        if x.dim() != 2:
            raise RuntimeError(f"input must have 2 dimensions, got {x.dim()}")
        self._check_features(x)
        sizes = batch_sizes.tolist()  # type: ignore[union-attr]
        if not sizes or sizes != sorted(sizes, reverse=True):
            raise RuntimeError(f"batch_sizes of a packed sequence must not grow: got {sizes}")
        first = self._first(hx, x, sizes[0], True)
        if hx is not None and order is not None:
            first = tuple(state.index_select(1, order) for state in first)
        out, states = self._layers(x, first, sizes)
        if back is not None:
            states = tuple(state.index_select(1, back) for state in states)
        return PackedSequence(out, batch_sizes, order, back), states

    def _padded(self, input: Tensor, hx: Any) -> Tuple[Tensor, State]:
        if input.dim() not in (2, 3):
            raise ValueError(f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.dim()}D instead")
        self._check_features(input)
        batched = input.dim() == 3
        x = input.unsqueeze(1) if not batched else input.transpose(0, 1) if self.batch_first else input
        if x.size(0) == 0:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        out, states = self._layers(x, self._first(hx, x, x.size(1), batched))
        if not batched:
            return out.squeeze(1), tuple(s.squeeze(1) for s in states)
        return out.transpose(0, 1) if self.batch_first else out, states

    def forward(self, input: Any, hx: Any = None) -> Tuple[Any, Any]:
        out, states = self._packed(input, hx) if isinstance(input, PackedSequence) else self._padded(input, hx)
        return out, states if self.mode == "LSTM" else states[0]

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        for name, default in (
            ("proj_size", 0),
            ("num_layers", 1),
            ("bias", True),
            ("batch_first", False),
            ("dropout", 0),
            ("bidirectional", False),
        ):
            if getattr(self, name) != default:
                text += f", {name}={getattr(self, name)}"
        return text


class RNN(RNNBase):
    """h_t = tanh(W x_t + b + W_h h_(t-1) + b_h), or relu."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(
            "RNN_" + nonlinearity.upper(),
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            0,
            device,
            dtype,
        )
        self.nonlinearity = nonlinearity


class GRU(RNNBase):
    """Gated recurrent units: output [T, B, directions hidden_size] and h [layers directions, B, hidden_size]."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype
        )


class LSTM(RNNBase):
    """Long short-term memories: output and (h, c)."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            "LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, device, dtype
        )


class RNNCellBase(Module):
    """One step of a recurrent layer over [B, input_size] or [input_size]."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = num_chunks * hidden_size
        self.weight_ih = _empty(rows, input_size, device=device, dtype=dtype)
        self.weight_hh = _empty(rows, hidden_size, device=device, dtype=dtype)
        self.register_parameter("bias_ih", _empty(rows, device=device, dtype=dtype) if bias else None)
        self.register_parameter("bias_hh", _empty(rows, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all uniformly within 1 / sqrt(hidden_size)."""
        RNNBase.reset_parameters(self)  # type: ignore[arg-type]

    _kind = ""

    def _mode(self) -> str:
        return self._kind

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        if input.dim() not in (1, 2):
            raise ValueError(f"{type(self).__name__}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        states = 2 if self._mode() == "LSTM" else 1
        if hx is None:
            hx = (input.new_zeros(*input.shape[:-1], self.hidden_size),) * states
        elif states == 1:
            hx = (hx,)
        result = STEPS[self._mode()][1](F.linear(input, self.weight_ih, self.bias_ih), hx, self.weight_hh, self.bias_hh, None)
        return result if states == 2 else result[0]

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if not self.bias:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text


class RNNCell(RNNCellBase):
    """h' = tanh(W x + b + W_h h + b_h), or relu."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def _mode(self) -> str:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return "RNN_" + self.nonlinearity.upper()


class LSTMCell(RNNCellBase):
    """(h', c') of one step."""

    _kind = "LSTM"

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)


class GRUCell(RNNCellBase):
    """h' of one step."""

    _kind = "GRU"

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)
