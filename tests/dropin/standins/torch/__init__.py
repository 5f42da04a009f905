"""As much of PyTorch as the originals and their documents touch, on the simulated libcuda.

A tensor is a block of device memory: it shows in the driver's process list, as a real one does."""

from torch import cuda

__version__ = "2.5.1"


class device:  # noqa: N801
    def __init__(self, name):
        kind, _, index = str(name).partition(":")
        self.type, self.index = kind, int(index) if index else None

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self):
        return f"device(type={self.type!r}" + (")" if self.index is None else f", index={self.index})")


class Tensor:
    def __init__(self, where: device):
        self.device = where
        self.block = None
        if where.type == "cuda":
            self.block = cuda._allocate(cuda.current_device() if where.index is None else where.index, 4)

    def to(self, where) -> "Tensor":
        return Tensor(device(where))


def zeros(*shape, device="cpu") -> Tensor:  # noqa: ARG001
    return Tensor(globals()["device"](device))


def tensor(data, device="cpu") -> Tensor:  # noqa: ARG001
    return zeros(device=device)
