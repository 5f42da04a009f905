#!/usr/bin/env python3
"""The clients of docs/standard.md and Berth, mixed on a few GPUs, killed and stopped at random while the lock files
are replaced, for as many rounds as asked. A round is a command that had a GPU.

Each command takes a lock of its own that only one can have, so two on a GPU show themselves. So do the names that the
job of the chaos run binds, if two are there for longer. And the rounds tell how often a client was ahead of a request
of Berth that already waited."""

import argparse
import collections
import contextlib
import fcntl
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

if __name__ == "__main__":
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
    sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "clients"))
from chaos.overlaps import overlaps_in, place_of
from simulated_machine import Machine
from standard.programs import LANGUAGES, berth, built, can_be_built, client, uuids

GPUS = 3
PARTS = 16  # more than can be at once: whole devices take all, a share takes one
AT_ONCE = 8
PATIENCE_S = 120  # hang guard: each waits for those before it, and a tick of 5 s for each that was stopped
LONGEST_MS = 12


class Mixed:
    def __init__(self, machine: Machine, programs: dict, seed: int):
        self.machine, self.programs = machine, programs
        self.random = random.Random(seed)
        self.directory = machine.leases / "devices"
        self.log = machine.directory / "log"
        self.log.touch()
        self.seen = 0  # of the log, in bytes
        self.jobs: dict[subprocess.Popen, tuple] = {}
        self.done: dict[str, int] = collections.Counter()
        self.victims: collections.deque = collections.deque(maxlen=4 * AT_ONCE)
        self.stopped: dict[int, float] = {}
        self.overlaps: list[str] = []
        # When clients had which GPU; and of requests of Berth from when on they waited for it, and
        # until when.
        self.clients: list[tuple] = []
        self.waited: list[tuple] = []
        self.boot_us = time.time_ns() // 1000 - time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000
        self.rounds = 0
        assert machine.berth("run", "-n", GPUS, "--", "true").status == 0
        self.uuids = uuids(machine)

    def run(self, rounds: int, until: float = float("inf")) -> None:
        try:
            while self.rounds < rounds and time.monotonic() < until:
                self.random.choices([self.start, self.kill, self.stop, self.replace], [12, 4, 3, 1])[0]()
                self.collect()
                if len(self.jobs) >= AT_ONCE:
                    time.sleep(0.002)
            self.finish()
        finally:
            for job in self.jobs:
                job.kill()

    # What happens

    def start(self) -> None:
        if len(self.jobs) >= AT_ONCE:
            return
        name = self.random.choice(list(self.programs))
        # Where somebody waits with Berth no client gets anything: mostly nobody does.
        how = self.random.choices(["take", "share", "wait"], [6, 3, 1])[0]
        index = self.random.randrange(GPUS)
        form = self.random.choice(["plain", "plain", "fork", "daemon", "exec", "signal"])
        wanted = 1 if how == "share" else PARTS
        # Above the lock's own descriptor: of a process that is killed the kernel closes this one
        # first.
        alone = f"{self.machine.directory}/alone{index}"
        note = f'exec 250>>"{alone}"; flock -n -{"s" if wanted == 1 else "x"} 250'
        note += f' || echo "OVERLAP $$ {index}" >>"$0"; echo "had {name} $$ {index} ${{EPOCHREALTIME/[.,]/}} 0${{BERTH_LEASE-}}" >>"$0"'
        note += f'; export CUDA_VISIBLE_DEVICES={index}; exec "$@"'
        job = [self.machine.build / "chaos_job", place_of(self.machine.directory), PARTS, self.log, wanted]
        command = ["bash", "-c", note, self.log, *job, self.random.randint(2, LONGEST_MS), form]
        words = self.programs[name].words(how, self.uuids[index], [str(word) for word in command])
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        env = self.programs[name].env | {"BERTH_DIR": str(self.machine.leases)}
        started = subprocess.Popen(words, env=env, start_new_session=True, **quiet)
        self.jobs[started] = (name, how)
        self.victims.append(started.pid)

    def is_ours(self, pid: int) -> bool:
        with contextlib.suppress(OSError):
            return os.fsencode(self.machine.directory) in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        return False

    def send(self, number: int) -> int:
        pid = self.random.choice(self.victims or [0])
        if pid == 0 or not self.is_ours(pid):
            return 0
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
            self.done[signal.Signals(number).name] += 1
        return pid

    def kill(self) -> None:
        self.send(self.random.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))

    def stop(self) -> None:
        if pid := self.send(signal.SIGSTOP):
            self.stopped[pid] = time.monotonic() + self.random.uniform(0, 0.05)

    def replace(self) -> None:
        """As root may: with the lock of the file that goes, and of the one that comes."""
        path = self.directory / self.random.choice(self.uuids)
        with path.open("r+") as old:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(old, fcntl.LOCK_EX | fcntl.LOCK_NB)
                fresh = self.machine.directory / "fresh"
                with fresh.open("w") as new:
                    fresh.chmod(0o1666)
                    fcntl.flock(new, fcntl.LOCK_EX)
                    fresh.rename(path)
                self.done["replaced files"] += 1

    def collect(self) -> None:
        for pid, end in list(self.stopped.items()):
            if time.monotonic() > end:
                del self.stopped[pid]
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
        for job in [job for job in self.jobs if job.poll() is not None]:
            name, _ = self.jobs.pop(job)
            self.done[f"{name} {'refused' if job.returncode == 75 else 'ended'}"] += 1
        with self.log.open() as log:
            log.seek(self.seen)
            for line in iter(log.readline, ""):
                if not line.endswith("\n"):
                    break
                self.seen += len(line)
                self.note(line.split())
        self.overlaps += overlaps_in(self.machine.leases / "leases")

    def note(self, words: list) -> None:
        if words[0] == "had":
            self.rounds += 1
            self.done[f"{words[1]} had it"] += 1
            self.victims.append(int(words[2]))
            index, now_us, lease = int(words[3]), int(words[4]), int(words[5], 16)
            if lease:
                self.waited.append((index, self.boot_us + lease // 1000, now_us))
            else:
                self.clients.append((index, now_us))
        elif words[0] == "pid":
            self.victims.append(int(words[1]))
        else:
            self.overlaps.append(" ".join(words))

    def ahead(self) -> int:
        """How often a client had a GPU while a request of Berth waited for it that had joined before. At most: between
        the lock and the command's first word lie some milliseconds, in which requests join as well."""
        return sum(
            any(gpu == index and joined < at < began for gpu, joined, began in self.waited)
            for index, at in self.clients
        )

    def finish(self) -> None:
        """Everybody is served, nothing is left, and all can be had."""
        end = time.monotonic() + PATIENCE_S
        while self.jobs or self.stopped or any(self.is_ours(pid) for pid in self.victims):
            assert time.monotonic() < end, f"stuck: {[job.args for job in self.jobs]}"
            self.collect()
            time.sleep(0.01)
        left = self.machine.berth("run", "--no-wait", "-n", GPUS, "--", "true")
        assert left.status == 0, left.err


def all_programs(machine: Machine, folder: pathlib.Path) -> dict:
    """Those for which a compiler is there."""
    clients = {each: client(built(each, folder)) for each in LANGUAGES if can_be_built(each)}
    return clients | {"berth": berth(machine)}


def run_mixed(
    directory: pathlib.Path, programs_in: pathlib.Path, seed: int, rounds: int, until: float = float("inf")
):
    machine = Machine(directory, f"{GPUS}xH100")
    mixed = Mixed(machine, all_programs(machine, programs_in), seed)
    mixed.run(rounds, until)
    assert mixed.overlaps == [], mixed.overlaps
    return mixed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="the longest that it may take")
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 31)
    end = time.monotonic() + 60 * options.minutes
    done: dict[str, int] = collections.Counter()
    rounds = 0
    with tempfile.TemporaryDirectory(prefix="mixed-") as programs:
        while rounds < options.rounds and time.monotonic() < end:
            with tempfile.TemporaryDirectory(prefix="mixed-") as directory:
                wanted = min(2000, options.rounds - rounds)
                try:
                    mixed = run_mixed(pathlib.Path(directory), pathlib.Path(programs), seed, wanted, end)
                except AssertionError as failure:
                    print(f"seed {seed}: FAILED: {failure}\n0 passed, 1 failed")
                    return 1
            rounds += mixed.rounds
            done.update(mixed.done | {"client ahead of one who waited": mixed.ahead()})
            print(f"seed {seed}: {rounds} rounds, {dict(sorted(done.items()))}", flush=True)
            seed += 1
    print("1 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
