#!/usr/bin/python3
"""A simulated machine on which jobs come and go, and the page of `berth serve` beside it, until Ctrl-C.

The jobs are real processes under real leases of `berth run`; they sleep. Only the GPUs are simulated: this writes
into the scenario what each job would make of them. One job computes without a lease, and one lease computes nothing.
"""

import argparse
import contextlib
import math
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

DEVICES = [("H100", 700, 80_000)] * 6 + [("L40S", 350, 45_000)] * 2
# Says who it is and what it sees, then sleeps: what a GPU does meanwhile is written into the
# scenario.
JOB = """import os, sys, time
with open(f"{sys.path[0]}/jobs/{os.getpid()}.new", "w") as file:
    file.write(os.environ.get("CUDA_VISIBLE_DEVICES", ""))
os.rename(file.name, file.name[:-4])
time.sleep(float(sys.argv[-1]))
"""
SCRIPTS = ["train.py", "eval.py", "sweep.py", "notebook.py"]
WORDS = {"train.py": "--config llama3-8b.yaml", "eval.py": "--split test", "sweep.py": "--grid lr.toml"}
NOTES = [None, None, "paper deadline, please ask", "sweep 3 of 8", "debugging, short"]
# System accounts, as which root can show a machine of several people.
PEOPLE = ["games", "news", "backup", "mail"]
MOST_JOBS = 6


class Machine:
    def __init__(self, program: str, folder: pathlib.Path, seed: int):
        self.program, self.folder = program, folder
        self.chance = random.Random(seed)
        self.scenario = folder / "machine.toml"
        self.running: list[subprocess.Popen] = []
        self.began = time.monotonic()
        (folder / "jobs").mkdir()
        (folder / "jobs").chmod(0o1777)
        for name in SCRIPTS:
            (folder / name).write_text(JOB)
        self.people = [who for who in PEOPLE if self.can_run_as(who)]
        self.write_scenario()

    def as_person(self, who: str) -> list[str]:
        return ["setpriv", f"--reuid={who}", f"--regid={who}", "--clear-groups", "--reset-env"]

    def can_run_as(self, who: str) -> bool:
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            return False
        test = [*self.as_person(who), "test", "-x", self.program, "-a", "-x", str(self.folder)]
        return subprocess.run(test, capture_output=True).returncode == 0

    def start(self, *words: str, person: bool = True, **options) -> subprocess.Popen:
        who = self.as_person(self.chance.choice(self.people)) if person and self.people else []
        # Of a session of their own: Ctrl-C is for this program, which then ends them.
        process = subprocess.Popen(
            [*who, *words],
            stdin=subprocess.DEVNULL,
            stderr=options.pop("stderr", subprocess.DEVNULL),
            cwd=self.folder,
            start_new_session=True,
            **options,
        )
        self.running.append(process)
        return process

    def berth(self, *words: str, **options) -> subprocess.Popen:
        return self.start(self.program, "--sim", str(self.scenario), *words, **options)

    def start_job(self, script: str, seconds: float, *request: str) -> None:
        note = self.chance.choice(NOTES)
        said = ["--note", note] if note else []
        self.berth("run", *request, *said, "--", *self.command(script, seconds), stdout=subprocess.DEVNULL)

    def command(self, script: str, seconds: float) -> list[str]:
        return ["python3", script, *WORDS.get(script, "").split(), "--seconds", f"{seconds:.0f}"]

    def start_some(self) -> None:
        """What is there from the start: one of each kind that the page tells apart."""
        self.start_job("train.py", 120, "-n", "2", "--name", "H100")
        self.start_job("sweep.py", 50, "-n", "2", "--name", "H100")
        self.start_job("notebook.py", 3600)
        where = f"CUDA_VISIBLE_DEVICES={len(DEVICES) - 1}"
        self.start("env", where, *self.command("eval.py", 3600), stdout=subprocess.DEVNULL)

    def go_on(self) -> None:
        """A second passes."""
        for process in self.running:
            process.poll()
        self.running = [process for process in self.running if process.returncode is None]
        # The server, the notebook and the outsider are always there.
        if len(self.running) < MOST_JOBS + 3 and self.chance.random() < 0.15:
            script = self.chance.choice(SCRIPTS[:3])
            count = self.chance.choice([1, 1, 1, 2, 2, 3])
            self.start_job(script, self.chance.uniform(15, 90), "-n", str(count))
        self.write_scenario()

    def jobs(self) -> dict[int, list[tuple[int, str]]]:
        """Who computes on each device, as they said themselves."""
        found: dict[int, list[tuple[int, str]]] = {}
        for path in (self.folder / "jobs").iterdir():
            if not path.name.isdigit():
                continue
            words = command_of(int(path.name))
            if not words:
                path.unlink()
                continue
            if "notebook.py" in words:
                continue  # thinks
            for device in re.findall(r"\d+", path.read_text()):
                found.setdefault(int(device), []).append((int(path.name), words))
        return found

    def write_scenario(self) -> None:
        jobs = self.jobs()
        now = time.monotonic() - self.began
        text = 'driver = "570.124.06"\nmemory_return_delay = "2s"\n'
        for index, (model, watts, mib) in enumerate(DEVICES):
            load = 0.0
            if index in jobs:
                load = min(1.0, 0.78 + 0.2 * math.sin(now / 7 + index) + self.chance.uniform(-0.05, 0.05))
            text += (
                f'\n[[device]]\nmodel = "{model}"\nutilization = {round(100 * load)}\n'
                f"temperature = {round(31 + 40 * load)}\npower_w = {round(60 + (watts - 90) * load)}\n"
            )
            for pid, words in jobs.get(index, []):
                share = 0.3 + 0.6 * random.Random(f"{pid} {words}").random()
                text += f"[[device.process]]\npid = {pid}\nused_mib = {round(mib * share)}\n"
        fresh = self.scenario.with_suffix(".new")
        fresh.write_text(text)
        fresh.rename(self.scenario)

    def end(self) -> None:
        for process in self.running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def command_of(pid: int) -> str:
    """ "" when it is gone."""
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def serve(machine: Machine, listen: str) -> str:
    """The address of the page."""
    history = str(machine.folder / "history.db")
    server = machine.berth(
        *("serve", "--listen", listen, "--history", history), person=False, stderr=subprocess.PIPE, text=True
    )
    line = server.stderr.readline()
    found = re.search(r"serving (\S+)", line)
    if not found:
        sys.exit(line.strip() + server.stderr.read())
    return found[1] + "/"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("program", help="the berth to show")
    options.add_argument("--listen", default="127.0.0.1:8420", help="where the page is (default %(default)s)")
    options.add_argument("--seed", type=int, default=7, help="another gives other jobs")
    chosen = options.parse_args()
    for number in signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, lambda *_: sys.exit(0))
    with tempfile.TemporaryDirectory(prefix="berth-demo-") as folder, contextlib.suppress(KeyboardInterrupt):
        os.chmod(folder, 0o755)
        machine = Machine(os.path.abspath(chosen.program), pathlib.Path(folder), chosen.seed)
        try:
            address = serve(machine, chosen.listen)
            machine.start_some()
            print(
                f"\nA simulated machine with {len(DEVICES)} GPUs, and jobs that come and go:\n\n    {address}\n"
            )
            print("Open that in a browser. Ctrl-C ends it.", flush=True)
            while True:
                time.sleep(1)
                machine.go_on()
        finally:
            machine.end()
    print()


if __name__ == "__main__":
    main()
