"""A cleaner of old files in the lease directory, to which all is old."""

import pathlib
import shutil
import subprocess

import pytest
from jobs import Lines, holder, tickets, waiter

pytestmark = pytest.mark.skipif(
    shutil.which("systemd-tmpfiles") is None, reason="needs systemd-tmpfiles: apt install systemd"
)


@pytest.fixture
def clean(tmp_path):
    """As it goes through /tmp, with an age of nothing."""

    def run(directory: pathlib.Path) -> None:
        rules = tmp_path / "rules.conf"
        rules.write_text(f"d {directory} - - - 0\n")
        (directory / "litter").touch()
        subprocess.run(["systemd-tmpfiles", "--clean", rules], check=True, timeout=30)
        assert not (directory / "litter").exists()

    return run


def files(machine) -> list[pathlib.Path]:
    return sorted(path for path in machine.leases.rglob("*") if path.is_file())


def test_leases_and_waiters_stay(make_machine, clean):
    machine = make_machine("2xH100")
    whole = holder(machine, "--devices", "0")
    share = holder(machine, "--devices", "1", "--memory", "50G")
    first, second = waiter(machine, "--devices", "0"), waiter(machine, "--devices", "0")
    before = files(machine)
    clean(machine.leases)
    assert files(machine) == before
    assert machine.berth("run", "--no-wait", "--devices", "0", "--", "true").status == 75
    assert machine.berth("run", "--no-wait", "--devices", "1", "--memory", "50G", "--", "true").status == 75
    whole.ends()
    first.starts()
    assert not second.has_started()
    share.ends()
    first.ends()
    second.starts()


def test_a_lease_stays_alone_and_what_was_empty_is_made_anew(make_machine, clean):
    machine = make_machine("1xH100")
    lone = holder(machine)
    clean(machine.leases)
    assert not (machine.leases / "queue").exists()
    late = waiter(machine)
    lone.ends()
    late.starts()
    late.ends()
    assert tickets(machine, "leases") == []


def test_leases_inside_a_lease_stay(make_machine, clean):
    machine = make_machine("2xH100")
    inner = f"{machine.program} run -n 1 -- bash -c 'echo inner; read || true'"
    outer = machine.start_berth("run", "-n", "2", "--", "bash", "-c", inner, stdin=subprocess.PIPE)
    assert Lines(outer.stdout).line() == "inner\n"
    before = files(machine)
    assert len(before) == 5  # two devices and a lease outside, a device and a lease inside
    clean(machine.leases)
    assert files(machine) == before
    outer.stdin.close()
    outer.stdin = None
    assert outer.wait(30) == 0
