"""How the drop-ins ask Berth for a lease.

What the program has already is no obstacle to it: a request that the leases of its other tools can serve is for a part
of these. And where an original of safe_gpu is in use, its lock is held until CUDA starts on what was leased."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from typing import Any, Optional

import berth
from berth import _environment

from berth_dropin import own, safe_gpu_files, scheduler_locks

GPUSELECT = "gpuselect"
GPUSELECT_COMMAND = "gpuselect --"
SAFE_GPU = "safe_gpu"
SCHEDULER = "gpu_scheduler"
SCHEDULER_DEBUG = "gpu_scheduler debug"
# These end with a block, and what is for the rest of the program cannot be a part of them. Another
# block, in another thread say, is for other GPUs.
_OF_A_BLOCK = (SCHEDULER, SCHEDULER_DEBUG)


# What is said of a wait for the lock of an original safe_gpu begins so, with who has it.
WAITS_FOR_SAFE_GPU = "the lock of safe_gpu"


_changing = threading.RLock()
_here: dict[str, Granted] = {}


class Granted:
    """A lease, and the locks of an original gpu_scheduler that go with it."""

    def __init__(self, held: berth.Lease, around: Optional[own.Held]):
        self.held = held
        self.id = held.id
        self.around = around  # the lease of this program of which it is a part
        self.locks: list[int] = []
        self._parts = 0
        self._is_over = False
        with _changing:
            _here[self.id] = self
            if outer := self._outer():
                outer._parts += 1

    def _outer(self) -> Optional[Granted]:
        return _here.get(self.around.lease) if self.around else None

    def release(self) -> None:
        """Ends it. One of which others of this program are a part ends with the last of these."""
        with _changing:
            if self._is_over:
                return
            self._is_over = True
            over: Optional[Granted] = self
            while over is not None and over._is_over and not over._parts:
                scheduler_locks.release(over.locks)
                over.locks.clear()
                over.held.release()
                del _here[over.id]
                if outer := over._outer():
                    outer._parts -= 1
                over = outer


def _around(count: int, uuids: list[str], note: str) -> Optional[own.Held]:
    """A lease of this program that can serve the request. A second call of the same tool gets other GPUs, as with the
    originals."""
    for held in own.leases():
        if held.note == note or held.note in _OF_A_BLOCK:
            continue
        mine = [uuid for uuid in uuids if uuid in held.uuids]
        # Of a process above this one only where all that is to choose among is its: where its mask
        # came down.
        if len(mine) >= count and (held.pid == os.getpid() or len(mine) == len(uuids)):
            return held
    return None


def lease(count: int, uuids: list[str], *, note: str, beside: tuple = (), **asked: Any) -> Granted:
    """Of `count` of the boards `uuids`. Raises as berth.lease. `beside`: ids of leases that this thread keeps while it
    waits."""
    around = _around(count, uuids, note)
    if around is None:
        return _asked(count, uuids, None, note=note, beside=beside, **asked)
    mine = [uuid for uuid in uuids if uuid in around.uuids]
    if len(mine) < len(uuids):
        # An original, which knows nothing of the other tool, takes what is idle.
        with contextlib.suppress(berth.NotNow):
            return _asked(count, uuids, None, note=note, beside=beside, **{**asked, "wait": 0})
    return _asked(count, mine, around, note=note, beside=(), **asked)


def _asked(count, uuids, around: Optional[own.Held], *, beside: tuple, **asked: Any) -> Granted:
    outer = [os.environ.get("BERTH_LEASE"), around and around.lease]
    path = "/".join(lease for lease in outer if lease)
    variables = [safe_gpu_files.variable(), *([f"BERTH_LEASE={path}"] if path else [])]
    if asked.get("wait") == 0:
        asked.setdefault("on_wait", _Report(asked["note"]))
    with _environment.adding(variables, list(beside)):
        held = berth.lease(count, devices=uuids, mask=False, set_environ=False, **asked)
    return Granted(held, around)


class _Report:
    """Says, once, who has the lock of an original safe_gpu. All else of a wait is the caller's to tell."""

    def __init__(self, note: str):
        self._logger = logging.getLogger(note)
        self._said = ""

    def __call__(self, waiting: berth.Standing) -> None:
        if WAITS_FOR_SAFE_GPU in waiting.reason and waiting.reason != self._said:
            self._said = waiting.reason
            self._logger.warning(waiting.reason)
