"""What annotations of programs name (torch.types)."""

from __future__ import annotations

from typing import Any, Sequence, Union

from onestep._C import Size, Tensor, device, dtype

Device = Union[device, str, int, None]
Number = Union[int, float, bool]
FileLike = Any
Storage = Any
_bool, _dtype, _float, _int, _size = bool, dtype, float, int, Union[Size, Sequence[int]]
_TensorOrTensors = Union[Tensor, Sequence[Tensor]]
