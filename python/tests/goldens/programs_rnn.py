"""Packed sequences."""

from programs import case, refused


def packed(T, recurrent, enforce_sorted, given=False):
    """A recurrent layer over a packed sequence, with every gradient."""
    x = T.randn(4, 3, 2, requires_grad=True)
    rnn = T.nn.utils.rnn
    lengths = [4, 3, 1] if enforce_sorted else [1, 4, 3]
    hx = None
    if given:
        n = recurrent.num_layers * (2 if recurrent.bidirectional else 1)
        hx = T.randn(n, 3, recurrent.proj_size or recurrent.hidden_size)
        hx = (hx, T.randn(n, 3, recurrent.hidden_size)) if recurrent.mode == "LSTM" else hx
    out, state = recurrent(rnn.pack_padded_sequence(x, lengths, enforce_sorted=enforce_sorted), hx)
    padded, found = rnn.pad_packed_sequence(out, padding_value=-1.0, total_length=5)
    states = state if isinstance(state, tuple) else (state,)
    loss = (padded * padded).sum()
    for i, s in enumerate(states):
        loss = loss + (i + 1) * (s * s).sum()
    loss.backward()
    return list(out), padded, found, states, x.grad, [p.grad for p in recurrent.parameters()]


@case
def packed_lstm(T):
    return packed(T, T.nn.LSTM(2, 3), True)


@case
def packed_lstm_of_two_directions(T):
    return packed(T, T.nn.LSTM(2, 3, 2, bidirectional=True, proj_size=1, dropout=0.5), False, True)


@case
def packed_gru(T):
    return packed(T, T.nn.GRU(2, 3, 2, bidirectional=True, bias=False), False)


@case
def packed_rnn(T):
    return packed(T, T.nn.RNN(2, 3, nonlinearity="relu"), False, True)


@case
def packs(T):
    rnn = T.nn.utils.rnn
    parts = [T.arange(float(n)) + 10 * i for i, n in enumerate((2, 4, 1))]
    by_length = rnn.pack_sequence(sorted(parts, key=len, reverse=True))
    any_order = rnn.pack_sequence(parts, enforce_sorted=False)
    wide = rnn.pack_padded_sequence(T.arange(12).reshape(2, 3, 2), T.tensor([3, 2]), batch_first=True)
    return (
        [list(p) for p in (by_length, any_order, wide)],
        rnn.unpack_sequence(any_order),
        rnn.pad_packed_sequence(wide, batch_first=True),
        rnn.invert_permutation(T.tensor([2, 0, 1])),
        any_order.double().data.dtype == T.float64 and not any_order.is_cuda and any_order.to(T.float32) is any_order,
    )


@case
def packing_is_refused(T):
    pack, x = T.nn.utils.rnn.pack_padded_sequence, T.zeros(3, 2, 1)
    return (
        refused(lambda: pack(x, [3])),
        refused(lambda: pack(x, [3, 0])),
        refused(lambda: pack(x, [2, 3])),
        refused(lambda: pack(T.zeros(3, 0, 1), [])),
        refused(lambda: T.nn.utils.rnn.pad_packed_sequence(pack(x, [3, 2]), total_length=2)),
        refused(lambda: T.nn.GRU(1, 2)(pack(x, [3, 1]), T.zeros(1, 1, 1))),
    )
