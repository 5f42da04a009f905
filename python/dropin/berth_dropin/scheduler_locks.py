"""The lock files by which copies of the original gpu_scheduler exclude each other, taken in its own way: flock on one
file a GPU. The original removes a file after it has let go of it, so a lock counts only while the name still leads to
the file that was locked. We never remove one.

Its GPUs may be idle while it holds them, and then nothing but the lock tells of it. So all drop-ins pass over what is
locked; and those that lease hold the locks as well. Where one of the two folders is there, they make what is missing,
as the original does: it may come later. The drop-in of gpu_scheduler makes the folders, too."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import stat
import time
from typing import Optional

from berth_dropin import cuda_order, own

logger = logging.getLogger("gpu_scheduler")

_TRIES = 20  # each is lost to an original that let go at this very moment
_SETTLING_S = 0.02  # some thousand times what lies between its two system calls
DIRECTORY = os.path.expanduser("~/.gpu_locks")
NEWER_DIRECTORY = "/tmp/gpu_locks"


def _directories(lock_dir: str) -> list[str]:
    """That of the document, which a program may have changed, and that of newer versions."""
    return list(dict.fromkeys([lock_dir, NEWER_DIRECTORY]))


def path_in(directory: str, gpu_id: int) -> str:
    return os.path.join(directory, f"gpu_{gpu_id}.lock")


def _make_directory(directory: str) -> None:
    """For all users. Not sticky: in a sticky one the kernel keeps the originals of other users from opening what
    is there already."""
    try:
        os.mkdir(directory)
    except OSError:
        return
    if directory == NEWER_DIRECTORY:
        os.chmod(directory, 0o777)


def _open(path: str) -> int:
    plain = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        made = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | plain, 0o666)
    except FileExistsError:
        return os.open(path, os.O_RDONLY | plain)
    os.fchmod(made, 0o666)
    return made


def _is_there(descriptor: int, path: str) -> bool:
    try:
        named = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    held = os.fstat(descriptor)
    return stat.S_ISREG(held.st_mode) and (held.st_dev, held.st_ino) == (named.st_dev, named.st_ino)


def _lock(path: str) -> Optional[int]:
    """A descriptor that holds the lock; None when another holds it. OSError when the file cannot be had."""
    for _ in range(_TRIES):
        try:
            descriptor = _open(path)
        except FileNotFoundError:
            if not os.path.isdir(os.path.dirname(path)):
                raise
            continue
        if _flock(descriptor, fcntl.LOCK_EX) or _flock(descriptor, fcntl.LOCK_SH):
            return descriptor
        os.close(descriptor)
        return None
    return None


def _flock(descriptor: int, how: int) -> bool:
    """Shared is how Berth itself has it, for the lease that we are about to use or are inside of, where the site file
    says that originals are still in use. An original can have its own beside neither."""
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def release(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _take_once(gpu_id: int, lock_dir: str) -> Optional[dict[int, str]]:
    taken: dict[int, str] = {}
    for directory in _directories(lock_dir):
        _make_directory(directory)
        path = path_in(directory, gpu_id)
        try:
            descriptor = _lock(path)
        except OSError as error:
            if not os.path.isdir(directory):
                continue  # neither can an original lock anything there
            # Only the owner of such a directory could lock there: Berth's lease holds without it.
            logger.warning(
                "cannot lock %s: %s; an original of gpu_scheduler is not kept away by it", path, error
            )
            continue
        if descriptor is None:
            release(list(taken))
            return None
        taken[descriptor] = path
    return taken


def take(gpu_id: int, lock_dir: str) -> Optional[list[int]]:
    """The locks of a GPU in all places; None when somebody holds one of them."""
    for _ in range(_TRIES):
        taken = _take_once(gpu_id, lock_dir)
        if taken is None:
            return None
        # An original removes the file a moment after it has let go of it, and then it is ours that
        # it removes.
        time.sleep(_SETTLING_S)
        if all(_is_there(descriptor, path) for descriptor, path in taken.items()):
            return list(taken)
        release(list(taken))
    return None


def takers(gpu_id: int, lock_dir: str) -> set[int]:
    """The processes that took the locks of a GPU, as far as the kernel tells."""
    inodes = set()
    for directory in _directories(lock_dir):
        with contextlib.suppress(OSError):
            inodes.add(str(os.stat(path_in(directory, gpu_id)).st_ino))
    with open("/proc/locks") as lines:
        held = [line.split() for line in lines]
    # "1: FLOCK ADVISORY WRITE 4242 08:01:131 0 EOF"; who only waits has "->" after the number.
    return {int(words[4]) for words in held if words[1] == "FLOCK" and words[5].rpartition(":")[2] in inodes}


def is_held(gpu_id: int, lock_dir: str) -> bool:
    for directory in _directories(lock_dir):
        path = path_in(directory, gpu_id)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
    return False


def is_held_by_others(gpu_id: int, lock_dir: str) -> bool:
    """A program that a selecting one has started is that one's, whose locks are not those of others."""
    if not is_held(gpu_id, lock_dir):
        return False
    above = own.ancestors(os.getpid()) if "BERTH_GPUSELECT" in os.environ else []
    return not any(own.is_own(pid) or pid in above for pid in takers(gpu_id, lock_dir))


# For those that know GPUs by UUID -----------------------------------------------------------------


def in_use() -> bool:
    """Whether there is a directory of such locks, which is where somebody uses gpu_scheduler."""
    return any(os.path.isdir(directory) for directory in _directories(DIRECTORY))


def locked(gpus) -> set[str]:
    """The UUIDs of those that somebody else has locked: not this program."""
    # Seldom is any: only then is CUDA asked which GPU bears which number.
    ids = [gpu_id for gpu_id in range(len(gpus)) if is_held_by_others(gpu_id, DIRECTORY)]
    numbers = cuda_order.unmasked_ordinals(gpus) if ids else {}
    return {numbers[gpu_id].uuid for gpu_id in ids if gpu_id in numbers}


def hold(uuids, gpus) -> Optional[list[int]]:
    """The locks of these of `gpus`, until `release`; None when somebody else has one."""
    taken: list[int] = []
    for gpu_id, gpu in cuda_order.unmasked_ordinals(gpus).items():
        if gpu.uuid not in uuids:
            continue
        locks = take(gpu_id, DIRECTORY)
        if locks is None:
            release(taken)
            return None
        taken += locks
    return taken
