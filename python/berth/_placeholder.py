"""Something on each leased device that those who look at processes instead of leases can see.

A placeholder is a function of CUDA's number of a device in this process. What it returns is kept until the lease
ends; if the function has a method `release`, that is then called with it.
"""

from __future__ import annotations

from . import _berth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Union

    Placeholder = Union[str, Callable[[int], object]]


class _Cuda:
    def __call__(self, ordinal: int) -> _berth.CudaPlaceholder:
        return _berth.CudaPlaceholder.take([ordinal])

    def release(self, block: _berth.CudaPlaceholder) -> None:
        block.release()


def _torch(ordinal: int) -> object:
    import torch

    return torch.zeros(1, device=f"cuda:{ordinal}")


def _tensorflow(ordinal: int) -> object:
    import tensorflow

    with tensorflow.device(f"GPU:{ordinal}"):
        return tensorflow.zeros(1)


class _PyCuda:
    def __call__(self, ordinal: int) -> object:
        import pycuda.driver

        pycuda.driver.init()
        context = pycuda.driver.Device(ordinal).make_context()
        context.pop()
        return context

    def release(self, context: Any) -> None:
        context.detach()


_NAMED: dict[str, Callable[[int], object]] = {
    "cuda": _Cuda(),
    "torch": _torch,
    "tensorflow": _tensorflow,
    "pycuda": _PyCuda(),
}


def named(placeholder: Placeholder) -> Callable[[int], object]:
    if callable(placeholder):
        return placeholder
    if not isinstance(placeholder, str):
        raise TypeError(f"placeholder must be a name or a function of a device's number, not {placeholder!r}")
    if placeholder not in _NAMED:
        raise ValueError(f"placeholder must be a function or one of {', '.join(_NAMED)}, not {placeholder!r}")
    return _NAMED[placeholder]


class Placed:
    """What one function has put on some devices."""

    def __init__(self, function: Callable[[int], object]):
        self._function = function
        self._things: list[object] = []

    def put(self, ordinals: list[int]) -> None:
        for ordinal in ordinals:
            self._things.append(self._function(ordinal))

    def take_away(self) -> None:
        release = getattr(self._function, "release", None)
        while self._things:
            thing = self._things.pop()
            if release is not None:
                release(thing)
