"""Programs that answer the same question, run in turn: A B A B, each round every program that still has runs left,
so that a slow moment of the machine slows all of them."""

from __future__ import annotations

import dataclasses
import pathlib
import shlex
import subprocess
from collections.abc import Callable

import shelf
from results import OURS, PEER, Figure
from running import run

# Far beyond any of them: only against one that hangs.
PATIENCE_S = 60
# A peer is given this long in all, and at least so many runs.
PEER_BUDGET_S = 2.5
LEAST_RUNS = 5
# Traced, all of them end within it but for those that leave a process behind.
TRACED_S = 10
MANY = 3

Words = list[str]


@dataclasses.dataclass
class Contestant:
    """`prepare` gives the command, or raises NotHad. `verify` reads the stdout of `shown_by`, or of the command."""

    name: str
    role: str
    prepare: Callable[[], Words]
    verify: Callable[[str], bool] = lambda output: True
    shown_by: Words | None = None
    shown: str = ""  # the command as a user types it
    note: str = ""
    environment: dict[str, str] = dataclasses.field(default_factory=dict)  # beside that of the contest
    command: Words = dataclasses.field(default_factory=list)
    values: list[float] = dataclasses.field(default_factory=list)
    trouble: str = ""
    peaks_kib: list[int] = dataclasses.field(default_factory=list)
    planned: int = 0

    def figure(self) -> Figure:
        more = {}
        if self.peaks_kib:
            more["peak MiB"] = peaks(self.peaks_kib)
        command = self.shown or typed(self.command)
        return Figure(self.name, self.role, command, self.values, self.trouble, self.note, more)


def peaks(of_each_kib: list[int]) -> str:
    """The peaks of its processes, or of the largest of many."""
    if len(of_each_kib) > MANY:
        return f"{max(of_each_kib) / 1024:.1f} of {len(of_each_kib)} processes"
    return " + ".join(f"{peak / 1024:.1f}" for peak in of_each_kib)


def typed(words: Words) -> str:
    """A command as a user types it: without the folders of this machine."""
    short = [pathlib.Path(word).name if word.startswith("/") else word for word in words]
    return " ".join(word if len(word) < 200 and "\n" not in word else "…" for word in map(shlex.quote, short))


@dataclasses.dataclass
class Contest:
    measure: pathlib.Path  # bench/measure of the build
    environment: dict[str, str]
    runs: int

    def hold(self, contestants: list[Contestant]) -> list[Figure]:
        """Checks each, then measures all that answer rightly."""
        for each in contestants:
            self.check(each)
        able = [each for each in contestants if not each.trouble]
        for each in able:
            self.plan(each)
        for turn in range(self.runs):
            for each in able:
                if is_due(turn, each.planned, self.runs):
                    each.values.append(self.take_ms(each))
        for each in able:
            each.peaks_kib = self.peaks_kib(each)
        return [each.figure() for each in contestants]

    def check(self, each: Contestant) -> None:
        """Runs it once and looks whether it does what is to be measured."""
        try:
            each.command = each.prepare()
            done = run(each.shown_by or each.command, self.environment | each.environment, PATIENCE_S)
            if done.returncode != 0:
                last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
                each.trouble = f"crashes: {last[:90]}" if each.role == PEER else f"fails: {last[:90]}"
            elif not each.verify(done.stdout):
                each.trouble = "answers wrongly"
        except shelf.NotHad as reason:
            each.trouble = str(reason)
        except OSError as error:
            each.trouble = f"does not start: {error.strerror}"
        except subprocess.TimeoutExpired:
            each.trouble = f"hangs: no answer in {PATIENCE_S} s"
        except (ValueError, KeyError, IndexError) as error:
            each.trouble = f"answers what cannot be read: {error}"

    def plan(self, each: Contestant) -> None:
        """How many of the rounds it takes part in."""
        if each.role == OURS:
            each.planned = self.runs
            return
        once = self.take_ms(each) / 1000
        each.planned = min(self.runs, max(LEAST_RUNS, int(PEER_BUDGET_S / once)))

    def take_ms(self, each: Contestant) -> float:
        return self.told("time", each)[0] / 1e6

    def peaks_kib(self, each: Contestant) -> list[int]:
        """Of each of its processes; none where one of them stays."""
        try:
            return self.told("memory", each, TRACED_S)
        except subprocess.TimeoutExpired:
            return []

    def told(self, what: str, each: Contestant, patience: float = PATIENCE_S) -> list[int]:
        done = run([str(self.measure), what, *each.command], self.environment | each.environment, patience)
        return [int(word) for word in done.stdout.split()]


def is_due(turn: int, planned: int, rounds: int) -> bool:
    """Spreads so many runs evenly over the rounds."""
    return (turn + 1) * planned // rounds > turn * planned // rounds
