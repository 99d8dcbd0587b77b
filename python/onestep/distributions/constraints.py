"""Sets of values, for `support` and `arg_constraints` of programs' own distributions (torch.distributions.constraints)."""

from __future__ import annotations

from typing import Any, Callable, Union

from onestep._C import Tensor

Number = Union[Tensor, float]


class Constraint:
    """Values of `event_dim` dims of which check() tells whether they are in the set."""

    is_discrete = False
    event_dim = 0

    def check(self, value: Tensor) -> Tensor:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _Where(Constraint):
    """Where a condition holds."""

    def __init__(self, name: str, condition: Callable[[Tensor], Tensor], event_dim: int = 0, is_discrete: bool = False) -> None:
        self._name, self._condition, self.event_dim, self.is_discrete = name, condition, event_dim, is_discrete

    def check(self, value: Tensor) -> Tensor:
        return self._condition(value)

    def __repr__(self) -> str:
        return self._name


def is_dependent(constraint: Any) -> bool:
    return constraint is dependent


def greater_than(lower_bound: Number) -> Constraint:
    return _Where(f"GreaterThan(lower_bound={lower_bound})", lambda v: lower_bound < v)


def greater_than_eq(lower_bound: Number) -> Constraint:
    return _Where(f"GreaterThanEq(lower_bound={lower_bound})", lambda v: lower_bound <= v)


def less_than(upper_bound: Number) -> Constraint:
    return _Where(f"LessThan(upper_bound={upper_bound})", lambda v: v < upper_bound)


def interval(lower_bound: Number, upper_bound: Number) -> Constraint:
    name = f"Interval(lower_bound={lower_bound}, upper_bound={upper_bound})"
    return _Where(name, lambda v: (lower_bound <= v) & (v <= upper_bound))


def half_open_interval(lower_bound: Number, upper_bound: Number) -> Constraint:
    name = f"HalfOpenInterval(lower_bound={lower_bound}, upper_bound={upper_bound})"
    return _Where(name, lambda v: (lower_bound <= v) & (v < upper_bound))


def integer_interval(lower_bound: int, upper_bound: int) -> Constraint:
    name = f"IntegerInterval(lower_bound={lower_bound}, upper_bound={upper_bound})"
    return _Where(name, lambda v: (v % 1 == 0) & (lower_bound <= v) & (v <= upper_bound), is_discrete=True)


def independent(base_constraint: Constraint, reinterpreted_batch_ndims: int) -> Constraint:
    """Where all of the last dims are in the set."""
    dims = reinterpreted_batch_ndims

    def check(value: Tensor) -> Tensor:
        inside = base_constraint.check(value)
        return inside.reshape(*inside.shape[: inside.dim() - dims], -1).all(-1)

    return _Where(f"IndependentConstraint({base_constraint}, {dims})", check, base_constraint.event_dim + dims)


real = _Where("Real()", lambda v: v == v)
positive = greater_than(0.0)
nonnegative = greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
boolean = _Where("Boolean()", lambda v: (v == 0) | (v == 1), is_discrete=True)
nonnegative_integer = _Where("IntegerGreaterThan(lower_bound=0)", lambda v: (v % 1 == 0) & (v >= 0), is_discrete=True)
positive_integer = _Where("IntegerGreaterThan(lower_bound=1)", lambda v: (v % 1 == 0) & (v >= 1), is_discrete=True)
real_vector = independent(real, 1)
simplex = _Where("Simplex()", lambda v: (v >= 0).all(-1) & ((v.sum(-1) - 1).abs() < 1e-6), 1)
one_hot = _Where("OneHot()", lambda v: ((v == 0) | (v == 1)).all(-1) & (v.sum(-1) == 1), 1, True)
lower_triangular = _Where("LowerTriangular()", lambda v: (v.tril() == v).flatten(-2).all(-1), 2)
lower_cholesky = _Where(
    "LowerCholesky()", lambda v: (v.tril() == v).flatten(-2).all(-1) & (v.diagonal(dim1=-2, dim2=-1) > 0).all(-1), 2
)
dependent = Constraint()
