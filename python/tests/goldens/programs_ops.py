"""Operators whose results hang on roundings, on what is no number or on an order, and the generator."""

import math

from programs import case


def gradient(T, f, x):
    """f(x) and the gradient of its sum, weighted 1, 2, 3..."""
    x = x.detach().requires_grad_()
    y = f(x)
    (y * T.arange(1.0, y.numel() + 1).reshape(y.shape)).sum().backward()
    return y, x.grad


def words(value):
    """Numbers, what is infinite or NaN as text: JSON has neither."""
    if not isinstance(value, (int, float)):
        return [words(v) for v in (value if isinstance(value, (list, tuple)) else value.tolist())]
    return value if math.isfinite(value) else str(value)


@case
def logit(T):
    x = T.tensor([0.25, 0.5, 0.0, 1.0, -0.5, 1.5, math.nan, 0.05])
    bytes_ = T.tensor([0, 1, 2, 3], dtype=T.uint8)
    ends = gradient(T, T.logit, x), gradient(T, lambda v: T.logit(v, 0.125), x[:6])
    return words([*ends, T.logit(bytes_), T.logit(bytes_, 0.25)])


@case
def copysign(T):
    x, sign = T.tensor([1.5, -2.0, 0.0, -0.0, math.inf, -math.inf, math.nan]), T.tensor([-1.0, 1.0, -1.0, 0.0, -1.0, 1.0, 1.0])
    wide = gradient(T, lambda v: T.copysign(v, T.tensor([[-1.0], [1.0]])), T.tensor([1.0, -2.0]))
    return words([gradient(T, lambda v: T.copysign(v, sign), x), gradient(T, lambda v: v.copysign(-1.0), x), wide])


@case
def sums_with_a_factor(T):
    """alpha times a narrow tensor is rounded once, in the dtype of the sum."""
    b = T.tensor([1.0, 1.5]).bfloat16()
    root = 2**0.5
    sums = T.zeros(2).add(b, alpha=root), T.ones(2).add_(b, alpha=root), T.zeros(2).sub(b, alpha=root)
    narrow = b.add(b, alpha=0.3), b.clone().sub_(b, alpha=0.3), T.tensor([True, False]).add(T.tensor([True, True]), alpha=2)
    return [*sums, T.ones(2).sub_(b, alpha=root), [t.float() for t in narrow[:2]], narrow[2]]


@case
def whole_matrices(T):
    x = T.tensor([[0.5, 2.0], [-1.0, 1.0]])
    batch = T.stack([x, x.T])
    return (
        [gradient(T, lambda v: T.matrix_power(v, n), batch) for n in (1, 3)],
        [batch.matrix_power(0), T.linalg.matrix_power(x, 4)],
        gradient(T, T.msort, x),
        gradient(T, lambda v: T.diagonal_scatter(v, T.ones(1), 1), x),
        [T.unsafe_split(x, 1), x.unsafe_chunk(2), x.clone().swapaxes_(0, 1), x.name],
    )


@case
def names_of_recorded_ops(T):
    x = T.ones(2, 3, requires_grad=True)
    results = x.max(), x.max(0)[0], x.min(), x.min(1)[0], x.prod(), x.prod(1), x.clamp(0.5), x.clamp(x, x), x.sum(), x.sum(0)
    return [y.grad_fn.name() for y in results]


@case
def random_module(T):
    T.random.manual_seed(3)
    with T.random.fork_rng():
        first = T.rand(2)
    second = T.rand(2)
    state = T.random.get_rng_state()
    third = T.rand(1)
    T.random.set_rng_state(state)
    return first, second, third, T.rand(1), T.random.initial_seed(), T.random.default_generator is T.default_generator


@case
def old_names_of_initial_values(T):
    names = "uniform normal eye dirac xavier_uniform xavier_normal kaiming_uniform kaiming_normal sparse".split()
    shapes = {"dirac": (3, 2, 3)}
    extra = {"sparse": (0.5,)}
    init = T.nn.init
    return [getattr(init, n)(T.empty(shapes.get(n, (3, 4))), *extra.get(n, ())) for n in names], init.constant(T.empty(2), 3.0)
