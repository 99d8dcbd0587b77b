"""As much of torchvision as PyTorch's MNIST programs ask for, on generated digits; the same under PyTorch and onestep."""
import torch
from torchvision import datasets, transforms, utils  # noqa: F401

torch.manual_seed(1)  # mnist_forward_forward seeds nothing
