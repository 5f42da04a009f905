"""What a request does when the machine is short of something, or not as it should be."""

import os
import pathlib
import sys
import time

import pytest
from clock import Clock
from jobs import DEADLINE_S, Job, eventually, holder, queue, waiter

# Preloaded into the program.
pytestmark = pytest.mark.release_only


@pytest.fixture
def one(make_machine):
    machine = make_machine("1xH100")
    machine.berth("run", "--", "true")
    return machine


# Descriptors and inotify instances


FEW = [*range(4, 24), 64]


def with_descriptors(machine, number: int, *words):
    """A claim by a shell that ends. `berth run` looks at the limit before anything else."""
    script = 'eval "$(prlimit --nofile=$0:$0 "$@")"'
    return machine.run("bash", "-c", script, number, machine.program, "claim", "--no-wait", *words)


def test_short_of_descriptors_a_request_is_granted_or_says_so_and_leaves_nothing(one):
    statuses = []
    for number in FEW:
        answer = with_descriptors(one, number)
        statuses.append(answer.status)
        assert answer.status == 0 or "Too many open files" in answer.err, (number, answer)
        eventually(lambda: os.listdir(one.leases / "leases") == os.listdir(one.leases / "queue") == [])
    assert set(statuses) == {0, 1}


def test_a_limit_that_the_command_could_not_hold_its_lease_under_is_told_before_the_wait(one):
    job = holder(one)
    answer = one.run("prlimit", "--nofile=100:100", one.program, "run", "--", "true")
    assert answer.status == 126
    assert (
        "the limit of open files is 100 (ulimit -n), and a command holds its lease by 2 files" in answer.err
    )
    assert job.ends() == 0


@pytest.mark.parametrize("words", [[], ["--memory", "50G"]])
def test_short_of_descriptors_nobody_gets_what_another_has(one, words):
    job = holder(one, *words)
    for number in FEW:
        assert with_descriptors(one, number, *words).status in (1, 75), number
    assert job.ends() == 0


# Uses up the inotify instances of its user, then becomes a program.
WITHOUT_INOTIFY = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
while libc.inotify_init1(0) >= 0:
    pass
os.execv(sys.argv[1], sys.argv[1:])
"""


def sleeps_for_long(pid: int) -> bool:
    """In poll(), for a tick: the pause before that is shorter."""
    return "0x1388" in pathlib.Path(f"/proc/{pid}/syscall").read_text().split()


def test_out_of_inotify_instances_a_waiter_looks_every_few_seconds(open_machine, as_user):
    machine = open_machine
    machine.change("1xH100")
    machine.berth("run", "--", "true")
    job = holder(machine)
    words = [sys.executable, "-c", WITHOUT_INOTIFY, machine.program, "run", "--", "echo", "started"]
    late = machine.start(*as_user(20004), *words)
    assert "waiting for" in late.stderr.readline()
    assert "first in line" in late.stderr.readline()
    eventually(lambda: sleeps_for_long(late.pid))
    job.ends()
    assert late.stdout.readline() == "started\n", late.stderr.read()
    assert late.wait(DEADLINE_S) == 0


def test_who_waits_keeps_his_place_while_the_leases_cannot_be_read(open_machine, as_user):
    machine = open_machine
    machine.change("1xH100")
    machine.berth("run", "--", "true")
    job = holder(machine)
    waiting = Job(machine, user=20004, group=20004, extra_groups=[]).says("first in line")
    folder = machine.leases / "leases"
    folder.chmod(0)
    job.ends()
    time.sleep(2)  # more likely than not it has looked by then; if not, nothing is claimed too much
    assert waiting.process.poll() is None, waiting.err.rest()
    folder.chmod(0o1777)
    waiting.starts()
    assert waiting.ends() == 0


# Clocks


@pytest.mark.parametrize("jump_s", [86_400, -86_400])
def test_a_jump_of_the_wall_clock_neither_ends_nor_lengthens_a_wait(one, jump_s):
    clock = Clock(one)
    job = holder(one)
    patient = waiter(one, "--wait", "1h", env=clock.env)
    hasty = waiter(one, "--wait", "1s", env=clock.env)
    clock.set(jump_s, 0)
    assert hasty.process.wait(DEADLINE_S) == 124
    assert "gave up after 1 s" in hasty.err.rest()
    assert patient.process.poll() is None
    job.ends()
    patient.starts()


@pytest.mark.parametrize("direction", ["ahead", "behind"])
def test_one_whose_boot_clock_is_another_keeps_his_place_in_line(one, direction):
    # No clock stands before the boot, and the machine may have come up a minute ago.
    age_s = int(time.clock_gettime(time.CLOCK_BOOTTIME))
    ahead_s = 3600 if direction == "ahead" else -min(3600, age_s // 2)
    job = holder(one)
    first = waiter(one)
    other = waiter(one, env=Clock(one, boot=ahead_s).env)
    last = waiter(one)
    assert queue(one) == [first.pid, other.pid, last.pid]
    for ending, next_one in ((job, first), (first, other), (other, last)):
        ending.ends()
        next_one.starts()
    assert last.ends() == 0
