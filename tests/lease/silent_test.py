"""Whoever does not take a free device stops nobody, whatever keeps it from that, and keeps its place."""

import contextlib
import os
import pathlib
import pwd
import signal
import subprocess
import sys
import time

import pytest
from jobs import DEADLINE_S, close_input, device_file, eventually, holder, queue, state, waiter

SCRIPT = pathlib.Path(__file__).with_name("participant.py")
# A tick to notice a free device, two more to have seen it left for long enough.
NOTICED_S = 3 * 5
MALLORY = 20003


@pytest.fixture
def one(make_machine):
    """A machine with one device that was leased once."""
    machine = make_machine("1xH100")
    machine.uuid = device_file(machine).name
    return machine


def sleeper(machine, *within) -> subprocess.Popen:
    """One that waits by the protocol, lives, and does not look until it is given a line."""
    words = [*within, sys.executable, SCRIPT, machine.leases, machine.uuid]
    process = machine.start(*words, stdin=subprocess.PIPE, env={"ASLEEP": "1"})
    assert process.stdout.readline() == "waiting\n", process.stderr.read()
    return process


def wakes(process) -> None:
    process.stdin.write("\n")
    process.stdin.flush()


def test_a_first_that_lives_and_never_looks_is_passed_over_and_keeps_its_place(one):
    holding = holder(one)
    silent = sleeper(one)
    second = waiter(one)
    third = waiter(one)
    holding.ends()
    begun = time.monotonic()
    second.starts()
    # Not at once, as it might only be slow; a machine that is slow may take longer than the bound.
    assert time.monotonic() - begun > 5
    assert queue(one) == [silent.pid, third.pid]
    wakes(silent)
    second.ends()
    assert silent.stdout.readline() == f"{one.uuid}\n", silent.stderr.read()
    assert not third.has_started()
    close_input(silent)
    assert silent.wait(DEADLINE_S) == 0
    third.starts()


def test_whoever_asks_is_told_since_when_it_does_not_answer(one):
    silent = sleeper(one)
    try:
        eventually(lambda: "does not answer" in one.berth("queue").out, 2 * NOTICED_S)
        assert "free for it since" in one.berth("queue").out
        assert "does not answer" in one.berth("why").out
    finally:
        silent.kill()


def test_several_that_never_look_are_passed_over_one_after_the_other(one):
    holding = holder(one)
    silent = [sleeper(one) for _ in range(2)]
    last = waiter(one)
    holding.ends()
    eventually(last.has_started, 2 * len(silent) * NOTICED_S)
    assert queue(one) == [each.pid for each in silent]
    for each in silent:
        each.kill()


@pytest.mark.release_only
def test_a_user_with_many_that_never_look_costs_others_no_more_than_with_two(open_machine, as_user):
    machine = open_machine
    machine.change("1xH100")
    machine.uuid = device_file(machine).name
    holding = holder(machine)
    silent = [sleeper(machine, *as_user(MALLORY)) for _ in range(7)]
    last = waiter(machine)
    holding.ends()
    begun = time.monotonic()
    eventually(last.has_started, 7 * NOTICED_S)
    # If each had its time, the last would look only after 6 times 7.5 s, and start 7 times later.
    assert time.monotonic() - begun < 13 * 7.5
    assert len(queue(machine)) == len(silent)
    for each in silent:
        each.kill()


# In the gate


def in_the_gate(machine) -> subprocess.Popen:
    """One that is in the gate until its input ends."""
    words = (
        "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], 0), 2); print('ready', flush=True); input()"
    )
    inside = machine.start(sys.executable, "-c", words, machine.leases, stdin=subprocess.PIPE)
    assert inside.stdout.readline() == "ready\n"
    return inside


@pytest.mark.parametrize("leased", [False, True])
def test_whoever_asks_is_told_who_is_stopped_in_the_gate(one, leased):
    holding = holder(one) if leased else None
    inside = in_the_gate(one)
    for command in ("queue", "why"):
        assert one.berth(command).err == ""  # it may be out in a moment
    inside.send_signal(signal.SIGSTOP)
    eventually(lambda: state(inside.pid) == "T")
    name = pwd.getpwuid(os.geteuid()).pw_name
    for command in ("queue", "why"):
        answer = one.berth(command)
        assert answer.status == 0
        assert (
            f"process {inside.pid} is deciding in {one.leases} and lets nobody else in; "
            f"it is of {name} and stopped; `kill -CONT {inside.pid}` lets it go on, "
            f"`kill -KILL {inside.pid}` ends it" in answer.err
        )
    inside.send_signal(signal.SIGCONT)
    close_input(inside)
    inside.wait(DEADLINE_S)
    assert one.berth("queue").err == ""
    if holding:
        holding.ends()


# Frozen


@contextlib.contextmanager
def freezer():
    """How to freeze a process, and how to thaw it."""
    for root, file, frozen, thawed in (
        ("/sys/fs/cgroup", "cgroup.freeze", "1", "0"),
        ("/sys/fs/cgroup/unified", "cgroup.freeze", "1", "0"),
        ("/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED"),
    ):
        folder = pathlib.Path(root, f"berth-test-{os.getpid()}")
        with contextlib.suppress(OSError):
            folder.mkdir()
        if not (folder / file).exists():
            with contextlib.suppress(OSError):
                folder.rmdir()
            continue

        def freeze(pid, folder=folder, file=file, frozen=frozen):
            (folder / "cgroup.procs").write_text(str(pid))
            (folder / file).write_text(frozen)

        def thaw(folder=folder, file=file, thawed=thawed):
            (folder / file).write_text(thawed)

        try:
            yield freeze, thaw
        finally:
            thaw()
            for pid in (folder / "cgroup.procs").read_text().split():
                with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
                    (folder.parent / "cgroup.procs").write_text(pid)
            eventually(lambda folder=folder: (folder / "cgroup.procs").read_text() == "")
            folder.rmdir()
        return
    pytest.skip("needs a freezer of cgroups below /sys/fs/cgroup that root may write to")


def test_a_first_that_is_frozen_is_passed_over_and_starts_when_it_thaws(one):
    with freezer() as (freeze, thaw):
        holding = holder(one)
        frozen = waiter(one)
        freeze(frozen.pid)
        second = waiter(one)
        holding.ends()
        second.starts()
        assert queue(one) == [frozen.pid]
        thaw()
        assert not frozen.has_started()
        second.ends()
        frozen.starts()


def test_one_who_is_frozen_in_the_gate_is_named_with_what_thaws_him(one):
    with freezer() as (freeze, thaw):
        inside = in_the_gate(one)
        freeze(inside.pid)
        answer = one.berth("run", "--no-wait", "--", "true")
        assert answer.status == 75
        assert "frozen by its cgroup /berth-test-" in answer.err and "` lets it go on" in answer.err
        assert "frozen by its cgroup /berth-test-" in one.berth("queue").err
        thaw()
        close_input(inside)
        assert one.berth("run", "--no-wait", "--", "true").status == 0
