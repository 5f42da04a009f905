"""Jobs that were submitted, for the tests of them."""

import contextlib
import os
import pathlib
import signal

from jobs import eventually
from simulated_machine import Machine
from storm import processes


def submit(machine: Machine, *words, **more) -> str:
    """The number of a job."""
    answer = machine.berth("submit", *words, **more)
    assert answer.status == 0, answer.err
    return answer.out.strip()


def told(machine: Machine, *jobs) -> list[dict]:
    """What users are told of them, without starting a runner for those that wait."""
    return machine.berth("jobs", "--json", *jobs).json["jobs"]


def job(machine: Machine, number: str) -> dict:
    (found,) = told(machine, number)
    return found


def wait_for(machine: Machine, number: str, state: str) -> dict:
    return eventually(lambda: (found := job(machine, number))["state"] == state and found)


def log(machine: Machine, number: str) -> str:
    return machine.berth("log", number).out


def spool(machine: Machine) -> pathlib.Path:
    (folder,) = (machine.directory / "home/.local/state/berth/jobs").iterdir()
    return folder


def fill(machine: Machine, count: int) -> list[str]:
    """Jobs that hold a GPU each, and run."""
    numbers = [submit(machine, "--job-name", "holder", "--", "sleep", "1000") for _ in range(count)]
    for number in numbers:
        wait_for(machine, number, "running")
    return numbers


def cmdline(pid: int) -> bytes:
    return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0")


def kill(machine: Machine, *kinds) -> None:
    """kill -9 of all processes of these kinds: runner, run, job."""
    # Stopped first: else who is still there begins the next meanwhile.
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for kind in kinds:
            for pid in processes(machine)[kind]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
    eventually(lambda: not any(processes(machine)[kind] for kind in kinds))
