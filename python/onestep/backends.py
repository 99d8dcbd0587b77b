"""What a program asks of torch.backends: switches without effect, and that there is none of them."""


class _Backend:
    def __init__(self, **values):
        self.__dict__.update(values)

    def is_available(self) -> bool:
        return False

    def is_built(self) -> bool:
        return False


cuda = _Backend(matmul=_Backend(allow_tf32=False))
cudnn = _Backend(allow_tf32=False, benchmark=False, deterministic=True, enabled=False)
mps = _Backend()
mkldnn = _Backend(enabled=False)
mkl = _Backend()
openmp = _Backend()
