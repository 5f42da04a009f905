"""Holds a GPU by the lock that all programs of a machine share: docs/standard.md, version 1."""

import fcntl
import os
import re

SAFELY = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class NoLockFile(Exception):
    """The machine has no lock file for this GPU. Only an administrator makes one."""


def directory() -> str:
    return os.environ.get("BERTH_DIR") or ("/run/berth" if os.path.isdir("/run/berth") else "/tmp/berth")


def is_alive(inodes) -> bool:
    """Whether a process has one of these tickets. The kernel knows; nothing is opened."""
    if not inodes:
        return False
    with open("/proc/locks") as locks, open("/proc/locks") as again:  # the kernel may leave out a lock
        alive = re.findall(r"^\d+: OFDLCK +\S+ +WRITE .*:(\d+) ", locks.read() + again.read(), re.M)
    return not inodes.isdisjoint(map(int, alive))


def has_by_lease(uuid: str) -> bool:
    """Whether this process runs inside a lease that has the GPU."""
    path = f"{directory()}/leases/{os.environ.get('BERTH_LEASE', '')}"
    try:
        with open(os.open(path, os.O_RDONLY | SAFELY)) as ticket:
            return f"device={uuid}" in ticket.read(4096).split("\n") and is_alive(
                {os.fstat(ticket.fileno()).st_ino}
            )
    except OSError:
        return False


def try_hold(uuid: str, share: bool = False):
    """The descriptor that holds the GPU, close-on-exec; None: somebody has it, or waits for a GPU."""
    name = "".join(c if c.isascii() and (c.isalnum() or c == "-") else "_" for c in uuid)
    path = f"{directory()}/devices/{name}"
    try:
        with os.scandir(f"{directory()}/queue") as queue:
            if is_alive({ticket.inode() for ticket in queue}):
                return None
        file = os.open(path, os.O_RDWR | SAFELY)
    except OSError as error:
        raise NoLockFile(
            f"{path}: {error.strerror}; an administrator can make it: sudo berth init"
        ) from error
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if share else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        if os.path.isfile(path) and os.path.samestat(os.lstat(path), os.fstat(file)):
            return file
    except OSError:
        pass
    os.close(file)
    return None
