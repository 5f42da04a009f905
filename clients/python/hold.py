"""Holds a GPU by the lock that all programs of a machine share: docs/standard.md, version 1."""

import contextlib
import fcntl
import os
import re
import stat

SAFELY = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
READINGS = 5  # of /proc/locks: while others unlock, the kernel may leave out a lock in one


class NoLockFile(Exception):
    """The machine has no lock file for this GPU. Only an administrator makes one."""


def directory() -> str:
    return os.environ.get("BERTH_DIR") or ("/run/berth" if os.path.isdir("/run/berth") else "/tmp/berth")


def alive(paths) -> int:
    """How many of these tickets a process has. The kernel knows; nothing is opened."""
    inodes = set()
    for path in paths:
        with contextlib.suppress(FileNotFoundError):  # it has ended
            file = os.lstat(path)
            if stat.S_ISREG(file.st_mode) and not file.st_mode & 0o022:  # else it is nobody's ticket
                inodes.add(file.st_ino)
    if not inodes:
        return 0
    locked = set()
    for _ in range(READINGS):
        with contextlib.suppress(OSError), open("/proc/locks") as locks:
            locked.update(map(int, re.findall(r"^\d+: OFDLCK +\S+ +WRITE .*:(\d+) ", locks.read(), re.M)))
        if inodes <= locked:
            break
    return len(inodes.intersection(locked))


def has_by_lease(uuid: str) -> bool:
    """Whether this process runs inside a lease that has the GPU."""
    folder, tickets = directory(), []
    for lease in os.environ.get("BERTH_LEASE", "").split("/"):
        tickets.append(f"{folder}/leases/{lease}")
        folder += f"/inside/{lease}"
    try:
        with open(os.open(tickets[-1], os.O_RDONLY | SAFELY), "rb") as ticket:
            is_named = f"device={uuid}".encode() in ticket.read(4096).split(b"\n")
        return is_named and alive(tickets) == len(tickets)
    except OSError:
        return False


def try_hold(uuid: str, share: bool = False):
    """The descriptor that holds the GPU, close-on-exec; None: somebody has it, or waits for a GPU."""
    name = "".join(c if c.isascii() and (c.isalnum() or c == "-") else "_" for c in uuid)
    path = f"{directory()}/devices/{name}"
    try:
        with os.scandir(f"{directory()}/queue") as queue:
            if alive(ticket.path for ticket in queue):
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
