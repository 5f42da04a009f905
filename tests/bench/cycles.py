"""Row 7: leases taken and given back by many at once."""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Callable

import shelf
from machines import Machine
from results import FLOOR, LIMIT, OURS, PEER, Figure, Row, Table
from running import run
from servers import servers
from setting import Bench

COMPETITORS = (1, 8, 64)
ROUNDS = 3
WINDOW_S = 1.0
PATIENCE_S = 40

FILELOCK = """
import filelock, os, sys, time
path, workers, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
lock = filelock.FileLock(path)
begin = time.monotonic_ns()
for _ in range(workers):
    if os.fork() == 0:
        for _ in range(count // workers):
            with lock:
                pass
        os._exit(0)
for _ in range(workers):
    os.wait()
print(time.monotonic_ns() - begin)
"""


IN_PYTHON = """
import berth, sys, time
begin = time.monotonic_ns()
for _ in range(int(sys.argv[2])):
    berth.lease(set_environ=False).release()
print(time.monotonic_ns() - begin)
"""


@dataclasses.dataclass
class Competition:
    """`take` gives cycles a second of one round."""

    name: str
    role: str
    take: Callable[[int], float]
    command: str = ""
    note: str = ""
    most: int = max(COMPETITORS)  # competitors that it can be asked for in reasonable time
    rounds: int = ROUNDS
    values: list[float] = dataclasses.field(default_factory=list)
    trouble: str = ""

    def round(self, competitors: int) -> None:
        if competitors > self.most:
            self.trouble = f"not asked: {competitors} of its waiters would take minutes over it"
        if self.trouble or len(self.values) == self.rounds:
            return
        try:
            self.values.append(self.take(competitors))
        except (shelf.NotHad, OSError, ValueError) as error:
            self.trouble = str(error)
        except subprocess.TimeoutExpired:
            self.trouble = f"hangs: not done in {PATIENCE_S} s"

    def figure(self) -> Figure:
        return Figure(self.name, self.role, self.command, self.values, self.trouble, self.note)


def hear(words: list[str], environment: dict[str, str]) -> list[int]:
    done = run(words, environment, PATIENCE_S)
    told = [int(word) for word in done.stdout.split()]
    if done.returncode != 0 or not told:
        raise ValueError(f"fails: {(done.stderr.strip() or done.stdout)[:80]}")
    return told


def rate_of_count(words: list[str], environment: dict[str, str], count: int, competitors: int) -> float:
    """Of a program that does so many cycles, and says first how many nanoseconds they took."""
    count -= count % competitors
    return count / hear([*words, str(competitors), str(count)], environment)[0] * 1e9


def rate_of_commands(bench: Bench, words: list[str], environment: dict[str, str], competitors: int) -> float:
    """Of a command that is run again and again for some time."""
    seconds = str(bench.seconds(WINDOW_S))
    well, badly, nanoseconds = hear(
        [bench.program("competitors"), str(competitors), seconds, *words], environment
    )
    if badly:
        raise ValueError(f"{badly} of {well + badly} runs fail")
    return well / nanoseconds * 1e9


def in_programs(bench: Bench, machine: Machine) -> list[Competition]:
    """A process that stays, and takes and gives back again and again."""

    def of(words: Callable[[], list[str]], count: int) -> Callable[[int], float]:
        return lambda competitors: rate_of_count(
            words(), machine.environment, bench.times(count, 64), competitors
        )

    lock = str(machine.directory / "cycles.lock")
    python = lambda: [str(shelf.environment("filelock") / "bin/python"), "-c", FILELOCK, lock]  # noqa: E731
    return [
        Competition("fork, flock, exit", LIMIT, of(lambda: [bench.program("bare_cycle"), lock + "1"], 8000),
                    "bare_cycle", "a C program: the kernel's part of a lease that ends with its process"),
        Competition("Berth", OURS, of(lambda: [bench.program("cycles"), bench.berth], 2400),
                    "cycles", "its library: each time it asks the driver and stands in the queue. It fails if a lease is"
                    " given twice or lost"),
        Competition("Berth in Python", OURS, of(lambda: [bench.python, "-c", IN_PYTHON], 200),
                    "berth.lease().release()", "one interpreter", most=1),
        Competition("filelock", FLOOR, of(python, 1200), "with FileLock(FILE): pass",
                    "knows no GPUs; sleeps 50 ms when the lock is taken"),
    ]  # fmt: skip


def by_commands(bench: Bench, machine: Machine, started) -> list[Competition]:
    """A command a lease."""

    def of(words: Callable[[], list[str]]) -> Callable[[int], float]:
        return lambda competitors: rate_of_commands(bench, words(), machine.environment, competitors)

    lock = str(machine.directory / "start.lock")
    return [
        Competition("flock(1)", LIMIT, of(lambda: ["flock", lock, "true"]), "flock FILE true",
                    "util-linux: one lock, no driver"),
        Competition("berth run", OURS, of(lambda: [bench.berth, "run", "--", "true"]), "berth run -- true"),
        Competition("canhazgpu", PEER, of(lambda: started.canhazgpu().run(["true"])), "canhazgpu run --gpus 1 -- true",
                    "asks no driver; its waiters look every 2 s", most=8, rounds=1),
        Competition("Slurm srun", PEER, of(lambda: started.slurm().srun(["true"])), "srun --gres=gpu:1 true",
                    "asks no driver", most=8, rounds=1),
        Competition("task-spooler", FLOOR, of(lambda: started.spooler().wait(["true"])), "tsp -n -f true",
                    "knows no GPUs"),
    ]  # fmt: skip


def compete(bench: Bench, competitions: list[Competition], competitors: int) -> list[Figure]:
    competitions = [each for each in competitions if each.role != OURS or competitors <= each.most]
    for _ in range(bench.times(ROUNDS, 1)):
        for each in competitions:
            each.round(competitors)
    return [each.figure() for each in competitions]


def cycles(bench: Bench) -> Row:
    row = Row(7, "cycles", "Leases a second",
              "Competitors take one GPU and give it back in turn, as fast as they can: in programs that stay, and by"
              " commands that hold it while `true` runs.")  # fmt: skip
    for competitors in COMPETITORS:
        many = "1 competitor" if competitors == 1 else f"{competitors} competitors"
        with Machine(bench, f"cycles{competitors}", devices=1) as machine, servers(machine, 1) as started:
            bench.say(f"{many}, in programs")
            figures = compete(bench, in_programs(bench, machine), competitors)
            row.tables.append(
                Table(f"cycles-{competitors}", f"{many}, in programs", "a second", figures, True)
            )
            bench.say(f"{many}, by commands")
            figures = compete(bench, by_commands(bench, machine, started), competitors)
            row.tables.append(Table(f"runs-{competitors}", f"{many}, by commands", "a second", figures, True))
    return row
