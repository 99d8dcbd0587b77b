"""Windows and short-time Fourier transforms, under torch."""

from __future__ import annotations

import math
from typing import Any, Optional

from onestep import _C
from onestep._C import Tensor
from onestep._complex import ComplexTensor
from onestep.fft import fft, ifft, irfft, rfft

__all__ = ["bartlett_window", "blackman_window", "hamming_window", "hann_window", "istft", "kaiser_window", "stft"]


def _window(length: int, periodic: bool, of: Any, dtype: Any, requires_grad: bool) -> Tensor:
    """of(place / (length - 1)), or, if periodic, the first of one more."""
    dtype = dtype or _C.get_default_dtype()
    if length == 1:
        return _C.ones(1, dtype=dtype)
    places = _C.arange(length).double() / max(length if periodic else length - 1, 1)
    return of(places).to(dtype).requires_grad_(requires_grad)


def hann_window(window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None,
                pin_memory: bool = False, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """(1 - cos(2 pi t)) / 2."""
    return hamming_window(window_length, periodic, 0.5, 0.5, dtype=dtype, requires_grad=requires_grad)


def hamming_window(window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: Any = None,
                   layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """alpha - beta cos(2 pi t)."""
    return _window(window_length, periodic, lambda t: alpha - beta * (2 * math.pi * t).cos(), dtype, requires_grad)


def blackman_window(window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None,
                    pin_memory: bool = False, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """0.42 - 0.5 cos(2 pi t) + 0.08 cos(4 pi t)."""
    shape = lambda t: (0.42 - 0.5 * (2 * math.pi * t).cos() + 0.08 * (4 * math.pi * t).cos()).clamp(min=0)  # noqa: E731
    return _window(window_length, periodic, shape, dtype, requires_grad)


def bartlett_window(window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None,
                    pin_memory: bool = False, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """1 - abs(2 t - 1)."""
    return _window(window_length, periodic, lambda t: 1 - (2 * t - 1).abs(), dtype, requires_grad)


def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None, layout: Any = None, device: Any = None,
                  pin_memory: bool = False, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """i0(beta sqrt(1 - (2 t - 1)^2)) / i0(beta)."""
    shape = lambda t: _C.i0(beta * (1 - (2 * t - 1) ** 2).clamp(min=0).sqrt()) / _C.i0(_C.tensor(beta, dtype=_C.float64))  # noqa: E731
    return _window(window_length, periodic, shape, dtype, requires_grad)


def _centered(window: Optional[Tensor], win_length: int, n_fft: int, like: Any) -> Tensor:
    if window is None:
        window = _C.ones(win_length, dtype=like.real.dtype)
    if window.dim() != 1 or window.shape[0] != win_length or not 0 < win_length <= n_fft:
        raise RuntimeError(f"the window must be a vector of win_length = {win_length} <= n_fft = {n_fft}: got {list(window.shape)}")
    left = (n_fft - win_length) // 2
    return _C.pad(window, [left, n_fft - win_length - left])


def stft(input: Any, n_fft: int, hop_length: Optional[int] = None, win_length: Optional[int] = None, window: Optional[Tensor] = None,
         center: bool = True, pad_mode: str = "reflect", normalized: bool = False, onesided: Optional[bool] = None,
         return_complex: Optional[bool] = None) -> Any:  # fmt: skip
    """[..., L] -> [..., n_fft // 2 + 1, frames]: the spectra of the windowed frames that begin `hop_length` apart."""
    onesided = not input.is_complex() if onesided is None else onesided
    if return_complex is None and not input.is_complex():
        raise RuntimeError("stft requires the return_complex parameter be given for real inputs")
    hop_length = n_fft // 4 if hop_length is None else hop_length
    if hop_length < 1:
        raise RuntimeError(f"stft: hop_length must be above 0: got {hop_length}")
    weights = _centered(window, n_fft if win_length is None else win_length, n_fft, input)
    if center:
        batch = input.unsqueeze(0) if input.dim() == 1 else input
        batch = _C.pad(batch, [n_fft // 2, n_fft // 2], mode=pad_mode)
        input = batch.squeeze(0) if input.dim() == 1 else batch
    if input.shape[-1] < n_fft:
        raise RuntimeError(f"stft: {input.shape[-1]} numbers hold no frame of n_fft = {n_fft}")
    frames = input.unfold(-1, n_fft, hop_length) * weights
    result = (rfft(frames) if onesided else fft(frames)).transpose(-1, -2)
    result = result / math.sqrt(n_fft) if normalized else result
    return result if return_complex or return_complex is None else _C.stack([result.real, result.imag], -1)


def istft(input: Any, n_fft: int, hop_length: Optional[int] = None, win_length: Optional[int] = None,
          window: Optional[Tensor] = None, center: bool = True, normalized: bool = False, onesided: Optional[bool] = None,
          length: Optional[int] = None, return_complex: bool = False) -> Any:  # fmt: skip
    """[..., n_fft // 2 + 1, frames] -> [..., L]: what stft was made of, by least squares (Griffin and Lim 1984)."""
    hop_length = n_fft // 4 if hop_length is None else hop_length
    weights = _centered(window, n_fft if win_length is None else win_length, n_fft, input)
    onesided = input.shape[-2] != n_fft if onesided is None else onesided
    spectra = input.transpose(-1, -2) * (math.sqrt(n_fft) if normalized else 1.0)
    frames: Any = irfft(spectra, n_fft) if onesided else ifft(spectra)
    count, total = frames.shape[-2], n_fft + hop_length * (frames.shape[-2] - 1)
    places = (_C.arange(count).unsqueeze(1) * hop_length + _C.arange(n_fft)).flatten()
    envelope = _C.zeros(total, dtype=weights.dtype).index_add(0, places, (weights * weights).repeat(count))
    summed = _C.zeros(*frames.shape[:-2], total, dtype=weights.dtype)
    result: Any = summed.index_add(-1, places, (frames.real * weights).flatten(-2))
    if return_complex:
        result = ComplexTensor(result, summed.index_add(-1, places, (frames.imag * weights).flatten(-2)))
    start = n_fft // 2 if center else 0
    stop = start + length if length is not None else total - start
    result, envelope = result[..., start:stop], envelope[start:stop]
    if envelope.abs().min() < 1e-11:
        raise RuntimeError("istft: the windows do not cover every place")
    result = result / envelope
    return result if length is None or result.shape[-1] == length else _C.pad(result, [0, length - result.shape[-1]])
