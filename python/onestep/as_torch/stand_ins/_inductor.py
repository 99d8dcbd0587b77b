"""torch._inductor: its switches are accepted, nothing is compiled."""
from types import SimpleNamespace

config = SimpleNamespace(coordinate_descent_tuning=False, triton=SimpleNamespace(), debug=False)
