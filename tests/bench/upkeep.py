"""What processes cost while nothing happens, by /proc."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import re
import time


@dataclasses.dataclass
class Upkeep:
    core_percent: float
    pss_mib: float
    wakeups_a_second: float


def cpu_seconds(pid: int) -> float:
    """Of all its threads. The living ones tell nanoseconds; with those that have ended it is known in ticks."""
    living = 0
    for task in tasks(pid):
        with contextlib.suppress(OSError):
            living += int((task / "schedstat").read_text().split()[0])
    ticks = 0
    with contextlib.suppress(OSError):
        words = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        ticks = int(words[11]) + int(words[12])
    return max(living / 1e9, ticks / os.sysconf("SC_CLK_TCK"))


def switches(pid: int) -> int:
    """How often its threads were given a processor."""
    total = 0
    for task in tasks(pid):
        with contextlib.suppress(OSError):
            total += sum(map(int, re.findall(r"ctxt_switches:\s*(\d+)", (task / "status").read_text())))
    return total


def tasks(pid: int) -> list[pathlib.Path]:
    try:
        return list(pathlib.Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return []


def pss_mib(pid: int) -> float:
    try:
        text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    found = re.search(r"^Pss:\s*(\d+)", text, re.M)
    return int(found[1]) / 1024 if found else 0.0


def observe(groups: dict[str, list[int]], seconds: float) -> dict[str, Upkeep]:
    """All groups of processes over the same time."""
    begin = time.monotonic()
    before = {name: (sum(map(cpu_seconds, pids)), sum(map(switches, pids))) for name, pids in groups.items()}
    time.sleep(seconds)
    told = {}
    for name, pids in groups.items():
        cpu, woken = sum(map(cpu_seconds, pids)), sum(map(switches, pids))
        took = time.monotonic() - begin
        told[name] = Upkeep(
            max(0.0, 100 * (cpu - before[name][0]) / took),
            sum(map(pss_mib, pids)),
            (woken - before[name][1]) / took,
        )
    return told
