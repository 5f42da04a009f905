"""Row 16: coding agents that think and compute in turn."""

from __future__ import annotations

import json
import pathlib
import subprocess
import time

import shelf
from hubs import QUIET
from machines import Machine
from results import LIMIT, OURS, PEER, Figure, Row, Table
from running import run
from setting import Bench

SESSIONS = 12
GPUS = 2
ROUNDS = 3
THINK_S, COMPUTE_S = 2.7, 0.3
GRACE_S = 2
ASKED = 5
PATIENCE_S = 300
SCRIPT = pathlib.Path(__file__).with_name("sessions.py")


def jobs_an_hour(bench: Bench, seconds: float) -> float:
    return SESSIONS * bench.times(ROUNDS, 1) / seconds * 3600


def leased_for_each_command(bench: Bench, machine: Machine) -> list[float]:
    python = shelf.environment("mcp") / "bin/python"
    words = [SESSIONS, bench.times(ROUNDS, 1), THINK_S, COMPUTE_S]
    done = run([str(python), str(SCRIPT), bench.berth, *map(str, words)], machine.environment, PATIENCE_S)
    if done.returncode != 0:
        raise ValueError(f"fails: {shelf.last_line(ValueError(done.stderr))}")
    return [jobs_an_hour(bench, float(done.stdout))]


def pinned(bench: Bench, machine: Machine) -> list[float]:
    """Who has a GPU keeps it while it thinks."""
    once = f"sleep {THINK_S}; sleep {COMPUTE_S}; "
    words = [bench.berth, "run", "--", "sh", "-c", once * bench.times(ROUNDS, 1)]
    begin = time.monotonic()
    sessions = [subprocess.Popen(words, env=machine.environment, **QUIET) for _ in range(SESSIONS)]
    if any([each.wait(PATIENCE_S) for each in sessions]):
        raise ValueError("a session fails")
    return [jobs_an_hour(bench, time.monotonic() - begin)]


def replay(bench: Bench) -> Table:
    share = THINK_S / (THINK_S + COMPUTE_S)
    figures = []
    for name, role, measure, command in (
        ("berth mcp", OURS, leased_for_each_command, "berth mcp"),
        ("pinned GPUs", PEER, pinned, "berth run -- SESSION"),
    ):
        bench.say(f"{SESSIONS} sessions, {name}")
        with Machine(bench, f"agents-{role}", devices=GPUS) as machine:
            figure = Figure(name, role, command)
            try:
                figure.values = measure(bench, machine)
            except (shelf.NotHad, OSError, ValueError, subprocess.TimeoutExpired) as error:
                figure.trouble = str(error)
        figures.append(figure)
    limit = 3600 * min(GPUS / COMPUTE_S, SESSIONS / (THINK_S + COMPUTE_S))
    figures.append(
        Figure(
            "nobody ever waits",
            LIMIT,
            values=[limit],
            note="computed: the most that the GPUs and the sessions allow",
        )
    )
    title = f"{SESSIONS} sessions on {GPUS} GPUs, {share:.0%} of whose time they think"
    return Table("agents", title, "jobs an hour", figures, True)


def person(bench: Bench) -> Table:
    """How long somebody waits who asks while sessions compute on all GPUs, and their commands ignore SIGTERM."""
    bench.say("a person asks")
    values: list[float] = []
    figure = Figure("berth run", OURS, "berth run -- true")
    with Machine(bench, "agents-person", devices=GPUS) as machine:
        stubborn = "trap '' TERM; while :; do sleep 0.05; done"
        words = [bench.berth, "run", f"--yield={GRACE_S}s", "--requeue", "--", "sh", "-c", stubborn]
        sessions = [subprocess.Popen(words, env=machine.environment, **QUIET) for _ in range(GPUS)]
        try:
            for _ in range(bench.times(ASKED)):
                while leases(bench, machine) < GPUS:
                    time.sleep(0.05)
                begin = time.monotonic()
                run([bench.berth, "run", "--", "true"], machine.environment, PATIENCE_S)
                values.append(time.monotonic() - begin)
            figure.values = values
        except (OSError, subprocess.TimeoutExpired) as error:
            figure.trouble = str(error)
        finally:
            for each in sessions:
                each.kill()
                each.wait()
    grace = Figure(
        "the grace of the commands",
        LIMIT,
        f"--yield {GRACE_S}s",
        [GRACE_S],
        note="each session runs its command by `berth run --yield`, as `berth mcp` does",
    )
    title = "a person asks while sessions compute on all GPUs, and their commands ignore SIGTERM"
    return Table("agents-person", title, "s", [figure, grace])


def leases(bench: Bench, machine: Machine) -> int:
    told = run([bench.berth, "list", "--json"], machine.environment, PATIENCE_S).stdout
    return len(json.loads(told)["leases"])


def agents(bench: Bench) -> Row:
    row = Row(16, "agents", "Coding agents",
              "Programs think and compute in turn. If a program holds a GPU, the GPU is idle while the program"
              " thinks. With `berth mcp`, each command gets a GPU of its own, and people come first.")  # fmt: skip
    row.tables = [replay(bench), person(bench)]
    return row
