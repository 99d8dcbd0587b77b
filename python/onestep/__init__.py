"""A from-scratch autograd tensor engine under PyTorch's names: `import onestep as torch`."""

from math import e, inf, nan, pi

from onestep._C import *  # noqa: F403 - all ops, by the names of torch
from onestep._C import _sample_dirichlet, _standard_gamma  # noqa: F401 - PyTorch's names of them
from onestep import _tensor  # noqa: F401 - completes the class Tensor
from onestep._functions import *  # type: ignore[assignment]  # noqa: F403 - some in the order of torch, not of nn.functional
from onestep._composed import *  # noqa: F403
from onestep._statistics import *  # noqa: F403
from onestep._numbers import *  # noqa: F403
from onestep._storage import *  # noqa: F403
from onestep.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from onestep._matrices import *  # noqa: F403
from onestep import autograd, backends, cuda, special

newaxis = None
__version__ = "0.1.0"


_LATER = {  # where the names are that are imported when they are first used
    **{name: f"onestep.{name}" for name in ("nn", "optim", "utils", "amp", "fft", "func", "futures", "linalg", "random")},
    **{name: f"onestep.{name}" for name in ("attention", "display", "distributions", "sparse")},
    **{name: "onestep.serialization" for name in ("save", "load")},
    **{name: "onestep.run" for name in ("train", "Run")},
    **{
        name: "onestep.nn.functional"
        for name in (
            "alpha_dropout", "bilinear", "celu_", "channel_shuffle", "conv3d", "conv_transpose3d", "feature_alpha_dropout",
            "feature_dropout", "max_pool1d_with_indices", "max_pool3d", "native_channel_shuffle", "pdist", "pixel_shuffle",
            "pixel_unshuffle", "rms_norm", "rrelu", "rrelu_", "selu_", "threshold_",
        )
    },
    **{
        name: "onestep._complex"
        for name in (
            "angle", "complex", "imag", "polar", "view_as_complex", "view_as_real", "complex32", "complex64", "complex128", "chalf",
            "cfloat", "cdouble",
        )
    },
    **{
        name: "onestep._signal"
        for name in ("bartlett_window", "blackman_window", "hamming_window", "hann_window", "istft", "kaiser_window", "stft")
    },
    "sparse_coo_tensor": "onestep.sparse",
    "spmm": "onestep.sparse",
    "gradcheck": "onestep.autograd",
    "vmap": "onestep.func",
    "autocast": "onestep.amp",
    "Future": "onestep.futures",
    "GradScaler": "onestep.amp",
}


def __getattr__(name: str):
    import importlib

    if name.startswith("_foreach_"):
        from onestep._foreach import foreach

        return foreach(name.removeprefix("_foreach_"))
    module = _LATER.get(name)
    if module is None:
        from onestep._missing import module_getattr

        return module_getattr("torch")(name)
    found = importlib.import_module(module)
    return found if module == f"onestep.{name}" else getattr(found, name)
