"""The lock of the original: a POSIX record lock on one file for all users, held from the look at the GPUs to the
end of the placeholder. Who holds it sees all that other copies have claimed, and they see what he claims."""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import Optional

from berth_dropin import safe_gpu_files

# Everybody may make the file, and everybody must be able to open it for writing. The directory is
# not sticky: in a sticky one the kernel keeps the originals of other users from opening what is
# there already.
_DIRECTORY_MODE = 0o777
_FILE_MODE = 0o666
_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW


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
                fcntl.lockf(descriptor, fcntl.LOCK_EX)
            stack.enter_context(safe_gpu_files.held_here())
            locked = True
            logger.info("lock acquired")
            yield
    finally:
        if locked:
            logger.info("lock released")
