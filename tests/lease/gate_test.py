"""What a request does while it stands in the gate, by its system calls."""

import re
import shutil

import pytest
from jobs import device_file, fill, holder

# Traced.
pytestmark = pytest.mark.release_only


@pytest.fixture
def traced(make_machine, tmp_path):
    """A machine with one device, and a way to run a program there: its answer and its system calls."""
    return traced_in(make_machine("1xH100"), tmp_path)


def traced_in(machine, directory):
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    machine.log = directory / "calls"
    machine.traced = ["strace", "-y", "-o", machine.log, machine.program]
    return machine


def inside_the_gate(machine) -> list[list[str]]:
    """The calls of each stay in the gate."""
    stays, now = [], None
    gate = rf"\(\d+<{re.escape(str(machine.leases))}>"
    for line in machine.log.read_text().splitlines():
        if re.match(rf"flock{gate}, LOCK_EX.*= 0", line):
            now = []
        elif now is not None and re.match(rf"close{gate}", line):
            stays.append(now)
            now = None
        elif now is not None:
            now.append(line)
    return stays


ASKS = re.compile(
    r"(send|recv|poll|ppoll|read|write|wait4|clone|clone3|connect)\w*\(.*socket:|(clone|wait4|poll)\w*\("
)


@pytest.mark.parametrize("waits", [False, True])
def test_no_driver_is_asked_in_the_gate(traced, waits):
    machine = traced
    if waits:
        job = holder(machine)
        late = machine.start(*machine.traced, "run", "--", "true")
        assert "waiting for" in late.stderr.readline()
        assert "first in line" in late.stderr.readline()
        job.ends()
        assert late.wait(30) == 0
    else:
        assert machine.run(*machine.traced, "run", "--", "true").status == 0
    stays = inside_the_gate(machine)
    assert len(stays) > waits
    assert sum(stays, []) != []
    assert [line for line in sum(stays, []) if ASKS.match(line)] == []
    # The measure itself: it is asked outside.
    assert ASKS.search(machine.log.read_text())


def assert_names_are_asked_outside(machine):
    """Not in the gate, nor while others would wait behind a ticket that has failed."""
    assert [line for line in sum(inside_the_gate(machine), []) if "/passwd" in line] == []
    before, asked, _ = machine.log.read_text().rpartition("/passwd")
    assert asked and re.search(rf"unlink.*queue|close.*{re.escape(str(machine.leases))}/queue/#", before)


@pytest.mark.parametrize("waits", [False, True])
def test_who_owns_an_unfit_device_file_is_asked_outside_the_gate(traced, waits):
    machine = traced
    path = device_file(machine)
    job = holder(machine) if waits else None
    late = machine.start(*machine.traced, "run", "--", "true") if waits else None
    if late:
        late.stderr.readline()
        assert "first in line" in late.stderr.readline()
    path.unlink()
    path.mkdir()
    if late:
        job.ends()
        said = late.communicate()[1]
    else:
        said = machine.run(*machine.traced, "run", "--", "true").err
    assert f"{path.name}: is not a regular file; it belongs to " in said
    assert_names_are_asked_outside(machine)


def test_whose_files_fill_the_directory_is_asked_outside_the_gate(small_machine, tmp_path):
    machine = traced_in(small_machine, tmp_path)
    machine.berth("run", "--", "true")
    fill(machine)
    answer = machine.run(*machine.traced, "run", "--", "true")
    assert "No space left on device; most of the files there are of " in answer.err
    assert_names_are_asked_outside(machine)
