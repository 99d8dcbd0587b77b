"""Importing this makes `import torch` give onestep, in this process: for notebooks, and for `python -m onestep.as_torch PROGRAM`."""
from onestep.as_torch.finder import activate

activate()
