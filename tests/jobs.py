"""Jobs of `berth run` that say when they started and end when they are told to."""

import contextlib
import os
import pathlib
import select
import signal
import subprocess
import time

import pytest
from simulated_machine import DEADLINE_S, MOST_OF_A_PROCESS, Machine

# Its first thread ends, another one goes on: /proc then calls the process a zombie.
FIRST_THREAD_ENDS = """
import ctypes, os, pathlib, sys, threading, time
def go_on():
    while pathlib.Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z": time.sleep(0.001)
    print(os.getpid(), flush=True)
    time.sleep(1000)
threading.Thread(target=go_on).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def eventually(condition, seconds: float = DEADLINE_S):
    """The first true value of condition(); fails past the deadline, which is a hang guard."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "did not become true in time"
        time.sleep(0.005)
    return value


def the_only(look):
    """The only one that `look` finds, once it is the only one. What lists processes may show one more for a
    moment: a probe that ends, or a child that is about to become what it was started for."""
    (one,) = eventually(lambda: len(found := look()) == 1 and found)
    return one


def state(pid) -> str:
    """As /proc has it: "T" stopped, "S" asleep; "gone"."""
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    return "gone"


def has_lock(pid: int, path: pathlib.Path) -> bool:
    """Whether the process has the lock of this file or folder, by /proc/locks. It has none that it waits for."""
    locks = [line.split() for line in pathlib.Path("/proc/locks").read_text().splitlines()]
    inode = str(path.stat().st_ino)
    return any(
        lock[4] == str(pid) and lock[5].rsplit(":", 1)[1] == inode for lock in locks if lock[1] != "->"
    )


def has_told_energy(machine: Machine) -> bool:
    """Whether a probe has asked for the energy alone and ended, on a machine with `call_log = true`."""
    log = machine.file.with_name(machine.file.name + ".d") / "calls.log"
    asked: dict[str, str] = {}
    for line in log.read_text().splitlines() if log.exists() else []:
        pid, call, *_ = line.split()
        asked[pid] = asked.get(pid, "") + call
    alone = [pid for pid, calls in asked.items() if "FieldValues" in calls and "MemoryInfo" not in calls]
    return bool(alone) and not any(is_probe(pid) for pid in machine.inhabitants())


def samplers(machine: Machine) -> list[int]:
    """The processes that look at the GPUs of runs."""
    return [pid for pid in machine.inhabitants() if b"__sample" in words_of(pid)]


def words_of(pid) -> bytes:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as words:
        return words.read(MOST_OF_A_PROCESS)
    return b""


def is_probe(pid) -> bool:
    """Whether it asks the driver, and not for a sampler, whose probe stays."""
    if name_of(pid) != "berth __probe" and b"__probe" not in words_of(pid):
        return False
    with contextlib.suppress(OSError):
        parent = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1]
        return b"__sample" not in words_of(parent)
    return False


def command_of(job) -> int:
    """The pid of the job's command. A probe that is ending is a child too."""

    def commands() -> list[int]:
        return [
            child
            for child in children_of(job.pid)
            if not is_probe(child) and not is_fork(child) and name_of(child) != "gone"
        ]

    return the_only(commands)


def name_of(pid) -> str:
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    return "gone"


def is_fork(pid) -> bool:
    """It has the command line of its parent: a probe, or a command, that is about to begin."""
    with contextlib.suppress(OSError, IndexError):
        parent = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1]
        lines = [pathlib.Path(f"/proc/{each}/cmdline").read_bytes() for each in (pid, parent)]
        return lines[0] == lines[1]
    return False


def children_of(pid: int) -> list[int]:
    """Of its first thread. The kernel leaves some out while others end."""
    path = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
    return [int(word) for word in path.read_text().split()]


def close_input(process: subprocess.Popen) -> None:
    process.stdin.close()
    process.stdin = None  # communicate() would flush it


class Lines:
    """What comes out of a pipe, line by line, each waited for at most until the deadline."""

    def __init__(self, stream):
        self.file = stream.fileno()
        self.text = ""
        self.ended = False

    def line(self) -> str:
        """With its newline; what there is, when the other end is closed."""
        while "\n" not in self.text and self._more(DEADLINE_S):
            pass
        assert "\n" in self.text or self.ended, f"it said nothing in time after {self.text!r}"
        line, newline, self.text = self.text.partition("\n")
        return line + newline

    def rest(self) -> str:
        while self._more(DEADLINE_S):
            pass
        text, self.text = self.text, ""
        return text

    def has_more(self) -> bool:
        return bool(self.text) or self._more(0)

    def _more(self, seconds: float) -> bool:
        if self.ended or not select.select([self.file], [], [], seconds)[0]:
            return False
        chunk = os.read(self.file, 65536).decode()
        self.text += chunk
        self.ended = not chunk
        return not self.ended


class Job:
    """`berth run`, somewhere between its start and the end of its command."""

    def __init__(self, machine: Machine, *options, then: str = "read || true", within=(), **more):
        self.machine = machine
        self.process = machine.start(
            *within,
            machine.program,
            "run",
            *options,
            "--",
            "bash",
            "-c",
            f"echo $CUDA_VISIBLE_DEVICES; {then}",
            stdin=subprocess.PIPE,
            **more,
        )
        self.pid = self.process.pid
        self.out, self.err = Lines(self.process.stdout), Lines(self.process.stderr)

    def starts(self) -> str:
        """Waits until the command runs. The devices that it sees."""
        line = self.out.line()
        assert line, f"it did not start: {self.err.rest()}"
        return line.strip()

    def waits(self) -> "Job":
        """Waits until it says that it waits: it is in the queue by then."""
        assert "berth: waiting for" in (line := self.err.line()), line
        return self

    def says(self, words: str) -> "Job":
        """Waits for a line on stderr with these words."""
        while words not in (line := self.err.line()):
            assert line, f"it ended without saying {words!r}"
        return self

    def has_started(self) -> bool:
        return self.out.has_more()

    def may_end(self) -> "Job":
        """Lets the command end, now or once it has started."""
        if self.process.stdin is not None:
            close_input(self.process)
        return self

    def ends(self) -> int:
        """Lets the command end. The status of berth."""
        return self.may_end().process.wait(DEADLINE_S)

    def signal(self, number: signal.Signals) -> "Job":
        self.process.send_signal(number)
        return self

    def stop(self) -> "Job":
        """Stops it, but not in the gate: there it delays all others, which has tests of its own."""

        def is_stopped_outside() -> bool:
            self.signal(signal.SIGSTOP)
            eventually(lambda: state(self.pid) == "T")
            if not has_lock(self.pid, self.machine.leases):
                return True
            self.go_on()
            return False

        eventually(is_stopped_outside)
        return self

    def go_on(self) -> "Job":
        return self.signal(signal.SIGCONT)


def where_no_bell_is_heard() -> tuple[str, ...]:
    """What starts a program in a network namespace of its own, as a container has one."""
    words = ("unshare", "--net") if os.geteuid() == 0 else ("unshare", "--map-root-user", "--net")
    if subprocess.run([*words, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip("this user may make no network namespace")
    return words


def holder(machine: Machine, *options, **more) -> Job:
    """A job that has its lease."""
    job = Job(machine, *options, **more)
    job.starts()
    return job


def waiter(machine: Machine, *options, **more) -> Job:
    """A job that stands in the queue."""
    return Job(machine, *options, **more).waits()


def tickets(machine: Machine, part: str) -> list[dict]:
    """What the files in queue/ or leases/ say, in order. A key that comes several times is a list."""
    found = []
    for path in sorted((machine.leases / part).iterdir()):
        fields: dict = {"candidate": [], "device": []}
        with contextlib.suppress(FileNotFoundError):
            for line in path.read_text().splitlines()[1:-1]:
                key, value = line.split("=", 1)
                fields[key] = [*fields[key], value] if key in ("candidate", "device") else value
            found.append(fields)
    return found


def queue(machine: Machine) -> list[int]:
    """The pids of those who wait, in order."""
    return [int(ticket["pid"]) for ticket in tickets(machine, "queue") if state(ticket["pid"]) != "gone"]


def device_file(machine: Machine) -> pathlib.Path:
    """Of the machine's only device; there is one once it was leased."""
    machine.berth("run", "--", "true")
    (path,) = (machine.leases / "devices").iterdir()
    return path


def fill(machine: Machine) -> pathlib.Path:
    """A file that leaves no room in the lease directory, which has a file system of its own."""
    path = machine.leases / "queue" / "filler"
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    return path


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
