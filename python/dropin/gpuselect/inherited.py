"""The selection of a process from which this one descends.

A program that selects at its top is run again, as far as that, by each worker of a `multiprocessing` pool that is
started by spawn or forkserver. Such a worker shares the GPUs of its parent: it is the same job. Were it to lease some of
its own, then a pool with more workers than the machine has GPUs would start a new worker for each that failed, for ever."""

from __future__ import annotations

import os

from berth_dropin import asking, own


def uuids() -> list[str]:
    """Of what the nearest such ancestor has selected and still holds; [] where there is none."""
    for held in own.leases():
        if held.note == asking.GPUSELECT and held.pid != os.getpid():
            return held.uuids
    return []
