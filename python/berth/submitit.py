"""Berth for submitit: `submitit.AutoExecutor(folder, cluster="berth")` submits functions as jobs of Berth.

submitit finds this module through its entry points; Berth itself does not import it. `python -m berth.submitit FOLDER`
is what such a job runs.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import shlex
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from submitit.core import core, job_environment, logger, utils

from . import _job, _request_fields
from ._errors import Error

# A task that is to run again ends with this status (ERESTART), which `berth submit --retry-on`
# names. How often, submitit counts itself; what was ended for somebody else may come any number of
# times.
_RUN_AGAIN = 85
_MOST_RETRIES = 10_000
# A task that does not end with the others gets so long, in seconds.
_PATIENCE_S = 1.0
# How often a task is looked at that does not listen yet; and a day, since a wait wants some time.
_LOOK_PERIOD_S = 0.1
_LONG_S = 86_400.0

_TASK = "SUBMITIT_BERTH_"


def _number(job_id: str) -> str:
    """As Berth has it: submitit's "12_7" is the task 12.7."""
    return job_id.replace("_", ".")


class BerthInfoWatcher(core.InfoWatcher):
    """Asks `berth jobs` for all jobs at once."""

    _STATES = {"waiting": "PENDING", "in line": "PENDING", "running": "RUNNING", "done": "COMPLETED"}

    def update(self) -> None:
        numbers = sorted({job_id.split("_")[0] for job_id in self._registered - self._finished}, key=int)
        if not numbers:
            return
        self._num_calls += 1
        try:
            told = _job.told(numbers)
        except Error:
            told = [each for number in numbers for each in self._told_or_forgotten(number)]
        for each in told:
            state = _job.state_of(each)
            job_id = each["id"].replace(".", "_")
            self._info_dict[job_id] = {"JobID": job_id, "State": self._STATES.get(state, state.upper())}
        self._last_status_check = time.time()
        self._finished |= {
            job_id for job_id in self._registered - self._finished if self.is_done(job_id, mode="cache")
        }

    def get_state(self, job_id: str, mode: str = "standard") -> str:
        return self.get_info(job_id, mode=mode).get("State", "UNKNOWN")

    def _told_or_forgotten(self, number: str) -> list[dict[str, Any]]:
        try:
            return _job.told([number])
        except Error as error:
            logger.get_logger().warning(f"{error}: it counts as over")
        for job_id in self._registered:
            if job_id.split("_")[0] == number:
                self._info_dict[job_id] = {"JobID": job_id, "State": "FORGOTTEN"}
        return []


class BerthJob(core.Job[core.R]):
    watcher = BerthInfoWatcher(delay_s=10)

    def cancel(self, check: bool = True) -> None:
        """Ends it; check: returns when it has ended, and raises `berth.Error` if it does not."""
        if self.watcher.is_done(self.job_id, mode="force"):
            return
        try:
            _job.Job(_number(self.job_id)).cancel(wait=10 if check else 0)
        except Error:
            if check:
                raise


class BerthJobEnvironment(job_environment.JobEnvironment):
    _env = {
        name: _TASK + name.upper()
        for name in ("job_id", "num_tasks", "num_nodes", "node", "global_rank", "local_rank")
    }

    def _requeue(self, countdown: int) -> None:
        logger.get_logger().info(f"Requeued job {self.job_id} ({countdown} remaining timeouts)")
        sys.exit(_RUN_AGAIN)


class BerthExecutor(core.PicklingExecutor):
    """Submits functions as jobs of Berth.

    folder             for what submitit keeps of each job: the function, its result, its output
    max_num_timeout    how often a job is run again whose time was up, where its function has a checkpoint
    python             shell words that start Python (default: the interpreter that runs)

    Parameters for `update_parameters`, with the prefix `berth_` for AutoExecutor:

    name, timeout_min, gpus_per_node (default 1), tasks_per_node, stderr_to_stdout    as for all executors
    signal_delay_s     how long before its time is up a job is told (default 90)
    setup              shell commands that run before
    array_parallelism  how many tasks of an array run at the same time at most
    where, memory, free, devices, … note, notify    as for `berth.submit`
    yield              as `yield_` of `berth.submit`: it ends for whoever waits, and runs again
    """

    job_class = BerthJob

    def __init__(
        self,
        folder: str | Path,
        max_num_timeout: int = 3,
        max_pickle_size_gb: float = 1.0,
        python: str | None = None,
    ) -> None:
        super().__init__(folder, max_num_timeout=max_num_timeout, max_pickle_size_gb=max_pickle_size_gb)
        self.python = shlex.quote(sys.executable) if python is None else python

    @classmethod
    def affinity(cls) -> int:
        # Only where it is named: whoever leaves the choice to submitit had no GPUs leased before.
        return 0

    @classmethod
    def _valid_parameters(cls) -> set[str]:
        return set(_OWN_PARAMETERS)

    def _internal_update_parameters(self, **kwargs: Any) -> None:
        unknown = set(kwargs) - set(_OWN_PARAMETERS) - set(_SHARED_PARAMETERS)
        if unknown:
            known = ", ".join(sorted((*_OWN_PARAMETERS, *_SHARED_PARAMETERS)))
            raise ValueError(f"unknown parameters: {', '.join(sorted(unknown))}; there are {known}")
        if kwargs.get("nodes", 1) != 1:
            raise ValueError("a job of Berth runs on one machine: nodes must be 1")
        if kwargs.get("gpus_per_node", 1) < 1:
            raise ValueError(
                "Berth leases GPUs: gpus_per_node must be 1 or more; take cluster='local' for none"
            )
        super()._internal_update_parameters(**kwargs)

    def _internal_process_submissions(
        self, delayed_submissions: list[utils.DelayedSubmission]
    ) -> list[core.Job[Any]]:
        if len(delayed_submissions) == 1:
            return super()._internal_process_submissions(delayed_submissions)
        folder = utils.JobPaths.get_first_id_independent_folder(self.folder)
        folder.mkdir(parents=True, exist_ok=True)
        pickles = []
        for delayed in delayed_submissions:
            delayed.set_timeout(self._timeout_min(), self.max_num_timeout)
            pickles.append(folder / f"{uuid.uuid4().hex}.pkl")
            delayed.dump(pickles[-1])
        number = self._submitted(array=len(pickles))
        jobs = [self._job_of(f"{number}_{index}") for index in range(len(pickles))]
        for job, pickle in zip(jobs, pickles):
            job.paths.move_temporary_file(pickle, "submitted_pickle")
        return jobs

    def _submit_command(self, command: str) -> core.Job[Any]:
        return self._job_of(self._submitted())

    def _job_of(self, job_id: str) -> core.Job[Any]:
        job: core.Job[Any] = self.job_class(
            folder=self.folder, job_id=job_id, tasks=list(range(self._num_tasks()))
        )
        job.paths.folder.mkdir(parents=True, exist_ok=True)
        return job

    def _submitted(self, array: int | None = None) -> str:
        """The number of the new job."""
        told = self.parameters
        yields = told.get("yield", False)
        timeout_s = self._timeout_min() * 60
        words = ["-u", "-m", "berth.submitit", f"--tasks={self._num_tasks()}"]
        words.append(f"--tell-after={max(0.0, timeout_s - told.get('signal_delay_s', 90))}")
        if told.get("stderr_to_stdout", False):
            words.append("--stderr-to-stdout")
        command = " ".join([self.python, *map(shlex.quote, [*words, str(self.folder)])])
        job = _job.submit(
            " && ".join([*told.get("setup", ()), f"exec {command}"]),
            n=told.get("gpus_per_node", 1),
            name=told.get("name", "submitit"),
            array=None if array is None else range(array),
            at_once=None if array is None else told.get("array_parallelism"),
            time=math.ceil(timeout_s),
            retries=_MOST_RETRIES,
            retry_on=[_RUN_AGAIN],
            yield_=yields,
            requeue=yields is not False,
            **{name: told[name] for name in _PASSED_ON if name in told},
        )
        return job.id

    def _timeout_min(self) -> float:
        return float(self.parameters.get("timeout_min", 5))

    def _num_tasks(self) -> int:
        return int(self.parameters.get("tasks_per_node", 1))

    # What submitit wants of executors that write a file for each job.
    def _make_submission_file_text(self, command: str, uid: str) -> str:
        return ""

    def _make_submission_command(self, submission_file_path: Path) -> list[str]:
        return []

    @staticmethod
    def _get_job_id_from_submission_command(string: bytes | str) -> str:
        return string if isinstance(string, str) else string.decode()


# CPUs and memory of the host are not leased: what is said of them is taken, and changes nothing.
_SHARED_PARAMETERS = (
    *("name", "timeout_min", "mem_gb", "nodes", "cpus_per_task", "gpus_per_node"),
    *("tasks_per_node", "stderr_to_stdout"),
)
# The number of GPUs, the time and yielding have names of submitit's own.
_PASSED_ON = (*sorted({*_request_fields.JOB_ARGUMENTS} - {"n", "time", "yield_"}), "note", "notify")
_OWN_PARAMETERS = (*_PASSED_ON, "setup", "signal_delay_s", "array_parallelism", "yield")


class _Tasks:
    """The processes of a job. Each learns its part from its environment, and writes to files of its own.

    The signals in `SIGNALS` are blocked here and waited for, and none of them is for the tasks.
    """

    SIGNALS = frozenset({signal.SIGTERM, signal.SIGALRM, signal.SIGCHLD, BerthJobEnvironment._usr_sig()})

    def __init__(self, folder: Path, count: int, stderr_to_stdout: bool):
        signal.pthread_sigmask(signal.SIG_BLOCK, self.SIGNALS)
        self._untold: list[subprocess.Popen[bytes]] = []
        job_id = os.environ["BERTH_JOB"].replace(".", "_")
        self._running = [self._start(folder, job_id, rank, count, stderr_to_stdout) for rank in range(count)]

    def _start(
        self, folder: Path, job_id: str, rank: int, count: int, stderr_to_stdout: bool
    ) -> subprocess.Popen[bytes]:
        paths = utils.JobPaths(folder, job_id, rank)
        paths.folder.mkdir(parents=True, exist_ok=True)
        part = {"job_id": job_id, "num_tasks": count, "num_nodes": 1, "node": 0}
        part |= {"global_rank": rank, "local_rank": rank}
        env = {BerthJobEnvironment._env[name]: str(value) for name, value in part.items()}
        print(f"The output of task {rank} is in {paths.stdout}", flush=True)
        with paths.stdout.open("a") as out, paths.stderr.open("a") as err:
            return subprocess.Popen(
                [sys.executable, "-u", "-m", "submitit.core._submit", str(folder)],
                stdout=out,
                stderr=out if stderr_to_stdout else err,
                env={**os.environ, **env, "SUBMITIT_EXECUTOR": BerthExecutor.name()},
                preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, self.SIGNALS) and None,
            )

    def wait(self) -> int:
        """The first status that is not 0; that of a task that is to run again ends all of them."""
        while True:
            statuses = [status for task in self._running if (status := task.poll()) is not None]
            if _RUN_AGAIN in statuses:
                return _RUN_AGAIN
            if len(statuses) == len(self._running):
                failed = next(filter(None, statuses), 0)
                return failed if failed >= 0 else 128 - failed
            self._tell()
            told = signal.sigtimedwait(self.SIGNALS, _LOOK_PERIOD_S if self._untold else _LONG_S)
            if told is not None and told.si_signo != signal.SIGCHLD:
                self._untold = list(self._running)

    def _tell(self) -> None:
        """The signal that submitit takes for "your time is up", to those that listen for it already."""
        for task in list(self._untold):
            if task.poll() is not None or _catches(task.pid, BerthJobEnvironment._usr_sig()):
                task.send_signal(BerthJobEnvironment._usr_sig())
                self._untold.remove(task)

    def end(self) -> None:
        for task in self._running:
            task.send_signal(signal.SIGINT)
        for task in self._running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                task.wait(_PATIENCE_S)
            task.kill()
            task.wait()


def _catches(pid: int, number: int) -> bool:
    """Whether the process has a handler for this signal."""
    try:
        with open(f"/proc/{pid}/status") as status:
            caught = next(line for line in status if line.startswith("SigCgt:"))
    except (OSError, StopIteration):
        return False
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)


def main(words: Sequence[str] | None = None) -> int:
    """Runs what was submitted, as a job of Berth. Gives its exit status."""
    parser = argparse.ArgumentParser(prog="berth.submitit")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tasks", type=int, default=1)
    parser.add_argument("--tell-after", type=float)
    parser.add_argument("--stderr-to-stdout", action="store_true")
    options = parser.parse_args(words)

    options.folder.mkdir(parents=True, exist_ok=True)
    tasks = _Tasks(options.folder, options.tasks, options.stderr_to_stdout)
    if options.tell_after is not None:
        signal.setitimer(signal.ITIMER_REAL, max(options.tell_after, 0.001))
    try:
        return tasks.wait()
    finally:
        tasks.end()


if __name__ == "__main__":
    sys.exit(main())
