"""What a lease sets in os.environ, and how it was before."""

from __future__ import annotations

import os
from contextvars import ContextVar

from . import _berth
from ._errors import Error, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    Variables = dict[str, Optional[str]]


class Layer:
    """One lease's values, on top of those of the leases around it."""

    def __init__(self, lease_id: str, values: Variables):
        self.lease_id = lease_id
        self.values = values
        self.before: Variables = {}


# A process has one environment: these lie in it upon one another, the innermost last.
_layers: list[Layer] = []
# Those that this thread, or this task of asyncio, is inside of.
_inside: ContextVar[tuple[Layer, ...]] = ContextVar("berth_layers", default=())


def _put(values: Variables) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def check() -> None:
    """Raises when what CUDA_VISIBLE_DEVICES says can have no effect, or would be another's."""
    if _berth.cuda_is_up():
        raise Error(
            "CUDA is up in this process already, and no longer looks at CUDA_VISIBLE_DEVICES: take the lease "
            "before the first use of CUDA, or use lease(set_environ=False) with lease.torch_device()"
        )
    if strangers := [layer.lease_id for layer in _layers if layer not in _inside.get()]:
        raise Usage(
            f"another thread or task of this process is inside the lease {strangers[-1]}, and a process has one "
            "CUDA_VISIBLE_DEVICES: give set_environ=False to both, and use lease.torch_device()"
        )


def enter(lease_id: str, values: Variables) -> Layer:
    layer = Layer(lease_id, values)
    layer.before = {name: os.environ.get(name) for name in values}
    _layers.append(layer)
    _inside.set((*_inside.get(), layer))
    _put(dict(values))
    return layer


def leave(layer: Layer) -> None:
    """Takes the layer out, wherever it lies."""
    at = _layers.index(layer)
    if at + 1 < len(_layers):
        _layers[at + 1].before = layer.before
    else:
        _put(layer.before)
    del _layers[at]
    _inside.set(tuple(each for each in _inside.get() if each is not layer))
