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


class Group:
    """Leases beside one another, whose devices the process sees together, in the order in which they came."""

    def __init__(self, mask: str):
        self.mask = mask
        self.layers: list[Layer] = []
        # How the runtime counts: a device keeps its number for as long as CUDA cannot look again.
        self._order: list[str] = []
        self.has_changed = False

    def add(self, layer: Layer) -> None:
        self.layers.append(layer)
        self._order += [uuid for uuid in layer.devices if uuid not in self._order]

    def remove(self, layer: Layer) -> None:
        self.layers.remove(layer)
        self.has_changed = True
        if not _berth.cuda_is_up():
            self._order = [uuid for uuid in self._order if self._has(uuid)]

    def visible(self) -> str:
        """The value of the mask."""
        names = {uuid: name for layer in self.layers for uuid, name in layer.devices.items()}
        by_index = all(name.isdigit() for name in names.values())
        shown = [uuid for uuid in self._order if uuid in names]
        # Numbers and names together mean nothing to a runtime.
        return ",".join(uuid if names[uuid].isdigit() and not by_index else names[uuid] for uuid in shown)

    def number(self, uuid: str) -> int:
        return self._order.index(uuid)

    def _has(self, uuid: str) -> bool:
        return any(uuid in layer.devices for layer in self.layers)


class Layer:
    """One lease's values, on top of those of the leases before it."""

    def __init__(self, lease_id: str, mask: str, devices: dict[str, str], values: Variables):
        self.lease_id = lease_id
        self.mask = mask
        self.devices = devices  # UUIDs, and how the mask names them
        self.values = values
        self.before: Variables = {}
        self.group = Group(mask)
        self.pid = os.getpid()
        # Entered by `with`: what is asked for within is for a part of it.
        self.is_block = False


# Its numbers count in the mask of one lease. Where the process sees the devices of two, they would
# be others.
_LIMIT_BY_NUMBER = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"

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


def _beside() -> list[Layer]:
    """The leases that this thread or task has taken since the `with` that it is in, the last first."""
    found = []
    for layer in reversed(_inside.get()):
        if layer.is_block or layer.pid != os.getpid():
            break
        found.append(layer)
    return found


def surroundings() -> tuple[list[str], list[str]]:
    """What a request of this thread finds in place of variables, and the leases that it is beside.

    "NAME=value", or "NAME" for one that is not there.
    """
    beside = _beside()
    before: Variables = {}
    for layer in beside:
        before.update(layer.before)
    variables = [name if value is None else f"{name}={value}" for name, value in before.items()]
    return variables, [layer.lease_id for layer in beside]


# What the drop-ins add to the surroundings of a request, which is no argument of `lease`.
_added: ContextVar[tuple[list[str], list[str]]] = ContextVar("berth_added", default=([], []))


class adding:
    """Holds within a `with` block. It is a class, since contextlib would be loaded for this alone."""

    def __init__(self, variables: list[str], beside: list[str]) -> None:
        self._more = (variables, beside)

    def __enter__(self) -> None:
        self._token = _added.set(self._more)

    def __exit__(self, *_: object) -> None:
        _added.reset(self._token)


def added() -> tuple[list[str], list[str]]:
    """Variables, and leases that are kept while the request waits."""
    return _added.get()


def enter(layer: Layer) -> None:
    """May be left from the middle of it."""
    if (beside := _beside()) and beside[0].mask == layer.mask:
        layer.group = beside[0].group
        layer.values[_LIMIT_BY_NUMBER] = None
    layer.before = {name: os.environ.get(name) for name in layer.values}
    layer.group.add(layer)
    _layers.append(layer)
    _inside.set((*_inside.get(), layer))
    _put({**layer.values, layer.mask: layer.group.visible()})


def leave(layer: Layer) -> None:
    """Takes the layer out, wherever it lies. May be done again after an interruption."""
    if layer in layer.group.layers:
        layer.group.remove(layer)
    _inside.set(tuple(each for each in _inside.get() if each is not layer))
    if layer in _layers:
        at = _layers.index(layer)
        if at + 1 < len(_layers):
            _layers[at + 1].before = layer.before
        else:
            _put(layer.before)
        del _layers[at]
    if _layers and (group := _layers[-1].group).has_changed:
        _put({group.mask: group.visible()})
        group.has_changed = False
