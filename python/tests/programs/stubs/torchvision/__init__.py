"""As much of torchvision as PyTorch's MNIST programs ask for, on generated digits; the same under PyTorch and onestep."""
from torchvision import datasets, transforms, utils  # noqa: F401
