"""torch.jit.annotations: the names of typing."""

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: F401
