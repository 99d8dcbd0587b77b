"""One step of each kind of recurrent layer, and the walk over steps."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

from onestep import _C
from onestep.nn import functional as F

Tensor = _C.Tensor
State = Tuple[Tensor, ...]


def _rnn_step(act: Any) -> Any:
    def step(gates: Tensor, h: State, weight: Tensor, bias: Optional[Tensor], projection: Optional[Tensor]) -> State:
        return (act(gates + F.linear(h[0], weight, bias)),)

    return step


def _gru_step(gates: Tensor, h: State, weight: Tensor, bias: Optional[Tensor], projection: Optional[Tensor]) -> State:
    """r, z = sigmoid; n = tanh(x_n + r h_n); h' = n + z (h - n)."""
    xr, xz, xn = gates.chunk(3, -1)
    hr, hz, hn = F.linear(h[0], weight, bias).chunk(3, -1)
    r, z = _C.sigmoid(xr + hr), _C.sigmoid(xz + hz)
    n = _C.tanh(xn + r * hn)
    return (n + z * (h[0] - n),)


def _lstm_step(gates: Tensor, h: State, weight: Tensor, bias: Optional[Tensor], projection: Optional[Tensor]) -> State:
    """c' = f c + i g; h' = o tanh(c'), projected if there is a projection."""
    i, f, g, o = (gates + F.linear(h[0], weight, bias)).chunk(4, -1)
    c = _C.sigmoid(f) * h[1] + _C.sigmoid(i) * _C.tanh(g)
    out = _C.sigmoid(o) * _C.tanh(c)
    return (out if projection is None else F.linear(out, projection), c)


STEPS = {
    "RNN_TANH": (1, _rnn_step(_C.tanh)),
    "RNN_RELU": (1, _rnn_step(_C.relu)),
    "GRU": (3, _gru_step),
    "LSTM": (4, _lstm_step),
}


def _weight_of_steps(weight: Tensor, steps: int) -> Tensor:
    """As nn::weight_of_steps: columns behind columns, which products pack faster, where it is not recorded."""
    recorded = _C.is_grad_enabled() and weight.requires_grad
    if recorded or _C.is_autocast_enabled("cpu") or steps < 8 or weight.numel() > 2**18:
        return weight
    return weight.t().contiguous().t()


def unroll(mode: str, gates: Sequence[Tensor], first: State, weights: Tuple, backwards: bool) -> Tuple[List[Tensor], State]:
    """The outputs of the steps and the last state. In a packed sequence later steps have fewer rows: a row keeps the state with
    which its sequence ends, and backwards enters with its first state where its sequence begins."""
    step, weights = STEPS[mode][1], (_weight_of_steps(weights[0], len(gates)), *weights[1:])
    outs, ended = [], []
    rows = gates[-1].size(0) if backwards else first[0].size(0)
    state = first if rows == first[0].size(0) else tuple(s[:rows] for s in first)
    for gate in reversed(gates) if backwards else gates:
        before, rows = rows, gate.size(0)
        if rows > before:
            state = tuple(_C.cat([s, f[before:rows]]) for s, f in zip(state, first))
        elif rows < before:
            ended.append(tuple(s[rows:] for s in state))
            state = tuple(s[:rows] for s in state)
        state = step(gate, state, *weights)
        outs.append(state[0])
    if ended:
        state = tuple(_C.cat(parts) for parts in zip(state, *reversed(ended)))
    return outs[::-1] if backwards else outs, state


def is_one_op(gates: Tensor, projection: Optional[Tensor]) -> bool:
    """As nn::is_one_op: whether the steps of an LSTM are one op, which computes as float32 or float64 and does not project."""
    return projection is None and gates.dtype in (_C.float32, _C.float64) and not _C.is_autocast_enabled("cpu")


def lstm(gates: Tensor, first: State, weights: Tuple, backwards: bool) -> Tuple[Tensor, State]:
    """The outputs of an LSTM, which may be written to afterwards, and the last state."""
    (h, c), (weight, bias, _), steps = first, weights, gates.size(0)
    states = _C._lstm(gates, h, c, weight, bias, backwards)
    return states.narrow(0, 0, steps).clone(), (states[0 if backwards else steps - 1], states[steps])
