"""berth release: the end of a lease, asked for from outside."""

import os
import signal

import pytest
from lease_jobs import eventually, holder, leases, only_lease, ready, waiter, waiting
from lab import DEADLINE_S


def test_the_job_ends_and_with_it_the_lease(lab):
    job = holder(lab)
    lease = only_lease(lab)
    answer = lab.berth("release", lease)
    assert (answer.status, answer.err) == (0, "")
    assert answer.out == f"ended the lease {lease} of root: bash\n"
    assert leases(lab) == []
    assert job.wait(DEADLINE_S) == -signal.SIGTERM


def test_the_last_digits_are_enough(lab):
    holder(lab)
    assert lab.berth("release", only_lease(lab)[-6:]).status == 0
    assert leases(lab) == []


def test_a_lease_that_does_not_exist_is_named(lab):
    answer = lab.berth("release", "00000000000000aa")
    assert (answer.status, answer.out) == (1, "")
    assert (
        answer.err == "berth: no live lease has the id 00000000000000aa; `berth list` shows the live leases\n"
    )


@pytest.mark.parametrize("word", ["nonsense", "0123456789abcdef0", "../../etc/passwd", "*"])
def test_what_is_no_id_is_a_wrong_use(lab, word):
    answer = lab.berth("release", word)
    assert (answer.status, answer.out) == (2, "")
    assert "is no lease's id" in answer.err


def test_without_an_id_outside_a_lease_it_asks_which(lab):
    answer = lab.berth("release")
    assert answer.status == 2
    assert answer.err.startswith("berth: which lease? ")


def test_inside_a_lease_it_ends_that_one(lab):
    job = holder(lab, then=f"'{lab.program}' release; sleep 1000")
    assert job.wait(DEADLINE_S) == -signal.SIGTERM
    assert leases(lab) == []


def test_one_that_waits_is_left_alone(make_lab):
    lab = make_lab("1xH100")
    holder(lab)
    job = waiter(lab)
    request = waiting(lab)[0]
    answer = lab.berth("release", request)
    assert answer.status == 1
    assert (
        f"{request} waits and holds nothing; berth cancel {request} takes it out of the queue" in answer.err
    )
    assert job.poll() is None


def test_one_that_waits_is_cancelled_and_the_next_moves_up(make_lab):
    lab = make_lab("1xH100")
    holder(lab)
    first, second = waiter(lab), waiter(lab)
    answer = lab.berth("cancel", waiting(lab)[0][-6:])
    assert (answer.status, answer.err) == (0, "")
    assert answer.out.startswith("cancelled the request ") and answer.out.endswith(" of root: bash\n")
    assert first.wait(DEADLINE_S) == -signal.SIGTERM
    assert [row["position"] for row in lab.berth("queue", "--json").json["waiters"]] == [1]
    assert second.poll() is None


def test_what_has_its_gpus_is_not_cancelled(lab):
    holder(lab)
    lease = only_lease(lab)
    answer = lab.berth("cancel", lease)
    assert (answer.status, answer.out) == (1, "")
    assert f"waits no more, it has its GPUs; berth release {lease} ends the lease" in answer.err
    assert leases(lab) == [lease]
    assert lab.berth("cancel").status == 2


def test_a_job_that_does_not_answer_is_named_with_its_pids(lab):
    job = holder(lab, then="trap '' TERM; echo deaf; while :; do sleep 1000; done", start_new_session=True)
    assert job.stdout.readline() == "deaf\n"
    lease = only_lease(lab)
    answer = lab.berth("release", lease, "--wait", "0s")
    assert (answer.status, answer.out) == (124, "")
    assert (
        f"the lease {lease} has not ended yet: it got SIGTERM, and these processes still hold it: "
        in answer.err
    )
    assert f"{job.pid} (" in answer.err
    assert leases(lab) == [lease]
    os.killpg(job.pid, signal.SIGKILL)


def test_a_stopped_holder_is_called_stopped(lab):
    job = holder(lab)
    job.send_signal(signal.SIGSTOP)
    answer = lab.berth("release", only_lease(lab), "--wait", "0s")
    assert answer.status == 124
    assert ", stopped)" in answer.err
    job.send_signal(signal.SIGCONT)
    eventually(lambda: leases(lab) == [])


def test_a_held_pick_ends_with_its_keeper(lab):
    assert lab.berth("pick", "--hold", "1h").status == 0
    assert lab.berth("release", only_lease(lab)).status == 0
    assert lab.berth("run", "-n", "8", "--no-wait", "--", "true").status == 0


def test_an_exec_job_is_asked_itself(lab):
    job = holder(lab, "--exec")
    assert lab.berth("release", only_lease(lab)).status == 0
    assert job.wait(DEADLINE_S) == -signal.SIGTERM


def test_another_users_lease_is_his(open_lab, as_user):
    lab = open_lab
    lab.berth("run", "--", "true")
    alice = ready(
        lab.start(*as_user(1001), lab.program, "run", "--", "bash", "-c", "echo ready; exec sleep 1000")
    )
    lease = only_lease(lab)
    bob = lab.run(*as_user(1002), lab.program, "release", lease)
    assert (bob.status, bob.out) == (1, "")
    assert bob.err == f"berth: the lease {lease} is of uid 1001: only its owner and root may end it\n"
    assert alice.poll() is None
    assert lab.run(*as_user(1001), lab.program, "release", lease).status == 0


def test_root_may_end_any(open_lab, as_user):
    lab = open_lab
    lab.berth("run", "--", "true")
    ready(lab.start(*as_user(1001), lab.program, "run", "--", "bash", "-c", "echo ready; exec sleep 1000"))
    assert lab.berth("release", only_lease(lab)).status == 0
