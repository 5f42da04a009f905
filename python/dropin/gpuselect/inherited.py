"""The selection of a process from which this one descends.

A program that selects at its top is run again, as far as that, by each worker of a `multiprocessing` pool that is
started by spawn or forkserver. Such a worker shares the GPUs of its parent: it is the same job. Were it to lease some of
its own, then a pool with more workers than the machine has GPUs would start a new worker for each that failed, for ever.

The lease itself says who holds it, so nothing has to be handed down: an environment could not be, since the server
of forkserver keeps that of its own beginning."""

from __future__ import annotations

import os

import berth

NOTE = "gpuselect"


def _parent(pid: int) -> int:
    """0 where it cannot be told."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            # The name, in brackets, may hold anything; the state and the parent come after it.
            return int(file.read().rpartition(")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def _ancestors() -> list[int]:
    """The nearest first."""
    found: list[int] = []
    pid = os.getppid()
    while pid > 0 and pid not in found:
        found.append(pid)
        pid = _parent(pid)
    return found


def uuids() -> list[str]:
    """Of what the nearest such ancestor has selected and still holds; [] where there is none."""
    held: dict[int, list[str]] = {}
    for verdict in berth.why(mask=False):
        for culprit in verdict.culprits:
            if culprit.lease is not None and culprit.note == NOTE:
                held.setdefault(culprit.pid, []).append(verdict.device.uuid)
    if not held:
        return []
    return next((held[pid] for pid in _ancestors() if pid in held), [])
