"""Where the originals of safe_gpu have their lock, and whether this process holds it.

The file moved with version 2.0.0, and an older copy does not know of it: ours lock both. A program may also have
named another one, as `safe_gpu.LOCK_FILENAME`."""

from __future__ import annotations

import contextlib
import os
import sys

LOCK_FILENAME = "/tmp/safe_gpu/gpu-lock-magic-RaNdOM-This_Name-NEED_BE-THE_SAME-Across_Users"
EARLIER_LOCK_FILENAME = "/tmp/gpu-lock-magic-RaNdOM-This_Name-NEED_BE-THE_SAME-Across_Users"

# A record lock is the process's, not the thread's, and a fork does not have it.
_holders: list[int] = []


def files() -> list[str]:
    """Always in this order, so that no two of ours wait for each other."""
    named = getattr(sys.modules.get("safe_gpu.safe_gpu"), "LOCK_FILENAME", LOCK_FILENAME)
    return list(dict.fromkeys([os.fspath(named), LOCK_FILENAME, EARLIER_LOCK_FILENAME]))


@contextlib.contextmanager
def held_here():
    _holders.append(os.getpid())
    try:
        yield
    finally:
        _holders.pop()


def variable() -> str:
    """For Berth: which files a lease of ours shall lock while nobody uses it yet; none while this process has them."""
    return "BERTH_SAFE_GPU_LOCKS=" + ("" if os.getpid() in _holders else ":".join(files()))
