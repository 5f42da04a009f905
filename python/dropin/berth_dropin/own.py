"""What is this program's own: its processes, and the leases that it or a process above it has.

The leases themselves say who holds them, so nothing has to be handed down: an environment could not be, since the
server of multiprocessing's forkserver keeps that of its own beginning."""

from __future__ import annotations

import os
from typing import NamedTuple

import berth


def _parent(pid: int) -> int:
    """0 where it cannot be told."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            # The name, in brackets, may hold anything; the state and the parent come after it.
            return int(file.read().rpartition(")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def ancestors(pid: int) -> list[int]:
    """The nearest first."""
    found: list[int] = []
    pid = _parent(pid)
    while pid > 0 and pid not in found:
        found.append(pid)
        pid = _parent(pid)
    return found


def is_own(pid: int) -> bool:
    """Whether it is this process or descends from it; inside of a lease also whether this one descends from it. To
    its own request nobody is an outsider, as Berth itself judges."""
    me = os.getpid()
    if pid == me or me in ancestors(pid):
        return True
    return bool(os.environ.get("BERTH_LEASE")) and pid in ancestors(me)


class Held(NamedTuple):
    lease: str
    pid: int
    note: str
    uuids: list[str]


def leases(verdicts=None) -> list[Held]:
    """Those of this process and of the processes above it, the nearest first."""
    found: dict[str, Held] = {}
    for verdict in berth.why(mask=False) if verdicts is None else verdicts:
        for culprit in verdict.culprits:
            if culprit.lease is not None:
                held = found.setdefault(culprit.lease, Held(culprit.lease, culprit.pid, culprit.note, []))
                held.uuids.append(verdict.device.uuid)
    if not found:
        return []
    above = [os.getpid(), *ancestors(os.getpid())]
    return sorted(
        (held for held in found.values() if held.pid in above), key=lambda held: above.index(held.pid)
    )
