"""The selection of a process whose worker this one is.

A program that selects at its top is run again, as far as that, by each worker of a `multiprocessing` pool that is
started by spawn or forkserver. Such a worker shares the GPUs of its parent: it is the same job. Were it to lease some of
its own, then a pool with more workers than the machine has GPUs would start a new worker for each that failed, for ever.
A program that the parent starts is a job of its own, and selects for itself."""

from __future__ import annotations

import os
import sys

from berth_dropin import asking, own

# "PID UUID…". An earlier server of forkserver does not have it, as it keeps the environment of its
# own beginning.
_VARIABLE = "BERTH_GPUSELECT"


def hand_down(uuids: list[str]) -> None:
    """For the workers of this process: what it has, where some of that is without a lease, of which Berth would tell."""
    if uuids:
        os.environ[_VARIABLE] = " ".join([str(os.getpid()), *uuids])
    else:
        os.environ.pop(_VARIABLE, None)


def is_worker() -> bool:
    """Whether this process runs functions of the program that has started it."""
    process = sys.modules.get("multiprocessing.process")
    if process is None:
        return False
    # A worker that is just reading its program, by spawn or forkserver, has no parent_process yet.
    return process.parent_process() is not None or getattr(process.current_process(), "_inheriting", False)


def uuids() -> list[str]:
    """Of what the nearest such ancestor has selected and still holds; [] where there is none."""
    pid, *handed_down = os.environ.get(_VARIABLE, "").split() or [""]
    if pid in map(str, own.ancestors(os.getpid())):
        return handed_down
    for held in own.leases():
        if held.note == asking.GPUSELECT and held.pid != os.getpid():
            return held.uuids
    return []
