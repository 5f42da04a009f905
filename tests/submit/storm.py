"""Jobs, their runners and those who submit them, killed at random (`./dev storm`).

What was run is told by the jobs themselves, a line each at their start, into files that Berth knows nothing of. So
a job that is run twice, or one that was promised and never came, is seen whatever the spool says."""

import argparse
import collections
import contextlib
import dataclasses
import os
import pathlib
import pty
import random
import signal
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from jobs import is_fork, is_probe  # noqa: E402
from simulated_machine import DEADLINE_S, Machine  # noqa: E402

# Each start leaves a line of its own: a write of a few bytes at the end of a file is one.
JOB = 'echo start >> "$0/$1"; sleep "$2"; echo end >> "$0/$1"'


@dataclasses.dataclass
class Found:
    """What a storm has left: jobs by their tokens."""

    promised: set = dataclasses.field(default_factory=set)  # submit has ended with 0
    starts: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    states: dict = dataclasses.field(default_factory=dict)  # as users are told
    kills: collections.Counter = dataclasses.field(default_factory=collections.Counter)

    def twice(self) -> list:
        return sorted(token for token, count in self.starts.items() if count > 1)

    def lost(self) -> list:
        """Promised, never started, and nobody is told that it was cut or killed."""
        return sorted(
            f"{token} ({self.states.get(token)})"
            for token in self.promised
            if self.starts[token] == 0 and self.states.get(token) not in ("interrupted", "killed")
        )

    def untrue(self) -> list:
        """Told as not run, and it was."""
        return sorted(
            token for token, state in self.states.items() if self.starts[token] and state == "waiting"
        )


def processes(machine: Machine) -> dict:
    """Those of this machine, by what they are."""
    found = collections.defaultdict(list)
    for pid in machine.inhabitants():
        if is_probe(pid) or is_fork(pid):
            continue
        with contextlib.suppress(OSError):
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
            if "__jobs" in words:
                found["runner"].append(pid)
            elif "__job" in words:
                found["run"].append(pid)
            elif "submit" in words:
                found["submit"].append(pid)
            elif "attach" in words:
                found["attach"].append(pid)
            elif "edit" in words:
                found["edit"].append(pid)
            elif words[0] == "sh":
                found["job"].append(pid)
    return found


class Storm:
    def __init__(self, machine: Machine, seed: int):
        self.machine = machine
        self.random = random.Random(seed)
        self.marks = machine.directory / "marks"
        self.marks.mkdir()
        self.found = Found()
        self.count = 0
        self.submitting = {}
        self.attached = []
        self.editing = []
        self.tokens = {}

    def submit(self) -> None:
        self.count += 1
        token = f"t{self.count}"
        length = self.random.choice(["0", "0.01", "0.05"])
        request = self.random.choice([[], [], ["-n", "2"]])
        tasks = self.random.choice([0, 0, 0, 4])
        array = ["--array", f"0-{tasks - 1}%2"] if tasks else []
        terminal = self.random.choice([[], [], ["--tty"]])
        self.tokens[token] = [f"{token}.{index}" for index in range(tasks)] or [token]
        words = ["sh", "-c", JOB, self.marks, f"{token}.{{index}}" if tasks else token, length]
        self.submitting[token] = self.machine.start_berth(
            "submit", "-J", token, *array, *terminal, *request, "--", *words
        )

    def edit(self) -> None:
        number = str(self.random.randint(1, self.count + 1))
        other = str(self.random.randint(1, self.count + 1))
        wish = self.random.choice(
            [
                ["--hold"],
                ["--no-hold"],
                ["--first"],
                ["--last"],
                ["--before", other],
                ["-n", "1"],
                ["-n", "2"],
            ]
        )
        self.editing.append(self.machine.start_berth("edit", number, *wish, "--yes"))

    def collect_edits(self) -> None:
        for process in [each for each in self.editing if each.poll() is not None]:
            process.communicate()
            self.editing.remove(process)
            self.machine.running.remove(process)

    def collect(self) -> None:
        self.collect_edits()
        for token, process in list(self.submitting.items()):
            if process.poll() is not None:
                process.communicate()
                del self.submitting[token]
                self.machine.running.remove(process)
                if process.returncode == 0:
                    self.found.promised.update(self.tokens[token])

    def attach(self) -> None:
        """A terminal that nobody reads, to whatever job it may be."""
        ours, theirs = pty.openpty()
        number = str(self.random.randint(1, self.count + 1))
        words = [self.machine.program, "attach", number]
        self.attached.append((self.machine.start(*words, stdin=theirs, stdout=theirs, stderr=theirs), ours))
        os.close(theirs)

    def kill_one(self) -> None:
        there = processes(self.machine)
        if not there:
            return
        kind = self.random.choice(sorted(there))
        victims = there[kind]
        if self.random.random() < 0.1:  # all at once, as at the end of a session
            kind, victims = "all", sum(there.values(), [])
        elif self.random.random() > 0.3:
            victims = [self.random.choice(victims)]
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.found.kills[kind] += 1

    def round(self) -> None:
        for _ in range(self.random.randint(0, 3)):
            self.submit()
        if self.random.random() < 0.3:
            self.attach()
        for _ in range(self.random.randint(0, 2)):
            self.edit()
        time.sleep(self.random.random() * 0.03)  # when a kill comes is what is tried
        self.kill_one()
        self.collect()

    def told(self) -> list:
        jobs = self.machine.berth("jobs", "--json").json["jobs"]
        arrays = [job["id"] for job in jobs if job["tasks"]]
        tasks = self.machine.berth("jobs", "--json", *arrays).json["jobs"] if arrays else []
        return [job for job in jobs if not job["tasks"]] + tasks

    def settle(self) -> Found:
        """Lets all that is left run."""
        for process, terminal in self.attached:
            process.kill()
            process.wait()
            os.close(terminal)
        while self.submitting or self.editing:
            self.collect()
            time.sleep(0.01)
        for job in self.told():
            if job["held"]:
                self.machine.berth("edit", str(job["job"]), "--no-hold")
        end = time.monotonic() + DEADLINE_S + self.count
        while any(job["state"] in ("waiting", "running") for job in self.told()):
            assert time.monotonic() < end, "some still wait, and nothing happens"
            time.sleep(0.1)
        self.found.states = {
            job["name"] + (f".{job['index']}" if job["index"] is not None else ""): (
                "killed" if job["signal"] else job["state"]
            )
            for job in self.told()
        }
        for path in self.marks.iterdir():
            self.found.starts[path.name] = path.read_text().split().count("start")
        return self.found


def storm(machine: Machine, seed: int, go_on) -> Found:
    """Rounds as long as go_on(round) says so."""
    made = Storm(machine, seed)
    number = 0
    while go_on(number):
        made.round()
        number += 1
    return made.settle()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    end = time.monotonic() + 60 * arguments.minutes
    total, wrong, number = 0, 0, 0
    while time.monotonic() < end:
        with tempfile.TemporaryDirectory(prefix="berth-storm-") as directory:
            machine = Machine(pathlib.Path(directory), "4xH100")
            try:
                found = storm(
                    machine, arguments.seed + number, lambda done: done < 200 and time.monotonic() < end
                )
            finally:
                machine.close()
        number += 1
        total += len(found.promised)
        states = collections.Counter(found.states.values())
        print(f"{len(found.promised)} promised, {dict(states)}, killed {dict(found.kills)}", flush=True)
        for words, tokens in [("twice", found.twice()), ("lost", found.lost()), ("untrue", found.untrue())]:
            if tokens:
                wrong += len(tokens)
                print(f"{words}: {tokens}", flush=True)
    print(f"{total} jobs promised, {wrong} wrong")
    return 1 if wrong or not total else 0


if __name__ == "__main__":
    sys.exit(main())
