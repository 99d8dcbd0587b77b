"""Prints gelu_table.h: `python3 autograd/kernels/gelu_table.py > autograd/kernels/gelu_table.h` (needs mpmath).

|x| lies in one of 16 intervals of 1/4 around 0, 1/4, ... In each, the gate of GELU at -|x| and the derivative of GELU at -|x| are
polynomials in |x| - center: least squares on Chebyshev nodes, the first relative to the gate and the second absolute. Coefficients
are rounded from the highest on, each to the bits it is worth (zeros at the end compress), and those below are fitted again. Centers
are the places nearby where the gate is closest to a float (Gal 1986), so that rounding it costs nothing.
"""
import math

from mpmath import cos, erfc, exp, lu_solve, matrix, mp, mpf, pi, sqrt

mp.dps = 40
INTERVALS, WIDTH = 16, mpf(1) / 4
GATE_BITS, SLOPE_BITS = (24, 24, 24, 22, 19, 16, 13), (24, 24, 22, 19, 16, 13)


def erf_gate(a):
    return erfc(a / sqrt(2)) / 2


def erf_slope(a):
    return erf_gate(a) - a * exp(-a * a / 2) / sqrt(2 * pi)


def tanh_gate(a):
    return 1 / (1 + exp(2 * sqrt(2 / pi) * (a + mpf("0.044715") * a**3)))


def tanh_slope(a):
    gate = tanh_gate(a)
    return gate - a * 2 * sqrt(2 / pi) * (1 + 3 * mpf("0.044715") * a * a) * gate * (1 - gate)


def rounded(x, bits):
    mantissa, exponent = math.frexp(float(x))  # double rounding does no harm: this is where it is fitted
    return math.ldexp(round(math.ldexp(mantissa, bits)), exponent - bits)


def center_of(interval, gate):
    if interval == 0:
        return 0.0
    places = (float(interval * WIDTH) + step / 8192 for step in range(-32, 33))
    return min(places, key=lambda c: abs(1 - mpf(rounded(gate(mpf(c)), 24)) / gate(mpf(c))))


def fitted(x, y, weights, powers):
    """The coefficients of `powers` of x, by the normal equations, which 40 digits are enough for."""
    rows = matrix([[w * t**k for k in powers] for t, w in zip(x, weights)])
    return lu_solve(rows.T * rows, rows.T * matrix([w * v for w, v in zip(weights, y)]))


def polynomial(f, interval, center, bits, relative):
    """The coefficients in ascending order; of a relative one the first is f(center)."""
    low, high = max(interval * WIDTH - WIDTH / 2, 0), interval * WIDTH + WIDTH / 2
    nodes = [(low + high + (high - low) * cos(pi * (2 * i + 1) / 80)) / 2 for i in range(40)]
    x, rest = [a - center for a in nodes], [f(a) for a in nodes]
    weights = [1 / v for v in rest] if relative else [1] * len(x)
    found = [rounded(f(mpf(center)), bits[0])] if relative else []
    rest = [v - sum(found) for v in rest]
    higher = []
    for power in reversed(range(len(found), len(bits))):
        powers = range(len(found), power + 1)
        higher.insert(0, rounded(fitted(x, rest, weights, powers)[len(powers) - 1], bits[power]))
        rest = [v - higher[0] * t**power for v, t in zip(rest, x)]
    return found + higher


def row(numbers, indent):
    cells = [f"{v:#.9g}f" for v in numbers]
    return f"{{{', '.join(cells[:8])},\n{' ' * indent} {', '.join(cells[8:])}}}"


def array(rows):
    return "{" + ",\n".join(" " * (5 if i else 0) + row(r, 5) for i, r in enumerate(rows)) + "}"


def table(name, gate, slope):
    centers = [center_of(i, gate) for i in range(INTERVALS)]
    gates = [polynomial(gate, i, c, GATE_BITS, True) for i, c in enumerate(centers)]
    slopes = [polynomial(slope, i, c, SLOPE_BITS, False) for i, c in enumerate(centers)]
    return f"inline constexpr GeluTable {name} = {{\n    {row(centers, 4)},\n    {array(zip(*gates))},\n    {array(zip(*slopes))}}};\n"


print(f"""#pragma once
// Made by gelu_table.py.

// clang-format off
namespace onestep::kernels {{
namespace {{

/// Of 16 intervals of |x|, in each row: polynomials in |x| - center, coefficients in ascending order.
struct GeluTable {{
  float center[16];
  float gate[{len(GATE_BITS)}][16];    ///< Phi(-|x|), or its approximation by tanh
  float slope[{len(SLOPE_BITS)}][16];  ///< the derivative of GELU at -|x|
}};

{table('kGeluErf', erf_gate, erf_slope)}
{table('kGeluTanh', tanh_gate, tanh_slope)}
}}  // namespace
}}  // namespace onestep::kernels
// clang-format on""")
