"""What a request does while it stands in the gate, by its system calls."""

import re
import shutil

import pytest
from jobs import device_file, fill, holder

# Traced.
pytestmark = pytest.mark.release_only


@pytest.fixture
def traced(make_lab, tmp_path):
    """A machine with one device, and a way to run a program there: its answer and its system calls."""
    return traced_in(make_lab("1xH100"), tmp_path)


def traced_in(lab, directory):
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    lab.log = directory / "calls"
    lab.traced = ["strace", "-y", "-o", lab.log, lab.program]
    return lab


def inside_the_gate(lab) -> list[list[str]]:
    """The calls of each stay in the gate."""
    stays, now = [], None
    gate = rf"\(\d+<{re.escape(str(lab.leases))}>"
    for line in lab.log.read_text().splitlines():
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
    lab = traced
    if waits:
        job = holder(lab)
        late = lab.start(*lab.traced, "run", "--", "true")
        assert "waiting for" in late.stderr.readline()
        assert "first in line" in late.stderr.readline()
        job.ends()
        assert late.wait(30) == 0
    else:
        assert lab.run(*lab.traced, "run", "--", "true").status == 0
    stays = inside_the_gate(lab)
    assert len(stays) > waits
    assert sum(stays, []) != []
    assert [line for line in sum(stays, []) if ASKS.match(line)] == []
    # The measure itself: it is asked outside.
    assert ASKS.search(lab.log.read_text())


def assert_names_are_asked_outside(lab):
    """Not in the gate, nor while others would wait behind a ticket that has failed."""
    assert [line for line in sum(inside_the_gate(lab), []) if "/passwd" in line] == []
    before, asked, _ = lab.log.read_text().rpartition("/passwd")
    assert asked and re.search(rf"unlink.*queue|close.*{re.escape(str(lab.leases))}/queue/#", before)


@pytest.mark.parametrize("waits", [False, True])
def test_who_owns_an_unfit_device_file_is_asked_outside_the_gate(traced, waits):
    lab = traced
    path = device_file(lab)
    job = holder(lab) if waits else None
    late = lab.start(*lab.traced, "run", "--", "true") if waits else None
    if late:
        late.stderr.readline()
        assert "first in line" in late.stderr.readline()
    path.unlink()
    path.mkdir()
    if late:
        job.ends()
        said = late.communicate()[1]
    else:
        said = lab.run(*lab.traced, "run", "--", "true").err
    assert f"{path.name}: is not a regular file; it belongs to " in said
    assert_names_are_asked_outside(lab)


def test_whose_files_fill_the_directory_is_asked_outside_the_gate(small_lab, tmp_path):
    lab = traced_in(small_lab, tmp_path)
    lab.berth("run", "--", "true")
    fill(lab)
    answer = lab.run(*lab.traced, "run", "--", "true")
    assert "No space left on device; most of the files there are of " in answer.err
    assert_names_are_asked_outside(lab)
