"""Jobs that hold and wait, for the tests of what is done with them."""

import fcntl
import os
import pathlib
import re
import subprocess
import termios

from jobs import eventually
from simulated_machine import Machine

# Uses a gigabyte of each visible device named until it is ended.
USES_DEVICES = """
import ctypes, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
context, address, device = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_int()
assert cuda.cuInit(0) == 0
for ordinal in sys.argv[1].split(","):
    assert cuda.cuDeviceGet(ctypes.byref(device), int(ordinal)) == 0
    assert cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device) == 0
    assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(1 << 30)) == 0
print("ready", flush=True)
time.sleep(1000)
"""


def ready(process) -> subprocess.Popen:
    assert process.stdout.readline() == "ready\n", process.stderr.read()
    return process


def at_terminal(theirs: int) -> dict:
    """What makes it the controlling terminal of a process that is started."""

    def begin():
        os.setsid()
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    return {"pass_fds": [theirs], "preexec_fn": begin}


def holder(machine: Machine, *options, then="exec sleep 1000", **more) -> subprocess.Popen:
    """A job that has its lease and runs."""
    return ready(machine.start_berth("run", *options, "--", "bash", "-c", f"echo ready; {then}", **more))


def waiter(machine: Machine, *options, **more) -> subprocess.Popen:
    """A job that has joined the queue."""
    before = len(waiting(machine))
    job = machine.start_berth("run", *options, "--", "bash", "-c", "echo ready; exec sleep 1000", **more)
    eventually(lambda: len(waiting(machine)) > before)
    return job


def tickets(machine: Machine, part: str) -> list[str]:
    folder = machine.leases / part
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def waiting(machine: Machine) -> list[str]:
    return tickets(machine, "queue")


def leases(machine: Machine) -> list[str]:
    return tickets(machine, "leases")


def only_lease(machine: Machine) -> str:
    (lease,) = leases(machine)
    return lease


def plain_words(text: str) -> str:
    """Without what differs from run to run."""
    return re.sub(r"\d+ (s|min)\b", "N s", text)


def alive(pid: int) -> bool:
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] not in "ZX"
