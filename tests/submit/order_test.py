"""One job after another, at a time, and again."""

import contextlib
import time

import pytest
from jobs import eventually
from schemas import checked
from storm import processes
from submitted import fill, job, submit, told


def order(lab) -> list[str]:
    with contextlib.suppress(FileNotFoundError):
        return (lab.directory / "order").read_text().split()
    return []


def marks(lab, word: str, then: str = "true") -> tuple:
    return ("--", "sh", "-c", f"echo {word} >> {lab.directory}/order; {then}")


def test_a_job_comes_after_others_whatever_became_of_them(make_lab):
    lab = make_lab("4xH100")
    first = submit(lab, *marks(lab, "first", "sleep 0.3; exit 3"))
    array = submit(lab, "--array", "0-1", *marks(lab, "array", "sleep 0.2"))
    last = submit(lab, "--after", f"{first},{array}", *marks(lab, "last"))
    assert lab.berth("wait", last).status == 0
    assert order(lab)[-1] == "last" and len(order(lab)) == 4
    (found,) = checked(lab.berth("jobs", "--json", last), "jobs")["jobs"]
    assert found["after"] == [int(first), int(array)]


def test_after_ok_of_one_that_ended_well_runs(lab):
    first = submit(lab, *marks(lab, "first", "sleep 0.2"))
    last = submit(lab, "--after-ok", first, *marks(lab, "last"))
    assert lab.berth("wait", last).status == 0
    assert order(lab) == ["first", "last"]


def test_after_ok_of_one_that_failed_is_cancelled_and_so_is_what_comes_after_it(lab):
    first = submit(lab, *marks(lab, "first", "exit 3"))
    second = submit(lab, "--after-ok", first, *marks(lab, "second"))
    third = submit(lab, "--after-ok", second, *marks(lab, "third"))
    fourth = submit(lab, "--after", third, *marks(lab, "fourth"))
    assert lab.berth("wait", fourth).status == 0
    assert [each["state"] for each in told(lab)] == ["ended", "cancelled", "cancelled", "ended"]
    assert job(lab, second)["reason"] == f"job {first} did not end with status 0, as --after-ok asks"
    assert order(lab) == ["first", "fourth"]


def test_a_runner_ends_also_if_the_last_job_is_cancelled_since_the_one_before_it_failed(make_lab):
    lab = make_lab("2xH100")
    first = submit(lab, "--", "sh", "-c", "sleep 0.3; exit 3")
    second = submit(lab, "--after-ok", first, "--", "true")
    eventually(lambda: job(lab, second)["state"] == "cancelled")
    eventually(lambda: processes(lab)["runner"] == [])


def test_a_cycle_cannot_be_made(lab):
    for words in (
        ("--after", "1"),
        ("--after-ok", "7"),
        ("--after", "x"),
        ("--after", "1.2"),
        ("--after", ""),
    ):
        assert lab.berth("submit", *words, "--", "true").status in (1, 2)
    assert told(lab) == []


def test_a_job_does_not_start_before_its_time(lab):
    late = submit(lab, "--at", "1000h", "--", "true")
    soon = submit(lab, "--at", "1s", "--", "true")
    assert lab.berth("wait", soon).status == 0
    assert job(lab, soon)["started_s"] >= job(lab, soon)["not_before_s"]
    assert job(lab, late)["state"] == "waiting"
    assert lab.berth("cancel", late).status == 0


@pytest.mark.parametrize("time", ["25:00", "22:60", "x", ":", "22:00:00", "0", ""])
def test_a_time_that_is_none_is_refused(lab, time):
    assert lab.berth("submit", "--at", time, "--", "true").status == 2


def test_a_time_of_the_day_is_the_next_one(lab):
    number = submit(lab, "--at", "00:00", "--", "true")
    found = job(lab, number)
    assert 0 < found["not_before_s"] - found["submitted_s"] <= 86400
    assert found["not_before_s"] % 86400 == 0  # the lab is in UTC


def test_one_that_ends_well_at_the_second_try_has_ended_well(lab):
    number = submit(lab, "--retries", "5", *marks(lab, "try", f"test $(wc -l < {lab.directory}/order) = 2"))
    assert lab.berth("wait", number).status == 0
    assert order(lab) == ["try"] * 2


def test_only_the_statuses_that_are_named_are_tried_again(lab):
    number = submit(lab, "--retries", "5", "--retry-on", "75,137", *marks(lab, "try", "exit 3"))
    assert lab.berth("wait", number).status == 3
    assert order(lab) == ["try"]
    assert lab.berth("submit", "--retry-on", "75", "--", "true").status == 2
    assert lab.berth("submit", "--retries", "1", "--retry-on", "0", "--", "true").status == 2


def test_another_try_is_on_another_device_where_that_is_asked_for(make_lab):
    lab = make_lab("2xH100")
    script = f"echo $CUDA_VISIBLE_DEVICES >> {lab.directory}/order; exit 1"
    number = submit(lab, "--retries", "1", "--not-on-last-device", "--", "sh", "-c", script)
    assert lab.berth("wait", number).status == 1
    assert sorted(order(lab)) == ["0", "1"]


def test_one_that_failed_or_was_cancelled_is_run_again_when_somebody_says_so(lab):
    number = submit(lab, *marks(lab, "try", f"test $(wc -l < {lab.directory}/order) = 2"))
    assert lab.berth("wait", number).status == 1
    assert lab.berth("retry", number).status == 0
    assert lab.berth("wait", number).status == 0
    assert job(lab, number)["starts"] == 2
    answer = lab.berth("retry", number)
    assert answer.status == 1 and f"nothing of job {number} has failed" in answer.err


def test_of_an_array_those_that_did_not_end_well_are_run_again(make_lab):
    lab = make_lab("1xH100")
    script = f"echo $BERTH_ARRAY_INDEX >> {lab.directory}/order; test -e {lab.directory}/good -o $BERTH_ARRAY_INDEX = 0"
    number = submit(lab, "--array", "0-2", "--", "sh", "-c", script)
    assert lab.berth("wait", number).status == 1
    (lab.directory / "good").touch()
    assert lab.berth("retry", number).status == 0
    assert lab.berth("wait", number).status == 0
    assert order(lab) == ["0", "1", "2", "1", "2"]


def test_an_array_that_was_cancelled_goes_on(make_lab):
    lab = make_lab("1xH100")
    (holder,) = fill(lab, 1)
    number = submit(lab, "--array", "0-2", "--", "true")
    assert lab.berth("cancel", number).status == 0
    assert lab.berth("retry", number).status == 0
    lab.berth("cancel", holder)
    assert lab.berth("wait", number).status == 0


def test_a_task_that_is_cancelled_just_as_it_gets_in_line_leaves_the_line(make_lab):
    lab = make_lab("1xH100")
    fill(lab, 1)
    for attempt in range(20):
        number = submit(lab, "--array", "0-1", "--", "true")
        # At another point of its way into the line each time.
        time.sleep(attempt * 0.001)
        assert lab.berth("cancel", number).status == 0
    eventually(lambda: checked(lab.berth("queue", "--json"), "queue")["waiters"] == [])
