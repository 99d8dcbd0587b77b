"""torch.multiprocessing: Python's own; tensors are pickled, not shared."""
from multiprocessing import *  # noqa: F403
from onestep._missing import unavailable

spawn = unavailable("torch.multiprocessing.spawn")
