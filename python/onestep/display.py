"""Pictures of attention weights and losses as SVG: for notebooks, which show them by themselves, and for files (`picture.save(path)`).

They follow the light or dark theme of where they are shown, and need neither a script nor a plotting library."""

from __future__ import annotations

import math
from html import escape
from pathlib import Path
from typing import Any, Mapping, Optional, Sequence, Union

import onestep

__all__ = ["Picture", "attention_map", "loss_graph"]

# The colours of the report page (train/report/page/style.css). The class keeps them from the page that the picture is part of.
_STYLE = """<style>
.onestep { --back: #fff; --text: #1b1f24; --quiet: #5d6672; --line: #d9dee4; --heat: rgb(8, 69, 148); background: var(--back);
  --run-0: #1f6feb; --run-1: #d1570a; --run-2: #1a7f37; --run-3: #8250df; --run-4: #bf3989; --run-5: #6e5b00; }
@media (prefers-color-scheme: dark) { .onestep { --back: #181c22; --text: #e6e9ed; --quiet: #98a2ae; --line: #303843;
  --heat: rgb(110, 175, 255);
  --run-0: #6cb0ff; --run-1: #ff9e64; --run-2: #5fd38a; --run-3: #c09bff; --run-4: #ff8ac4; --run-5: #d9c64a; } }
.onestep text { font: 11px system-ui, sans-serif; fill: var(--quiet); }
.onestep .title { font-weight: 600; fill: var(--text); }
.onestep .word { font: 11px ui-monospace, monospace; fill: var(--text); }
.onestep .number { font-size: 10px; fill: var(--text); text-anchor: middle; }
.onestep .strong { fill: var(--back); }
.onestep .cells { fill: var(--heat); }
.onestep .line { fill: none; stroke: var(--line); }
.onestep .curve { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
.onestep .raw { opacity: 0.3; stroke-width: 1; }
.onestep .validation { stroke-dasharray: 5 3; }
</style>"""


class Picture:
    """An SVG that a notebook shows; `svg` is its text."""

    def __init__(self, description: str, width: float, height: float, elements: Sequence[str]) -> None:
        self.description = description
        size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" class="onestep" {size} role="img" style="max-width: 100%">'
        self.svg = "\n".join([head, f"<title>{escape(description)}</title>", _STYLE, *elements, "</svg>\n"])

    def save(self, path: Union[str, Path]) -> None:
        """Writes the picture to a file, `NAME.svg`, which a browser opens."""
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_html_(self) -> str:
        return self.svg

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<{self.description}>"


def _text(x: float, y: float, text: str, attributes: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {attributes}>{escape(text)}</text>'


# ---- attention maps

_ADVANCE = 6.7  # width of a character of a word, in pixels
_LONGEST = 12  # characters
_NUMBERS = 12  # up to so many keys the cells hold their weights
_LEVELS = 32  # shades of a cell


def _label(word: str) -> str:
    """A word beside a map: spaces and line ends can be seen, and a long one is cut."""
    label = word.replace(" ", "\u2423").replace("\n", "\u21b5")
    return label if len(label) <= _LONGEST else label[: _LONGEST - 1] + "\u2026"


def _strength(weight: float) -> float:
    """0 to 1: the square root, so that small weights can be seen."""
    return math.sqrt(min(max(weight, 0.0), 1.0))


def _cells(weights: Sequence[Sequence[float]]) -> list[str]:
    """A path for each shade that occurs, in units of a cell."""
    shades: dict[int, list[str]] = {}
    for i, row in enumerate(weights):
        for j, weight in enumerate(row):
            if not math.isnan(weight):
                shades.setdefault(round(_LEVELS * _strength(weight)), []).append(f"M{j} {i}h1v1h-1z")
    return [f'<path opacity="{shade / _LEVELS:.3g}" d="{"".join(shades[shade])}"/>' for shade in sorted(shades) if shade]


def _numbers(weights: Sequence[Sequence[float]], cell: float) -> list[str]:
    return [
        _text((j + 0.5) * cell, (i + 0.5) * cell + 3.5, f"{weight:.2f}" if weight else "0",
              'class="number strong"' if _strength(weight) > 0.6 else 'class="number"')
        for i, row in enumerate(weights) for j, weight in enumerate(row)
    ]  # fmt: skip


def _head(weights: Sequence[Sequence[float]], rows: Sequence[str], columns: Sequence[str], cell: float, upright: bool) -> list[str]:
    """One map; its first cell is at 0, 0."""
    every = math.ceil(11 / cell)  # one word in so many has room
    width, height = cell * len(columns), cell * len(rows)
    parts = [f'<g class="cells" transform="scale({cell:.4g})">', *_cells(weights), "</g>"]
    parts.append(f'<rect class="line" width="{width:.1f}" height="{height:.1f}"/>')
    if len(columns) <= _NUMBERS:
        parts += _numbers(weights, cell)
    for i in range(0, len(rows), every):
        parts.append(_text(-6, (i + 0.5) * cell + 3.5, rows[i], 'class="word" text-anchor="end"'))
    for j in range(0, len(columns), every):
        x = (j + 0.5) * cell
        if upright:
            parts.append(_text(x, -6, columns[j], 'class="word" text-anchor="middle"'))
        else:
            parts.append(f'<text class="word" transform="translate({x + 3.5:.1f} -5) rotate(-90)">{escape(columns[j])}</text>')
    return parts


def _nested(weights: Any) -> Any:
    """[[T, S], ...], a matrix a head."""
    if not isinstance(weights, onestep.Tensor) and hasattr(weights, "tolist"):  # an array of another library
        weights = weights.tolist()
    weights = onestep.as_tensor(weights, dtype=onestep.float64)
    if weights.dim() not in (2, 3) or weights.numel() == 0:
        raise onestep.ShapeError(f"attention_map: weights must be [T, T], or [H, T, T] of several heads: got {list(weights.shape)}")
    return (weights if weights.dim() == 3 else weights[None]).tolist()


def attention_map(weights: Any, words: Sequence[str], keys: Optional[Sequence[str]] = None,
                  titles: Optional[Sequence[str]] = None) -> Picture:
    """Attention weights with the words on both axes, a map for each head: a row is a query, a column a key.

    weights: [T, T], or [H, T, T] of several heads; words: T words, or other tokens; keys: those of the columns, where they are not
    the same; titles: a line above each map, "head 0" and so on unless given. The stronger the colour, the larger the weight; up to twelve keys the weights are written into the cells."""
    heads = _nested(weights)
    if titles is None:
        titles = [f"head {h}" for h in range(len(heads))] if len(heads) > 1 else []
    rows, columns = [_label(w) for w in words], [_label(w) for w in (words if keys is None else keys)]
    if (len(heads[0]), len(heads[0][0])) != (len(rows), len(columns)):
        size = f"{len(heads[0])} queries and {len(heads[0][0])} keys"
        raise onestep.ShapeError(f"attention_map: a word for each row and column: got {size}, {len(rows)} and {len(columns)} words")
    names_width, keys_width = (_ADVANCE * max(map(len, names)) for names in (rows, columns))
    cell = 34.0 if len(columns) <= _NUMBERS else max(11.0, min(24.0, 420 / len(columns)))
    if len(columns) > 64:
        cell = max(1.0, 704 / len(columns))
    upright = keys_width + 4 <= cell * math.ceil(11 / cell)
    left, top = names_width + 10, (18 if upright else keys_width + 10) + (18 if titles else 0)
    width, height = left + cell * len(columns) + 14, top + cell * len(rows) + 14
    in_a_row = max(1, min(len(heads), int(980 // width)))
    parts = []
    for h, head in enumerate(heads):
        x, y = h % in_a_row * width, h // in_a_row * height
        parts.append(f'<g transform="translate({x + left:.1f} {y + top:.1f})">')
        if titles:
            parts.append(_text(0, 12 - top, titles[h], 'class="title"'))
        parts += [*_head(head, rows, columns, cell, upright), "</g>"]
    full_height = height * math.ceil(len(heads) / in_a_row) + 16
    full_width = max(width * in_a_row, 170)
    parts.append(_text(6, full_height - 8, "row = query, column = key"))
    several = f"{len(heads)} heads, " if len(heads) > 1 else ""
    return Picture(f"attention map: {several}{len(rows)} x {len(columns)}", full_width, full_height, parts)


# ---- losses

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 620, 280, 56, 16, 30, 38


def _ticks(low: float, high: float, least: float = 0.0) -> list[float]:
    """About five round numbers, `least` or more apart."""
    rough = max(least, (high - low) / 5)
    power = 10 ** math.floor(math.log10(rough))
    step = next(n * power for n in (1, 2, 5, 10) if n * power >= rough * (1 - 1e-12))
    return [i * step for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def _range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values, default=0.0), max(values, default=1.0)
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def _smoothed(points: Sequence[tuple[float, float]], share: float = 0.6) -> list[tuple[float, float]]:
    """The exponential moving average of the values, its first ones corrected for their missing past."""
    mean = weight = 0.0
    result = []
    for step, value in points:
        mean, weight = share * mean + (1 - share) * value, share * weight + (1 - share)
        result.append((step, mean / weight))
    return result


def _curves(columns: Mapping[str, Sequence[Optional[float]]]) -> dict[str, list[tuple[float, float]]]:
    """name -> [(step, value)] of the columns of losses; steps count from 1, as the program prints them."""
    losses = {name: values for name, values in columns.items() if name.endswith("loss")}
    if not losses:
        raise onestep.ConfigError(f"loss_graph: no column's name ends in loss: {', '.join(columns) or 'there is none'}")
    curves = {}
    for name, values in losses.items():
        steps = columns.get("step") or range(len(values))
        curves[name] = [(s + 1, v) for s, v in zip(steps, values) if s is not None and v is not None and math.isfinite(v)]
    return curves


def loss_graph(columns: Mapping[str, Sequence[Optional[float]]]) -> Picture:
    """The losses of a training over its steps.

    columns: `metrics` of a Run, or lists of one's own, {"loss": [...]}. Every column whose name ends in `loss` is drawn, None and what
    is not finite left out; a `step` column says which step (from 0) a row is. A long curve is drawn faintly, with its moving average
    as a line; columns with `val` in their name are dashed."""
    curves = _curves(columns)
    points = [point for curve in curves.values() for point in curve]
    (left, right), (low, high) = _range([s for s, _ in points]), _range([v for _, v in points])

    def place(point: tuple[float, float]) -> tuple[float, float]:
        x = _LEFT + (point[0] - left) / (right - left) * (_WIDTH - _LEFT - _RIGHT)
        return x, _HEIGHT - _BOTTOM - (point[1] - low) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)

    def path(curve: Sequence[tuple[float, float]], color: str, kind: str) -> str:
        line = "".join(f"{'L' if i else 'M'}{x:.1f} {y:.1f}" for i, (x, y) in enumerate(map(place, curve)))
        return f'<path class="curve{kind}" stroke="{color}" d="{line}"/>'

    parts = []
    for value in _ticks(low, high):
        y = place((left, value))[1]
        parts.append(f'<path class="line" d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}"/>')
        parts.append(_text(_LEFT - 6, y + 4, f"{value:.4g}", 'text-anchor="end"'))
    for step in _ticks(left, right, 1):
        parts.append(_text(place((step, low))[0], _HEIGHT - _BOTTOM + 15, f"{step:g}", 'text-anchor="middle"'))
    parts.append(_text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 6, "step", 'text-anchor="middle"'))
    x = float(_LEFT)
    for i, (name, curve) in enumerate(curves.items()):
        color, validation = f"var(--run-{i % 6})", "val" in name
        long = len(curve) > 30 and not validation
        if long:
            parts.append(path(curve, color, " raw"))
        parts.append(path(_smoothed(curve) if long else curve, color, " validation" * validation))
        if validation or len(curve) == 1:
            parts += [f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="2.5" fill="{color}"/>' for cx, cy in map(place, curve)]
        parts.append(f'<path class="curve{" validation" * validation}" stroke="{color}" d="M{x:.1f} 14h22"/>')
        parts.append(_text(x + 28, 18, name))
        x += 44 + _ADVANCE * len(name)
    return Picture(f"loss graph: {', '.join(curves)}", _WIDTH, _HEIGHT, parts)
