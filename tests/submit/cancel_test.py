"""berth cancel: what ends, how, and what is said where something does not."""

import os
import signal
import sys

import pytest
from jobs import eventually, the_only
from simulated_machine import DEADLINE_S
from storm import processes
from submitted import cmdline, fill, job, kill, log, spool, submit, wait_for


def test_one_that_is_cancelled_just_as_it_starts_leaves_no_ticket(machine):
    for _ in range(4):
        number = submit(machine, "--", "sleep", "1000")
        state = spool(machine) / number / "state"
        while "[started]" not in (state.read_text() if state.exists() else ""):
            pass
        assert machine.berth("cancel", number).status == 0
        assert job(machine, number)["state"] == "cancelled"
        eventually(lambda: list((machine.leases / "leases").iterdir()) == [])


def test_one_that_waits_is_cancelled_and_never_runs(make_machine):
    machine = make_machine("1xH100")
    (holder,) = fill(machine, 1)
    first, second = (submit(machine, "--", "touch", machine.directory / f"ran{i}") for i in range(2))
    eventually(lambda: job(machine, first)["in_line"])
    assert machine.berth("cancel", first, second).out == f"cancelled job {first}\ncancelled job {second}\n"
    eventually(lambda: machine.berth("queue", "--json").json["waiters"] == [])
    machine.berth("cancel", holder)
    last = submit(machine, "--", "true")
    assert machine.berth("wait", last).status == 0
    assert list(machine.directory.glob("ran*")) == []
    answer = machine.berth("wait", first)
    assert (answer.status, answer.err) == (1, f"berth: job {first} was cancelled\n")


def test_one_that_runs_is_asked_to_end(machine):
    number = submit(
        machine, "--", "sh", "-c", "trap 'echo saved; exit 0' TERM; echo on; while :; do sleep 0.05; done"
    )
    eventually(lambda: log(machine, number) == "on\n")
    assert machine.berth("cancel", number).status == 0
    assert log(machine, number) == "on\nsaved\n"
    assert job(machine, number)["state"] == "cancelled"


# A script that leaves what it has started when it gets SIGTERM, as most scripts do.
LEAVES = "echo on; sleep 1000; echo done"
# And one whose child ignores SIGTERM.
LEAVES_DEAF = "(trap '' TERM; echo on; while :; do sleep 0.05; done); echo done"


def test_what_a_script_has_started_ends_with_it(make_machine):
    machine = make_machine("1xH100")
    number = submit(machine, "--", "sh", "-c", LEAVES)
    eventually(lambda: log(machine, number) == "on\n")
    assert machine.berth("cancel", number).out == f"cancelled job {number}\n"
    assert processes(machine)["job"] == [] and log(machine, number) == "on\n"
    assert machine.berth("run", "--no-wait", "--", "true").status == 0


@pytest.mark.parametrize("run", ["lives", "is dead"])
def test_what_ignores_sigterm_is_killed_after_the_grace_and_cancelled_is_said_then(machine, run):
    site = machine.directory / "site.toml"
    site.write_text('time_grace = "1s"\n')
    env = {"BERTH_SITE_FILE": site}
    number = submit(machine, "--", "sh", "-c", LEAVES_DEAF, env=env)
    eventually(lambda: log(machine, number) == "on\n")
    if run == "is dead":
        kill(machine, "run")
    # Else the grace may be over before all has been asked.
    stopped = processes(machine)["run"]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    answer = machine.berth("cancel", "--wait", "0s", number, env=env)
    assert answer.status == 124 and "still runs: " in answer.err
    # The script itself may take a moment to end.
    assert f"{processes(machine)['job'][0]} (sh -c" in answer.err
    assert "it gets SIGKILL 1 s after SIGTERM" in answer.err
    if stopped:
        assert machine.berth("forget", number).status == 1
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    answer = machine.berth("cancel", "--wait", f"{DEADLINE_S}s", number, env=env)
    # On a slow machine the grace is over before this asks.
    is_over = f"job {number} is over already (cancelled)" in answer.err
    assert is_over or answer.out == f"cancelled job {number}\n"
    assert processes(machine)["job"] == []
    assert job(machine, number)["state"] == "cancelled"


def test_what_a_job_that_has_ended_left_behind_is_told_of_and_cancelled(machine, tmp_path):
    told_of = tmp_path / "told"
    told_of.touch()
    number = submit(
        machine, "--notify", f"cmd:echo $BERTH_EVENT $BERTH_MESSAGE >>{told_of}", "--", "sh", "-c",
        "(trap '' TERM HUP; echo on; while :; do sleep 0.05; done) & sleep 0.1; exit 3",
    )  # fmt: skip
    assert machine.berth("wait", number).status == 3
    (left, *_) = processes(machine)["job"]
    words = f"has ended, and processes that it started still have its GPUs: {left} (sh -c"
    assert f"job {number}: {words}" in machine.berth("jobs").out
    assert job(machine, number)["left_behind"].startswith(f"{left} (sh -c")
    eventually(lambda: f"left {words}" in told_of.read_text())
    answer = machine.berth("forget", number)
    assert answer.status == 1 and words in answer.err
    os.kill(left, signal.SIGKILL)
    eventually(lambda: job(machine, number)["left_behind"] is None)
    assert machine.berth("forget", number).status == 0


def test_what_a_job_has_left_behind_without_its_descriptors_is_told_of_and_cancelled(make_machine):
    machine = make_machine("1xH100")
    closes = "import os, time; os.closerange(0, 256); os.execvp('sleep', ['sleep', '1000'])"
    number = submit(machine, "--", "sh", "-c", f'setsid {sys.executable} -c "{closes}" & exit 0')
    assert machine.berth("wait", number).status == 0
    eventually(lambda: "(sleep 1000)" in (job(machine, number)["left_behind"] or ""))
    assert machine.berth("cancel", number).out == f"ended what job {number} had left behind\n"
    assert machine.berth("run", "--no-wait", "--", "true").status == 0


def test_what_is_over_or_was_never_there_is_no_job_to_cancel(machine):
    number = submit(machine, "--", "true")
    machine.berth("wait", number)
    answer = machine.berth("cancel", number)
    assert answer.status == 1 and "is over already (done)" in answer.err
    assert machine.berth("cancel", "77").status == 1
    for command in ("log", "wait", "forget", "jobs"):
        answer = machine.berth(command, "77")
        assert answer.status == 1 and "there is no job 77" in answer.err
        answer = machine.berth(command, "x")
        assert answer.status == 1 and "there is no job x of yours" in answer.err


def test_of_an_array_only_the_task_whose_run_was_killed_is_cancelled(machine):
    script = "trap 'test -e {0}/again && exit 0; touch {0}/again' TERM; echo on; while :; do sleep 0.05; done"
    number = submit(machine, "--array", "1-2", "--", "sh", "-c", script.format(machine.directory))
    for i in (1, 2):
        eventually(lambda i=i: log(machine, f"{number}.{i}") == "on\n")
    run = the_only(
        lambda: [pid for pid in processes(machine)["run"] if cmdline(pid).endswith(f"/{number}.1".encode())]
    )
    os.kill(run, signal.SIGKILL)
    eventually((machine.directory / "again").exists)
    assert machine.berth("cancel", f"{number}.1").status == 0
    assert [job(machine, f"{number}.{i}")["state"] for i in (1, 2)] == ["cancelled", "running"]


@pytest.mark.parametrize("end", ["cancel", "release"])
def test_a_stopped_job_is_ended(machine, end):
    number = submit(machine, "--", "sh", "-c", "echo on; while :; do sleep 0.05; done")
    eventually(lambda: log(machine, number) == "on\n")
    # All of its group, as `kill -STOP -PGID` does: its `berth __job` as well.
    os.killpg(os.getpgid(processes(machine)["run"][0]), signal.SIGSTOP)
    (lease,) = machine.berth("list", "--json").json["leases"]
    answer = machine.berth(end, number if end == "cancel" else lease["id"])
    assert answer.status == 0, answer.err
    wait_for(machine, number, "cancelled" if end == "cancel" else "ended")
