"""Row 15: jobs that are submitted and left alone."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import time
from collections.abc import Callable, Iterator

import shelf
from contest import Contest, Contestant
from cycles import rate_of_commands
from machines import Machine
from queues import PATIENCE_S, JobQueue, readable
from results import FLOOR, LIMIT, OURS, PEER, Figure, Row, Table
from servers import Server, Servers, servers
from setting import Bench
from upkeep import Upkeep, observe

MANY = 1000
LISTED = 10_000
HAND_OVERS = 12
OBSERVED_S = 5


@dataclasses.dataclass
class Keeper:
    """What keeps jobs. `true_jobs`, `hand_overs`: so many of each are worth their time."""

    name: str
    role: str
    start: Callable[[Servers], Server]
    submit: str  # as its users type it
    array: str
    show: str
    true_jobs: int = MANY
    hand_overs: int = HAND_OVERS
    note: str = ""
    server: Server | None = None
    queue: JobQueue | None = None
    trouble: str = ""

    def figure(self, values: list[float], command: str = "") -> Figure:
        return Figure(
            self.name, self.role, command or self.submit, values, "" if values else self.trouble, self.note
        )

    @contextlib.contextmanager
    def trying(self) -> Iterator[None]:
        """What fails in it is its trouble, and nothing more is asked of it."""
        try:
            yield
        except (shelf.NotHad, OSError, ValueError, TimeoutError) as error:
            self.trouble = str(error)


def keepers(bench: Bench) -> list[Keeper]:
    return [
        Keeper("berth submit", OURS, lambda started: started.jobs(bench.berth), "berth submit -- JOB",
               "berth submit --array 1-1000 -- JOB", "berth jobs"),
        Keeper("Slurm", PEER, Servers.slurm, "sbatch --gres=gpu:1 JOB", "sbatch --gres=gpu:1 --array=1-1000 JOB",
               "squeue -r", 50, 4, "sched/builtin, without its pauses; it asks no driver"),
        Keeper("gflow", PEER, Servers.gflow, "gbatch -g 1 JOB", "gbatch -g 1 JOB, 1,000 times", "gqueue", 5, 3,
               "jobs in tmux"),
        Keeper("task-spooler", FLOOR, Servers.spooler, "tsp -n JOB", "tsp -n JOB, 1,000 times", "tsp",
               note="knows no GPUs, and forgets its jobs with its server"),
        Keeper("pueue", FLOOR, Servers.pueue, "pueue add -- JOB", "pueue add -- JOB, 1,000 times", "pueue status", 100, 4,
               "knows no GPUs"),
    ]  # fmt: skip


def script(path: pathlib.Path, text: str) -> pathlib.Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


# While one runs, and the others wait --------------------------------------------------------------


def submit_one(bench: Bench, machine: Machine, able: list[Keeper], job: pathlib.Path) -> Table:
    folder, unleased = machine.directory / "kept", machine.directory / "unleased"
    folder.mkdir()
    unleased.mkdir()
    unleased.chmod(0o1777)
    contestants = [
        Contestant("keep", LIMIT, lambda: [bench.program("keep"), str(folder)], shown="keep FOLDER",
                   note="a C program: two files on the disk, and a number"),
        Contestant("berth pick", FLOOR, lambda: [bench.berth, "pick"],
                   note="keeps nothing: what an answer about the GPUs takes",
                   environment={"BERTH_DIR": str(unleased)}),
        *(
            Contestant(each.name, each.role, lambda each=each: each.server.submitting(job), shown=each.submit,
                       note=each.note)
            for each in able
        ),
    ]  # fmt: skip
    figures = Contest(bench.measure, machine.environment, bench.runs).hold(contestants)
    return Table("submit", f"one more job, beside {MANY:,} that wait", "ms", figures)


def list_many(bench: Bench, machine: Machine, able: list[Keeper]) -> Table:
    contestants = [
        Contestant(
            each.name, each.role, lambda each=each: each.server.listing(), shown=each.show, note=each.note
        )
        for each in able
    ]
    figures = Contest(bench.measure, machine.environment, bench.runs).hold(contestants)
    return Table("jobs-1000", f"{MANY:,} waiting jobs shown, a line each", "ms", figures)


def upkeep(bench: Bench, able: list[Keeper]) -> list[Table]:
    pids = {each.name: each.server.pids() for each in able if not each.trouble}
    costs = observe(pids, bench.seconds(OBSERVED_S))

    def table(key: str, what: str, unit: str, value: Callable[[str, Upkeep], float]) -> Table:
        figures = [
            each.figure([value(each.name, costs[each.name])] if each.name in costs else []) for each in able
        ]
        return Table(f"jobs-{key}", f"{MANY:,} waiting jobs: {what}", unit, figures, counts=True)

    return [
        table("memory", "memory (PSS) in all", "MiB", lambda _, cost: cost.pss_mib),
        table("processes", "processes", "processes", lambda name, _: len(pids[name])),
        table("cpu", "processor time", "% of a core", lambda _, cost: cost.core_percent),
    ]


def hand_over(bench: Bench, all_of_them: list[Keeper]) -> Table:
    figures = []
    for each in all_of_them:
        bench.say(f"{each.name}: the next one starts")
        values: list[float] = []
        if not each.trouble:
            with each.trying():
                values += [each.queue.hand_over(killed=False) for _ in range(bench.times(each.hand_overs))]
        figures.append(each.figure(values))
    return Table("jobs-next", f"one ends, and the next of {MANY:,} starts", "ms", figures)


def while_one_runs(bench: Bench, row: Row) -> None:
    stamp = [bench.program("handover"), "stamp"]
    with Machine(bench, "jobs", devices=1) as machine, contextlib.ExitStack() as stack:
        started = stack.enter_context(servers(machine, 1))
        kept = keepers(bench)
        for each in kept:
            bench.say(f"{each.name}: one runs, and {MANY} wait")
            with each.trying():
                each.server = each.start(started)
                each.queue = JobQueue(each.server, stamp, machine.directory)
                stack.callback(each.queue.end)
                each.queue.start_holder()
                each.server.submit(each.queue.job, MANY)
        able = [each for each in kept if not each.trouble]
        row.tables.append(list_many(bench, machine, able))
        row.tables += upkeep(bench, kept)
        row.tables.append(hand_over(bench, kept))
        row.tables.insert(
            0, submit_one(bench, machine, able, script(machine.directory / "true.sh", "exec true"))
        )


# From nothing to all of them done -----------------------------------------------------------------


def run_all(bench: Bench, machine: Machine, each: Keeper, started: Servers) -> list[float]:
    """Jobs a second, from the first one's submitting to the last one's end."""
    server = each.start(started)
    count = bench.times(each.true_jobs, 3)
    pipe = machine.directory / f"{server.name}.done"
    os.mkfifo(pipe)
    heard = os.open(pipe, os.O_RDWR)
    nothing = script(machine.directory / "true.sh", "exec true")
    tell = script(machine.directory / f"{server.name}-tells.sh", f"echo >{pipe}")
    try:
        begun = time.monotonic()
        server.submit_array(nothing, count - 1)
        server.submit(tell, 1)
        if not readable(heard, PATIENCE_S + count):
            raise TimeoutError(f"{count} jobs were not done in {PATIENCE_S + count} s")
        return [count / (time.monotonic() - begun)]
    finally:
        os.close(heard)


def one_after_another(bench: Bench, row: Row) -> None:
    with Machine(bench, "jobs-true", devices=1) as machine, servers(machine, 1) as started:
        figures = []
        for name, role, words, command, note in (
            ("true", LIMIT, ["true"], "true", "a C program starts it again and again"),
            (
                "berth run",
                FLOOR,
                [bench.berth, "run", "--", "true"],
                "berth run -- true",
                "one after another, kept nowhere",
            ),
        ):
            values = [
                rate_of_commands(bench, words, machine.environment, 1) for _ in range(bench.times(3, 1))
            ]
            figures.append(Figure(name, role, command, values, note=note))
        for each in keepers(bench):
            bench.say(f"{each.name}: {each.true_jobs} times true")
            values: list[float] = []
            with each.trying():
                values = run_all(bench, machine, each, started)
            figures.append(each.figure(values, each.array))
    row.tables.append(
        Table("jobs-true", "jobs of `true` on one GPU, until all are over", "a second", figures, True)
    )


# What no peer is asked ----------------------------------------------------------------------------


def of_ours(bench: Bench, row: Row) -> None:
    """An array, and a list, of ten thousand."""
    count = bench.times(LISTED)
    with only_ours(bench, "jobs-array") as (machine, _, job):
        array = Contestant("berth submit", OURS, lambda: [bench.berth, "submit", "--array", f"1-{count}", "--", str(job)],
                           shown=f"berth submit --array 1-{count} -- JOB")  # fmt: skip
        row.tables.append(
            lone_table(bench, machine, "submit-array", f"an array of {count:,}, submitted", [array])
        )
    bench.say(f"{count} jobs")
    with only_ours(bench, "jobs-many") as (machine, ours, job):
        ours.submit(job, count)
        shown = [
            Contestant(
                f"berth {words}",
                OURS,
                lambda words=words: [bench.berth, *words.split()],
                shown=f"berth {words}",
            )
            for words in ("jobs", "jobs --json")
        ]
        row.tables.append(
            lone_table(bench, machine, f"jobs-{LISTED}", f"{count:,} waiting jobs shown, a line each", shown)
        )


@contextlib.contextmanager
def only_ours(bench: Bench, name: str) -> Iterator[tuple[Machine, Server, pathlib.Path]]:
    """A machine whose GPU is taken, so that jobs wait, what keeps them, and a job."""
    with Machine(bench, name, devices=1) as machine, servers(machine, 1) as started:
        ours = started.jobs(bench.berth)
        ours.tell([bench.berth, "submit", "--", "sleep", "1000"])
        yield machine, ours, script(machine.directory / "true.sh", "exec true")


def lone_table(bench: Bench, machine: Machine, key: str, title: str, ours: list[Contestant]) -> Table:
    contest = Contest(bench.measure, machine.environment, max(3, bench.runs // 4))
    return Table(key, title, "ms", contest.hold(ours), compared=False)


def submit(bench: Bench) -> Row:
    row = Row(15, "submit", "Jobs",
              "Jobs are submitted and left alone, on one GPU. How much does it cost to submit them, to show them, to"
              " keep them, and to start the next one?")  # fmt: skip
    while_one_runs(bench, row)
    one_after_another(bench, row)
    of_ours(bench, row)
    return row
