"""Queues for one device, as a run sees them: it starts waiters, kills or ends the holder, and hears from the next."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import select
import signal
import subprocess
import time
from collections.abc import Callable

from servers import Server

# Far beyond any figure: only against what hangs.
PATIENCE_S = 30
# Until a waiter has said something. Not all do.
SAYING_S = 2
# How many are started at once: more would only wait for a processor.
AT_ONCE = 16
STAMP = re.compile(rb"^(\d+) (\d+) (\d+)\n", re.M)


class Queue:
    """`stamp` says who has the device and since when, through a pipe, and holds it until it is killed or ended."""

    def __init__(self) -> None:
        self.heard = b""
        self.holder: tuple[int, int] = (0, 0)  # who said so, and its parent
        self.stamps = -1

    def start(self, number: int) -> None:
        """So many more waiters; they stand in the queue when this returns."""
        raise NotImplementedError

    def start_holder(self) -> None:
        self.start(1)
        self.take_stamp()

    def to_kill(self) -> list[int]:
        return [self.holder[0]]

    def hand_over(self, killed: bool) -> float:
        """Ends the holder. Milliseconds until the next one's command ran."""
        before = time.monotonic_ns()
        if killed:
            for pid in self.to_kill():
                os.kill(pid, signal.SIGKILL)
        else:
            os.kill(self.holder[0], signal.SIGTERM)
        self.reap(self.holder)
        return (self.take_stamp() - before) / 1e6

    def kill_holder(self) -> None:
        """Where nobody has it there is none, and 0 would mean this run itself."""
        if self.holder[0] > 0:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.holder[0], signal.SIGKILL)

    def reap(self, holder: tuple[int, int]) -> None:
        """Some take a zombie for alive."""

    def take_stamp(self) -> int:
        while not (found := STAMP.search(self.heard)):
            if not readable(self.stamps, PATIENCE_S):
                raise TimeoutError(f"nobody got it in {PATIENCE_S} s")
            self.heard += os.read(self.stamps, 4096)
        self.heard = self.heard[found.end() :]
        pid, parent, at = map(int, found.groups())
        self.holder = (pid, parent)
        return at

    def pids(self) -> list[int]:
        """All that wait, and what waits for them."""
        raise NotImplementedError

    def end(self) -> None:
        raise NotImplementedError


class ProcessQueue(Queue):
    """Each waiter is a process of ours, whose stderr stays open: some end when they cannot write there. `tree`: the
    parent of what says so is the holder too, and is killed with it.

    `served_by` gives the processes of a server that wait with them."""

    def __init__(
        self,
        command: list[str],
        environment: dict[str, str],
        tree: bool = False,
        served_by: Callable[[], list[int]] = list,
    ):
        super().__init__()
        self.command, self.environment, self.tree, self.served_by = command, environment, tree, served_by
        self.stamps, self.stamp_end = os.pipe()
        self.processes: list[subprocess.Popen] = []

    def start(self, number: int) -> None:
        while number > 0:
            batch = [self.spawn() for _ in range(min(number, AT_ONCE))]
            number -= len(batch)
            deadline = time.monotonic() + SAYING_S
            for process in batch:
                readable(process.stderr.fileno(), max(0.0, deadline - time.monotonic()))

    def spawn(self) -> subprocess.Popen:
        process = subprocess.Popen(
            self.command,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=self.stamp_end,
            stderr=subprocess.PIPE,
        )
        self.processes.append(process)
        return process

    def start_holder(self) -> None:
        self.spawn()
        self.take_stamp()

    def to_kill(self) -> list[int]:
        return [self.holder[1], self.holder[0]] if self.tree else [self.holder[0]]

    def reap(self, holder: tuple[int, int]) -> None:
        for process in self.processes:
            if process.pid in holder:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(PATIENCE_S)
        for process in self.processes:
            if process.returncode is not None:
                process.stderr.close()
        self.processes = [process for process in self.processes if process.returncode is None]

    def waiting(self) -> list[int]:
        return [each.pid for each in self.processes if each.pid not in self.holder and each.poll() is None]

    def pids(self) -> list[int]:
        waiting = self.waiting()
        return [*waiting, *(child for pid in waiting for child in children(pid)), *self.served_by()]

    def end(self) -> None:
        self.kill_holder()
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
            process.stderr.close()
        os.close(self.stamps)
        os.close(self.stamp_end)


class JobQueue(Queue):
    """The waiters are jobs of a server."""

    def __init__(self, server: Server, stamp: list[str], directory: pathlib.Path):
        super().__init__()
        self.server = server
        pipe = directory / f"{server.name}.stamps"
        os.mkfifo(pipe)
        # Also for writing, so that it never ends.
        self.stamps = os.open(pipe, os.O_RDWR)
        self.job = directory / f"{server.name}.sh"
        self.job.write_text(f"#!/bin/sh\nexec {' '.join(stamp)} >{pipe}\n")
        self.job.chmod(0o755)

    def start(self, number: int) -> None:
        self.server.submit(self.job, number)

    def pids(self) -> list[int]:
        return self.server.pids()

    def end(self) -> None:
        self.kill_holder()
        os.close(self.stamps)


def readable(file: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(file, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def children(pid: int) -> list[int]:
    try:
        return list(map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    except OSError:
        return []


def state(pid: int) -> str:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "gone"


def settle(queue: Queue) -> None:
    """Until all of its waiters sleep: what they do after they have said that they wait is not to be measured."""
    if not isinstance(queue, ProcessQueue):
        return
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and any(state(pid) == "R" for pid in queue.waiting()):
        time.sleep(0.01)
    time.sleep(0.1)  # the first in line looks once more a moment after its first look
