"""Root's release, cancel and epilog: they signal what the owner of the lease could signal, and nothing else."""

import os
import pathlib
import signal
import sys

import pytest
from jobs import Job, command_of, eventually, state
from lease_jobs import ready
from simulated_machine import DEADLINE_S

ALICE = 20001
# A daemon that takes descriptors from anybody, as the bus of the system does.
RECEIVER = """
import os, socket, sys, time
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
os.chmod(sys.argv[1], 0o777)
print("ready", flush=True)
connection, _ = listener.accept()
words, descriptors, *_ = socket.recv_fds(connection, 16, 16)
print("took", len(descriptors), flush=True)
time.sleep(1000)
"""
# Hands all descriptors of its lease to the daemon, as a command of `berth run`.
GIVER = """
import os, socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
held = [int(name) for name in os.listdir("/proc/self/fd") if int(name) >= 100]
socket.send_fds(connection, [b"x"], held)
"""
# Opens a ticket and hands it to the daemon.
OPENER = """
import os, socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
socket.send_fds(connection, [b"x"], [os.open(sys.argv[2], os.O_RDWR)])
"""


@pytest.fixture
def one(open_machine, as_user):
    """A machine with one GPU, whose lease directory is root's."""
    open_machine.change("1xH100")
    open_machine.berth("run", "--", "true")
    return open_machine


@pytest.fixture
def daemon(one):
    """A process of root to which Alice hands what she likes."""
    address = one.leases.parent / "daemon"
    process = ready(one.start(sys.executable, "-c", RECEIVER, address))
    process.address = address
    yield process
    process.kill()


def job_of(machine, daemon, then="read", **more) -> Job:
    """A job of Alice's whose lease the daemon has too."""
    give = f"{sys.executable} -c '{GIVER}' {daemon.address}"
    job = Job(machine, then=f"{give}; {then}", user=ALICE, group=ALICE, extra_groups=[], **more)
    job.starts()
    assert daemon.stdout.readline().startswith("took")
    return job


def lease_of(machine) -> str:
    (path,) = (machine.leases / "leases").iterdir()
    return path.name


def says(path: pathlib.Path, **said) -> None:
    """Changes lines of the ticket, as its owner may."""
    lines = [line.partition("=") for line in path.read_text().splitlines()]
    path.write_text("".join(f"{key}{sign}{said.get(key, value)}\n" for key, sign, value in lines))


def is_left_to(job: Job, daemon) -> None:
    """All that Alice has started is killed. The daemon has the lease."""
    for pid in (job.pid, command_of(job)):
        os.kill(pid, signal.SIGKILL)
    job.process.wait(DEADLINE_S)


def test_a_process_of_root_that_was_handed_the_lease_gets_no_signal_and_is_named(one, daemon):
    job = job_of(one, daemon)
    lease = lease_of(one)
    is_left_to(job, daemon)
    answer = one.berth("release", "--wait", "1s", lease)
    assert answer.status == 124
    assert f"{daemon.pid} (" in answer.err and ") of root" in answer.err
    assert "kill -KILL" not in answer.err
    assert daemon.poll() is None
    # When it lets go, the lease is over.
    daemon.kill()
    daemon.wait(DEADLINE_S)
    eventually(lambda: one.berth("run", "--no-wait", "--", "true").status == 0)


def test_alices_own_processes_are_asked_beside_it(one, daemon):
    job = job_of(one, daemon)
    lease, command = lease_of(one), command_of(job)
    os.kill(job.pid, signal.SIGKILL)
    job.process.wait(DEADLINE_S)
    answer = one.berth("release", "--wait", "1s", lease)
    assert answer.status == 124
    assert f"{daemon.pid} (" in answer.err
    assert eventually(lambda: state(command) in ("gone", "Z"))
    assert daemon.poll() is None


def test_a_ticket_that_names_a_process_of_root_as_its_taker_ends_no_such_process(one, daemon):
    job = job_of(one, daemon)
    lease = lease_of(one)
    path = one.leases / "leases" / lease
    start = pathlib.Path(f"/proc/{daemon.pid}/stat").read_text().rpartition(")")[2].split()[19]
    says(path, pid=daemon.pid, pid_start=start)
    assert one.berth("release", "--wait", "5s", lease).status == 0
    assert job.process.wait(DEADLINE_S) == -signal.SIGTERM
    assert daemon.poll() is None


def test_the_epilog_of_slurm_ends_no_process_of_root(one, as_user, daemon):
    env = {
        "SLURM_JOB_ID": "12",
        "SLURM_JOB_UID": str(ALICE),
        "SLURM_JOB_GID": str(ALICE),
        "SLURM_JOB_GPUS": "0",
        "CUDA_VISIBLE_DEVICES": "0",
    }
    assert one.berth("prolog", env=env).status == 0
    path = one.leases / "leases" / lease_of(one)
    # The ticket is the user's, who may say in it what he likes and open it for whom he likes.
    assert one.run(*as_user(ALICE), sys.executable, "-c", OPENER, daemon.address, path).status == 0
    assert daemon.stdout.readline().startswith("took")
    says(path, pid=1, pid_start=1)
    answer = one.berth("epilog", env=env)
    assert (answer.status, answer.err) == (0, "")
    assert daemon.poll() is None
    assert list((one.leases / "leases").iterdir()) == []
