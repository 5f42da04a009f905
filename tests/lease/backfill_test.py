"""Who starts in front of whom, and who is woken when a GPU falls free that those before it do not get."""

import json
import signal

import pytest
from jobs import Job, eventually, holder, queue, waiter, where_no_bell_is_heard
from simulated_machine import Machine


@pytest.fixture
def two(make_machine) -> Machine:
    return make_machine("2xH100")


def on(machine: Machine, device: int) -> Job:
    return holder(machine, "--devices", str(device), "--time", "1h")


SHORT = ("--time", "30m")


# Wherever nobody before it looks after a device, a waiter does so itself


def test_a_gpu_that_the_one_before_does_not_want_goes_to_the_next(two):
    first, second = on(two, 0), on(two, 1)
    picky = waiter(two, "--devices", "0").says("first in line")
    easy = waiter(two).says("behind")
    second.ends()
    assert easy.starts() == "1"
    first.ends()
    assert picky.starts() == "0"
    assert picky.ends() == easy.ends() == 0


def test_one_model_is_not_kept_from_those_who_take_any(make_machine):
    machine = make_machine("1xH100+1xA100-80")
    first, second = on(machine, 0), on(machine, 1)
    picky = waiter(machine, "--name", "H100").says("first in line")
    easy = waiter(machine).says("behind")
    second.signal(signal.SIGKILL)
    assert easy.starts() == "1"
    first.ends()
    picky.starts()


@pytest.mark.parametrize("site", ["", "backfill = false\n"])
def test_one_whose_own_conditions_are_not_met_keeps_nothing_from_the_others(make_machine, site):
    """They skip it, and it has its turn once its conditions are met."""
    machine = make_machine('[[device]]\nmodel = "H100"\ntemperature = 60\n')
    (machine.directory / "site.toml").write_text(site)
    cold = waiter(machine, "--temp", "20").says("first in line")
    other = Job(machine)
    assert other.starts() == "0"
    (waits,) = json.loads(machine.berth("queue", "--json").out)["waiters"]
    assert waits["pid"] == cold.pid
    other.ends()
    eventually(lambda: json.loads(machine.berth("queue", "--json").out)["waiters"][0]["held_back"])
    assert "so later requests may start before it" in machine.berth("queue", env={"COLUMNS": "300"}).out
    assert machine.berth("pick").out == "0\n"
    machine.change('[[device]]\nmodel = "H100"\ntemperature = 10\n')
    assert cold.starts() == "0"


# With backfill


def test_who_joins_takes_what_an_earlier_one_cannot_use_yet(make_machine):
    machine = make_machine("2xH100")
    first = on(machine, 0)
    both = waiter(machine, "-n", "2").says("first in line")
    small = holder(machine, *SHORT)
    assert queue(machine) == [both.pid]
    first.ends()
    small.ends()
    assert both.starts() == "0,1"


def test_a_release_that_the_first_cannot_use_wakes_who_can(make_machine):
    machine = make_machine("2xH100")
    first, second = on(machine, 0), on(machine, 1)
    both = waiter(machine, "-n", "2").says("first in line")
    small = [waiter(machine, *SHORT).says("behind") for _ in range(3)]
    second.ends()
    assert small[0].starts() == "1"
    small[0].ends()
    assert small[1].starts() == "1"
    assert queue(machine) == [both.pid, small[2].pid]
    small[1].signal(signal.SIGKILL)
    assert small[2].starts() == "1"
    first.ends()
    small[2].ends()
    assert both.starts() == "0,1"


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_a_release_that_the_first_cannot_use_brings_the_turn_of_one_whom_no_bell_reaches(make_machine, end):
    machine = make_machine("2xH100")
    first, second = on(machine, 0), on(machine, 1)
    both = waiter(machine, "-n", "2").says("first in line")
    small = waiter(machine, *SHORT, within=where_no_bell_is_heard()).says("behind")
    second.signal(end)
    assert small.starts() == "1"
    small.ends()
    first.ends()
    assert both.starts() == "0,1"


def test_one_that_is_stopped_does_not_keep_a_gpu_idle(make_machine):
    machine = make_machine("2xH100")
    _, second = on(machine, 0), on(machine, 1)
    waiter(machine, "-n", "2").says("first in line")
    stopped = waiter(machine, *SHORT).says("behind")
    waiter(machine, "--time", "2h").says("behind")  # which could not start in any case
    small = waiter(machine, *SHORT).says("behind")
    stopped.stop()
    second.ends()
    assert small.starts() == "1"
    small.ends()
    stopped.signal(signal.SIGCONT)
    assert stopped.starts() == "1"


def test_when_the_one_with_the_reservation_leaves_the_others_go_on(make_machine):
    machine = make_machine("4xH100")
    on(machine, 0)
    four = waiter(machine, "-n", "4").says("first in line")
    small = [holder(machine, *SHORT) for _ in range(3)]
    last = waiter(machine, *SHORT).says("behind")
    four.signal(signal.SIGINT)
    small[1].ends()
    assert last.starts() in "123"


def test_who_takes_longer_than_until_then_waits(make_machine):
    machine = make_machine("2xH100")
    first = on(machine, 0)
    both = waiter(machine, "-n", "2").says("first in line")
    long = waiter(machine, "--time", "2h").says("behind")
    first.ends()
    assert both.starts() == "0,1"
    assert queue(machine) == [long.pid]


def test_without_backfill_all_wait_for_the_one_before(in_order):
    two = in_order("2xH100")
    first = on(two, 0)
    both = waiter(two, "-n", "2").says("first in line")
    small = waiter(two, *SHORT).says("behind")
    first.ends()
    assert both.starts() == "0,1"
    both.ends()
    small.starts()
