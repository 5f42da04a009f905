"""Jobs of several users: none takes or loses what is another's."""

import ctypes
import os
import pathlib
import shutil
import socket
import subprocess

import pytest
from simulated_machine import DEADLINE_S

ALICE, BOB = 20001, 20002


@pytest.fixture
def network(open_machine, as_user):
    """A folder on a file system that is none of this machine: of a FUSE without a server the kernel tells other users
    its type, and nothing more."""
    folder = open_machine.directory / "network"
    folder.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        device = os.open("/dev/fuse", os.O_RDWR)
    except OSError:
        pytest.skip("needs /dev/fuse")
    options = f"fd={device},rootmode=40755,user_id=0,group_id=0".encode()
    if libc.mount(b"berth", os.fsencode(folder), b"fuse", 0, options) != 0:
        pytest.skip("needs the right to mount")
    yield folder
    libc.umount2(os.fsencode(folder), 2)
    os.close(device)


@pytest.fixture
def victim():
    """A user whose folder in /var/tmp nobody has made yet. What the test leaves there goes, after all that ran there."""
    uid = 1_000_000 + os.getpid()
    yield uid
    for path in pathlib.Path("/var/tmp").glob(f"berth-jobs-{uid}*"):
        path.unlink() if path.is_symlink() else shutil.rmtree(path)


def as_folder(path):
    path.mkdir()
    path.chmod(0o777)


def as_link(path):
    path.symlink_to("/tmp")


def with_a_folder_inside(path):
    as_folder(path)
    for name in ("x", socket.gethostname()):
        as_folder(path / name)


@pytest.mark.parametrize("takes", [None, as_folder, as_link, with_a_folder_inside])
def test_whoever_takes_the_folder_of_jobs_first_moves_and_blocks_nothing(
    victim, open_machine, network, takes
):
    machine = open_machine
    plain = pathlib.Path(f"/var/tmp/berth-jobs-{victim}")
    if takes:
        takes(plain)
        os.chown(plain, BOB, BOB, follow_symlinks=False)
        for path in () if plain.is_symlink() else plain.iterdir():
            os.chown(path, BOB, BOB)
    user = {"user": victim, "group": victim, "extra_groups": [], "cwd": "/"}
    env = {"XDG_STATE_HOME": str(network), "HOME": "/nowhere"}

    def submitted() -> str:
        answer = machine.berth("submit", "--", "true", env=env, **user)
        assert answer.status == 0, answer.err
        return answer.out

    def told() -> list:
        return [job["job"] for job in machine.berth("jobs", "--json", env=env, **user).json["jobs"]]

    assert submitted() == "1\n"
    # Whatever the other does with the name from now on.
    if takes:
        plain.rename(f"{plain}.gone")
    assert told() == [1]
    if takes:
        as_folder(plain)
        os.chown(plain, BOB, BOB)
    assert submitted() == "2\n"
    assert told() == [1, 2]


def test_a_state_folder_that_others_could_replace_is_refused(open_machine, as_user):
    machine = open_machine
    home = machine.directory / "home-of-alice"
    home.mkdir()
    home.chmod(0o777)
    os.chown(home, ALICE, ALICE)
    user = {"user": ALICE, "group": ALICE, "extra_groups": [], "cwd": "/"}
    for env in ({"HOME": str(home)}, {"XDG_STATE_HOME": str(home)}):
        refused = machine.berth("submit", "--", "true", env=env, **user)
        assert refused.status == 1
        assert f"others may write in {home} (mode 777)" in refused.err
        assert "set XDG_STATE_HOME to a folder that only you may change" in refused.err
    assert list(home.iterdir()) == []
    home.chmod(0o755)
    assert machine.berth("submit", "--", "true", env={"HOME": str(home)}, **user).status == 0


CGROUPS = pathlib.Path("/sys/fs/cgroup/systemd")


@pytest.fixture
def session():
    """A control group with the name of a login session."""
    folder = CGROUPS / "session-berth.scope"
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("needs the right to make a control group of the hierarchy of systemd")
    yield folder
    for pid in (folder / "cgroup.procs").read_text().split():
        (CGROUPS / "cgroup.procs").write_text(pid)
    folder.rmdir()


def test_doctor_tells_who_loses_his_jobs_at_logout(open_machine, as_user, session):
    if subprocess.run(["unshare", "--mount", "true"], check=False).returncode != 0:
        pytest.skip("needs the right to mount")
    words = [
        f"echo $$ > {session}/cgroup.procs",
        "mount -t tmpfs tmpfs /etc/systemd",
        "printf '[Login]\\nKillUserProcesses=yes\\n' > /etc/systemd/logind.conf",
        'exec "$@"',
    ]
    doctor = [*as_user(ALICE), open_machine.program, "doctor"]
    answer = open_machine.run(
        "unshare", "--mount", "sh", "-c", " && ".join(words), "sh", *doctor, timeout=DEADLINE_S
    )
    assert "ends all processes of a login session at logout, running jobs too" in answer.out
    assert "loginctl enable-linger" in answer.out
    assert "at logout" not in open_machine.run(*doctor).out
