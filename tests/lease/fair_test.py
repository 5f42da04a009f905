"""`order = "fair"`: the user who has fewer GPUs comes first."""

import pathlib
import signal

import pytest
from jobs import Job, eventually

ALICE, BOB, CAROL = 20001, 20002, 20003


@pytest.fixture
def fair(open_machine, as_user):
    """Two H100 at a site with the fair order, and jobs of other users there."""
    open_machine.berth("run", "--", "true")
    (open_machine.directory / "site.toml").write_text('order = "fair"\n')
    return open_machine


def job(machine, user: int, *options, **more) -> Job:
    return Job(machine, *options, user=user, group=user, extra_groups=[], cwd="/", **more)


def waiting(machine, user: int, *options, **more) -> Job:
    return job(machine, user, *options, **more).waits()


def line(machine) -> list[int]:
    """The users in line, the first first."""
    return [each["uid"] for each in machine.berth("queue", "--json").json["waiters"]]


def test_a_colleague_does_not_wait_for_all_jobs_of_one_user(fair):
    held = job(fair, ALICE, "-n", "2")
    held.starts()
    first, second, third = (waiting(fair, ALICE, "-n", "2") for _ in range(3))
    bobs = [waiting(fair, BOB, "-n", "2") for _ in range(2)]
    # Alice has both GPUs, and Bob has none.
    assert line(fair) == [BOB, ALICE, BOB, ALICE, ALICE]
    held.ends()
    # Now neither has any, and it was Alice's turn the last time.
    for each in (bobs[0], first, bobs[1], second, third):
        assert each.starts() == "0,1"
        assert each.ends() == 0


def test_who_came_later_and_has_less_starts_though_the_earlier_one_could(fair):
    alices = job(fair, ALICE)
    alices.starts()
    bobs = job(fair, BOB)
    bobs.starts()
    second = waiting(fair, ALICE)
    third = waiting(fair, BOB)
    bobs.ends()
    assert third.starts() in "01"
    assert not second.has_started()
    assert line(fair) == [ALICE]
    third.ends()
    second.starts()
    for each in (alices, second):
        each.ends()


def test_what_is_kept_for_who_has_less_is_told_as_such(fair):
    held = job(fair, ALICE, "--time", "1h")
    held.starts()
    both = waiting(fair, BOB, "-n", "2")
    refused = fair.berth(
        "run", "--no-wait", "--time", "2h", "--", "true", user=ALICE, group=ALICE, extra_groups=[], cwd="/"
    )
    assert refused.status == 75
    assert "whose turn is before yours" in refused.err
    held.ends()
    both.starts()
    both.ends()


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_when_who_was_before_gives_up_the_earlier_one_starts(fair, end):
    held, bobs_first = job(fair, ALICE, "--time", "2h"), job(fair, BOB)
    held.starts()
    bobs_first.starts()
    alices = waiting(fair, ALICE, "--time", "3h")
    bobs = waiting(fair, BOB, "-n", "2")
    bobs_first.ends()
    eventually(lambda: len(fair.berth("list", "--json").json["leases"]) == 1)
    assert not alices.has_started()
    bobs.signal(end)
    alices.starts()
    for each in (alices, held):
        each.ends()


def looks(job: Job) -> int:
    """How often it has slept and been woken."""
    status = pathlib.Path(f"/proc/{job.process.pid}/status").read_text()
    return int(status.split("\nvoluntary_ctxt_switches:")[1].split()[0])


def test_when_who_was_before_gives_up_the_next_one_starts_though_it_did_not_come_first(fair):
    held, bobs_first = job(fair, ALICE, "--time", "2h"), job(fair, BOB)
    held.starts()
    bobs_first.starts()
    alices = waiting(fair, ALICE, "--time", "3h")
    bobs = waiting(fair, BOB, "--time", "3h")
    carols = waiting(fair, CAROL, "-n", "2")
    bobs_first.ends()
    eventually(lambda: len(fair.berth("list", "--json").json["leases"]) == 1)
    before = looks(bobs)
    # Bob's has seen that the GPU is free, and that it is Carol's turn.
    eventually(lambda: looks(bobs) > before + 2)
    assert not bobs.has_started()
    carols.signal(signal.SIGKILL)
    bobs.starts()
    assert not alices.has_started()
    for each in (bobs, alices, held):
        each.ends()


def test_one_that_is_stopped_costs_the_others_a_moment(fair):
    held = job(fair, ALICE, "-n", "2")
    held.starts()
    alices = waiting(fair, ALICE, "-n", "2")
    bobs = waiting(fair, BOB, "-n", "2").stop()
    held.ends()
    assert alices.starts() == "0,1"
    bobs.go_on()
    alices.ends()
    assert bobs.starts() == "0,1"
    bobs.ends()


def test_many_users_with_many_jobs_lose_no_turn(fair):
    users = [20001, 20002, 20003, 20004]
    held = job(fair, ALICE, "-n", "2")
    held.starts()
    jobs = [waiting(fair, user, then="true") for user in users for _ in range(4)]
    held.ends()
    eventually(lambda: all(each.process.poll() is not None for each in jobs))
    assert [each.process.returncode for each in jobs] == [0] * len(jobs)
