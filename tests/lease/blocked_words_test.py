"""Nobody reads what Berth says: a full pipe, a terminal that Ctrl-S holds. What it waits for or holds must not wait."""

import contextlib
import fcntl
import os
import pty
import select
import signal

import pytest
from jobs import Lines, eventually, holder, queue, waiter


@pytest.fixture
def full_pipe():
    """The end for writing of a pipe in which there is no room, and the one for reading."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(writing, bytes(4096)):
            pass
    os.set_blocking(writing, True)
    yield writing, reading
    os.close(reading)
    os.close(writing)


@pytest.fixture
def held_terminal():
    """A terminal on which somebody has pressed Ctrl-S, as a program has it."""
    ours, theirs = pty.openpty()
    os.write(ours, b"\x13")
    eventually(lambda: not select.select([], [theirs], [], 0)[1])
    yield theirs
    os.close(ours)
    os.close(theirs)


def late(machine, *words, said, command=("echo", "started")):
    """A request in the queue whose error stream is `said`."""
    before = len(queue(machine))
    job = machine.start_berth(*words, "--", *command, stderr=said)
    eventually(lambda: len(queue(machine)) > before)
    return job


def test_with_a_full_pipe_the_first_in_line_is_served(make_machine, full_pipe):
    machine = make_machine("1xH100")
    holding = holder(machine)
    job = late(machine, "run", said=full_pipe[0])
    holding.ends()
    assert Lines(job.stdout).line() == "started\n"
    assert job.wait(30) == 0


def test_with_a_full_pipe_one_in_the_queue_moves_up_and_is_no_obstacle(make_machine, full_pipe):
    machine = make_machine("1xH100")
    holding = holder(machine)
    first = waiter(machine)
    job = late(machine, "run", said=full_pipe[0])
    last = waiter(machine)
    holding.ends()
    first.starts()
    first.ends()
    assert Lines(job.stdout).line() == "started\n"
    last.starts()


def test_with_a_full_pipe_a_wait_ends_in_time(make_machine, full_pipe):
    machine = make_machine("1xH100")
    holder(machine)
    job = late(machine, "run", "--wait", "1s", said=full_pipe[0])
    # What it says at last waits for its reader, as any program's words do. It holds up nobody by
    # then.
    eventually(lambda: queue(machine) == [])
    while job.poll() is None:
        if select.select([full_pipe[1]], [], [], 0.01)[0]:
            os.read(full_pipe[1], 65536)
    assert job.wait(30) == 124


def test_with_a_full_pipe_a_shell_starts(make_machine, full_pipe, tmp_path):
    machine = make_machine("1xH100")
    shell = tmp_path / "shell"
    shell.write_text("#!/bin/sh\necho started\n")
    shell.chmod(0o755)
    answer = machine.berth("shell", env={"SHELL": shell}, stderr=full_pipe[0])
    assert (answer.status, answer.out) == (0, "started\n")


def test_with_a_full_pipe_a_claim_is_made(make_machine, full_pipe):
    machine = make_machine("1xH100")
    holding = holder(machine)
    sleeper = machine.start("sleep", "1000")
    job = machine.start_berth("claim", "--pid", sleeper.pid, stderr=full_pipe[0])
    eventually(lambda: len(queue(machine)) == 1)
    holding.ends()
    assert "CUDA_VISIBLE_DEVICES=0" in job.communicate(timeout=30)[0]


def test_on_a_terminal_that_ctrl_s_holds_the_command_starts(make_machine, held_terminal):
    machine = make_machine("1xH100")
    holding = holder(machine)
    job = late(machine, "run", said=held_terminal)
    last = waiter(machine)
    holding.ends()
    assert Lines(job.stdout).line() == "started\n"
    assert job.wait(30) == 0
    last.starts()


def test_what_nobody_took_is_said_when_somebody_reads_again(make_machine, full_pipe):
    machine = make_machine("1xH100")
    holder(machine)
    first = waiter(machine)
    writing, reading = full_pipe
    late(machine, "run", said=writing)
    # All that is in it, at once: what it says comes as soon as there is room.
    said = os.read(reading, fcntl.fcntl(reading, fcntl.F_GETPIPE_SZ))
    assert said.strip(b"\0") == b""
    first.signal(signal.SIGINT)
    with os.fdopen(os.dup(reading), "rb") as stream:
        lines = Lines(stream)
        assert lines.line().startswith("berth: waiting for 1 whole GPU")
        while not (line := lines.line()).startswith("berth: first in line"):
            assert line
