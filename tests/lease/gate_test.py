"""What a request does while it stands in the gate, by its system calls."""

import re
import shutil

import pytest
from jobs import holder

# Traced.
pytestmark = pytest.mark.release_only


@pytest.fixture
def traced(make_lab, tmp_path):
    """A machine with one device, and a way to run a program there: its answer and its system calls."""
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    lab = make_lab("1xH100")
    lab.log = tmp_path / "calls"
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
