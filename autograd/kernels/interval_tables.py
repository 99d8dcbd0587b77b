"""Prints interval_tables.h: `python3 autograd/kernels/interval_tables.py > autograd/kernels/interval_tables.h` (needs mpmath).

|x| lies in one of 16 intervals. In each, a function of |x| is a polynomial in |x| - center: least squares on Chebyshev nodes,
relative to the function or absolute. Coefficients are rounded from the highest on, each to the bits it is worth (zeros at the end
compress), and those below are fitted again. Centers are the places nearby where the function is closest to a float (Gal 1986), so
that rounding it costs nothing.

GELU's gate at -|x| and its derivative at -|x| have intervals of 1/4 around 0, 1/4, ...; tanh, erf and erfc have four of a width, four of
twice that width and so on, as many as a float has in four binary exponents.
"""
import math

from mpmath import cos, erf, erfc, exp, lu_solve, matrix, mp, mpf, pi, sqrt, tanh

mp.dps = 40
INTERVALS, WIDTH = 16, mpf(1) / 4
GATE_BITS, SLOPE_BITS = (24, 24, 24, 22, 19, 16, 13), (24, 24, 22, 19, 16, 13)
# 59 of them reach where the function is 1, or exp(-x^2) times it 0, in float32.
TANH_WIDTH, ERF_WIDTH, ERFCX_WIDTH = mpf("0.15283203125"), mpf("0.066650390625"), mpf("0.171875")


def erf_gate(a):
    return erfc(a / sqrt(2)) / 2


def erf_slope(a):
    return erf_gate(a) - a * exp(-a * a / 2) / sqrt(2 * pi)


def tanh_gate(a):
    return 1 / (1 + exp(2 * sqrt(2 / pi) * (a + mpf("0.044715") * a**3)))


def tanh_slope(a):
    gate = tanh_gate(a)
    return gate - a * 2 * sqrt(2 / pi) * (1 + 3 * mpf("0.044715") * a * a) * gate * (1 - gate)


def erfcx(a):
    return erfc(a) * exp(a * a)


def rounded(x, bits):
    mantissa, exponent = math.frexp(float(x))  # double rounding does no harm: this is where it is fitted
    return math.ldexp(round(math.ldexp(mantissa, bits)), exponent - bits)


def center_near(places, f):
    return min(places, key=lambda c: abs(1 - mpf(rounded(f(mpf(c)), 24)) / f(mpf(c))))


def fitted(x, y, weights, powers):
    """The coefficients of `powers` of x, by the normal equations, which 40 digits are enough for."""
    rows = matrix([[w * t**k for k in powers] for t, w in zip(x, weights)])
    return lu_solve(rows.T * rows, rows.T * matrix([w * v for w, v in zip(weights, y)]))


def polynomial(f, low, high, center, bits, relative, known=()):
    """The coefficients in ascending order, the first of which may be `known`."""
    nodes = [(low + high + (high - low) * cos(pi * (2 * i + 1) / 80)) / 2 for i in range(40)]
    x, found = [a - center for a in nodes], list(known)
    rest = [f(a) - sum(found) for a in nodes]
    weights = [1 / relative(a) for a in nodes] if relative else [1] * len(x)
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


def gelu_table(name, gate, slope):
    edges = [(max(i * WIDTH - WIDTH / 2, 0), i * WIDTH + WIDTH / 2) for i in range(INTERVALS)]
    centers = [0.0] + [center_near((float(i * WIDTH) + step / 8192 for step in range(-32, 33)), gate) for i in range(1, INTERVALS)]
    gates = [polynomial(gate, *e, c, GATE_BITS, gate, [rounded(gate(mpf(c)), 24)]) for e, c in zip(edges, centers)]
    slopes = [polynomial(slope, *e, c, SLOPE_BITS, None) for e, c in zip(edges, centers)]
    return f"inline constexpr GeluTable {name} = {{\n    {row(centers, 4)},\n    {array(zip(*gates))},\n    {array(zip(*slopes))}}};\n"


def growing_table(name, f, width, bits):
    edges = [4 * width * (2**octave * (1 + mpf(quarter) / 4) - 1) for octave in range(4) for quarter in range(4)] + [60 * width]
    middles = [(low + high) / 2 for low, high in zip(edges, edges[1:])]
    centers = [0.0] + [center_near((rounded(m * (1 + mpf(step) / 4096), 24) for step in range(-64, 65)), f) for m in middles[1:]]
    polynomials = [polynomial(f, low, high, c, bits, f, [rounded(f(mpf(c)), 24)])
                   for low, high, c in zip(edges, edges[1:], centers)]
    if f(0) == 0:
        polynomials[0] = polynomial(lambda a: f(a) - a, 0, width, 0, bits, f, [0.0])
    return f"""inline constexpr GrowingTable<{len(bits)}> {name} = {{
    {float(width)!r}f,
    {row(centers, 4)},
    {array(zip(*polynomials))}}};
"""


print(f"""#pragma once
// Made by interval_tables.py.

// clang-format off
namespace onestep::kernels {{
namespace {{

/// Of 16 intervals of |x|, in each row: polynomials in |x| - center, coefficients in ascending order.
struct GeluTable {{
  float center[16];
  float gate[{len(GATE_BITS)}][16];    ///< Phi(-|x|), or its approximation by tanh
  float slope[{len(SLOPE_BITS)}][16];  ///< the derivative of GELU at -|x|
}};

/// Of four intervals of a width, four of twice the width and so on: polynomials in |x| - center, of f(|x|) - |x| in the first where f is odd.
template <int N>
struct GrowingTable {{
  float width;
  float center[16];
  float c[N][16];
}};

{gelu_table('kGeluErf', erf_gate, erf_slope)}
{gelu_table('kGeluTanh', tanh_gate, tanh_slope)}
{growing_table('kTanh', tanh, TANH_WIDTH, SLOPE_BITS)}
{growing_table('kErf', erf, ERF_WIDTH, SLOPE_BITS)}
{growing_table('kErfcx', erfcx, ERFCX_WIDTH, GATE_BITS)}
}}  // namespace
}}  // namespace onestep::kernels
// clang-format on""")
