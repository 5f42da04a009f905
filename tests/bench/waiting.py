"""Rows 5, 6 and 8: a device is handed from its holder to the next in line; what it costs to wait."""

from __future__ import annotations

import contextlib
import dataclasses
import random
import time
from collections.abc import Callable

import shelf
from contest import is_due
from look import scheduler_script
from machines import Machine
from queues import JobQueue, ProcessQueue, Queue, settle
from results import FLOOR, LIMIT, OURS, PEER, Figure, Row, Table
from servers import servers
from setting import Bench
from upkeep import Upkeep, observe

LENGTHS = (1, 10, 100, 1000)
IDLE_LENGTHS = (100, 1000)
IDLE_S = 15
ROUNDS = 24
# In Python: says that it waits, then who has the device and since when, and ends in order by
# SIGTERM.
SAY = "print(os.getpid(), os.getppid(), time.monotonic_ns(), flush=True); time.sleep(1e6)"
WAIT = "import os, signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); os.write(2, b'waiting\\n'); "


@dataclasses.dataclass
class Rival:
    """A way to wait. `lengths` that make sense for it; `hand_overs`: how many of each kind are worth their time."""

    name: str
    role: str
    open: Callable[[Machine, contextlib.ExitStack], Queue]
    lengths: tuple[int, ...] = (1,)
    idle_lengths: tuple[int, ...] = ()
    hand_overs: int = ROUNDS
    looks_every_s: float = 0.0  # its holder is ended at some point of that time
    command: str = ""
    note: str = ""
    trouble: str = ""


@dataclasses.dataclass
class Line:
    """A queue of one length, and what was measured on it."""

    rival: Rival
    length: int
    queue: Queue | None = None
    trouble: str = ""
    killed: list[float] = dataclasses.field(default_factory=list)
    ended: list[float] = dataclasses.field(default_factory=list)


def rivals(bench: Bench) -> list[Rival]:
    stamp = [bench.program("handover"), "stamp"]

    def bare(machine: Machine, _) -> Queue:
        lock = str(machine.directory / "bare.lock")
        return ProcessQueue([bench.program("handover"), "wait", lock], machine.environment)

    def berth(machine: Machine, _) -> Queue:
        return ProcessQueue([bench.berth, "run", "--", *stamp], machine.environment, tree=True)

    def filelock(machine: Machine, _) -> Queue:
        path = str(machine.directory / "filelock")
        script = f"{WAIT}import filelock\nwith filelock.FileLock({path!r}): {SAY}"
        return ProcessQueue(
            [str(shelf.environment("filelock") / "bin/python"), "-c", script], machine.environment
        )

    def scheduler(machine: Machine, _) -> Queue:
        script = f"{WAIT}import gpu_scheduler\nwith gpu_scheduler.GPUScheduler(): {SAY}"
        return ProcessQueue(scheduler_script(script)(), machine.environment)

    def canhazgpu(machine: Machine, stack: contextlib.ExitStack) -> Queue:
        server = stack.enter_context(servers(machine, 1)).canhazgpu()
        return ProcessQueue(server.run(stamp), machine.environment, served_by=server.pids)

    def jobs(name: str) -> Callable[[Machine, contextlib.ExitStack], Queue]:
        def open_queue(machine: Machine, stack: contextlib.ExitStack) -> Queue:
            started = stack.enter_context(servers(machine, 1))
            return JobQueue(getattr(started, name)(), stamp, machine.directory)

        return open_queue

    return [
        Rival("bare flock", LIMIT, bare, (1,), IDLE_LENGTHS, command="handover wait FILE",
              note="a C program that is blocked in flock and then becomes its command"),
        Rival("berth run", OURS, berth, LENGTHS, IDLE_LENGTHS, command="berth run -- COMMAND",
              note="woken; `berth run` and its command are killed"),
        Rival("filelock", FLOOR, filelock, (1, 10), (100,), 12, 0.05, "with FileLock(FILE)",
              "knows no GPUs; looks every 50 ms, in no order"),
        Rival("task-spooler", FLOOR, jobs("spooler"), (1, 100), (100,), 12, 0, "tsp -n COMMAND",
              "knows no GPUs; a server that waits for its child"),
        Rival("canhazgpu", PEER, canhazgpu, (1,), (100,), 4, 2, "canhazgpu run --gpus 1 -- COMMAND",
              "looks every 2 s. Only the command is killed: where its supervisor is killed too, the GPU stays"
              " reserved for 5 min"),
        Rival("gpu_scheduler", PEER, scheduler, (1,), (), 2, 10, "with GPUScheduler()",
              "looks every 10 s; a stand-in for PyTorch"),
        Rival("gflow", PEER, jobs("gflow"), (1,), (100,), 4, 1, "gbatch -g 1 JOB", "jobs in tmux"),
        Rival("Slurm", PEER, jobs("slurm"), (1, 100), IDLE_LENGTHS, 6, 1, "sbatch --gres=gpu:1 JOB",
              "sched/builtin, without its pauses"),
    ]  # fmt: skip


# Hand-overs ---------------------------------------------------------------------------------------


def open_line(bench: Bench, line: Line, stack: contextlib.ExitStack, rows: str) -> None:
    """A machine, and a server where one is needed, of its own: the lengths do not meet."""
    bench.say(f"{line.rival.name}, {line.length} waiting")
    try:
        name = f"{rows}-{line.rival.name.replace(' ', '-')}-{line.length}"
        machine = stack.enter_context(Machine(bench, name, devices=1))
        line.queue = line.rival.open(machine, stack)
        stack.callback(line.queue.end)
        line.queue.start_holder()
        line.queue.start(line.length)
    except (shelf.NotHad, OSError, TimeoutError) as error:
        line.queue, line.trouble = None, str(error)


def take_turn(line: Line, killed: bool) -> None:
    queue = line.queue
    if queue is None:
        return
    try:
        settle(queue)
        time.sleep(random.random() * line.rival.looks_every_s)
        (line.killed if killed else line.ended).append(queue.hand_over(killed))
        queue.start(1)
    except (shelf.NotHad, OSError, TimeoutError) as error:
        line.queue, line.trouble = None, f"{'killed' if killed else 'ended in order'}: {error}"


def compare(bench: Bench, lines: list[Line]) -> None:
    """Each keeps the length that it has."""
    rounds = bench.times(ROUNDS)
    for turn in range(rounds):
        for line in lines:
            if is_due(turn, min(rounds, bench.times(line.rival.hand_overs, 1)), rounds):
                take_turn(line, killed=True)
                take_turn(line, killed=False)


def tables_of(lines: list[Line], kind: str) -> list[Table]:
    tables = []
    limit = next(line for line in lines if line.rival.role == LIMIT)
    for length in LENGTHS:
        figures = [
            Figure(
                line.rival.name,
                line.rival.role,
                line.rival.command,
                getattr(line, kind),
                "" if getattr(line, kind) else line.trouble or "not measured",
                line.rival.note,
            )
            for line in lines
            if line.length == length or line is limit
        ]
        waiters = "1 waiter" if length == 1 else f"{length:,} waiters"
        tables.append(Table(f"{kind}-{length}", waiters, "ms", figures))
    return tables


def hand_over(bench: Bench) -> list[Row]:
    killed = Row(5, "handover", "Hand-over: the holder is killed",
                 "The holder of the only GPU is killed with SIGKILL. How long until the next one's command runs?")  # fmt: skip
    ended = Row(6, "handover", "Hand-over: the holder ends",
                "The same, but the holder's command ends by itself.")  # fmt: skip
    with contextlib.ExitStack() as stack:
        lines = [Line(rival, length) for rival in rivals(bench) for length in rival.lengths]
        for line in lines:
            open_line(bench, line, stack, "handover")
        compare(bench, lines)
    killed.tables = tables_of(lines, "killed")
    ended.tables = tables_of(lines, "ended")
    growth = {}
    for name, row in (("killed", killed), ("ended", ended)):
        ten, most = (
            next(t for t in row.tables if t.key == f"{name}-{n}").first(OURS) for n in (10, LENGTHS[-1])
        )
        if ten and most:
            growth[name] = (
                f"Behind 1,000 waiters it takes {most.median / ten.median:.2f} × what it takes behind 10."
            )
            row.facts.append(growth[name])
    return [killed, ended]


# Waiting ------------------------------------------------------------------------------------------


def upkeep_tables(length: int, costs: dict[str, Upkeep], lines: list[Line]) -> list[Table]:
    """CPU, memory a waiter, wake-ups."""

    def table(key: str, title: str, unit: str, value: Callable[[Upkeep], float]) -> Table:
        figures = []
        for line in lines:
            cost = costs.get(line.rival.name)
            values = [value(cost)] if cost else []
            rival = line.rival
            figures.append(Figure(rival.name, rival.role, rival.command, values, line.trouble, rival.note))
        return Table(f"{key}-{length}", title, unit, figures, counts=True)

    return [
        table(
            "idle-cpu", f"{length:,} waiters: processor time", "% of a core", lambda cost: cost.core_percent
        ),
        table(
            "idle-memory",
            f"{length:,} waiters: memory (PSS) a waiter",
            "MiB",
            lambda cost: cost.pss_mib / length,
        ),
        table(
            "idle-wakeups", f"{length:,} waiters: wake-ups", "a second", lambda cost: cost.wakeups_a_second
        ),
    ]


def idle(bench: Bench) -> Row:
    row = Row(8, "idle", "Waiting",
              "One holder, and so many that wait for it while nothing happens. All processes are counted:"
              " probes, clients, servers.")  # fmt: skip
    for length in IDLE_LENGTHS:
        with contextlib.ExitStack() as stack:
            lines = [Line(rival, length) for rival in rivals(bench) if length in rival.idle_lengths]
            for line in lines:
                open_line(bench, line, stack, "idle")
            groups = {line.rival.name: line.queue.pids() for line in lines if line.queue}
            for line in lines:
                if line.queue:
                    settle(line.queue)
            costs = observe(groups, bench.seconds(IDLE_S))
        row.tables += upkeep_tables(length, costs, lines)
    return row
