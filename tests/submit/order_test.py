"""One job after another, at a time, and again."""

import contextlib

from schemas import checked
from submitted import fill, job, submit, told


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


def test_after_ok_of_one_that_failed_is_cancelled_and_so_is_what_comes_after_it(machine):
    first = submit(machine, *marks(machine, "first", "exit 3"))
    second = submit(machine, "--after-ok", first, *marks(machine, "second"))
    third = submit(machine, "--after-ok", second, *marks(machine, "third"))
    fourth = submit(machine, "--after", third, *marks(machine, "fourth"))
    assert machine.berth("wait", fourth).status == 0
    assert [each["state"] for each in told(machine)] == ["ended", "cancelled", "cancelled", "ended"]
    assert job(machine, second)["reason"] == f"job {first} did not end with status 0, as --after-ok asks"
    assert order(machine) == ["first", "fourth"]


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
