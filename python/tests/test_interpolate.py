"""interpolate: what it refuses and how it resamples bytes, as PyTorch 2.13 does."""

import pytest

import onestep as T
from onestep.nn import functional as F


@pytest.mark.parametrize(
    "shape, options, error",
    [
        ((1, 1, 4, 4), {"mode": "nearest", "scale_factor": 2, "align_corners": True}, ValueError),
        ((1, 1, 4, 4), {"mode": "area", "scale_factor": 2, "align_corners": False}, ValueError),
        ((1, 1, 4), {}, ValueError),
        ((1, 1, 4), {"size": 2, "scale_factor": 2}, ValueError),
        ((1, 1, 4), {"size": (2, 2)}, ValueError),
        ((1, 1, 4), {"scale_factor": (2.0, 2.0)}, ValueError),
        ((1, 1, 4), {"size": 2, "recompute_scale_factor": True}, ValueError),
        ((1, 1, 4), {"size": 2, "antialias": True}, ValueError),
        ((1, 1, 4, 4), {"mode": "linear", "size": 2}, NotImplementedError),
        ((1, 1, 4), {"mode": "bilinear", "size": 2}, NotImplementedError),
        ((1, 1, 4, 4), {"mode": "trilinear", "size": 2}, NotImplementedError),
        ((4,), {"size": 2}, NotImplementedError),
        ((1, 1, 4), {"mode": "sinc", "size": 2}, NotImplementedError),
    ],
)
def test_what_interpolate_refuses(shape, options, error):
    with pytest.raises(error):
        F.interpolate(T.ones(shape), **options)


BYTES = {  # of arange(16) * 15 in 4 x 4
    ("bilinear", False, False): [12, 33, 53, 92, 113, 133, 172, 193, 213],
    ("bilinear", True, False): [0, 23, 45, 90, 113, 135, 180, 203, 225],
    ("bilinear", False, True): [22, 41, 59, 94, 113, 131, 166, 185, 203],
    ("bicubic", False, False): [10, 31, 51, 92, 113, 133, 174, 195, 215],
    ("bicubic", False, True): [14, 34, 53, 93, 113, 132, 172, 192, 211],
}


@pytest.mark.parametrize("mode, align, antialias", BYTES)
def test_bytes_are_resampled_in_integers(mode, align, antialias):
    x = (T.arange(16) * 15).to(T.uint8).reshape(1, 1, 4, 4)
    y = F.interpolate(x, size=3, mode=mode, align_corners=align, antialias=antialias)
    assert y.dtype == T.uint8 and y.flatten().tolist() == BYTES[mode, align, antialias]
    larger = F.interpolate(x, scale_factor=(1.5, 1), mode="bilinear")
    assert larger[0, 0, :, 0].tolist() == [0, 30, 70, 110, 150, 180]
    assert F.interpolate(x, size=8).flatten()[:4].tolist() == [0, 0, 15, 15]
