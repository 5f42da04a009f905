"""The lock of the original: a POSIX record lock on one file for all users, held from the look at the GPUs to the
end of the placeholder. Who holds it sees all that other copies have claimed, and they see what he claims."""

from __future__ import annotations

import contextlib
import fcntl
import os

LOCK_FILENAME = "/tmp/safe_gpu/gpu-lock-magic-RaNdOM-This_Name-NEED_BE-THE_SAME-Across_Users"

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
    descriptor = _made_for_all(LOCK_FILENAME)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX)
        logger.info("lock acquired")
        yield
    finally:
        os.close(descriptor)
        logger.info("lock released")
