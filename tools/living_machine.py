#!/usr/bin/python3
"""A simulated machine on which jobs come and go, and the page of `berth serve` beside it, until Ctrl-C.

The jobs are real processes under real leases of `berth run`; they sleep. Only the GPUs are simulated: this writes
into the scenario what each job would make of them. One job computes without a lease, and one lease computes nothing.
What was before the start is made up, in the history of the page.
"""

import argparse
import contextlib
import getpass
import json
import math
import os
import pathlib
import random
import re
import shutil
import signal
import sqlite3
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
# As whom root runs the jobs. No machine has these numbers of users.
PEOPLE = {"ada": 60801, "bela": 60802, "chen": 60803, "dilara": 60804}
# Says that the people have accounts here.
INSIDE = "BERTH_DEMO_PEOPLE"
MOST_JOBS = 8
PAST_S = 8 * 3600
SAMPLE_S = 10


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
        self.people = [who for who in PEOPLE if INSIDE in os.environ and self.can_run_as(who)]
        self.write_scenario()

    def as_person(self, who: str) -> list[str]:
        number = PEOPLE[who]
        return ["setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups", "--reset-env"]

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

    def run(self, *words: str) -> str:
        """What berth prints."""
        program = [self.program, "--sim", str(self.scenario)]
        return subprocess.run([*program, *words], check=True, capture_output=True, text=True).stdout

    def berth(self, *words: str, **options) -> subprocess.Popen:
        return self.start(self.program, "--sim", str(self.scenario), *words, **options)

    def start_job(self, script: str, seconds: float, *request: str, limit: bool = True) -> None:
        note = self.chance.choice(NOTES)
        said = ["--note", note] if note else []
        if limit:
            said += ["--time", f"{round(seconds * self.chance.uniform(1.1, 1.6))}s"]
        self.berth("run", *request, *said, "--", *self.command(script, seconds), stdout=subprocess.DEVNULL)

    def command(self, script: str, seconds: float) -> list[str]:
        return ["python3", script, *WORDS.get(script, "").split(), "--seconds", f"{seconds:.0f}"]

    def start_some(self) -> None:
        """What is there from the start: one of each kind that the page tells apart."""
        self.start_job("train.py", 1500, "-n", "2", "--name", "H100")
        self.wait_for_leases(1)
        self.start_job("sweep.py", 200, "-n", "2", "--name", "H100")
        self.wait_for_leases(2)
        self.start_job("notebook.py", 3600, "--name", "L40S", limit=False)
        self.wait_for_leases(3)
        # It waits for the sweep.
        self.start_job("train.py", 600, "-n", "4", "--name", "H100")
        where = f"CUDA_VISIBLE_DEVICES={len(DEVICES) - 1}"
        self.start("env", where, *self.command("eval.py", 3600), stdout=subprocess.DEVNULL)

    def wait_for_leases(self, count: int) -> None:
        while len(json.loads(self.run("list", "--json"))["leases"]) < count:
            time.sleep(0.05)

    def go_on(self) -> None:
        """A second passes."""
        for process in self.running:
            process.poll()
        self.running = [process for process in self.running if process.returncode is None]
        # The server, the notebook and the outsider are always there.
        if len(self.running) < MOST_JOBS + 3 and self.chance.random() < 0.15:
            script = self.chance.choice(SCRIPTS[:3])
            count = self.chance.choice([1, 1, 1, 2, 2, 3])
            self.start_job(script, self.chance.uniform(40, 400), "-n", str(count))
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


class Past:
    """The hours before the start, as a history that the page goes on with."""

    def __init__(self, machine: Machine, history: sqlite3.Connection, now_s: int):
        self.chance, self.history, self.now_s = machine.chance, history, now_s
        listed = machine.run("list", "--json")
        self.devices = [(each["uuid"], each["label"], each["name"]) for each in json.loads(listed)["devices"]]
        self.people = machine.people or [getpass.getuser()]
        self.leases = 0

    def write(self) -> None:
        self.history.executemany(
            "INSERT OR IGNORE INTO device (uuid, label, name) VALUES (?, ?, ?)", self.devices
        )
        self.history.executemany(
            "INSERT OR IGNORE INTO user (name) VALUES (?)", [(who,) for who in self.people]
        )
        self.history.execute("INSERT INTO watched VALUES (?, ?)", (self.now_s - PAST_S, self.now_s))
        for index, (uuid, _, _) in enumerate(self.devices):
            self.write_device(index, uuid)

    def write_device(self, index: int, uuid: str) -> None:
        (number,) = self.history.execute("SELECT id FROM device WHERE uuid = ?", (uuid,)).fetchone()
        at_s = self.now_s - PAST_S + self.chance.randrange(1800)
        while (end_s := at_s + self.chance.randrange(900, 7200)) < self.now_s - 60:
            # Now and then somebody leaves one idle.
            self.write_lease(number, index, at_s, end_s, 0 if self.chance.random() < 0.15 else 88)
            at_s = end_s + self.chance.choice([30, 60, 300, 1800])

    def write_lease(self, device: int, index: int, begun_s: int, ended_s: int, load: int) -> None:
        self.leases += 1
        who = self.chance.choice(self.people)
        _, watts, mib = DEVICES[index]
        lasted_s = ended_s - begun_s
        self.history.execute(
            "INSERT INTO lease (begun_s, id, device, user, ended_s, end_seen, leased_s, used_s, joined_s, whole, yields) "
            "VALUES (?, ?, ?, (SELECT id FROM user WHERE name = ?), ?, 1, ?, ?, ?, 1, 0)",
            (begun_s, self.leases, device, who, ended_s, lasted_s, lasted_s * load / 100, begun_s),
        )
        for hour_s in range(begun_s - begun_s % 3600, ended_s, 3600):
            part_s = min(ended_s, hour_s + 3600) - max(begun_s, hour_s)
            self.history.execute(
                "INSERT INTO hour SELECT ?, id, ?, ?, ? FROM user WHERE name = ? ON CONFLICT DO UPDATE SET "
                "leased_s = leased_s + excluded.leased_s, used_s = used_s + excluded.used_s",
                (hour_s, device, part_s, part_s * load / 100, who),
            )
        self.history.executemany(
            "INSERT OR IGNORE INTO sample VALUES (?, ?, ?, ?, ?, ?, ?, 100)",
            [
                (
                    SAMPLE_S,
                    at_s,
                    device,
                    use,
                    mib * (use > 0) // 2,
                    31 + use * 2 // 5,
                    60 + (watts - 90) * use // 100,
                )
                for at_s in range(begun_s - begun_s % SAMPLE_S, ended_s, SAMPLE_S)
                for use in [max(0, min(100, load + round(9 * math.sin(at_s / 90 + index))) if load else 0)]
            ],
        )


def served(machine: Machine, listen: str, history: pathlib.Path) -> tuple[subprocess.Popen, str]:
    """A server, and the address of its page."""
    server = machine.berth(
        *("serve", "--listen", listen, "--history", str(history)),
        person=False,
        stderr=subprocess.PIPE,
        text=True,
    )
    line = server.stderr.readline()
    found = re.search(r"serving (\S+)", line)
    if not found:
        sys.exit(line.strip() + server.stderr.read())
    return server, found[1] + "/"


def serve(machine: Machine, listen: str) -> str:
    """The address of the page."""
    history = machine.folder / "history.db"
    # The first one makes the file.
    server, _ = served(machine, "127.0.0.1:0", history)
    server.terminate()
    server.communicate()
    with contextlib.closing(sqlite3.connect(history)) as file:
        Past(machine, file, int(time.time())).write()
        file.commit()
    return served(machine, listen, history)[1]


def go_where_the_people_are() -> None:
    """Root goes on in a place of its own where these people have accounts. Else all jobs are of one user."""
    if os.geteuid() != 0 or INSIDE in os.environ or not shutil.which("unshare"):
        return
    known = pathlib.Path("/etc/passwd").read_text()
    people = [f"{who}:x:{uid}:{uid}::/nonexistent:/bin/sh\n" for who, uid in PEOPLE.items()]
    with tempfile.NamedTemporaryFile("w", prefix="berth-demo-", delete=False) as accounts:
        accounts.write(known + "".join(people))
        os.fchmod(accounts.fileno(), 0o644)
    enter = 'mount --bind "$0" /etc/passwd && rm "$0"'
    place = ["unshare", "--mount", "sh", "-c"]
    can = subprocess.run([*place, 'mount --bind "$0" /etc/passwd', accounts.name], capture_output=True)
    if can.returncode != 0:
        os.unlink(accounts.name)
        return
    os.environ[INSIDE] = "yes"
    os.execvp(place[0], [*place, f'{enter} && exec "$@"', accounts.name, sys.executable, *sys.argv])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("program", help="the berth to show")
    options.add_argument("--listen", default="127.0.0.1:8420", help="where the page is (default %(default)s)")
    options.add_argument("--seed", type=int, default=7, help="another gives other jobs")
    chosen = options.parse_args()
    go_where_the_people_are()
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
