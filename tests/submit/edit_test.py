"""`berth edit`: hold, reorder and change what waits."""

import contextlib
import fcntl
import os
import signal
import struct
import subprocess

import pytest
from jobs import eventually, state
from schemas import checked
from simulated_machine import DEADLINE_S
from storm import processes
from submitted import cmdline, fill, job, kill, spool, submit, told


def order(machine) -> list[str]:
    with contextlib.suppress(FileNotFoundError):
        return (machine.directory / "order").read_text().split()
    return []


def marked(machine, word: str, *options, then: str = "true", **more) -> str:
    line = f"echo {word} >> {machine.directory}/order; {then}"
    return submit(machine, *options, "--", "sh", "-c", line, **more)


def edit(machine, *words) -> str:
    answer = machine.berth("edit", *words)
    assert answer.status == 0, answer.err
    return answer.out


def refused(machine, *words) -> str:
    answer = machine.berth("edit", *words)
    assert answer.status != 0 and answer.out == ""
    return answer.err


def in_line(machine, number: str) -> dict:
    return eventually(lambda: (found := job(machine, number))["in_line"] and found)


@pytest.fixture
def busy(make_machine):
    """A machine whose only GPU is taken until `free` is called."""
    machine = make_machine("1xH100")
    (holder,) = fill(machine, 1)
    machine.free = lambda: machine.berth("cancel", holder)
    return machine


def all_end(machine, *numbers) -> None:
    for number in numbers:
        assert machine.berth("wait", number).status == 0


def test_a_held_job_does_not_start_until_it_is_let_go(busy):
    first, second = marked(busy, "first"), marked(busy, "second")
    in_line(busy, first)
    edit(busy, second, "--hold")
    (found,) = checked(busy.berth("jobs", "--json", second), "jobs")["jobs"]
    assert (found["held"], found["state"], found["in_line"]) == (True, "waiting", False)
    assert f"job {second}: `berth edit {second} --no-hold` lets it go" in busy.berth("jobs").out
    assert [each["id"] for each in busy.berth("jobs", "--json", "--state", "held").json["jobs"]] == [second]
    assert edit(busy, second, "--hold") == f"job {second} is held already\n"
    busy.free()
    all_end(busy, first)
    third = marked(busy, "third")
    all_end(busy, third)
    assert order(busy) == ["first", "third"]
    edit(busy, second, "--no-hold")
    all_end(busy, second)
    assert order(busy) == ["first", "third", "second"]


def test_a_hold_that_would_cost_the_place_in_the_queue_is_said_first(busy):
    only = marked(busy, "only")
    in_line(busy, only)
    assert "no other job of yours with the same request could take it" in refused(busy, only, "--hold")
    assert job(busy, only)["in_line"] and not job(busy, only)["held"]
    edit(busy, only, "--hold", "--yes")
    assert not job(busy, only)["in_line"] and job(busy, only)["held"]
    assert busy.berth("queue", "--json").json["waiters"] == []
    busy.free()
    edit(busy, only, "--no-hold")
    all_end(busy, only)
    assert order(busy) == ["only"]


def places(machine) -> list[str]:
    """The tickets that wait in the queue of the machine."""
    return [each["id"] for each in machine.berth("queue", "--json").json["waiters"]]


def place_in_queue(machine) -> list[str]:
    """Once there is one: a process has its task a moment earlier."""
    return eventually(lambda: places(machine))


def test_the_place_in_the_queue_goes_to_the_job_that_is_put_first(busy):
    first, second, third = (marked(busy, word) for word in ("first", "second", "third"))
    in_line(busy, first)
    place = place_in_queue(busy)
    edit(busy, third, "--first")
    said = busy.berth("jobs").out
    assert f"job {first}: job {third} starts in its place in the queue\n" in said
    assert (
        f"job {third}: first of your jobs with this request: it starts in the place of job {first} in the queue\n"
        in said
    )
    assert f"job {second}: another job of yours asks for the same" in said
    # It is who waits there.
    assert f"job {third}: first in line" in said and f"job {first}: first in line" not in said
    assert places(busy) == place
    busy.free()
    all_end(busy, first, second, third)
    assert order(busy) == ["third", "first", "second"]
    assert [each["starts"] for each in told(busy, first, second, third)] == [1, 1, 1]


def test_what_runs_in_the_place_of_another_job_is_that_job_for_everybody(busy):
    first = marked(busy, "first")
    second = marked(busy, "second", "-J", "eval", then="echo $BERTH_JOB $BERTH_JOB_NAME; sleep 1000")
    in_line(busy, first)
    edit(busy, second, "--first")
    busy.free()
    eventually(lambda: job(busy, second)["state"] == "running")
    eventually(lambda: order(busy) == ["second"])
    assert f"job {second} eval" in busy.berth("list").out
    assert eventually(lambda: busy.berth("log", second).out) == f"{second} eval\n"
    assert busy.berth("log", first).out == ""
    # Each is ended by its own name.
    assert busy.berth("cancel", first).status == 0
    assert job(busy, second)["state"] == "running"
    assert busy.berth("cancel", second).status == 0
    assert [each["state"] for each in told(busy, first, second)] == ["cancelled", "cancelled"]
    (run,) = eventually(lambda: busy.berth("receipt", "--json", second).json["runs"])
    assert run["job"] == second and "echo second" in run["command"]
    assert busy.berth("receipt", first).status != 0


def test_an_array_takes_a_place_and_gives_it_up(busy):
    first = marked(busy, "first")
    array = submit(busy, "--array", "0-1", "--", "sh", "-c", f"echo $BERTH_JOB >> {busy.directory}/order")
    in_line(busy, first)
    edit(busy, array, "--first")
    busy.free()
    all_end(busy, first, array)
    assert order(busy) == [f"{array}.0", f"{array}.1", "first"]


@contextlib.contextmanager
def just_taken(machine, number: str):
    """As by a process that has locked the task, and has written nothing yet."""
    with (spool(machine) / number / "job").open("r+b") as file:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 1, 0))
        yield


def runs_of(machine, number: str) -> list[int]:
    """The processes that the runner has started for a job, as long as they live."""
    return [pid for pid in processes(machine)["run"] if cmdline(pid).endswith(f"/{number}".encode())]


def test_a_task_that_a_process_has_just_taken_keeps_its_turn(busy):
    first, second, third = (marked(busy, word) for word in ("first", "second", "third"))
    in_line(busy, first)
    with just_taken(busy, second):
        busy.free()
        all_end(busy, first)
        # The runner starts a process for it, which finds it taken, and ends. Each other job begins
        # when the runner has dealt with what came before.
        eventually((spool(busy) / second / "out").exists)
        all_end(busy, submit(busy, "--time", "1h", "--", "true"))
        eventually(lambda: not runs_of(busy, second))
        all_end(busy, submit(busy, "--time", "1h", "--", "true"))
        assert order(busy) == ["first"]
    all_end(busy, second, third)
    assert order(busy) == ["first", "second", "third"]


def stopping_at(machine, point: str) -> dict:
    once = machine.directory / "stop_once"
    once.touch()
    return {"LD_PRELOAD": machine.build / "stops_at.so", "STOP_AT": point, "STOP_ONCE": once}


@contextlib.contextmanager
def stopped(pid: int):
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: state(pid) == "T")
    yield
    os.kill(pid, signal.SIGCONT)


def test_a_move_counts_for_a_process_that_has_just_been_started(busy):
    first = marked(busy, "first", env=stopping_at(busy, "task"))
    (starting,) = eventually(lambda: runs_of(busy, first))
    eventually(lambda: state(starting) == "T")
    second = marked(busy, "second")
    moving = busy.start_berth("edit", second, "--first")
    eventually(lambda: "[moved]" in (spool(busy) / second / "state").read_text())
    assert not job(busy, first)["in_line"]
    os.kill(starting, signal.SIGCONT)
    said, trouble = moving.communicate(timeout=DEADLINE_S)
    assert (moving.returncode, trouble) == (0, "")
    assert said == f"job {second} is number 1 of your 2 jobs with this request that wait\n"
    assert job(busy, first)["in_line"]
    busy.free()
    all_end(busy, first, second)
    assert order(busy) == ["second", "first"]


def test_a_cancel_that_is_late_ends_no_job_that_has_taken_the_place(busy):
    first = marked(busy, "first")
    may_end = busy.directory / "may_end"
    second = marked(busy, "second", then=f"until test -e {may_end}; do sleep 0.01; done")
    in_line(busy, first)
    place_in_queue(busy)
    edit(busy, second, "--first")
    (waiting,) = runs_of(busy, first)
    # A runner that hears of the cancel would end the process at once.
    with stopped(*processes(busy)["runner"]):
        cancel = busy.start_berth("cancel", first, env=stopping_at(busy, "signal"))
        eventually(lambda: state(cancel.pid) == "T")
        busy.free()
        eventually(lambda: order(busy) == ["second"] or state(waiting) in ("Z", "gone"))
        # What the signal is for runs nothing else.
        assert order(busy) == []
    eventually(lambda: order(busy) == ["second"])
    os.kill(cancel.pid, signal.SIGCONT)
    assert cancel.wait(DEADLINE_S) == 0
    may_end.touch()
    all_end(busy, second)
    assert order(busy) == ["second"]
    assert [each["state"] for each in told(busy, first, second)] == ["cancelled", "ended"]


def test_a_held_array_starts_none_of_its_tasks(busy):
    array = submit(busy, "--array", "0-1", "--", "true")
    eventually(lambda: job(busy, f"{array}.0")["in_line"])
    edit(busy, array, "--hold", "--yes")
    busy.free()
    last = submit(busy, "--", "true")
    all_end(busy, last)
    assert [each["held"] for each in told(busy, array)] == [True, True]
    edit(busy, array, "--no-hold")
    all_end(busy, array)


def test_another_request_joins_the_queue_anew_and_that_is_said_first(make_machine):
    machine = make_machine("2xH100")
    holders = fill(machine, 2)
    first = marked(machine, "first", "-n", "2", "--time", "1h")
    in_line(machine, first)
    assert "it would join anew, behind all who wait now" in refused(machine, first, "-n", "1")
    assert job(machine, first)["request"] == ["--count=2", "--time=1h"]
    assert "joins the queue with it" in edit(machine, first, "-n", "1", "--yes")
    assert job(machine, first)["request"] == ["--count=1", "--time=1h"]
    machine.berth("cancel", holders[0])
    all_end(machine, first)
    assert len(job(machine, first)["devices"]) == 1 and order(machine) == ["first"]


def test_what_cannot_be_edited_is_refused_and_stays_as_it_was(busy):
    waits = marked(busy, "waits")
    in_line(busy, waits)
    other = marked(busy, "other", "--time", "1h")
    array = submit(busy, "--array", "0-3", "--", "true")
    over = submit(busy, "--at", "1000h", "--", "true")
    busy.berth("cancel", over)
    runs = told(busy)[0]["id"]
    before = told(busy)
    assert f"edit all of it by berth edit {array}" in refused(busy, f"{array}.1", "--hold")
    assert "`berth extend`" in refused(busy, runs, "--hold")
    assert "is over (cancelled)" in refused(busy, over, "--first")
    assert "there is no job 999 of yours" in refused(busy, "999", "--hold")
    assert "only among jobs with the same request" in refused(busy, waits, "--before", other)
    assert "cannot be before itself" in refused(busy, waits, "--before", waits)
    assert "what is to change?" in refused(busy, waits)
    assert "--hold and --no-hold" in refused(busy, waits, "--hold", "--no-hold")
    assert "one of --first, --last" in refused(busy, waits, "--first", "--last")
    never = busy.berth("edit", other, "-n", "4")
    assert never.status == 69 and "4" in never.err
    assert busy.berth("edit", other, "--requeue").status == 2
    assert told(busy) == before
    assert edit(busy, other, "--time", "1h") == f"job {other} has this request already\n"


def test_of_several_edits_at_once_each_is_whole(busy):
    numbers = [marked(busy, str(i)) for i in range(6)]
    in_line(busy, numbers[0])
    wishes = [("--first",), ("--last",), ("--hold",), ("--no-hold",), ("--before", numbers[2])]
    calls = [
        busy.start(busy.program, "edit", number, *wishes[i % len(wishes)], stdout=subprocess.PIPE)
        for i, number in enumerate(numbers * 3)
    ]
    for call in calls:
        call.communicate()
    busy.free()
    for number in numbers:
        busy.berth("edit", number, "--no-hold")
    all_end(busy, *numbers)
    assert sorted(order(busy)) == sorted(str(i) for i in range(6))


def test_a_killed_runner_and_killed_processes_lose_no_edit(busy):
    first, second = marked(busy, "first"), marked(busy, "second")
    in_line(busy, first)
    edit(busy, second, "--first")
    edit(busy, first, "--hold")
    kill(busy, "runner", "run")
    assert [each["held"] for each in told(busy, first, second)] == [True, False]
    busy.free()
    busy.berth("jobs")
    all_end(busy, second)
    edit(busy, first, "--no-hold")
    all_end(busy, first)
    assert order(busy) == ["second", "first"]


def test_an_edit_that_was_cut_off_counts_for_nothing(busy):
    first = marked(busy, "first")
    in_line(busy, first)
    # All but the end of what is appended, and the draft of another request.
    folder = spool(busy) / first
    (folder / "job-1").write_text("berth-job 1\nword=false\n")
    with (folder / "state").open("a") as state:
        state.write("[held]\nat=1\n")
    assert not job(busy, first)["held"]
    edit(busy, first, "--time", "2h", "--yes")
    assert job(busy, first)["request"] == ["--time=2h"]
    busy.free()
    all_end(busy, first)
