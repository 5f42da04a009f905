"""A user gives second names to files that belong to root and that he may write, such as the lock files of devices.
Under the name of a ticket or of outcomes such a file says nothing, whatever is written in it and whoever locks it."""

import pathlib
import signal
import sys

import pytest
from jobs import Job
from simulated_machine import DEADLINE_S

ALICE, BOB, MALLORY = 20001, 20002, 20003
GHOST = "0000000000000001"
# Links the file and writes the text into it.
LINKER = """
import os, sys
path, name, text = sys.argv[1:]
os.link(path, name)
file = os.open(name, os.O_RDWR)
os.ftruncate(file, 0)
os.pwrite(file, text.encode(), 0)
"""
REQUEST = f"berth-ticket 1\nid={GHOST}\npid=1\njoined_at=1\ncount=1\ncommand=ghost\n"


@pytest.fixture
def one(open_machine, as_user):
    """A machine with one GPU, whose lease directory is root's. Alice has a share of the GPU, with promised memory: so
    bytes of its lock file are locked."""
    open_machine.change("1xH100")
    open_machine.berth("run", "--", "true")
    (open_machine.device,) = (open_machine.leases / "devices").iterdir()
    open_machine.alice = Job(open_machine, "--memory", "10G", user=ALICE, group=ALICE, extra_groups=[])
    open_machine.alice.starts()
    return open_machine


def link(machine, as_user, part: str, name: str, text: str) -> pathlib.Path:
    path = machine.leases / part / name
    answer = machine.run(*as_user(MALLORY), sys.executable, "-c", LINKER, machine.device, path, text)
    assert (answer.status, answer.err) == (0, "")
    assert path.stat().st_uid == 0 and path.samefile(machine.device)
    return path


def share_of(machine, as_user, user: int):
    return machine.run(*as_user(user), machine.program, "run", "--no-wait", "--memory", "10G", "--", "true")


def test_a_linked_lock_file_is_no_request_and_nobody_waits_behind_it(one, as_user):
    link(one, as_user, "queue", GHOST, REQUEST + "candidate=*\nend\n")
    answer = share_of(one, as_user, BOB)
    assert (answer.status, answer.err) == (0, "")
    assert "ghost" not in one.run(*as_user(BOB), one.program, "queue").out
    # A request that waits does so for Alice, and starts when she has ended.
    waiting = Job(one, user=BOB, group=BOB, extra_groups=[]).says("first in line")
    assert one.alice.ends() == 0
    waiting.starts()
    assert waiting.ends() == 0


def test_a_linked_lock_file_is_no_lease(one, as_user):
    link(one, as_user, "leases", GHOST, REQUEST + f"granted_at=1\ndevice={one.device.name}\nend\n")
    answer = share_of(one, as_user, BOB)
    assert (answer.status, answer.err) == (0, "")
    listed = one.run(*as_user(BOB), one.program, "list", "-l")
    assert "ghost" not in listed.out and "ghost" not in listed.err


@pytest.mark.parametrize("part, command", [("queue", "cancel"), ("leases", "release")])
def test_what_root_ends_is_not_who_uses_the_linked_file(one, as_user, part, command):
    text = REQUEST + f"candidate=*\ngranted_at=1\ndevice={one.device.name}\nend\n"
    path = link(one, as_user, part, GHOST, text)
    answer = one.berth(command, GHOST)
    assert answer.status == 1
    assert f"has the id {GHOST}" in answer.err
    assert one.alice.process.poll() is None
    # The user who has made the name cannot remove it, as the file is root's: root does.
    assert one.berth("run", "--memory", "1G", "--", "true").status == 0
    assert not path.exists()
    assert one.device.exists()
    assert one.alice.ends() == 0


def test_a_ticket_of_that_name_in_the_other_folder_hides_no_request(one, as_user):
    waiting = Job(one, user=BOB, group=BOB, extra_groups=[]).says("first in line")
    (name,) = [path.name for path in (one.leases / "queue").iterdir()]
    text = f"berth-ticket 1\nid={name}\npid=1\njoined_at=1\ncount=1\ndevice={one.device.name}\nend\n"
    link(one, as_user, "leases", name, text)
    assert name[-6:] in one.run(*as_user(ALICE), one.program, "queue").out
    assert one.berth("cancel", name).status == 0
    assert waiting.process.wait(DEADLINE_S) == -signal.SIGTERM
    assert one.alice.process.poll() is None


def test_linked_outcomes_are_nobodys_and_nothing_is_written_there(one, as_user):
    (one.leases / "outcomes" / "0").unlink(missing_ok=True)
    link(one, as_user, "outcomes", "0", "berth-outcomes 1 x\n")
    before = one.device.read_bytes()
    assert one.berth("run", "--memory", "1G", "--", "sh", "-c", "exit 3").status == 3
    assert one.device.read_bytes() == before
    own = [path for path in (one.leases / "outcomes").iterdir() if not path.samefile(one.device)]
    assert [path.name.split("-")[0] for path in own] == ["0"]
    assert own[0].stat().st_uid == 0


def test_doctor_says_where_users_may_link_the_files_of_others(one, tmp_path):
    said = tmp_path / "protected_hardlinks"
    for value, warns in (("1\n", False), ("0\n", True)):
        said.write_text(value)
        mount = f"mount --bind '{said}' /proc/sys/fs/protected_hardlinks && exec \"$@\""
        if one.run("unshare", "--mount", "sh", "-c", mount, "-", "true").status != 0:
            pytest.skip("needs the right to mount")
        answer = one.run("unshare", "--mount", "sh", "-c", mount, "-", one.program, "doctor")
        assert ("sysctl -w fs.protected_hardlinks=1" in answer.out) == warns


def test_a_file_of_that_name_among_the_leases_stops_no_grant(one, as_user):
    waiting = Job(one, user=BOB, group=BOB, extra_groups=[]).says("first in line")
    (name,) = [path.name for path in (one.leases / "queue").iterdir()]
    assert one.run(*as_user(MALLORY), "touch", one.leases / "leases" / name).status == 0
    assert one.alice.ends() == 0
    waiting.starts()
    # It is shown as a lease of Bob's, and root ends it as any other.
    leases = one.run(*as_user(ALICE), one.program, "list", "--json").json["leases"]
    assert [(lease["uid"], lease["id"] == name) for lease in leases] == [(BOB, False)]
    assert one.berth("release", leases[0]["id"]).status == 0
    assert waiting.process.wait(DEADLINE_S) == -signal.SIGTERM
