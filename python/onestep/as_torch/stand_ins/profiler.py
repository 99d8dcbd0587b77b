"""torch.profiler: names of ranges are accepted, and `profile` measures nothing."""
from onestep._missing import unavailable

profile = unavailable("torch.profiler.profile")
schedule = unavailable("torch.profiler.schedule")
tensorboard_trace_handler = unavailable("torch.profiler.tensorboard_trace_handler")


class ProfilerActivity:
    CPU, CUDA = "CPU", "CUDA"


class record_function:
    """A named range, as a context."""

    def __init__(self, name: str, args=None) -> None:
        self.name = name

    def __enter__(self):
        return self

    def __exit__(self, *error) -> None:
        pass
