"""Another program takes part by the description of the protocol alone."""

import pathlib
import re
import signal
import subprocess
import sys

import pytest
from jobs import DEADLINE_S, close_input, device_file, holder, queue, tickets, waiter

ALICE, BOB = 20001, 20002
SCRIPT = pathlib.Path(__file__).with_name("participant.py")


@pytest.fixture
def one(make_machine):
    """A machine with one device that was leased once."""
    machine = make_machine("1xH100")
    machine.uuid = device_file(machine).name
    return machine


def participant(machine) -> subprocess.Popen:
    process = machine.start(sys.executable, SCRIPT, machine.leases, machine.uuid, stdin=subprocess.PIPE)
    assert process.stdout.readline() == "waiting\n", process.stderr.read()
    return process


def has_it(process, machine) -> None:
    assert process.stdout.readline() == f"{machine.uuid}\n", process.stderr.read()


def ends(process) -> None:
    close_input(process)
    assert process.wait(DEADLINE_S) == 0, process.stderr.read()


def test_what_another_program_leased_berth_does_not_give(one):
    other = participant(one)
    has_it(other, one)
    answer = one.berth("run", "--no-wait", "--", "true")
    assert answer.status == 75
    assert "participant.py" in answer.err
    ends(other)
    assert one.berth("run", "--no-wait", "--", "true").status == 0
    assert tickets(one, "leases") == []


def test_one_that_yields_does_not_keep_it_waiting_though_it_knows_nothing_of_that(one):
    holding = holder(one)
    yielding = waiter(one, "--yield")
    other = participant(one)
    holding.ends()
    has_it(other, one)
    ends(other)
    yielding.starts()


def test_nobody_who_keeps_the_fair_order_goes_past_it_as_it_waits_for_all_who_came_before(
    open_machine, as_user
):
    machine = open_machine
    machine.change("1xH100")
    machine.uuid = device_file(machine).name
    (machine.directory / "site.toml").write_text('order = "fair"\n')

    def of(user):
        return {"user": user, "group": user, "extra_groups": [], "cwd": "/"}

    holding = holder(machine, **of(ALICE))
    second = waiter(machine, **of(ALICE))
    other = participant(machine)
    last = waiter(machine, **of(BOB))
    assert queue(machine) == [second.pid, other.pid, last.pid]
    holding.ends()
    second.starts()
    second.ends()
    has_it(other, machine)
    ends(other)
    last.starts()


def test_nobody_goes_past_it_by_being_short_and_it_waits_for_all_who_came_before(one):
    (one.directory / "site.toml").write_text('expect = "limits"\n')
    holding = holder(one)
    large = waiter(one, "--time", "10h")
    other = participant(one)
    quick, quicker = waiter(one, "--time", "1m"), waiter(one, "--time", "1m")
    assert queue(one) == [large.pid, other.pid, quick.pid, quicker.pid]
    holding.ends()
    large.starts()
    large.ends()
    has_it(other, one)
    ends(other)
    for each in (quick, quicker):
        each.starts()
        each.ends()


def test_it_waits_its_turn_among_the_others_and_they_wait_for_it(one):
    holding = holder(one)
    first = waiter(one)
    other = participant(one)
    last = waiter(one).says("no. 3 in line")
    assert queue(one) == [first.pid, other.pid, last.pid]
    holding.ends()
    first.starts()
    first.ends()
    has_it(other, one)
    assert queue(one) == [last.pid]
    ends(other)
    last.starts()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_one_hands_over_to_whoever_is_next(one, number):
    holding = holder(one, then="exec sleep 1000")
    other = participant(one)
    last = waiter(one)
    holding.signal(signal.SIGKILL)
    has_it(other, one)
    other.send_signal(number)
    last.starts()


def test_it_uses_nothing_of_berth():
    text = SCRIPT.read_text()
    assert not re.search(r"^(import|from) berth", text, re.M)
    assert "subprocess" not in text
