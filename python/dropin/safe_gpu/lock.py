"""The lock of the original: a POSIX record lock on one file for all users, held from the look at the GPUs to the
end of the placeholder. Who holds it sees all that other copies have claimed, and they see what he claims.

The file moved with version 2.0.0, and an older copy does not know of it: ours holds the lock on both."""

from __future__ import annotations

import contextlib
import fcntl
import os

LOCK_FILENAME = "/tmp/safe_gpu/gpu-lock-magic-RaNdOM-This_Name-NEED_BE-THE_SAME-Across_Users"
EARLIER_LOCK_FILENAME = "/tmp/gpu-lock-magic-RaNdOM-This_Name-NEED_BE-THE_SAME-Across_Users"

# Everybody may make the file, and everybody must be able to open it for writing. The directory is not sticky: in
# a sticky one the kernel keeps the originals of other users from opening what is there already.
_DIRECTORY_MODE = 0o777
_FILE_MODE = 0o666


def _made_for_all(path: str) -> int:
    """Opens the file; makes what is missing of it and its directory, whatever the umask."""
    directory = os.path.dirname(path)
    try:
        os.mkdir(directory)
        os.chmod(directory, _DIRECTORY_MODE)
    except FileExistsError:
        pass
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, _FILE_MODE)
    except FileExistsError:
        return os.open(path, flags)
    os.fchmod(descriptor, _FILE_MODE)
    return descriptor


@contextlib.contextmanager
def held(logger):
    logger.info("acquiring lock")
    locked = False
    try:
        with contextlib.ExitStack() as descriptors:
            # Always in this order, so that no two of ours wait for each other.
            for path in (LOCK_FILENAME, EARLIER_LOCK_FILENAME):
                descriptor = _made_for_all(path)
                descriptors.callback(os.close, descriptor)
                fcntl.lockf(descriptor, fcntl.LOCK_EX)
            locked = True
            logger.info("lock acquired")
            yield
    finally:
        if locked:
            logger.info("lock released")
