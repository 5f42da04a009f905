"""Jobs that were submitted, for the tests of them."""

import contextlib
import os
import pathlib
import signal

from jobs import eventually
from lab import Lab
from storm import processes


def submit(lab: Lab, *words, **more) -> str:
    """The number of a job."""
    answer = lab.berth("submit", *words, **more)
    assert answer.status == 0, answer.err
    return answer.out.strip()


def told(lab: Lab, *jobs) -> list[dict]:
    """What users are told of them, without starting a runner for those that wait."""
    return lab.berth("jobs", "--json", *jobs).json["jobs"]


def job(lab: Lab, number: str) -> dict:
    (found,) = told(lab, number)
    return found


def wait_for(lab: Lab, number: str, state: str) -> dict:
    return eventually(lambda: (found := job(lab, number))["state"] == state and found)


def log(lab: Lab, number: str) -> str:
    return lab.berth("log", number).out


def spool(lab: Lab) -> pathlib.Path:
    (folder,) = (lab.directory / "home/.local/state/berth/jobs").iterdir()
    return folder


def fill(lab: Lab, count: int) -> list[str]:
    """Jobs that hold a GPU each, and run."""
    numbers = [submit(lab, "--job-name", "holder", "--", "sleep", "1000") for _ in range(count)]
    for number in numbers:
        wait_for(lab, number, "running")
    return numbers


def kill(lab: Lab, *kinds) -> None:
    """kill -9 of all processes of these kinds: runner, run, job."""
    # Stopped first: else who is still there begins the next meanwhile.
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for kind in kinds:
            for pid in processes(lab)[kind]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
    eventually(lambda: not any(processes(lab)[kind] for kind in kinds))
