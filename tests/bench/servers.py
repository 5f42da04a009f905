"""The servers that some peers need, as plain processes of the run: on loopback, with all their files in the
machine's directory, ended with the run."""

from __future__ import annotations

import contextlib
import getpass
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import shelf
from machines import Machine
from running import run

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from slurm_node import SlurmNode, free_port

PATIENCE_S = 10
STARTED_S = 0.05  # between two looks whether a server answers


class Server:
    """Some processes. `commands`: in the order in which they are started."""

    name = ""

    def __init__(self, machine: Machine):
        self.machine = machine
        self.environment = machine.environment
        self.processes: list[subprocess.Popen] = []

    def spawn(self, words: list[str], **more: str) -> None:
        log = self.machine.directory / f"{pathlib.Path(words[0]).name}.log"
        with log.open("w") as out:
            self.processes.append(
                subprocess.Popen(
                    words, env=self.environment | more, stdin=subprocess.DEVNULL, stdout=out, stderr=out
                )
            )

    def tell(self, words: list[str]) -> str:
        """Runs one of its clients. Raises NotHad when that fails."""
        try:
            done = run(words, self.environment, PATIENCE_S)
        except subprocess.TimeoutExpired as error:
            raise shelf.NotHad(f"{pathlib.Path(words[0]).name} hangs: no answer in {PATIENCE_S} s") from error
        except OSError as error:
            raise shelf.NotHad(f"{pathlib.Path(words[0]).name} fails: {shelf.last_line(error)}") from error
        if done.returncode != 0:
            raise shelf.NotHad(
                f"{pathlib.Path(words[0]).name} fails: {shelf.last_line(ValueError(done.stderr))}"
            )
        return done.stdout

    def await_answer(self, words: list[str]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not self.answers(words):
            if time.monotonic() > deadline or any(each.poll() is not None for each in self.processes):
                raise shelf.NotHad(f"{self.name} does not start")
            time.sleep(STARTED_S)

    def answers(self, words: list[str]) -> bool:
        try:
            return run(words, self.environment, PATIENCE_S).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return False

    def pids(self) -> list[int]:
        return [process.pid for process in self.processes]

    def close(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    # A queue of jobs, where it keeps one ----------------------------------------------------------

    def submitting(self, job: pathlib.Path) -> list[str]:
        """The command that submits this job once."""
        raise NotImplementedError

    def listing(self) -> list[str]:
        """The command that shows a line for each job."""
        raise NotImplementedError

    def submit(self, job: pathlib.Path, count: int) -> None:
        for _ in range(count):
            self.tell(self.submitting(job))

    def submit_array(self, job: pathlib.Path, count: int) -> None:
        """The same in one command, where it has that."""
        self.submit(job, count)


class Jobs(Server):
    """Ours is no server: a runner lives while there are jobs."""

    name = "berth"

    def __init__(self, machine: Machine, berth: str):
        super().__init__(machine)
        self.berth = berth

    def submitting(self, job: pathlib.Path) -> list[str]:
        return [self.berth, "submit", "--", str(job)]

    def submit_array(self, job: pathlib.Path, count: int) -> None:
        self.tell([self.berth, "submit", "--array", f"1-{count}", "--", str(job)])

    def listing(self) -> list[str]:
        return [self.berth, "jobs"]

    def pids(self) -> list[int]:
        """The runner, and what stands in line for its jobs."""
        return [
            pid
            for pid in processes_of(self.machine, "berth")
            if b"\0__job" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        ]

    def close(self) -> None:
        """What runs and waits ends with the machine."""


class Canhazgpu(Server):
    """With a Redis of its own: on a port of loopback, as it speaks to no Unix socket."""

    name = "canhazgpu"

    def __init__(self, machine: Machine, devices: int):
        super().__init__(machine)
        self.program = shelf.canhazgpu()
        port = free_port()
        # Its supervisor reads no other file.
        (machine.home / ".canhazgpu.yaml").write_text(f"redis:\n  host: 127.0.0.1\n  port: {port}\n")
        place = ["--bind", "127.0.0.1", "--port", str(port), "--dir", str(machine.directory)]
        self.spawn([shelf.program("redis"), *place, "--save", "", "--appendonly", "no"])
        self.await_answer([self.program, "admin", "--gpus", str(devices), "--provider", "fake"])

    def run(self, words: list[str]) -> list[str]:
        return [self.program, "run", "--gpus", "1", "--", *words]


class Slurm(Server):
    """One node, or several on this machine (tests/slurm_node.py)."""

    name = "Slurm"

    def __init__(self, machine: Machine, devices: int, nodes: int = 1):
        super().__init__(machine)
        # For the sentence that says what is missing.
        shelf.program("munge"), shelf.program("Slurm")
        node = SlurmNode(machine.directory / "slurm", devices, nodes=nodes)
        self.spawn(node.munge())
        self.await_answer(node.is_open())
        self.spawn(node.controller())
        for number in range(nodes):
            self.spawn(node.daemon(number))
        self.await_answer(self.srun(["true"]))
        while len(self.tell(["sinfo", "-h", "-N", "-t", "idle,mixed,allocated"]).splitlines()) < nodes:
            time.sleep(STARTED_S)

    def srun(self, words: list[str]) -> list[str]:
        return ["srun", "-Q", "--gres=gpu:1", *words]

    def submitting(self, job: pathlib.Path, *more: str) -> list[str]:
        nowhere = ["-o", "/dev/null", "-e", "/dev/null"]
        return ["sbatch", "-Q", "--gres=gpu:1", *nowhere, *more, str(job)]

    def submit(self, job: pathlib.Path, count: int) -> None:
        self.submit_array(job, count)

    def submit_array(self, job: pathlib.Path, count: int) -> None:
        self.tell(self.submitting(job, f"--array=1-{count}"))

    def listing(self) -> list[str]:
        return ["squeue", "-r"]

    def close(self) -> None:
        with contextlib.suppress(shelf.NotHad):
            self.tell(["scancel", "-u", getpass.getuser()])
            deadline = time.monotonic() + PATIENCE_S
            # A job's slurmstepd ends when it has told the servers.
            while self.tell(["squeue", "-h"]) and time.monotonic() < deadline:
                time.sleep(STARTED_S)
        super().close()


class Spooler(Server):
    """A queue of one slot. It knows no GPUs: its users start a spooler for each."""

    name = "task-spooler"

    def __init__(self, machine: Machine):
        super().__init__(machine)
        self.program = shelf.program("task-spooler")
        self.environment = self.environment | {"TS_MAXCONN": "2000", "TS_MAXFINISHED": "10"}
        self.tell([self.program, "-S", "1"])

    def wait(self, words: list[str]) -> list[str]:
        return [self.program, "-n", "-f", *words]

    def submitting(self, job: pathlib.Path) -> list[str]:
        return [self.program, "-n", str(job)]

    def listing(self) -> list[str]:
        return [self.program]

    def pids(self) -> list[int]:
        """The server, and the client that stays for each job."""
        return processes_of(self.machine, "tsp")

    def close(self) -> None:
        for words in (["-k"], ["-K"]):
            self.answers([self.program, *words])


class Gflow(Server):
    """Runs its jobs in tmux. It asks the driver (the simulated one), as often as it can be told to: each second."""

    name = "gflow"

    def __init__(self, machine: Machine):
        super().__init__(machine)
        self.folder = shelf.environment("gflow") / "bin"
        # Its jobs call it by name, from a login shell of tmux.
        path = f"{self.folder}:{machine.environment['PATH']}"
        (machine.home / ".profile").write_text(f"export PATH='{path}'\n")
        self.environment = self.environment | {"PATH": path}
        settings = machine.home / ".config/gflow/gflow.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text(f'[daemon]\nhost = "127.0.0.1"\nport = {free_port()}\n')
        self.spawn([str(self.folder / "gflowd"), "--gpu-poll-interval-secs-internal", "1"])
        self.await_answer([str(self.folder / "ginfo")])

    def submitting(self, job: pathlib.Path) -> list[str]:
        return [str(self.folder / "gbatch"), "-g", "1", "--auto-close", str(job)]

    def listing(self) -> list[str]:
        return [str(self.folder / "gqueue")]

    def close(self) -> None:
        super().close()
        self.answers(["tmux", "kill-server"])


class Pueue(Server):
    """One job at a time. It knows no GPUs: its users make a group for each."""

    name = "pueue"

    def __init__(self, machine: Machine):
        super().__init__(machine)
        self.folder = shelf.pueue()
        place = machine.directory / "pueue"
        place.mkdir()
        self.settings = place / "pueue.yml"
        self.settings.write_text(
            f"shared:\n  pueue_directory: {place}\n  runtime_directory: {place}\n  use_unix_socket: true\n"
        )
        self.spawn([str(self.folder / "pueued"), "-c", str(self.settings)])
        self.await_answer(self.client("status"))

    def client(self, *words: str) -> list[str]:
        return [str(self.folder / "pueue"), "-c", str(self.settings), *words]

    def submitting(self, job: pathlib.Path) -> list[str]:
        return self.client("add", "--", str(job))

    def listing(self) -> list[str]:
        return self.client("status")


def processes_of(machine: Machine, name: str) -> list[int]:
    """Those of this name that were started on this machine."""
    home = f"HOME={machine.home}\0".encode()
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (folder / "comm").read_text().strip() == name and home in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found


class Servers:
    """Each is started when it is first asked for. One that does not start is not tried again."""

    def __init__(self, machine: Machine, devices: int, nodes: int = 1):
        self.machine, self.devices, self.nodes = machine, devices, nodes
        self.had: dict[str, Server | shelf.NotHad] = {}

    def get(self, name: str, make: Callable[[], Server]) -> Server:
        if name not in self.had:
            try:
                self.had[name] = make()
            except (shelf.NotHad, OSError) as error:
                self.had[name] = error if isinstance(error, shelf.NotHad) else shelf.NotHad(str(error))
        found = self.had[name]
        if isinstance(found, shelf.NotHad):
            raise found
        return found

    def canhazgpu(self) -> Canhazgpu:
        return self.get("canhazgpu", lambda: Canhazgpu(self.machine, self.devices))

    def slurm(self) -> Slurm:
        return self.get("slurm", lambda: Slurm(self.machine, self.devices, self.nodes))

    def spooler(self) -> Spooler:
        return self.get("spooler", lambda: Spooler(self.machine))

    def gflow(self) -> Gflow:
        return self.get("gflow", lambda: Gflow(self.machine))

    def pueue(self) -> Pueue:
        return self.get("pueue", lambda: Pueue(self.machine))

    def jobs(self, berth: str) -> Jobs:
        return self.get("berth", lambda: Jobs(self.machine, berth))


@contextlib.contextmanager
def servers(machine: Machine, devices: int, nodes: int = 1) -> Iterator[Servers]:
    """`devices` of each of the `nodes` of a server that has several."""
    started = Servers(machine, devices, nodes)
    try:
        yield started
    finally:
        for each in started.had.values():
            if isinstance(each, Server):
                each.close()
