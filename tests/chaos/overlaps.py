"""Who holds which device, as the kernel's locks on the files in leases/ say: two who must not are seen here."""

import collections
import contextlib
import dataclasses
import fcntl
import os
import pathlib
import struct

CARD_GIB = 80


def place_of(folder: pathlib.Path) -> str:
    """For chaos_job. Another run on this machine has another, though its folder may be called the same."""
    return f"{folder.stat().st_ino:x}"


def is_alive(part: pathlib.Path, name: str) -> bool:
    """Whether the owner of this ticket lives, as the kernel says."""
    with contextlib.suppress(OSError), open(os.open(part / name, os.O_RDONLY | os.O_NONBLOCK)) as file:
        request = struct.pack("hhqqi", fcntl.F_RDLCK, os.SEEK_SET, 0, 1, 0)
        answer = fcntl.fcntl(file, fcntl.F_OFD_GETLK, request)
        return struct.unpack("hhqqi", answer)[0] != fcntl.F_UNLCK
    return False


@dataclasses.dataclass
class Lease:
    name: str
    devices: list
    share_bytes: int  # 0: whole devices


def leases_in(directory: pathlib.Path) -> list:
    found = []
    for name in os.listdir(directory):
        with contextlib.suppress(OSError):
            lines = [line.partition("=") for line in (directory / name).read_text().splitlines()]
            share = sum(int(value) for key, _, value in lines if key == "promise_bytes")
            if is_alive(directory, name):
                found.append(Lease(name, [value for key, _, value in lines if key == "device"], share))
    return found


def overlaps_in(directory: pathlib.Path) -> list:
    """Leases that hold the same device and must not. Those that ended while the others were read do not count."""
    by_device = collections.defaultdict(list)
    for lease in leases_in(directory):
        for device in lease.devices:
            by_device[device].append(lease)
    found = []
    for device, leases in by_device.items():
        leases = [lease for lease in leases if is_alive(directory, lease.name)]
        whole = any(lease.share_bytes == 0 for lease in leases)
        promised = sum(lease.share_bytes for lease in leases)
        if (whole and len(leases) > 1) or promised > CARD_GIB << 30:
            found.append(f"{device}: {[lease.name for lease in leases]}")
    return found


def live_lease(path, devices, share_bytes=0) -> int:
    """For those who try whether an overlap is seen. The descriptor that keeps it alive."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    lines = [f"device={device}" for device in devices]
    lines += [f"promise_bytes={share_bytes}"] if share_bytes else []
    os.write(file, "\n".join(["berth-ticket 1", *lines, "end", ""]).encode())
    fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0))
    return file
