"""Histograms and images as TensorBoard stores them: Summary.Value of tensorflow/core/framework/summary.proto."""

from __future__ import annotations

import math
import struct
import zlib
from typing import Any, List, Optional, Sequence, Tuple

import onestep
from onestep import _C
from onestep._C import Tensor


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def _doubles(field: int, values: Sequence[float]) -> bytes:
    return _bytes(field, struct.pack(f"<{len(values)}d", *values))


def _growing() -> List[float]:
    """Limits of buckets that grow by a tenth from 1e-12 to 1e20, on both sides of 0."""
    limits, v = [], 1e-12
    while v < 1e20:
        limits.append(v)
        v *= 1.1
    return [-v for v in reversed(limits)] + [0.0] + limits


def _limits(values: Tensor, bins: Any) -> List[float]:
    if isinstance(bins, str) and bins == "tensorflow":
        return _growing()
    import numpy

    return numpy.histogram_bin_edges(values.numpy(), bins=bins).tolist()


def _counts(values: Tensor, limits: Sequence[float]) -> List[float]:
    """Of values from each limit to below the next one, the last one included (numpy.histogram)."""
    last = len(limits) - 2
    values = values[(values >= limits[0]) & (values <= limits[-1])]
    place = onestep.bucketize(values, onestep.tensor(limits, dtype=onestep.float64), right=True) - 1
    return onestep.bincount(place.clamp(max=last), minlength=last + 1).tolist()


def _filled(counts: List[float], limits: List[float]) -> Tuple[List[float], List[float]]:
    """What is left of buckets without the empty ones at both ends; the first is empty, since a bucket is told by its upper limit."""
    full = [i for i, count in enumerate(counts) if count]
    if not full:
        return [0, *counts[:1]], limits[:2]
    start, end = full[0], full[-1] + 1
    kept = counts[start - 1 : end] if start > 0 else [0, *counts[:end]]
    return kept, limits[start : end + 1]


def histogram(tag: str, values: Any, bins: Any, max_bins: Optional[int]) -> bytes:
    """HistogramProto of all the numbers of a tensor, an array or a list."""
    numbers = onestep.as_tensor(values).detach().reshape(-1).to(onestep.float64)
    if numbers.numel() == 0:
        raise ValueError("The input has no element.")
    limits = _limits(numbers, bins)
    counts = _counts(numbers, limits)
    if max_bins is not None and len(counts) > max_bins:
        each = len(counts) // max_bins
        counts = [sum(counts[i : i + each]) for i in range(0, len(counts), each)]
        limits = [*limits[:-1:each], limits[-1]]
    counts, limits = _filled(counts, limits)
    squares = (numbers * numbers).sum().item()
    numbers_of = (numbers.min().item(), numbers.max().item(), float(numbers.numel()), numbers.sum().item(), squares)
    proto = b"".join(_double(i + 1, v) for i, v in enumerate(numbers_of)) + _doubles(6, limits) + _doubles(7, counts)
    return _bytes(1, tag.encode()) + _bytes(5, proto)


def _grid(images: Tensor) -> Tensor:
    """A batch [N, H, W, C] as one picture, eight in a row."""
    n, h, w, c = images.shape
    columns = min(n, 8)
    rows = math.ceil(n / columns)
    missing = _C.zeros(rows * columns - n, h, w, c, dtype=images.dtype)
    grid = _C.cat([images, missing]).reshape(rows, columns, h, w, c)
    return grid.permute(0, 2, 1, 3, 4).reshape(rows * h, columns * w, c)


def _pixels(picture: Any, dataformats: str) -> Tensor:
    """A picture, or a batch of them, as uint8 [H, W, 3 or 4]."""
    x, order = onestep.as_tensor(picture).detach(), dataformats.upper()
    if len(set(order)) != len(order) or sorted(order) not in (sorted("HW"), sorted("HWC"), sorted("NHWC")):
        raise ValueError(f"dataformats: takes the letters HW, CHW or NCHW in their order in the tensor, got {dataformats!r}")
    if x.dim() != len(order):
        raise ValueError(f"size of input tensor and input format are different. tensor shape: {tuple(x.shape)}, input_format: {order}")
    if x.dtype is not onestep.uint8:
        x = (x.to(onestep.float32) * 255).clamp(0, 255).to(onestep.uint8)
    if order == "HW" or order == "WH":
        x, order = x.unsqueeze(-1), order + "C"
    x = x.permute([order.index(letter) for letter in ("NHWC" if len(order) == 4 else "HWC")])
    x = _grid(x) if x.dim() == 4 else x
    if x.shape[-1] not in (1, 3, 4):
        raise ValueError(f"an image has 1, 3 or 4 channels, got {x.shape[-1]}")
    return x.expand(*x.shape[:2], 3) if x.shape[-1] == 1 else x


def _png(pixels: Tensor) -> bytes:
    """PNG (ISO/IEC 15948): the rows, each after a filter type of 0, compressed."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    h, w, channels = pixels.shape
    rows = _C.cat([_C.zeros(h, 1, dtype=onestep.uint8), pixels.reshape(h, w * channels)], 1)
    header = struct.pack(">IIBBBBB", w, h, 8, {3: 2, 4: 6}[channels], 0, 0, 0)
    data = zlib.compress(bytes(memoryview(rows.contiguous()).cast("B")))  # type: ignore[arg-type]
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def image(tag: str, picture: Any, dataformats: str) -> bytes:
    """Summary.Image of a picture, or of a batch side by side."""
    pixels = _pixels(picture, dataformats)
    sizes = b"".join(_varint(i + 1 << 3) + _varint(n) for i, n in enumerate(pixels.shape))
    return _bytes(1, tag.encode()) + _bytes(4, sizes + _bytes(4, _png(pixels)))


def drawn(figure: Any, close: bool) -> Tensor:
    """What matplotlib draws: uint8 [H, W, 3]."""
    from matplotlib import pyplot  # type: ignore[import-not-found]
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # type: ignore[import-not-found]

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = onestep.tensor(bytearray(canvas.buffer_rgba()), dtype=onestep.uint8)
    width, height = canvas.get_width_height()
    if close:
        pyplot.close(figure)
    return pixels.reshape(height, width, 4)[:, :, :3]
