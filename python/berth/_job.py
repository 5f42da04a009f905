"""Jobs: commands that are left to be run when their GPUs are free."""

from __future__ import annotations

import json
import operator
import os
import subprocess
import sys
from typing import NamedTuple

from . import _berth, _request, _request_fields
from ._errors import Error, Impossible, NoDriver, NotNow, TimedOut, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, Union

    from typing_extensions import Unpack

    After = Union[None, str, int, "Job", Iterable[Union[str, int, "Job"]]]

# As the table of exit statuses in docs/manual.md has them.
_KINDS = {2: Usage, 69: Impossible, 75: NotNow, 124: TimedOut}
_PREFIX = "berth: "


def _ask(words: Sequence[str], env: Mapping[str, str] | None = None, folder: str | None = None) -> str:
    """What the program answers. Raises the kind of `Error` that its exit status says."""
    done = subprocess.run(
        [_berth.program(), *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=None if env is None else dict(env),
        cwd=folder,
        check=False,
    )
    if done.returncode == 0:
        return done.stdout.decode(errors="replace")
    said = done.stderr.decode(errors="replace").strip()
    raise _KINDS.get(done.returncode, Error)(said[len(_PREFIX) :] if said.startswith(_PREFIX) else said)


class Job:
    """A job of yours on this machine, or one task of it, by its number: `berth.Job("12")`, `berth.Job("12.7")`.

    It holds nothing but the number: the job goes on when this object, or this program, is gone. Each property asks
    anew. Raises `Error` where there is no such job (any more).
    """

    id: str

    def __init__(self, id: str | int):
        self.id = str(id)

    def __repr__(self) -> str:
        return f"<berth.Job {self.id}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def tasks(self) -> tuple[Job, ...]:
        """The tasks of an array, by index; of any other job, the job itself."""
        return tuple(Job(told["id"]) for told in self._told())

    @property
    def state(self) -> str:
        """ "waiting", "held", "in line", "running", "done", "failed", "cancelled" or "interrupted", as `berth jobs` says
        it.

        Of an array: "running" while any task runs, then "waiting" while any waits, then "done" if all are done, else
        what became of the first task that is not.
        """
        states = [state_of(told) for told in self._told()]
        for state in ("running", "in line", "waiting", "held"):
            if state in states:
                return state
        return next((state for state in states if state != "done"), "done")

    @property
    def exit_status(self) -> int | None:
        """As a shell has it: 0 to 255, 128 and the signal that killed it; 1 if it was cancelled or interrupted.

        None while it waits or runs. Of an array: 0, or that of the first task that did not end with 0.
        """
        status = 0
        for told in self._told():
            if told["state"] in ("waiting", "running"):
                return None
            status = status or _exit_status(told)
        return status

    def wait(self, timeout: float | str | None = None) -> int:
        """Returns `exit_status` when the job is over. Raises `TimedOut` if it is not after `timeout`, and the job goes on.

        timeout  None: for ever; seconds, or a time such as "10m"

        >>> job = berth.submit(["true"])
        >>> job.wait("30s")
        0
        """
        patience_ms = _request.wait_ms(timeout)
        waiting = subprocess.Popen(
            [_berth.program(), "wait", self.id],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        try:
            said = waiting.communicate(timeout=None if patience_ms is None else patience_ms / 1000)[1]
        except subprocess.TimeoutExpired:
            raise TimedOut(f"job {self.id} is not over after {timeout} (s, where no unit is given)") from None
        finally:
            waiting.kill()
            waiting.wait()
            if waiting.stderr is not None:
                waiting.stderr.close()
        status = self.exit_status
        if status is None:
            raise Error(said.decode(errors="replace").strip())
        return status

    @property
    def receipts(self) -> tuple[dict[str, Any], ...]:
        """What its runs had and used, the oldest first, as `berth receipt --json` says it: one for each task, and for each
        try of a task. None of a task that has not ended yet, or that ran on another host.
        """
        try:
            return tuple(json.loads(_ask(["receipt", "--json", self.id]))["runs"])
        except Error:
            self._told()  # raises, where there is no such job
            return ()

    def log(self) -> str:
        """What it has printed so far, its errors included. What is no UTF-8 is replaced."""
        return _ask(["log", self.id])

    def attach(self) -> None:
        """Connects the terminal of this program to that of the job, which was submitted with `tty=True`, as `berth attach`
        does: until Ctrl-\\ is typed, and the job goes on, or until the job ends.

        Raises `Usage` where this program has no terminal, as in a notebook. Why else it cannot be, it says on the terminal.
        """
        if not os.isatty(0) or not os.isatty(1):
            raise Usage(
                f"job {self.id} cannot be attached to without a terminal; job.log() is what it has printed"
            )
        sys.stdout.flush()
        subprocess.run([_berth.program(), "attach", self.id], check=False)

    def cancel(self, wait: float | str = 10) -> None:
        """Takes it out of what is to be done. One that runs gets SIGTERM, and this returns when it has ended.

        wait  how long that may take: seconds, or a time such as "1m"

        Raises `TimedOut` if it still runs then, and `Error` if it is over already.
        """
        cancel(self, wait=wait)

    def edit(
        self,
        *,
        hold: bool | None = None,
        first: bool = False,
        last: bool = False,
        before: str | int | Job | None = None,
        give_up_place: bool = False,
        n: int | None = None,
        time: _request.Time = None,
        yield_: bool | float | str = False,
        where: str | None = None,
        memory: _request.Size | None = None,
        free: _request.Size | None = None,
        note: str | None = None,
        **filters: Unpack[_request.JobFilters],
    ) -> None:
        """Changes it while it waits, as `berth edit` does.

        hold      True: it does not start; False: it waits for its turn again
        first, last, before
                  its place among your jobs with the same request: nobody else waits longer
        give_up_place
                  also if it loses its place in the queue of the machine

        All other arguments are those of `submit`: each takes the place of the same one of its request, with which it
        joins the queue anew. Raises `Error` if it does not wait, or would lose its place; it is then as it was.
        """
        words = [] if hold is None else ["--hold" if hold else "--no-hold"]
        words += ["--first"] * first + ["--last"] * last + ["--yes"] * give_up_place
        if before is not None:
            words += _numbers("before", [before])
        asked = {
            **filters,
            "n": n,
            "where": where,
            "memory": memory,
            "free": free,
            "time": time,
            "yield_": yield_,
        }
        words += _options(asked, Job.edit)
        if note is not None:
            words.append(f"--note={note}")
        _ask(["edit", self.id, *words])

    def retry(self) -> None:
        """Runs it again, or those of its tasks that failed, or were cancelled or interrupted."""
        _ask(["retry", self.id])

    def _told(self) -> list[dict[str, Any]]:
        return told([self.id])


class ListedJob(NamedTuple):
    """A job of yours as `berth jobs` lists it, an array as one. Times are in seconds since the epoch."""

    id: str
    name: str | None
    state: str
    """As `Job.state`."""
    command: str
    submitted_s: int
    started_s: int | None
    starts_at_s: int | None
    """Of one that is in line, about when it starts, where anybody can tell."""
    ended_s: int | None
    exit_status: int | None
    """As `Job.exit_status`; of an array None."""
    devices: tuple[str, ...]
    """Labels, as `berth list` has them."""
    reason: str | None
    """What went wrong, in words."""

    @property
    def job(self) -> Job:
        """To do something with it."""
        return Job(self.id)


class Waiter(NamedTuple):
    """A request that waits, as `berth queue` lists it. Times are in seconds since the epoch."""

    position: int
    """1: the first of those that could be given the same devices."""
    id: str
    user: str | None
    pid: int | None
    n: int
    request: str | None
    """In words."""
    command: str | None
    note: str | None
    job: str | None
    """The number of the job whose request it is."""
    since_s: int | None
    starts_at_s: int | None
    """About when it starts, where anybody can tell."""
    behind: str | None
    """The id of the request that it waits behind; None: it is the first."""
    reason: str
    """Why it waits, in words."""


def jobs(*states: str) -> tuple[ListedJob, ...]:
    """Your jobs on this machine by number, as `berth jobs` lists them; with states, those in one of them.

    Of an array there is one, and with states each such task.

    >>> job = berth.submit(["true"], name="demo")
    >>> job.wait()
    0
    >>> [(each.id, each.name, each.state) for each in berth.jobs("done")][-1] == (job.id, "demo", "done")
    True

    Raises `Usage` for a word that is no state.
    """
    return tuple(_listed(each) for each in told(f"--state={state.replace(' ', '-')}" for state in states))


def queue() -> tuple[Waiter, ...]:
    """The requests of all users that wait on this machine, in their order, as `berth queue` lists them.

    >>> [waiter.user for waiter in berth.queue()]
    []

    Raises as `snapshot`.
    """
    try:
        waiters = json.loads(_ask(["queue", "--json"]))["waiters"]
    except Impossible as error:  # nothing is asked for that could be impossible
        raise NoDriver(str(error)) from None
    given = [name for name in Waiter._fields if name not in ("n", "job")]
    return tuple(
        Waiter(n=each["count"], job=each["job"] and each["job"]["id"], **{name: each[name] for name in given})
        for each in waiters
    )


def cancel(*jobs: str | int | Job | ListedJob, wait: float | str = 10) -> None:
    """Cancels jobs of yours, named by number or name, or requests that wait, by id, as `berth cancel` does.

    wait  how long the end of one that runs may take: seconds, or a time such as "1m"

    >>> job = berth.submit(["true"], at="2h")
    >>> berth.cancel(job)
    >>> job.state
    'cancelled'

    Raises `TimedOut` if one still runs then, and `Error` if there is no such job or it is over already: of several, the
    others are cancelled all the same.
    """
    if not jobs:
        raise TypeError("cancel() needs a job: its number, its name, or a berth.Job")
    _ask(["cancel", f"--wait={_patience_s(wait)}s", "--", *map(_name_of, jobs)])


def _name_of(job: str | int | Job | ListedJob) -> str:
    if isinstance(job, str):
        return job
    if isinstance(job, (Job, ListedJob, Waiter)):
        return job.id
    try:
        return str(operator.index(job))
    except TypeError:
        raise TypeError(
            f"cancel() takes numbers, names and jobs, each as an argument of its own, and not {job!r}"
        ) from None


def _patience_s(wait: float | str) -> int:
    patience_ms = _request.wait_ms(wait)
    return 10 if patience_ms is None else max(patience_ms // 1000, 0)


def _listed(told: dict[str, Any]) -> ListedJob:
    over = told["state"] not in ("waiting", "running")
    return ListedJob(
        id=told["id"],
        name=told["name"],
        state=state_of(told),
        command=told["command"],
        submitted_s=told["submitted_s"],
        started_s=told["started_s"],
        starts_at_s=told["starts_at_s"],
        ended_s=told["ended_s"],
        exit_status=_exit_status(told) if over and told["tasks"] is None else None,
        devices=tuple(told["devices"]),
        reason=told["reason"],
    )


def told(numbers: Iterable[str]) -> list[dict[str, Any]]:
    """What `berth jobs` says of these jobs, each task of an array for itself."""
    found: list[dict[str, Any]] = json.loads(_ask(["jobs", "--json", *numbers]))["jobs"]
    return found


def _exit_status(told: dict[str, Any]) -> int:
    if told["state"] != "ended":
        return 1
    return 128 + int(told["signal"]) if told["signal"] is not None else int(told["exit_status"] or 0)


def state_of(told: dict[str, Any]) -> str:
    if told["state"] == "waiting" and told["held"]:
        return "held"
    if told["state"] == "waiting" and told["in_line"]:
        return "in line"
    if told["state"] == "ended":
        return "done" if _exit_status(told) == 0 else "failed"
    return str(told["state"])


def _numbers(argument: str, jobs: After) -> list[str]:
    if jobs is None:
        return []
    several = [jobs] if isinstance(jobs, (str, int, Job)) else list(jobs)
    return [f"--{argument}={job.id if isinstance(job, Job) else job}" for job in several]


def _options(asked: Mapping[str, object], asker: Callable[..., object]) -> list[str]:
    beside = getattr(asker, "__kwdefaults__", ())
    return [
        f"--{option}={text}" if text else f"--{option}"
        for _, option, text in _request.options(asked, _request_fields.JOB_ARGUMENTS, beside)
    ]


def submit(
    command: str | Sequence[str | os.PathLike[str]],
    *,
    n: int = 1,
    name: str | None = None,
    array: str | range | None = None,
    params: Mapping[str, Iterable[object]] | None = None,
    at_once: int | None = None,
    after: After = None,
    after_ok: After = None,
    after_fail: After = None,
    singleton: bool = False,
    time: _request.Time = None,
    at: str | None = None,
    retries: int = 0,
    retry_on: Iterable[int] = (),
    rerun: bool = False,
    yield_: bool | float | str = False,
    requeue: bool = False,
    tty: bool = False,
    notify: str | Iterable[str] = (),
    where: str | None = None,
    memory: _request.Size | None = None,
    free: _request.Size | None = None,
    note: str | None = None,
    anywhere: bool | str | Iterable[str] = False,
    near: str | os.PathLike[str] | None = None,
    folder: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    **filters: Unpack[_request.JobFilters],
) -> Job:
    """Leaves a command to be run when it is its turn and its GPUs are free, and returns at once, as `berth submit` does.

    >>> job = berth.submit(["echo", "trained"], name="demo")
    >>> job.wait(), job.state, job.log()
    (0, 'done', 'trained\\n')

    >>> sweep = berth.submit("echo $BERTH_PARAM_lr", params={"lr": [0.1, 0.01]})
    >>> sweep.wait(), [task.log() for task in sweep.tasks]
    (0, ['0.1\\n', '0.01\\n'])

    command   the words of a command; or a text, which `sh -c` runs
    n         how many devices each task gets
    name      what it is called in `berth jobs`
    array     a task for each index: "0-99", "0-99%4", range(100). The index is {index} in the words, and
              BERTH_ARRAY_INDEX
    params    a task for each combination of these values: {lr} in the words, and BERTH_PARAM_lr
    at_once   at most so many of its tasks run at the same time
    after     jobs that are to be over before; after_ok: and to have ended with 0, else this one is cancelled;
              after_fail: and not to have ended with 0, else this one is cancelled
    singleton one job of yours with this name at a time: it waits for those before it
    time      how long a task takes at most, then it is ended: seconds, or a time such as "2h"
    at        not before then: "22:00", or "2h" from now
    retries   so often a task that fails is run again; retry_on: only if it ended with one of these statuses
    rerun     a task that was cut off (kill -9, a reboot) is run again
    yield_    the job ends if a request that does not yield waits for its devices: True, or the time between SIGTERM
              and SIGKILL, such as "2m"; requeue: then it waits and runs again
    tty       it gets a terminal, to which `Job.attach` connects that of a program
    mps_percent
              where MPS runs: at most this many percent of a device's processors are used
    notify    who is told when it ends, fails, or its time is up soon: "mail", "mail:ADDRESS", "ntfy:URL", "slack:URL",
              "json:URL", "cmd:COMMAND", or several in a list
    where     a condition on the devices, such as "name~A100 and free>=20G"; memory: a share of a device; free: at least
              this much free memory: "20G", or bytes
    note      shown to others beside the lease
    anywhere  True: on the first host of the lab that has the devices, through ssh; or the names of the hosts: ["gpu1",
              "gpu2"]
    near      with anywhere: a path, such as "/data/imagenet"; the job waits on the hosts on which it is
    folder    where it runs (the current directory); env: all of its environment (that of this process)

    The arguments of `pick` that are not named here mean the same, but for its name, which where says: "name~A100".

    The job survives this program. Raises TypeError, ValueError and `Usage` (which is a ValueError) for what makes no
    sense, and `Error` where the command is not there or the job cannot be stored.
    """
    asked = {
        **filters,
        "n": _request.number("n", n, 1),
        "where": where,
        "memory": memory,
        "free": free,
        "time": time,
        "yield_": yield_,
    }
    options = _options(asked, submit)
    if name is not None:
        options.append(f"--job-name={name}")
    if isinstance(array, range):
        array = ",".join(map(str, array))
    if array is not None:
        options.append(f"--array={array}")
    for key, values in (params or {}).items():
        options.append(f"--param={key}={','.join(map(str, values))}")
    if at_once is not None:
        options.append(f"--at-once={_request.number('at_once', at_once, 1)}")
    options += _numbers("after", after) + _numbers("after-ok", after_ok) + _numbers("after-fail", after_fail)
    if singleton:
        options.append("--singleton")
    if _request.number("retries", retries, 0) > 0:
        options.append(f"--retries={retries}")
    if statuses := ",".join(map(str, retry_on)):
        options.append(f"--retry-on={statuses}")
    if rerun:
        options.append("--rerun")
    if requeue:
        options.append("--requeue")
    if tty:
        options.append("--tty")
    options += [f"--notify={target}" for target in ([notify] if isinstance(notify, str) else notify)]
    for key, value in (("at", at), ("note", note)):
        if value is not None:
            options.append(f"--{key}={value}")
    if anywhere:
        options.append("--anywhere")
        if anywhere is not True:
            options.append(f"--hosts={anywhere if isinstance(anywhere, str) else ','.join(anywhere)}")
    if near is not None:
        options.append(f"--near={os.fspath(near)}")
    words = ["sh", "-c", command] if isinstance(command, str) else [os.fspath(word) for word in command]
    if not words:
        raise ValueError("command must have at least one word")
    start = None if folder is None else os.fspath(folder)
    return Job(_ask(["submit", *options, "--", *words], env, start).strip())
