"""Two users with jobs: they take turns."""

import os
import pathlib
import subprocess

import pytest
from jobs import eventually
from lab import DEADLINE_S

ALICE, BOB = 20001, 20002
EACH = 8


def submits(lab, user: int, order: pathlib.Path, count: int) -> None:
    home = lab.directory / f"home{user}"
    home.mkdir(exist_ok=True)
    os.chown(home, user, user)
    for _ in range(count):
        answer = lab.berth(
            "submit", "--", "sh", "-c",
            f"echo {user} >> {order}; n=$(wc -l < {order}); until [ -e {order}.$n ]; do sleep 0.02; done",
            user=user, group=user, extra_groups=[], env={"HOME": str(home)}, cwd="/",
        )  # fmt: skip
        assert answer.status == 0, answer.err


def test_two_users_with_many_jobs_each_alternate(open_lab, as_user):
    lab = open_lab
    lab.change("1xH100")
    lab.berth("run", "--", "true")
    order = lab.directory / "order"
    order.touch()
    order.chmod(0o666)
    holder = lab.start_berth("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
    assert holder.stdout.readline() == "ready\n"
    submits(lab, ALICE, order, EACH)
    submits(lab, BOB, order, EACH)

    def stand_in_line(count):
        eventually(lambda: len(lab.berth("queue", "--json").json["waiters"]) == count)

    # Each of the two has one request in the queue, however many jobs.
    stand_in_line(2)
    holder.kill()
    users = []
    for number in range(1, 2 * EACH + 1):
        eventually(lambda number=number: len(order.read_text().split()) == number)
        users = [int(word) for word in order.read_text().split()]
        # Each job ends when the next one of each user is in line: nobody's turn hangs on who is faster.
        stand_in_line(sum(users.count(user) < EACH for user in (ALICE, BOB)))
        pathlib.Path(f"{order}.{number}").touch()
    for end in range(1, len(users) + 1):
        assert abs(users[:end].count(ALICE) - users[:end].count(BOB)) <= 1, users


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


def test_doctor_tells_who_loses_his_jobs_at_logout(open_lab, as_user, session):
    if subprocess.run(["unshare", "--mount", "true"], check=False).returncode != 0:
        pytest.skip("needs the right to mount")
    words = [
        f"echo $$ > {session}/cgroup.procs",
        "mount -t tmpfs tmpfs /etc/systemd",
        "printf '[Login]\\nKillUserProcesses=yes\\n' > /etc/systemd/logind.conf",
        'exec "$@"',
    ]
    doctor = [*as_user(ALICE), open_lab.program, "doctor"]
    answer = open_lab.run(
        "unshare", "--mount", "sh", "-c", " && ".join(words), "sh", *doctor, timeout=DEADLINE_S
    )
    assert "ends all processes of a login session at logout, running jobs too" in answer.out
    assert "loginctl enable-linger" in answer.out
    assert "at logout" not in open_lab.run(*doctor).out
