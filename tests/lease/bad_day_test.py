"""A driver that fails while requests wait: they wait on, and nobody starts with a driver that does not work."""

import os
import pathlib
import signal
import time

import pytest
from jobs import Job, eventually, holder, is_probe, queue, waiter
from simulated_machine import Machine

pytestmark = pytest.mark.long

ONE = '[[device]]\nmodel = "H100"\n'
KEEPS = "it keeps its place until its GPUs can be used again"
# A command that cannot use CUDA says so, in place of its GPU.
WITH_CUDA = 'python3 -c \'import ctypes; print("cuda", ctypes.CDLL("libcuda.so.1").cuInit(0), flush=True)\'; read || true'


def grow_old() -> None:
    """What a probe says counts for a second after its driver was loaded."""
    time.sleep(1.1)


@pytest.fixture
def one(make_machine) -> Machine:
    return make_machine(ONE)


@pytest.mark.parametrize(
    "bad, words",
    [
        ("init_result = 18\n" + ONE, "driver and library versions differ"),
        (ONE + "lost = true\n", "can ever satisfy the request"),
    ],
    ids=["upgraded", "all-lost"],
)
def test_while_the_driver_fails_nobody_starts_and_nobody_loses_his_place(one, bad, words):
    """The first one's probe has loaded the driver that worked, and knows nothing of the one that a command meets."""
    holding = holder(one)
    jobs = [waiter(one, then=WITH_CUDA).says("line") for _ in range(3)]
    one.change(bad)
    grow_old()
    holding.ends()
    line = jobs[0].err.line()
    assert KEEPS in line and words in line, line
    refused = one.berth("run", "--", "true")
    assert refused.status == 69
    assert queue(one) == [job.pid for job in jobs]
    assert not any(job.has_started() for job in jobs)
    one.change(ONE)
    for job in jobs:
        assert job.starts() == "0"
        assert job.out.line() == "cuda 0\n"
        assert job.ends() == 0
    # It was told once.
    assert KEEPS not in jobs[0].err.rest()


def test_who_wants_all_gpus_keeps_his_place_while_one_is_lost(make_machine):
    """As while an admin resets it."""
    machine = make_machine("3xH100")
    holding = holder(machine)
    waiting = waiter(machine, "-n", "3").says("first in line")
    machine.change('[[device]]\nmodel = "H100"\nlost = true\n[[device]]\nmodel = "H100"\ncount = 2\n')
    grow_old()
    holding.ends()
    line = waiting.err.line()
    assert KEEPS in line and "only 2 of 3 can ever satisfy the request" in line, line
    # Nobody stays behind it for long.
    assert machine.berth("run", "--wait", "20s", "-n", "2", "--", "true").status == 0
    assert machine.berth("run", "-n", "3", "--", "true").status == 69
    machine.change("3xH100")
    assert waiting.starts() == "0,1,2"
    assert waiting.ends() == 0


def test_a_wait_that_runs_out_while_the_driver_fails_says_so(one):
    holding = holder(one)
    job = waiter(one, "--wait", "4s")
    one.change("init_result = 18\n" + ONE)
    grow_old()
    holding.ends()
    job.says(KEEPS)
    assert job.process.wait(30) == 124
    assert "gave up after 4 s: the NVIDIA driver was upgraded" in job.err.rest()
    assert queue(one) == []


def probe_of(job: Job) -> int | None:
    """The process that asks the driver for it."""
    children = pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
    found = [int(pid) for pid in children if is_probe(pid)]
    return found[0] if found else None


def test_a_probe_that_somebody_stops_is_no_driver_that_hangs(one):
    holding = holder(one)
    first = waiter(one, env={"BERTH_DRIVER_DEADLINE_MS": 300}).says("first in line")
    second = waiter(one).says("behind")
    os.kill(eventually(lambda: probe_of(first)), signal.SIGSTOP)
    holding.ends()
    assert first.starts() == "0"
    assert not list(one.leases.glob("stuck-probe*"))
    assert first.ends() == 0
    assert second.starts() == "0"
    assert second.ends() == 0
