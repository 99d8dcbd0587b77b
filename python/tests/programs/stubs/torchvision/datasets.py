"""Generated images of ten classes: a pattern for each, and noise."""
import numpy as np
from torch.utils.data import Dataset


class MNIST(Dataset):
    def __init__(self, root, train=True, transform=None, target_transform=None, download=False):
        draws = np.random.RandomState(1 if train else 2)
        count = 2560 if train else 256
        patterns = np.random.RandomState(0).rand(10, 7, 7).repeat(4, 1).repeat(4, 2)
        self.targets = draws.randint(0, 10, count)
        self.data = (255 * (0.7 * patterns[self.targets] + 0.3 * draws.rand(count, 28, 28))).astype(np.uint8)
        self.transform = transform

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        image = self.data[i]
        return (self.transform(image) if self.transform else image), int(self.targets[i])
