"""One job after another, at a time, and again."""

import contextlib
import time

import pytest
from jobs import eventually
from schemas import checked
from storm import processes
from submitted import fill, job, submit, told, wait_for


def order(machine) -> list[str]:
    with contextlib.suppress(FileNotFoundError):
        return (machine.directory / "order").read_text().split()
    return []


def marks(machine, word: str, then: str = "true") -> tuple:
    return ("--", "sh", "-c", f"echo {word} >> {machine.directory}/order; {then}")


def test_a_job_comes_after_others_whatever_became_of_them(make_machine):
    machine = make_machine("4xH100")
    first = submit(machine, *marks(machine, "first", "sleep 0.3; exit 3"))
    array = submit(machine, "--array", "0-1", *marks(machine, "array", "sleep 0.2"))
    last = submit(machine, "--after", f"{first},{array}", *marks(machine, "last"))
    assert machine.berth("wait", last).status == 0
    assert order(machine)[-1] == "last" and len(order(machine)) == 4
    (found,) = checked(machine.berth("jobs", "--json", last), "jobs")["jobs"]
    assert found["after"] == [int(first), int(array)]


def test_after_ok_of_one_that_ended_well_runs(machine):
    first = submit(machine, *marks(machine, "first", "sleep 0.2"))
    last = submit(machine, "--after-ok", first, *marks(machine, "last"))
    assert machine.berth("wait", last).status == 0
    assert order(machine) == ["first", "last"]


def test_after_ok_of_one_that_failed_is_cancelled_and_so_is_what_comes_after_it(machine):
    first = submit(machine, *marks(machine, "first", "exit 3"))
    second = submit(machine, "--after-ok", first, *marks(machine, "second"))
    third = submit(machine, "--after-ok", second, *marks(machine, "third"))
    fourth = submit(machine, "--after", third, *marks(machine, "fourth"))
    assert machine.berth("wait", fourth).status == 0
    assert [each["state"] for each in told(machine)] == ["ended", "cancelled", "cancelled", "ended"]
    assert job(machine, second)["reason"] == f"job {first} did not end with status 0, as --after-ok asks"
    assert order(machine) == ["first", "fourth"]


def test_a_runner_ends_also_if_the_last_job_is_cancelled_since_the_one_before_it_failed(make_machine):
    machine = make_machine("2xH100")
    first = submit(machine, "--", "sh", "-c", "sleep 0.3; exit 3")
    second = submit(machine, "--after-ok", first, "--", "true")
    eventually(lambda: job(machine, second)["state"] == "cancelled")
    eventually(lambda: processes(machine)["runner"] == [])


def test_after_ok_of_a_job_that_was_cancelled_is_cancelled(make_machine):
    machine = make_machine("1xH100")
    fill(machine, 1)
    first = submit(machine, "--", "true")
    second = submit(machine, "--after-ok", first, "--", "true")
    machine.berth("cancel", first)
    wait_for(machine, second, "cancelled")


def test_one_that_waits_for_another_keeps_nobody_waiting(make_machine):
    machine = make_machine("2xH100")
    (holder,) = fill(machine, 1)
    held = submit(machine, "--after", holder, "--", "true")
    free = submit(machine, "--", "true")
    assert machine.berth("wait", free).status == 0
    assert job(machine, held)["state"] == "waiting" and not job(machine, held)["in_line"]
    machine.berth("cancel", holder)
    assert machine.berth("wait", held).status == 0


def test_a_cycle_cannot_be_made(machine):
    for words in (
        ("--after", "1"),
        ("--after-ok", "7"),
        ("--after", "x"),
        ("--after", "1.2"),
        ("--after", ""),
    ):
        assert machine.berth("submit", *words, "--", "true").status in (1, 2)
    assert told(machine) == []


def test_a_job_does_not_start_before_its_time(machine):
    late = submit(machine, "--at", "1000h", "--", "true")
    soon = submit(machine, "--at", "1s", "--", "true")
    assert machine.berth("wait", soon).status == 0
    assert job(machine, soon)["started_s"] >= job(machine, soon)["not_before_s"]
    assert job(machine, late)["state"] == "waiting"
    assert machine.berth("cancel", late).status == 0


@pytest.mark.parametrize("time", ["25:00", "22:60", "x", ":", "22:00:00", "0", ""])
def test_a_time_that_is_none_is_refused(machine, time):
    assert machine.berth("submit", "--at", time, "--", "true").status == 2


def test_a_time_of_the_day_is_the_next_one(machine):
    number = submit(machine, "--at", "00:00", "--", "true")
    found = job(machine, number)
    assert 0 < found["not_before_s"] - found["submitted_s"] <= 86400
    assert found["not_before_s"] % 86400 == 0  # the lab is in UTC


def test_one_that_fails_is_run_again_as_often_as_it_may(machine):
    number = submit(machine, "--retries", "2", *marks(machine, "try", "exit 3"))
    eventually(lambda: len(order(machine)) == 3)
    assert machine.berth("wait", number).status == 3
    eventually(lambda: processes(machine)["run"] == [])
    assert order(machine) == ["try"] * 3 and job(machine, number)["starts"] == 3


def test_one_that_ends_well_at_the_second_try_has_ended_well(machine):
    number = submit(
        machine, "--retries", "5", *marks(machine, "try", f"test $(wc -l < {machine.directory}/order) = 2")
    )
    assert machine.berth("wait", number).status == 0
    assert order(machine) == ["try"] * 2


def test_only_the_statuses_that_are_named_are_tried_again(machine):
    number = submit(machine, "--retries", "5", "--retry-on", "75,137", *marks(machine, "try", "exit 3"))
    assert machine.berth("wait", number).status == 3
    assert order(machine) == ["try"]
    assert machine.berth("submit", "--retry-on", "75", "--", "true").status == 2
    assert machine.berth("submit", "--retries", "1", "--retry-on", "0", "--", "true").status == 2


def test_another_try_is_on_another_device_where_that_is_asked_for(make_machine):
    machine = make_machine("2xH100")
    script = f"echo $CUDA_VISIBLE_DEVICES >> {machine.directory}/order; exit 1"
    number = submit(machine, "--retries", "1", "--not-on-last-device", "--", "sh", "-c", script)
    assert machine.berth("wait", number).status == 1
    assert sorted(order(machine)) == ["0", "1"]


def test_one_that_failed_or_was_cancelled_is_run_again_when_somebody_says_so(machine):
    number = submit(machine, *marks(machine, "try", f"test $(wc -l < {machine.directory}/order) = 2"))
    assert machine.berth("wait", number).status == 1
    assert machine.berth("retry", number).status == 0
    assert machine.berth("wait", number).status == 0
    assert job(machine, number)["starts"] == 2
    answer = machine.berth("retry", number)
    assert answer.status == 1 and f"nothing of job {number} has failed" in answer.err


def test_of_an_array_those_that_did_not_end_well_are_run_again(make_machine):
    machine = make_machine("1xH100")
    script = f"echo $BERTH_ARRAY_INDEX >> {machine.directory}/order; test -e {machine.directory}/good -o $BERTH_ARRAY_INDEX = 0"
    number = submit(machine, "--array", "0-2", "--", "sh", "-c", script)
    assert machine.berth("wait", number).status == 1
    (machine.directory / "good").touch()
    assert machine.berth("retry", number).status == 0
    assert machine.berth("wait", number).status == 0
    assert order(machine) == ["0", "1", "2", "1", "2"]


def test_an_array_that_was_cancelled_goes_on(make_machine):
    machine = make_machine("1xH100")
    (holder,) = fill(machine, 1)
    number = submit(machine, "--array", "0-2", "--", "true")
    assert machine.berth("cancel", number).status == 0
    assert machine.berth("retry", number).status == 0
    machine.berth("cancel", holder)
    assert machine.berth("wait", number).status == 0


def test_a_task_that_is_cancelled_just_as_it_gets_in_line_leaves_the_line(make_machine):
    machine = make_machine("1xH100")
    fill(machine, 1)
    for attempt in range(20):
        number = submit(machine, "--array", "0-1", "--", "true")
        # At another point of its way into the line each time.
        time.sleep(attempt * 0.001)
        assert machine.berth("cancel", number).status == 0
    eventually(lambda: checked(machine.berth("queue", "--json"), "queue")["waiters"] == [])
