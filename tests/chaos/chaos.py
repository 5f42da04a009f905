#!/usr/bin/env python3
"""Real jobs that are killed, stopped, forked and daemonised at random, on few devices, for as long as asked.

Two detectors that know nothing of each other watch for a device with two owners: each job binds names that
only one can have (job.c), and the files in leases/ are read over and over, each with the lock that says
whether it lives. In the end everybody must have been served, nothing be leased and everything grantable."""

import argparse
import collections
import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

if __name__ == "__main__":
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
from chaos.overlaps import overlaps_in, place_of
from simulated_machine import BUILD, Machine

DEVICES = 3
PARTS = 2  # so many shares of SHARE go on one card
SHARE_GIB = 30
AT_ONCE = 8
# Hang guard for the end: a dozen jobs of a third of a second each, and a tick of 5 s for each one
# stopped.
PATIENCE_S = 120


class Chaos:
    def __init__(self, lab: Machine, seed: int):
        self.machine = lab
        self.random = random.Random(seed)
        # The order of the line and its gaps are rules of the site: each round has other ones.
        order = "fair" if seed // 2 % 2 == 0 else "fifo"
        backfill = "true" if seed // 4 % 4 > 0 else "false"
        expect = ("none", "limits", "none", "runs")[seed // 16 % 4]
        (lab.directory / "site.toml").write_text(
            f'order = "{order}"\nbackfill = {backfill}\nassumed_time = "2s"\nexpect = "{expect}"\n'
        )
        # A bare flock on a file that somebody removes is lost to everybody, so a run has the one or
        # the other.
        self.removes_files = seed % 2 == 0
        self.log = lab.directory / "log"
        self.log.touch()
        self.job = lab.build / "chaos_job"
        self.jobs: list[subprocess.Popen] = []
        self.done: dict[str, int] = collections.Counter()
        self.overlaps: list[str] = []
        self.looks = 0
        self.ended = threading.Event()
        lab.berth("run", "-n", DEVICES, "--", "true")
        self.uuids = lab.run("nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader").out.split()

    def run(self, seconds: float) -> None:
        watcher = threading.Thread(target=self.watch)
        watcher.start()
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end:
                self.collect()
                self.random.choices([self.start, self.kill, self.stop, self.meddle], [10, 4, 2, 1])[0]()
                time.sleep(self.random.uniform(0, 0.02))
            self.finish()
        finally:
            self.ended.set()
            watcher.join()
            for job in self.jobs:
                job.kill()

    def watch(self) -> None:
        while not self.ended.wait(0.001):
            self.looks += 1
            self.overlaps += overlaps_in(self.machine.leases / "leases")

    # What happens

    def start(self) -> None:
        if len(self.jobs) >= AT_ONCE:
            return
        # Some are there for so long that they end at their time, or for somebody else.
        life_ms = self.random.randint(10, 300) if self.random.random() < 0.9 else 1500
        form = self.random.choice(["plain", "plain", "fork", "daemon", "exec", "signal"])
        options, wanted = self.random.choice(
            [
                (["-n", "1"], PARTS),
                (["-n", "2"], PARTS),
                (["-n", str(DEVICES)], PARTS),
                (["--devices", "0,1", "-n", "1"], PARTS),
                (["--devices", "1,2", "-n", "1"], PARTS),
                (["--memory", f"{SHARE_GIB}G"], 1),
                (["--memory", f"{SHARE_GIB}G", "-n", "2"], 1),
                (["--no-wait"], PARTS),
                (["--wait", "1s"], PARTS),
                (["--exec"], PARTS),
                (["-n", "1", "--time", "1s"], PARTS),
                (["-n", "2", "--time", "5s"], PARTS),
                (["--yield=1s"], PARTS),
                (["-n", "2", "--yield=1s", "--requeue"], PARTS),
                (["-n", "1", "--yield=1s", "--time", "1s"], PARTS),
            ]
        )
        self.launch([self.machine.program, "run", *options, "--", *self.words(wanted, life_ms, form)])

    def words(self, wanted: int, life_ms: int, form: str) -> list:
        return [self.job, place_of(self.machine.directory), PARTS, self.log, wanted, life_ms, form]

    def launch(self, command: list) -> None:
        self.jobs.append(
            subprocess.Popen(
                [str(word) for word in command],
                env=self.machine.env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        )

    def victims(self) -> list:
        """Every process that is ours: berth, the commands, and what these have left behind."""
        pids = {job.pid for job in self.jobs}
        for line in self.log.read_text().splitlines()[-4 * AT_ONCE :]:
            pid = int(line.split()[1])
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/exe") == str(self.job):
                    pids.add(pid)
        return sorted(pids)

    def send(self, number: int) -> int:
        pid = self.random.choice(self.victims() or [0])
        if pid == 0:
            return 0
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        self.done[signal.Signals(number).name] += 1
        return pid

    def kill(self) -> None:
        self.send(self.random.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT]))

    def stop(self) -> None:
        pid = self.send(signal.SIGSTOP)
        if pid != 0:
            later = threading.Timer(self.random.uniform(0, 0.3), self.go_on, [pid])
            later.daemon = True
            later.start()

    @staticmethod
    def go_on(pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)

    def meddle(self) -> None:
        index = self.random.randrange(DEVICES)
        path = self.machine.leases / "devices" / self.uuids[index]
        if self.removes_files:
            path.unlink(missing_ok=True)
            self.done["removed file"] += 1
        else:
            self.launch([*self.words(PARTS, self.random.randint(10, 100), "flock"), path, index])
            self.done["bare flock"] += 1

    def collect(self) -> None:
        for job in list(self.jobs):
            if (status := job.poll()) is not None:
                self.jobs.remove(job)
                self.done[f"ended with {status}"] += 1

    # The end

    def finish(self) -> None:
        """Everybody is served, and nothing is left."""
        end = time.monotonic() + PATIENCE_S
        while self.jobs or self.leftovers():
            assert time.monotonic() < end, f"stuck: {self.still_there()}"
            for pid in self.victims():
                self.go_on(pid)
            self.collect()
            time.sleep(0.01)
        all_at_once = self.machine.berth("run", "--no-wait", "-n", DEVICES, "--", "true")
        assert all_at_once.status == 0, all_at_once.err
        for part in ("queue", "leases"):
            assert list((self.machine.leases / part).iterdir()) == [], part

    def leftovers(self) -> list:
        return [pid for pid in self.victims() if pid not in {job.pid for job in self.jobs}]

    def still_there(self) -> str:
        files = {part: os.listdir(self.machine.leases / part) for part in ("queue", "leases")}
        return f"{self.victims()} {files}"

    def verdict(self) -> list:
        by_jobs = [line for line in self.log.read_text().splitlines() if line.startswith("OVERLAP")]
        return by_jobs + self.overlaps


def run_chaos(directory: pathlib.Path, seed: int, seconds: float, build: pathlib.Path = BUILD) -> Chaos:
    chaos = Chaos(Machine(directory, f"{DEVICES}xH100", build), seed)
    chaos.run(seconds)
    assert chaos.verdict() == [], chaos.verdict()
    return chaos


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, help="of the first round; each round has the next one")
    parser.add_argument("--round", type=float, default=20, help="seconds that a round takes")
    parser.add_argument("--build", type=pathlib.Path, default=BUILD)
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 31)
    end = time.monotonic() + 60 * options.minutes
    failed = passed = 0
    while passed + failed == 0 or time.monotonic() < end:
        with tempfile.TemporaryDirectory(prefix="chaos-") as directory:
            try:
                chaos = run_chaos(pathlib.Path(directory), seed, options.round, options.build.resolve())
                passed += 1
                print(f"seed {seed}: {dict(sorted(chaos.done.items()))}, {chaos.looks} looks", flush=True)
            except AssertionError as failure:
                failed += 1
                print(f"seed {seed}: FAILED: {failure}", flush=True)
        seed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
