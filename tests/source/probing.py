"""What a probe says, read from its pipe."""

import contextlib
import dataclasses
import enum
import os
import pathlib
import signal

from jobs import is_probe


class Reading(enum.IntFlag):
    """As ReadingKind in src/core/device/device.h."""

    NAME = enum.auto()
    MEMORY = enum.auto()
    PROCESSES = enum.auto()
    PROCESS_DETAILS = enum.auto()
    UTILIZATION = enum.auto()
    POWER = enum.auto()
    TEMPERATURE = enum.auto()
    CLOCKS = enum.auto()
    FAN = enum.auto()
    COMPUTE_MODE = enum.auto()
    MIG = enum.auto()
    HEALTH = enum.auto()
    CAPABILITY = enum.auto()
    PCI = enum.auto()
    TOPOLOGY = enum.auto()
    MODES = enum.auto()
    DRIVER = enum.auto()


LISTING = ~Reading(0) & ~Reading.TOPOLOGY
PICK = Reading.MEMORY | Reading.PROCESSES | Reading.COMPUTE_MODE | Reading.MIG


@dataclasses.dataclass
class Snapshot:
    """A record as plain text values: the fields of the machine, and a dict a section."""

    kind: str
    fields: dict
    devices: list
    progress: list
    notes: list
    uuids: list
    links: list

    def links_between(self, a: int, b: int) -> str:
        """Level and number of links of a pair, as written."""
        return self.links[a * len(self.uuids) + b]


def parse(text: str) -> Snapshot:
    lines = text.splitlines()
    assert lines[-1] == "end", text
    snapshot = Snapshot(lines[0], {}, [], [], [], [], [])
    into = snapshot.fields
    for line in lines[1:-1]:
        if line.startswith("["):
            into = {}
            if line == "[device]":
                snapshot.devices.append(into)
            elif line == "[process]":
                snapshot.devices[-1].setdefault("processes", []).append(into)
            elif line == "[progress]":
                snapshot.progress.append(into)
            continue
        key, value = line.split("=", 1)
        if key == "text":
            snapshot.notes.append(value)
        elif key == "link":
            snapshot.links.append(value)
        elif key == "uuid" and into not in snapshot.devices:
            snapshot.uuids.append(value)
        elif key == "processes_known":
            into.setdefault("processes", [])
        else:
            into[key] = value
    return snapshot


def probes(machine) -> set:
    """The probes inside this machine."""
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if is_probe(name):
                environment = pathlib.Path("/proc", name, "environ").read_bytes().split(b"\0")
                if f"BERTH_SIM={machine.file}".encode() in environment:
                    found.add(int(name))
    return found


def end_probes(machine) -> None:
    for pid in probes(machine):
        os.kill(pid, signal.SIGKILL)
