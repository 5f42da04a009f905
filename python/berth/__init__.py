"""Picks, leases and explains the GPUs of this machine."""

from __future__ import annotations

from . import _berth, _request
from ._berth import (
    Choice,
    Culprit,
    Device,
    Health,
    Memory,
    Mig,
    Process,
    Snapshot,
    Ticket,
    Verdict,
    Waiting,
    __version__,
)
from ._errors import Error, Impossible, NoDriver, NotNow, TimedOut, Usage
from ._lease import Lease, lease, on_gpu

__all__ = [
    "Choice",
    "Culprit",
    "Device",
    "Error",
    "Health",
    "Impossible",
    "Lease",
    "Memory",
    "Mig",
    "NoDriver",
    "NotNow",
    "Process",
    "Snapshot",
    "Ticket",
    "TimedOut",
    "Usage",
    "Verdict",
    "Waiting",
    "__version__",
    "devices",
    "lease",
    "on_gpu",
    "pick",
    "snapshot",
    "why",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def snapshot() -> Snapshot:
    """All devices of the machine now."""
    return _berth.snapshot()


def devices() -> tuple[Device, ...]:
    """The devices of `snapshot()`."""
    return _berth.snapshot().devices


def pick(
    n: int = 1,
    *,
    where: _request.Where | None = None,
    memory: _request.Size | None = None,
    shared: bool = False,
    order: _request.Order | None = None,
    mask: bool = True,
    **filters: Any,
) -> Choice:
    """The n devices that the request would get now. Holds nothing."""
    made = _request.request(n, where, order, {"memory": memory, "shared": shared, **filters})
    return _berth.pick(made, bool(mask))


def why(
    n: int = 1,
    *,
    where: _request.Where | None = None,
    memory: _request.Size | None = None,
    shared: bool = False,
    order: _request.Order | None = None,
    mask: bool = True,
    **filters: Any,
) -> tuple[Verdict, ...]:
    """For every device whether the request would get it, and if not, why."""
    made = _request.request(n, where, order, {"memory": memory, "shared": shared, **filters})
    return _berth.why(made, bool(mask))
