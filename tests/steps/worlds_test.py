"""The lease directory goes wrong while a request is at work in it, after each of its system calls in turn."""

import concurrent.futures
import os
import pathlib
import shutil
import signal
import subprocess

import pytest
from jobs import fill, holder
from simulated_machine import DEADLINE_S, Machine
from steps.steps import AT_ONCE, MOST, Victim

# Traced, and a sanitized program is slow in starting.
pytestmark = pytest.mark.release_only


def outcome_of(machine: Machine, step: int, spoil) -> tuple[bool, int, str]:
    """Whether the request came so far, its status, and what it said."""
    victim = Victim(machine, step, "true")
    stopped = victim.becomes() == "stopped"
    try:
        if stopped:
            spoil()
            os.kill(victim.pid, signal.SIGCONT)
        status = victim.process.wait(DEADLINE_S)
    except subprocess.TimeoutExpired:
        os.kill(victim.pid, signal.SIGKILL)
        raise
    return stopped, status, victim.err.rest()


def vanish_at(directory: pathlib.Path, step: int) -> int | None:
    """The status of a request whose directory goes after this step. None: it makes fewer."""
    directory.mkdir()
    machine = Machine(directory, "1xH100")
    stopped, status, said = outcome_of(
        machine, step, lambda: shutil.rmtree(machine.leases, ignore_errors=True)
    )
    if status != 0:
        assert status == 1 and str(machine.leases) in said, f"step {step}: {status} {said!r}"
    # What was lost concerns nobody else.
    answer = machine.berth("run", "--no-wait", "--", "true")
    assert answer.status == 0, f"step {step}: {answer.err}"
    assert os.listdir(machine.leases / "leases") == os.listdir(machine.leases / "queue") == []
    return status if stopped else None


def test_when_the_directory_vanishes_a_request_ends_well_or_names_it(tmp_path):
    statuses: list[int | None] = []
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        while None not in statuses:
            steps = range(len(statuses), len(statuses) + AT_ONCE)
            statuses += pool.map(lambda step: vanish_at(tmp_path / str(step), step), steps)
    assert len(statuses) > 50
    assert {0, 1} <= set(statuses)


def mode_of_what_a_link_leads_to(directory: pathlib.Path, step: int) -> int | None:
    """Whoever owns the directory puts a link to another's file where a part is being made. None: it is made."""
    directory.mkdir()
    machine = Machine(directory, "1xH100")
    machine.leases.mkdir(parents=True, exist_ok=True)
    precious = directory / "precious"
    precious.touch(0o600)

    def swap():
        for path in list(machine.leases.glob("*.new-*")):
            path.rename(directory / "aside")
            path.symlink_to(precious)

    stopped, _, _ = outcome_of(machine, step, swap)
    return precious.stat().st_mode & 0o777 if stopped else None


def test_what_is_made_in_anothers_directory_is_never_changed_by_its_name(tmp_path):
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        modes = list(
            pool.map(lambda step: mode_of_what_a_link_leads_to(tmp_path / str(step), step), range(40))
        )
    assert modes == [0o600] * 40


def test_when_the_directory_is_full_a_request_ends_well_or_says_whose_files_fill_it(small_machine):
    machine = small_machine
    machine.berth("run", "--", "true")
    refused = granted = 0
    for step in range(MOST):
        stopped, status, said = outcome_of(machine, step, lambda: fill(machine))
        if not stopped:
            break
        granted += status == 0
        if status != 0:
            refused += 1
            assert status == 1, (step, said)
            assert f"the lease directory {machine.leases}: " in said, (step, said)
            assert "No space left on device; most of the files there are of " in said, (step, said)
        fill(machine).unlink(missing_ok=True)
        assert machine.berth("run", "--no-wait", "-n", "2", "--", "true").status == 0, step
        assert os.listdir(machine.leases / "leases") == os.listdir(machine.leases / "queue") == []
    assert refused > 0 and granted > 0


def test_a_full_directory_stops_neither_a_lease_nor_its_release_nor_its_listing(small_machine):
    machine = small_machine
    job = holder(machine)
    filler = fill(machine)
    assert machine.berth("list").status == machine.berth("queue").status == 0
    answer = machine.berth("doctor")
    assert f"{machine.leases} is full, so nobody can join the queue" in answer.out
    assert "most of the files there are of " in answer.out
    assert job.ends() == 0
    assert os.listdir(machine.leases / "leases") == []
    filler.unlink()
    assert machine.berth("run", "--no-wait", "-n", "2", "--", "true").status == 0
