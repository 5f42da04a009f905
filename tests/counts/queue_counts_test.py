"""What a queue costs, counted: a release wakes two, and what a join and a hand-over do does not depend on how many wait."""

import collections
import contextlib
import fcntl
import json
import os
import pathlib
import re
import resource
import shutil
import struct
import subprocess
import time

import pytest
from jobs import DEADLINE_S, Job, close_input, device_file, eventually, holder, kill, state, tickets
from simulated_machine import Machine

pytestmark = pytest.mark.release_only

# Calls that may come at any moment.
A_TICK = 8
# File operations of one look by the first in line: an end that is seen in two events makes two
# looks.
LOOK = 30
# A waiter looks up every few seconds. Of so many releases at least one falls between two ticks.
RELEASES = 4


@pytest.fixture
def one(make_machine) -> Machine:
    """A machine with one device that was leased once."""
    machine = make_machine("1xH100")
    machine.uuid = device_file(machine).name
    return machine


def children(pid: int) -> list[int]:
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


# Wake-ups


@contextlib.contextmanager
def crowd(machine: Machine, size: int):
    """Waiters behind all others, each a process. Gives their pids."""
    last = max(ticket["id"] for ticket in tickets(machine, "queue"))
    process = machine.start(
        machine.build / "counts_crowd", machine.leases, machine.uuid, size, last, stdin=subprocess.PIPE
    )
    assert process.stdout.readline() == "ready\n", process.stderr.read()
    yield children(process.pid)
    close_input(process)
    assert process.wait(DEADLINE_S) == 0


def sleeps(pid: int) -> int:
    """How often this process has gone to sleep: each wake-up is one more."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^voluntary_ctxt_switches:\t(\d+)$", status, re.M)[1])


def all_asleep(pids) -> dict:
    eventually(lambda: all(state(pid) == "S" for pid in pids))
    return {pid: sleeps(pid) for pid in pids}


def woken_by_a_release(holding: Job, first: Job, second: Job, pids: list) -> set:
    """Who of the queue ran because the holder ended."""
    before = all_asleep(pids)
    holding.ends()
    first.starts()
    second.says("first in line")
    return {pid for pid in pids if state(pid) != "S" or sleeps(pid) != before[pid]} | {first.pid, second.pid}


@pytest.mark.parametrize("size", [10, 1000])
def test_a_release_wakes_at_most_two_of_a_queue(one, size):
    holding = holder(one)
    front = [Job(one).waits() for _ in range(RELEASES + 1)]
    with crowd(one, size - len(front) - 2) as between:
        back = [Job(one).waits() for _ in range(2)]
        fewest = size
        for first, second in zip(front, front[1:]):
            waiting = [job.pid for job in [*front[front.index(first) :], *back]] + between
            fewest = min(fewest, len(woken_by_a_release(holding, first, second, waiting)))
            holding = first
        assert len(between) + len(front) + len(back) == size
        assert fewest == 2


# File operations


class Crowd:
    """Tickets that wait for these devices, all of them, held by this process. To those who read them they are a
    queue as any other. `words`: what else the tickets say."""

    def __init__(self, machine: Machine, size: int, uuids: tuple = (), words: str = ""):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
        self.files = [self.join(machine, uuids or (machine.uuid,), words) for _ in range(size)]

    @staticmethod
    def join(machine: Machine, uuids: tuple, words: str) -> tuple:
        name = f"{time.clock_gettime_ns(time.CLOCK_BOOTTIME):016x}"
        path = machine.leases / "queue" / name
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o644)
        fields = f"id={name}\npid={os.getpid()}\njoined_at=1\ncount={len(uuids)}\n{words}"
        fields += "".join(f"candidate={uuid}\n" for uuid in uuids)
        os.write(file, f"berth-ticket 1\n{fields}end\n".encode())
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        return file, path

    def leave(self) -> None:
        """From the front, as served ones do."""
        for file, path in self.files:
            path.unlink()
            os.close(file)
        self.files = []


class Traced:
    """`berth run` that waits, and what it does to files meanwhile. Its probe and its command are not watched."""

    CALLS = "%file,%desc,flock,fcntl,inotify_add_watch"

    def __init__(self, machine: Machine, *options, command=("sh", "-c", "echo started; read line || true")):
        if shutil.which("strace") is None:
            pytest.skip("needs strace")
        self.log = machine.directory / f"strace.{time.monotonic_ns()}"
        self.directory = str(machine.leases)
        strace = ["strace", "-qq", "-y", "-e", f"trace={self.CALLS}", "-e", "signal=none", "-o", self.log]
        self.process = machine.start(
            *strace, machine.program, "run", *options, "--", *command, stdin=subprocess.PIPE
        )

    def text(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    def sleeps_in(self, call: str, words: str) -> int:
        """Waits until that is its last call, and has not returned. How long the log is then."""

        def last() -> str:
            return self.text().rpartition("\n")[2]

        eventually(lambda: last().startswith(f"{call}(") and words in last())
        return len(self.text())

    def sleeps_behind(self) -> int:
        return self.sleeps_in("fcntl", "F_OFD_SETLKW")

    def sleeps_as_first(self) -> int:
        """Past the pause that comes before a sound sleep."""
        return self.sleeps_in("poll", " 5000")

    def starts(self) -> int:
        assert self.process.stdout.readline() == "started\n", self.process.stderr.read()
        return len(self.text())

    def operations(self, start: int, end: int) -> collections.Counter:
        """Calls on the lease directory, by name."""
        lines = self.text()[start:end].splitlines()
        return collections.Counter(line.partition("(")[0] for line in lines if self.directory in line)

    def ends(self) -> None:
        close_input(self.process)
        assert self.process.wait(DEADLINE_S) == 0


def in_the_gate(calls: list[str], directory: str) -> list[str]:
    """Of one process: what it did while it was inside, the time that it did most."""
    most = []
    for entered, call in enumerate(calls):
        if not ("flock(" in call and "LOCK_EX" in call and f"<{directory}>" in call):
            continue
        descriptor = re.match(r"flock\((\d+)<", call)[1]
        left = next(
            place for place in range(entered, len(calls)) if calls[place].startswith(f"close({descriptor}<")
        )
        most = max(most, calls[entered:left], key=len)
    assert most
    return most


def operations_of_a_wait(machine: Machine, size: int, words: str = "") -> dict:
    """What one does that joins behind `size` others, has as many behind it, and is served at last."""
    holding = holder(machine)
    before = Crowd(machine, size, words=words)
    job = Traced(machine)
    joined = job.sleeps_behind()
    behind = Crowd(machine, size, words=words)
    before.leave()
    first = job.sleeps_as_first()
    holding.ends()
    started = job.starts()
    behind.leave()
    job.ends()
    assert "/proc/locks" not in job.text()
    inside = in_the_gate(job.text()[first:started].splitlines(), job.directory)
    return {
        "join": job.operations(0, joined),
        "moving up": job.operations(joined, first),
        "hand-over": job.operations(first, started),
        "hand-over, in the gate": collections.Counter(call.partition("(")[0] for call in inside),
    }


def test_a_wait_takes_the_same_file_operations_in_a_queue_of_10_and_of_1000(one):
    few, many = operations_of_a_wait(one, 10), operations_of_a_wait(one, 1000)
    print({part: counts.total() for part, counts in many.items()})
    assert few["join"]["linkat"] == few["hand-over"]["renameat"] == 1
    # Behind many it also looks whether it stands far back, and a tick may come in the middle.
    assert abs(many["join"].total() - few["join"].total()) <= A_TICK, (few, many)
    for part in ("moving up", "hand-over"):
        assert abs(many[part].total() - few[part].total()) <= LOOK, (part, few, many)


def ends_of_watches_before_the_release(machine: Machine) -> int:
    """Of one that waits, and whose command ends at once. The kernel takes some milliseconds to end a watch, and the
    next one would wait for it."""
    holding = holder(machine)
    job = Traced(machine, command=["true"])
    job.sleeps_as_first()
    holding.ends()
    assert job.process.wait(DEADLINE_S) == 0
    calls = job.text().splitlines()
    released = next(
        place for place, call in enumerate(calls) if call.startswith("unlink") and "/leases>" in call
    )
    closes = [place for place, call in enumerate(calls) if call.startswith("close(") and "inotify" in call]
    assert any("inotify_add_watch" in call for call in calls)
    return sum(place < released for place in closes)


def test_a_short_command_s_lease_ends_before_the_watch_of_its_wait(one):
    # A run of a second gives the watch back: so long takes none of these on a machine that works.
    assert min(ends_of_watches_before_the_release(one) for _ in range(RELEASES)) == 0


# What tickets say by response ratio, of such a length that none of them goes past one who came
# before.
BY_RATIO = {
    "limits": "expected=21600\nlongest_wait=1814400\n",
    "runs": "expected=86400\nlikely=86400\nlongest_wait=1814400\n",
}
# Of one ticket that came later: it is opened, its locks and its text are read, and it is closed.
OF_A_TICKET = 6


@pytest.mark.parametrize("expect", BY_RATIO)
def test_by_response_ratio_a_start_takes_at_most_twice_what_it_takes_as_they_came(one, expect):
    """However many wait. Whoever is first reads those that came later while it sleeps: each once."""
    as_they_came = operations_of_a_wait(one, 10)
    (one.directory / "site.toml").write_text(f'expect = "{expect}"\n')
    few, many = (operations_of_a_wait(one, size, BY_RATIO[expect]) for size in (10, 1000))
    print({part: counts.total() for part, counts in many.items()})
    assert abs(many["join"].total() - few["join"].total()) <= A_TICK, (few, many)
    more = many["moving up"].total() - few["moving up"].total()
    assert more <= (1000 - 10) * OF_A_TICKET + LOOK, (few, many)
    for part in ("hand-over", "hand-over, in the gate"):
        assert abs(many[part].total() - few[part].total()) <= LOOK, (part, few, many)
        assert many[part].total() <= 2 * as_they_came[part].total(), (part, as_they_came, many)


def operations_of_a_join_beside_a_free_device(machine: Machine, size: int, words: str = "") -> tuple:
    """What one does that joins behind `size` others, the first of whom may have what is free: in all, and as much of
    it as is done inside the gate."""
    before = Crowd(machine, size, words=words)
    job = Traced(machine)
    joined = job.sleeps_behind()
    before.leave()
    job.starts()
    job.ends()
    return job.operations(0, joined), len(in_the_gate(job.text()[:joined].splitlines(), job.directory))


def test_a_join_beside_a_free_device_takes_the_same_file_operations_behind_10_and_behind_1000(one):
    few, many = (operations_of_a_join_beside_a_free_device(one, size)[0] for size in (10, 1000))
    print({"join": many.total()})
    assert abs(many.total() - few.total()) <= A_TICK, (few, many)


def test_by_response_ratio_a_join_beside_a_free_device_asks_each_little_inside_the_gate(one):
    """All of them come first. They are opened and read before."""
    (one.directory / "site.toml").write_text('expect = "limits"\n')
    few, many = (
        operations_of_a_join_beside_a_free_device(one, size, BY_RATIO["limits"])[1] for size in (20, 120)
    )
    print({"few": few, "many": many})
    assert many - few <= 100 * 1.1 + A_TICK, (few, many)


def operations_of_a_start_from_behind(make_machine, size: int) -> int:
    """What one does inside the gate that starts although `size` others stand before it, who want both devices."""
    machine = make_machine("2xH100")
    uuids = tuple(device["uuid"] for device in json.loads(machine.berth("list", "--json").out)["devices"])
    long, short = (
        holder(machine, "--devices", "0", "--time", "10h"),
        holder(machine, "--devices", "1", "--time", "1h"),
    )
    first = Job(machine, "-n", "2").waits()
    crowd = Crowd(machine, size, uuids)
    job = Traced(machine, "--time", "10m")
    asleep = job.sleeps_behind()
    short.ends()
    end = job.starts()
    inside = in_the_gate(job.text()[asleep:end].splitlines(), str(machine.leases))
    job.ends()
    crowd.leave()
    kill(first.pid)
    long.ends()
    return len(inside)


def test_one_far_back_that_starts_asks_each_before_it_little_inside_the_gate(make_machine):
    """Each asks a lock, and has opened and read what it asks before."""
    few, many = (operations_of_a_start_from_behind(make_machine, size) for size in (20, 120))
    print({"few": few, "many": many})
    assert many - few <= 100 * 1.1 + A_TICK, (few, many)


def test_the_kernel_is_asked_for_its_locks_only_where_one_is_to_be_explained(one):
    citizen = one.start(
        "bash", "-c", f"exec 9<{one.leases}/devices/{one.uuid}; flock 9; echo ready; exec sleep 1000"
    )
    assert citizen.stdout.readline() == "ready\n"
    job = Traced(one)
    job.sleeps_as_first()
    assert "/proc/locks" in job.text()
    for pid in children(job.process.pid):
        kill(pid)
