"""Leases beside an original gpu_scheduler: they pass over what it has locked, and it passes over them."""

from __future__ import annotations

from typing import Any

import berth

from berth_dropin import asking, cards, scheduler_locks
from berth_dropin.asking import Granted

LOCKED = "locked by an original gpu_scheduler"


def _locked() -> set:
    """Nobody asks the driver in vain where nobody uses gpu_scheduler."""
    return scheduler_locks.locked(cards.usable()) if scheduler_locks.in_use() else set()


def unlocked(uuids: list[str]) -> list[str]:
    locked = _locked()
    return [uuid for uuid in uuids if uuid not in locked]


def lease(count: int, uuids: list[str], **asked: Any) -> Granted:
    """Of `count` of the boards `uuids`. Whoever is welcome to share a board takes no lock of it: it has only one.

    Raises as berth.lease; its NotNow also where an original has locked too many of them."""
    if not scheduler_locks.in_use():
        return asking.lease(count, uuids, **asked)
    gpus = cards.usable()
    locked = scheduler_locks.locked(gpus)
    while True:
        free = [uuid for uuid in uuids if uuid not in locked]
        if len(free) < count:
            raise berth.NotNow(
                f"{count} asked for, the rest are {LOCKED}", berth.why(devices=uuids, mask=False)
            )
        granted = asking.lease(count, free, **asked)
        # What is a part of a lease of ours has that one's locks.
        if asked.get("shared") or granted.around is not None:
            return granted
        try:
            locks = scheduler_locks.hold(granted.held.uuids, gpus)
        except BaseException:
            granted.release()
            raise
        if locks is not None:
            granted.locks = locks
            return granted
        # An original came between the look and the lease.
        granted.release()
        locked = locked | scheduler_locks.locked(gpus)


def reasons(verdicts) -> list[tuple[berth.Device, str]]:
    """Each device, and why it cannot be had; "" where it can."""
    locked = _locked()
    return [
        (verdict.device, LOCKED if _only_locked(verdict, locked) else verdict.reason) for verdict in verdicts
    ]


def _only_locked(verdict, locked: set) -> bool:
    """What is locked was not even asked for."""
    return verdict.device.uuid in locked and (verdict.free or verdict.clause == "static_filters")
