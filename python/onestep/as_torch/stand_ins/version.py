"""torch.version: whose names these are, built for a CPU."""
__version__ = "2.13.0+onestep"
cuda = None
hip = None
debug = False
git_version = "onestep"
