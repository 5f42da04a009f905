"""A simulated machine with Berth on it, as the tests of the program see both."""

import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import subprocess

BUILD = pathlib.Path(
    os.environ.get("BERTH_BUILD", pathlib.Path(__file__).parents[1] / "build/release")
).resolve()
# As a container has them: a command before which these words stand is the first process there.
PRIVATE_PIDS = ("unshare", "--pid", "--mount-proc", "--fork", "--kill-child")
# Of the arguments or the environment: a process of another test may say that it has gigabytes.
MOST_OF_A_PROCESS = 1 << 20
DEADLINE_S = 90  # hang guard: everything here answers within milliseconds, a sanitized build within seconds


@dataclasses.dataclass
class Answer:
    """How a command ended and what it said."""

    status: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


def machine_text(scenario: str) -> str:
    """The scenario of "8xH100" or "4xA100+2xT4"; any other text is a scenario itself."""
    if "\n" in scenario or "[" in scenario:
        return scenario
    devices = (part.split("x", 1) for part in scenario.split("+"))
    return "\n".join(f'[[device]]\nmodel = "{model}"\ncount = {count}\n' for count, model in devices)


class Machine:
    """One machine, one lease directory and one user's home, all in `directory`.

    `env` is what a program started here sees; change it as a test needs."""

    def __init__(self, directory: pathlib.Path, scenario: str = "8xH100", build: pathlib.Path = BUILD):
        self.directory = directory
        self.build = build
        self.program = build / "berth"
        self.file = directory / "machine.toml"
        self.running = []
        (directory / "home").mkdir(exist_ok=True)
        (directory / "site.toml").touch()
        self.change(scenario)
        clean = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(directory / "home"),
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "BERTH_SITE_FILE": str(directory / "site.toml"),
        }
        sanitizers = {name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")}
        inside = subprocess.run(
            [build / "sim/berth-sim", self.file, "--", "env", "-0"],
            env=clean | sanitizers,
            check=True,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        self.env = dict(word.split("=", 1) for word in inside.stdout.rstrip("\0").split("\0"))
        # The user of these tests lives on the machine.
        del self.env["XDG_STATE_HOME"]
        self.leases = pathlib.Path(self.env["BERTH_DIR"])

    def change(self, scenario: str) -> None:
        """The machine from the next driver call on."""
        fresh = self.file.with_suffix(".new")
        fresh.write_text(machine_text(scenario))
        fresh.rename(self.file)

    def run(self, *command, **options) -> Answer:
        """Any program, run to its end inside the machine. `env` adds to the environment; None takes a name away."""
        env = self.env | options.pop("env", {})
        options.setdefault("stdin", None if "input" in options else subprocess.DEVNULL)
        done = subprocess.run(
            [str(word) for word in command],
            env={name: str(value) for name, value in env.items() if value is not None},
            text=True,
            timeout=options.pop("timeout", DEADLINE_S),
            **({"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options),
        )
        return Answer(done.returncode, done.stdout or "", done.stderr or "")

    def berth(self, *words, **options) -> Answer:
        return self.run(self.program, *words, **options)

    def start(self, *command, **options) -> subprocess.Popen:
        """Any program, left running. The fixture ends what is left."""
        env = self.env | options.pop("env", {})
        process = subprocess.Popen(
            [str(word) for word in command],
            env={name: str(value) for name, value in env.items() if value is not None},
            text=True,
            **({"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options),
        )
        self.running.append(process)
        return process

    def start_berth(self, *words, **options) -> subprocess.Popen:
        return self.start(self.program, *words, **options)

    def close(self) -> None:
        """Ends what was started here and what that has left, deaf to signals or not."""
        for process in self.running:
            if process.poll() is None:
                process.kill()
        while left := self.inhabitants():
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        for process in self.running:
            process.communicate(timeout=DEADLINE_S)

    def inhabitants(self) -> list[int]:
        """Those whose environment is this machine's, and who have not ended."""
        found, mine = [], os.fsencode(self.file)
        for name in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as environ:
                # It has ended, or is another user's. A zombie has none.
                if mine in environ.read(MOST_OF_A_PROCESS):
                    found.append(int(name))
        return found
