"""Tries what one user might do to another's ticket, and prints what succeeded, one word a line.

attacker.py DIR PART ID UUID PID     PART is queue or leases; PID is whose ticket it is"""

import fcntl
import os
import signal
import struct
import sys

DIR, PART, ID, UUID, PID = sys.argv[1:]
TICKET, DEVICE = f"{DIR}/{PART}/{ID}", f"{DIR}/devices/{UUID}"
OTHER = "leases" if PART == "queue" else "queue"


def lock(how: int, kind: int):
    with open(TICKET, "rb") as file:
        fcntl.fcntl(file, how, struct.pack("hhqqi", kind, os.SEEK_SET, 0, 2, 0))


def make(path: str):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))


ATTEMPTS = {
    "unlink": lambda: os.unlink(TICKET),
    "move": lambda: os.rename(TICKET, f"{DIR}/{OTHER}/{ID}"),
    "rename": lambda: os.rename(TICKET, f"{DIR}/{PART}/00000000000000aa"),
    "write": lambda: os.open(TICKET, os.O_WRONLY),
    "append": lambda: os.open(TICKET, os.O_WRONLY | os.O_APPEND),
    "truncate": lambda: os.truncate(TICKET, 0),
    "make-anew": lambda: make(TICKET),
    "chmod": lambda: os.chmod(TICKET, 0o666),
    "chown": lambda: os.chown(TICKET, os.getuid(), -1),
    "utime": lambda: os.utime(TICKET, (0, 0)),
    "write-lock": lambda: lock(fcntl.F_OFD_SETLK, fcntl.F_WRLCK),
    "file-lease": lambda: fcntl.fcntl(os.open(TICKET, os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK),
    "kill": lambda: os.kill(int(PID), signal.SIGKILL),
    "stop": lambda: os.kill(int(PID), signal.SIGSTOP),
    "take-descriptor": lambda: os.open(f"/proc/{PID}/fd/100", os.O_RDWR),
    "unlink-device": lambda: os.unlink(DEVICE),
    "rename-device": lambda: os.rename(DEVICE, f"{DEVICE}-old"),
    "chmod-device": lambda: os.chmod(DEVICE, 0),
    "lease-device": lambda: fcntl.fcntl(os.open(DEVICE, os.O_RDWR), fcntl.F_SETLEASE, fcntl.F_WRLCK),
    "lock-device": lambda: fcntl.flock(os.open(DEVICE, os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB),
    "rename-part": lambda: os.rename(f"{DIR}/{PART}", f"{DIR}/{PART}-old"),
    "chmod-part": lambda: os.chmod(f"{DIR}/{PART}", 0o777),
    "rename-directory": lambda: os.rename(DIR, f"{DIR}-old"),
}

for name, attempt in ATTEMPTS.items():
    try:
        attempt()
    except OSError:
        continue
    print(name)
