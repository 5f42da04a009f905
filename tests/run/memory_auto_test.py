"""`--memory auto`: what a share gets by the record of earlier runs."""

import json
import pathlib

import pytest
from submitted import submit, wait_for

GIB = 1 << 30
COMMAND = ("sh", "-c", "exit 0")


def kept(machine, *words) -> list[dict]:
    answer = machine.berth("receipt", "--json", *words)
    assert answer.status == 0, answer.err
    return json.loads(answer.out)["runs"]


def record(machine) -> pathlib.Path:
    (file,) = (machine.directory / "home/.local/state/berth/receipts").iterdir()
    return file


def has_run(machine, *command, times: int, gib: int) -> None:
    """The record of so many runs that had so much in use, made of one that was over too soon to be looked at."""
    assert machine.berth("run", "--", *command).status == 0
    file = record(machine)
    words = file.read_text().splitlines()[-1].split("\t")
    at = [word.startswith("lasted_ms=") for word in words].index(True)
    words[at : at + 1] = ["lasted_ms=3600000", "sampled_every_ms=10000"]
    at = [word.startswith("total_bytes=") for word in words].index(True)
    words.insert(at, f"peak_bytes={gib * GIB}")
    file.write_text(("\t".join(words) + "\n") * times)


def promised(machine) -> int | None:
    return kept(machine)[-1]["promised_bytes"]


@pytest.mark.parametrize(("times", "gets"), [(4, None), (5, 11 * GIB)])
def test_five_runs_say_how_much_memory_the_next_one_gets(machine, times, gets):
    has_run(machine, *COMMAND, times=times, gib=10)
    answer = machine.berth("run", "--memory", "auto", "--verbose", "--", *COMMAND)
    assert answer.status == 0 and promised(machine) == gets
    assert "--memory auto: " in answer.err
    assert ("11 GiB on each GPU, by the last 5 runs" in answer.err) == (gets is not None)
    assert machine.berth("run", "--memory", "auto", "--", "true").status == 0
    assert promised(machine) is None, "another program has no runs"


def test_two_of_them_run_on_one_gpu(make_machine):
    machine = make_machine("1xA100")
    has_run(machine, *COMMAND, times=5, gib=10)
    inner = machine.berth("run", "--memory", "auto", "--no-wait", "--", *COMMAND)
    assert inner.status == 0
    beside = machine.start_berth("run", "--memory", "20G", "--", "sh", "-c", "echo on; read line", stdin=-1)
    assert beside.stdout.readline() == "on\n"
    assert machine.berth("run", "--memory", "auto", "--no-wait", "--", *COMMAND).status == 0
    assert machine.berth("run", "--memory", "auto", "--no-wait", "--", "true").status == 75
    beside.communicate("\n")


@pytest.mark.parametrize("words", [("pick",), ("why",), ("claim",)])
def test_who_runs_no_command_is_told_to_say_how_much(machine, words):
    answer = machine.berth(*words, "--memory", "auto")
    assert answer.status == 2 and "say how much (--memory 20G)" in answer.err


def test_a_job_that_failed_is_tried_again_on_a_whole_gpu(machine):
    mark = machine.directory / "second"
    command = (
        "sh",
        "-c",
        f"[ -e {mark} ] && exit 0; [ -e {mark.parent}/first ] || exit 0; touch {mark}; exit 1",
    )
    has_run(machine, *command, times=5, gib=10)
    (mark.parent / "first").touch()
    number = submit(machine, "--memory", "auto", "--retries", "1", "--", *command)
    assert wait_for(machine, number, "ended")["exit_status"] == 0
    assert [run["promised_bytes"] for run in kept(machine, number)] == [11 * GIB, None]


def test_a_job_that_fits_only_as_a_share_is_not_refused(machine):
    has_run(machine, *COMMAND, times=5, gib=10)
    number = submit(machine, "--memory", "auto", "--", *COMMAND)
    wait_for(machine, number, "ended")
    assert promised(machine) == 11 * GIB


def test_a_record_that_is_torn_says_nothing(machine):
    has_run(machine, *COMMAND, times=5, gib=10)
    record(machine).write_text(record(machine).read_text()[:-20] + "\n")
    assert machine.berth("run", "--memory", "auto", "--", *COMMAND).status == 0
    assert promised(machine) is None
