#!/usr/bin/env python3
"""A request is stopped, or killed, after each system call that it makes on the lease directory, one after the other.

at_step.c stops it there, so no step is forgotten and the program has no fault points. In between somebody
else asks for the same device. Then the one goes on or is killed, and in the end everybody was served who
lives, in the order in which they joined, nothing is leased and nothing is left."""

import argparse
import concurrent.futures
import dataclasses
import itertools
import os
import pathlib
import select
import signal
import stat
import sys
import tempfile

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from jobs import Job, Lines, eventually, holder, tickets, waiter
from simulated_machine import BUILD, DEADLINE_S, Machine

# Most of a case is waiting for processes to start and end.
AT_ONCE = 4
# More system calls on the directory than a request makes.
MOST = 1000


@dataclasses.dataclass
class Scene:
    """What stands before the request when it comes: a holder, and so many who wait."""

    name: str
    made: bool = True  # the directory is there
    held: bool = False
    ahead: int = 0


SCENES = [
    Scene("no directory yet", made=False),
    Scene("free"),
    Scene("first in line", held=True),
    Scene("behind another", held=True, ahead=1),
]


def locks_on(path: pathlib.Path) -> set[tuple[int, bool]]:
    """Who has a flock on it, or waits for one: pid, whether it has it. By /proc/locks."""
    if not path.exists():
        return set()
    inode = path.stat().st_ino
    found = set()
    for line in pathlib.Path("/proc/locks").read_text().splitlines():
        words = line.replace("-> ", "").split()
        if words[1] == "FLOCK" and words[5].endswith(f":{inode}"):
            found.add((int(words[4]), "->" not in line))
    return found


class Victim:
    """A request that is stopped after its call number `step`."""

    def __init__(self, machine: Machine, step: int, then: str):
        read, write = os.pipe()
        words = [write, machine.leases, step, machine.program, "run", "--", "bash", "-c", then]
        self.process = machine.start(machine.build / "steps_at_step", *words, pass_fds=[write])
        os.close(write)
        self.report = os.fdopen(read)
        self.err = Lines(self.process.stderr)
        self.pid = 0

    def becomes(self) -> str:
        """ "stopped", "ended", or else "waiting" in the queue."""
        while not self.report_is_in():
            if " in line" in self.err.line():
                return "waiting"
        with self.report:
            self.pid = int(self.report.readline() or 0)
        return "stopped" if self.pid else "ended"

    def report_is_in(self) -> bool:
        """Waits until there is the report, or else a line to read."""
        if "\n" in self.err.text:
            return False
        files = [self.report.fileno(), *([] if self.err.ended else [self.err.file])]
        ready, _, _ = select.select(files, [], [], DEADLINE_S)
        assert ready, "neither stopped nor ended"
        return self.report.fileno() in ready


class Case:
    """One request, stopped at one step."""

    def __init__(self, machine: Machine, scene: Scene, step: int, kill: bool):
        self.machine, self.kill = machine, kill
        if not scene.made:
            machine.leases /= "made"
            machine.env["BERTH_DIR"] = str(machine.leases)
        self.log = machine.leases.with_suffix(".log")
        self.log.touch()
        self.before: list[Job] = []
        self.let_before_end = False
        if scene.held:
            self.before.append(holder(machine))
        for _ in range(scene.ahead):
            self.before.append(waiter(machine, then="true"))
        self.victim = Victim(machine, step, self.note("victim"))

    def close(self) -> None:
        if self.victim.process.poll() is None and self.victim.pid:
            os.kill(self.victim.pid, signal.SIGKILL)
        self.machine.close()

    def note(self, name: str) -> str:
        return f"echo {name} >>{self.log}"

    def served(self) -> list[str]:
        return self.log.read_text().split()

    def run(self) -> bool:
        """False: the request makes fewer calls."""
        outcome = self.victim.becomes()
        while outcome == "waiting":
            # It may look again, so those before it may have to wait for it at the gate.
            self.let_before_end = True
            for job in self.before:
                job.may_end()
            outcome = self.victim.becomes()
        if outcome == "stopped":
            self.meet()
        self.let_go()
        expected = -signal.SIGKILL if outcome == "stopped" and self.kill else 0
        status = self.victim.process.wait(DEADLINE_S)
        assert status == expected, f"status {status}: {self.victim.err.rest()}"
        self.nothing_is_left()
        return outcome == "stopped"

    def meet(self) -> None:
        """Somebody else comes while the victim stands at its step."""
        directory, pid = self.machine.leases, self.victim.pid
        decides = (pid, True) in locks_on(directory)
        if self.let_before_end and not decides:
            self.let_go()
        waits, holds = self.has_ticket("queue"), self.has_ticket("leases")
        was_served = "victim" in self.served()
        other = Job(self.machine, then=self.note("other"))
        if decides:
            eventually(lambda: (other.pid, False) in locks_on(directory))
        elif holds or self.before:
            other.waits()
        else:
            # One that only waits is skipped while it is stopped.
            assert other.ends() == 0, "it is kept waiting by one that holds nothing"
            waits = False
        os.kill(pid, signal.SIGKILL if self.kill else signal.SIGCONT)
        self.let_go()
        assert other.process.wait(DEADLINE_S) == 0, other.err.rest()
        if not self.kill:
            assert self.victim.process.wait(DEADLINE_S) == 0, self.victim.err.rest()
            in_order = ["victim", "other"] if decides or waits or holds or was_served else ["other", "victim"]
            assert self.served() == in_order, self.served()

    def has_ticket(self, part: str) -> bool:
        if not (self.machine.leases / part).exists():
            return False
        return str(self.victim.pid) in [ticket["pid"] for ticket in tickets(self.machine, part)]

    def let_go(self) -> None:
        """Those who were there before come to their end."""
        for job in self.before:
            assert job.ends() == 0, job.err.rest()
        self.before = []

    def nothing_is_left(self) -> None:
        answer = self.machine.berth("run", "--no-wait", "--", "true")
        assert answer.status == 0, answer.err
        others = set(os.listdir(self.machine.leases)) - {"queue", "leases", "inside", "devices", "outcomes"}
        assert not [name for name in others if ".new-" not in name and "probe" not in name], others
        for part, files in {"queue": 0, "leases": 0, "inside": 0, "devices": 1}.items():
            path = self.machine.leases / part
            assert len(os.listdir(path)) == files, part
            assert stat.S_IMODE(path.stat().st_mode) == 0o1777, part
        # What became of runs stays: a file a user.
        outcomes = self.machine.leases / "outcomes"
        assert len(os.listdir(outcomes)) <= 1
        assert stat.S_IMODE(outcomes.stat().st_mode) == 0o1777


def run_case(directory: pathlib.Path, scene: Scene, step: int, kill: bool, build: pathlib.Path) -> bool:
    place = directory / f"{scene.name.replace(' ', '-')}-{step}-{'kill' if kill else 'stop'}"
    place.mkdir()
    case = Case(Machine(place, "1xH100", build), scene, step, kill)
    try:
        return case.run()
    except AssertionError as failure:
        what = f"{scene.name}, {'killed' if kill else 'stopped'} at step {step}: {failure}"
        raise AssertionError(what) from failure
    finally:
        case.close()


def run_steps(
    directory: pathlib.Path, scene: Scene, kill: bool, steps: range, build: pathlib.Path = BUILD
) -> int:
    """These steps, until the request makes no more. How many there were."""
    done = 0
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for first in range(0, len(steps), AT_ONCE):
            batch = steps[first : first + AT_ONCE]
            reached = list(pool.map(lambda step: run_case(directory, scene, step, kill, build), batch))
            done += sum(reached)
            if not all(reached):
                return done
    return done


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=BUILD)
    options = parser.parse_args()
    failed = 0
    for scene, kill in itertools.product(SCENES, (True, False)):
        what = f"{scene.name}, {'killed' if kill else 'stopped'}"
        with tempfile.TemporaryDirectory(prefix="steps-") as directory:
            try:
                steps = run_steps(pathlib.Path(directory), scene, kill, range(MOST), options.build.resolve())
                print(f"{what}: {steps} steps", flush=True)
            except AssertionError as failure:
                failed += 1
                print(f"FAILED: {failure}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
