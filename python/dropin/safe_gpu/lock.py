"""The lock of the original: a POSIX record lock on one file for all users, held from the look at the GPUs to the
end of the placeholder. Who holds it sees all that other copies have claimed, and they see what he claims.

Where this program has a lease, Berth may keep the same lock for it until it uses its GPUs. Berth's lock is shared, so a
shared one does not wait for it, and keeps the originals away all the same."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import time
from typing import Optional

from berth_dropin import own, safe_gpu_files

# Everybody may make the file, and everybody must be able to open it for writing. The directory is
# not sticky: in a sticky one the kernel keeps the originals of other users from opening what is
# there already.
_DIRECTORY_MODE = 0o777
_FILE_MODE = 0o666
_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
# The kernel's struct flock.
_RECORD = "hhqqi4x"
# A start of CUDA takes a few seconds. Whoever waits for longer wants to know for whom.
_SILENT_S = 5.0
_TRY_AGAIN_S = 0.02
# Bytes. A process may say that it has gigabytes of arguments.
_MOST_OF_COMMAND = 200


def _made_for_all(path: str) -> int:
    """Opens the file; makes what is missing of it and its directory, whatever the umask."""
    directory = os.path.dirname(path)
    os.makedirs(os.path.dirname(directory), exist_ok=True)
    try:
        os.mkdir(directory)
        os.chmod(directory, _DIRECTORY_MODE)
    except FileExistsError:
        pass
    try:
        descriptor = os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, _FILE_MODE)
    except FileExistsError:
        return os.open(path, _FLAGS)
    os.fchmod(descriptor, _FILE_MODE)
    return descriptor


def _opened(path: str, named: str) -> Optional[int]:
    """None for a usual file that cannot be had, or is not there, where the program has named another one."""
    is_usual = named in (safe_gpu_files.LOCK_FILENAME, safe_gpu_files.EARLIER_LOCK_FILENAME)
    if path == named or is_usual:
        return _made_for_all(path)
    with contextlib.suppress(OSError):
        return os.open(path, _FLAGS)
    return None


def _holder(descriptor: int) -> str:
    """The process that has the lock, as far as the kernel tells: a program of Berth holds it without one."""
    asked = struct.pack(_RECORD, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    pid = struct.unpack(_RECORD, fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))[4]
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read(_MOST_OF_COMMAND).replace(b"\0", b" ").decode(errors="replace").strip()
        return f"pid {pid} of uid {os.stat(f'/proc/{pid}').st_uid} ({words if words.isprintable() else '?'})"
    except OSError:
        return f"pid {pid}" if pid > 0 else "another process"


def _lock(descriptor: int, how: int, path: str, logger) -> None:
    """Waits for it, as the original does, and says for whom."""
    end = time.monotonic() + _SILENT_S
    while time.monotonic() < end:
        with contextlib.suppress(BlockingIOError):
            return fcntl.lockf(descriptor, how | fcntl.LOCK_NB)
        time.sleep(_TRY_AGAIN_S)
    logger.warning(f"{_holder(descriptor)} has {path} locked: waiting for it")
    return fcntl.lockf(descriptor, how)


def _taken(descriptor: int, path: str, logger) -> None:
    if os.environ.get("BERTH_LEASE"):
        # What is asked for here is of the lease around, which Berth keeps the originals from.
        with contextlib.suppress(BlockingIOError):
            fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    else:
        _lock(descriptor, fcntl.LOCK_SH if own.leases() else fcntl.LOCK_EX, path, logger)


@contextlib.contextmanager
def held(named: str, logger):
    """The lock on the file that the program names, and on the usual ones."""
    logger.info("acquiring lock")
    locked = False
    try:
        with contextlib.ExitStack() as stack:
            for path in safe_gpu_files.files():
                descriptor = _opened(path, os.fspath(named))
                if descriptor is None:
                    continue
                stack.callback(os.close, descriptor)
                _taken(descriptor, path, logger)
            stack.enter_context(safe_gpu_files.held_here())
            locked = True
            logger.info("lock acquired")
            yield
    finally:
        if locked:
            logger.info("lock released")
