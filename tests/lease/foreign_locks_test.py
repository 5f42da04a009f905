"""Locks of programs that know nothing of Berth: `[[foreign_locks]]` in the site file."""

import contextlib
import fcntl
import os
import pathlib
import signal
import subprocess
import sys

import pytest
from jobs import DEADLINE_S, eventually, holder, waiter

ALICE, MALLORY = 20001, 20003
KINDS = ["flock", "fcntl"]


class Site:
    """A machine with two GPUs whose site file has rows for the files in a folder."""

    def __init__(self, machine):
        self.machine = machine
        self.folder = machine.directory / "locks"
        self.folder.mkdir()
        self.folder.chmod(0o1777)

    def rows(self, *rows) -> "Site":
        """Of each the name of the file, the kind, and more lines."""
        text = "".join(
            f'[[foreign_locks]]\npath = "{self.folder}/{name}"\nkind = "{kind}"\n{"".join(more)}\n'
            for name, kind, *more in rows
        )
        (self.machine.directory / "site.toml").write_text(text)
        return self

    def file(self, name="0.lock", mode=0o666) -> pathlib.Path:
        path = self.folder / name
        path.touch()
        path.chmod(mode)
        return path

    def run(self, device="0", user=None):
        return self.machine.berth("run", "--no-wait", "--devices", device, "--", "true", **as_uid(user))

    def is_locked(self, path, device="0") -> bool:
        answer = self.run(device)
        if answer.status == 75:
            assert f"locked by {path}" in answer.err
            (shown,) = [row for row in self.devices() if str(row["index"]) == device]
            assert shown["verdict"]["reason"] == f"locked by {path}"
        return answer.status == 75

    def devices(self) -> list:
        return self.machine.berth("list", "--json").json["devices"]

    def doctor(self) -> str:
        answer = self.machine.berth("doctor")
        return answer.out + answer.err


def as_uid(user) -> dict:
    return {} if user is None else {"user": user, "group": user, "extra_groups": [], "cwd": "/"}


@pytest.fixture
def site(open_machine):
    if os.geteuid() != 0:
        pytest.skip("needs root: its files count for everybody")
    return Site(open_machine)


def lock(file, kind: str) -> bool:
    """As such a program takes it. False: others have it."""
    try:
        if kind == "flock":
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def locked(path, kind: str):
    with path.open("r+") as file:
        assert lock(file, kind)
        yield


def can_lock(path, kind: str) -> bool:
    with path.open("r+") as file:
        return lock(file, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_program_has_locked_is_shown_and_given_to_nobody(site, kind):
    path = site.rows(("{index}.lock", kind)).file()
    assert site.run().status == 0
    with locked(path, kind):
        assert site.is_locked(path)
        assert site.run("1").status == 0
    assert site.run().status == 0


def test_a_program_that_shares_its_lock_once_it_has_it_keeps_the_gpu(site):
    """As gpumutex does, which lets its children in by that."""
    path = site.rows(("{index}.lock", "flock")).file()
    with path.open("r+") as file:
        assert lock(file, "flock")
        fcntl.flock(file, fcntl.LOCK_SH)
        assert site.is_locked(path)
    assert site.run().status == 0


@pytest.mark.parametrize("kind", KINDS)
def test_whoever_waits_for_it_gets_it_when_the_program_lets_go(site, kind):
    path = site.rows(("{index}.lock", kind)).file()
    with locked(path, kind):
        waiting = waiter(site.machine, "--devices", "0")
    waiting.starts()


@pytest.mark.parametrize("how", ["ends", "is killed"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_leased_no_program_gets_while_a_process_of_the_lease_lives(site, kind, how):
    path = site.rows(("{index}.lock", kind)).file()
    # If its `berth run` is killed, the kernel sends the command SIGTERM.
    holding = holder(site.machine, "--devices", "0", then="trap '' TERM; echo deaf; read || true")
    assert holding.out.line() == "deaf\n"
    if how == "is killed":
        holding.signal(signal.SIGKILL)
        # By then it has closed all of its files.
        holding.process.wait(DEADLINE_S)
    assert not can_lock(path, kind)
    holding.ends()
    eventually(lambda: can_lock(path, kind))


@pytest.mark.parametrize("kind", KINDS)
def test_two_shares_of_a_gpu_have_the_lock_together(site, kind):
    path = site.rows(("{index}.lock", kind)).file()
    first = holder(site.machine, "--devices", "0", "--memory", "1G")
    second = holder(site.machine, "--devices", "0", "--memory", "1G")
    first.ends()
    assert not can_lock(path, kind)
    second.ends()
    eventually(lambda: can_lock(path, kind))


def test_a_lock_that_is_a_file_counts_while_it_is_there_and_is_never_made(site):
    site.rows(("{index}.busy", "file"))
    holding = holder(site.machine, "--devices", "0")
    assert list(site.folder.iterdir()) == []
    holding.ends()
    path = site.file("0.busy")
    assert site.is_locked(path)
    path.unlink()
    assert site.run().status == 0


@pytest.mark.parametrize("place", ["index", "uuid", "pci"])
def test_a_file_names_its_gpu_by_any_of_three_words(site, place):
    site.rows((f"gpu-{{{place}}}", "flock"))
    device = site.devices()[1]
    name = {"index": "1", "uuid": device["uuid"], "pci": device["pci_bus_id"]}[place]
    path = site.file(f"gpu-{name}")
    site.file("gpu-99")
    with locked(path, "flock"), locked(site.folder / "gpu-99", "flock"):
        assert site.is_locked(path, "1")
        assert site.run("0").status == 0


def test_of_two_rows_for_one_gpu_both_count(site):
    site.rows(("{index}.a", "flock"), ("{index}.b", "fcntl"))
    first, second = site.file("0.a"), site.file("0.b")
    with locked(first, "flock"):
        assert site.is_locked(first)
    with locked(second, "fcntl"):
        assert site.is_locked(second)
    holding = holder(site.machine, "--devices", "0")
    assert not can_lock(first, "flock") and not can_lock(second, "fcntl")
    holding.ends()


@pytest.mark.parametrize("kind", ["flock", "fcntl", "file"])
def test_a_file_of_another_user_counts_only_if_the_site_names_the_user(site, kind):
    path = site.rows(("{index}.lock", kind)).file()
    os.chown(path, MALLORY, MALLORY)
    with locked(path, kind if kind != "file" else "flock"):
        assert site.run(user=ALICE).status == 0
        assert f"{path} counts for nothing: it belongs to" in site.doctor()
        assert site.run(user=MALLORY).status == 75
        site.rows(("{index}.lock", kind, f'user = "{MALLORY}"'))
        assert site.run(user=ALICE).status == 75
        assert "counts for nothing" not in site.doctor()


# What a user can put where a lock file is looked for. Each holds all that the user can hold there.
HOLDS = """
import fcntl, os, socket, sys, time
path, how, roots = sys.argv[1:]
def lock(path):
    file = open(path, "a")
    fcntl.flock(file, fcntl.LOCK_EX)
    fcntl.lockf(file, fcntl.LOCK_EX)
    return file
if how == "file": kept = lock(path)
if how == "kept from others": kept = lock(path); os.fchmod(kept.fileno(), 0)
if how == "lease":
    open(path, "w").close()
    kept = open(path, "r+")
    fcntl.fcntl(kept, fcntl.F_SETLEASE, fcntl.F_WRLCK)
if how == "link": os.symlink(roots, path); kept = lock(roots)
if how == "link to nothing": os.symlink("/nowhere", path)
if how == "hard link": os.link(roots, path); kept = lock(roots)
if how == "folder": os.mkdir(path)
if how == "fifo": os.mkfifo(path)
if how == "socket": socket.socket(socket.AF_UNIX).bind(path)
print("there", flush=True)
time.sleep(1000)
"""
FIXTURES = [
    "file",
    "kept from others",
    "lease",
    "link",
    "link to nothing",
    "hard link",
    "folder",
    "fifo",
    "socket",
]


@pytest.mark.parametrize("kind", ["flock", "fcntl", "file"])
@pytest.mark.parametrize("how", FIXTURES)
def test_no_user_keeps_another_from_a_gpu_by_what_he_puts_there(site, kind, how):
    site.rows(("{index}.lock", kind))
    roots = site.machine.directory / "of-root"
    roots.touch()
    roots.chmod(0o666)
    mallory = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(site.folder / "0.lock"), how, str(roots)],
        stdout=subprocess.PIPE,
        **as_uid(MALLORY),
    )
    try:
        if mallory.stdout.readline() != b"there\n":
            pytest.skip(f"needs a kernel on which a user can make this: {how}")
        assert site.run(user=ALICE).status == 0
        assert site.run().status == 0
        holding = holder(site.machine, "--devices", "0")
        holding.ends()
        assert f"{site.folder}/0.lock counts for nothing" in site.doctor()
    finally:
        mallory.kill()
        mallory.wait(DEADLINE_S)
        mallory.stdout.close()


@pytest.mark.parametrize("kind", KINDS)
def test_an_instance_of_mig_is_locked_with_its_gpu(site, kind):
    site.machine.change('[[device]]\nmodel = "H100"\nmig = ["1g.10gb", "1g.10gb"]\n')
    path = site.rows(("{index}.lock", kind)).file()
    first, second = (holder(site.machine), holder(site.machine))
    assert not can_lock(path, kind)
    first.ends()
    second.ends()
    eventually(lambda: can_lock(path, kind))
    with locked(path, kind):
        refused = site.machine.berth("run", "--no-wait", "--", "true")
        assert refused.status == 75 and f"locked by {path}" in refused.err


def test_doctor_names_what_is_missing_and_a_user_whom_nobody_knows(site):
    site.rows(("{index}.lock", "flock", 'user = "nobody-has-this-name"'))
    said = site.doctor()
    assert f"{site.folder}/0.lock is not there, so Berth cannot lock it" in said
    assert "names user nobody-has-this-name, and this machine knows no such user" in said


def test_the_command_cannot_end_the_lock_by_a_close(site):
    """A classic record lock would end with any close of the file in the process that has it."""
    path = site.rows(("{index}.lock", "fcntl")).file()
    holding = holder(site.machine, "--devices", "0", then=f"cat {path}; read || true")
    assert not can_lock(path, "fcntl")
    holding.ends()
