"""Why a job waits, and what is said where nothing waits in the queue but jobs do."""

import pytest
from jobs import eventually
from submitted import fill, job, submit


def test_why_a_job_waits_is_said_by_its_number(make_machine):
    machine = make_machine("2xH100")
    holders = fill(machine, 2)
    first = submit(machine, "-n", "2", "--", "true")
    eventually(lambda: machine.berth("queue", "--json").json["waiters"])
    said = machine.berth("why", first).out
    assert said.startswith(f"job {first} is in line: first in line")
    # Then each GPU, for the request of the job.
    assert "\nAsked for: 2 whole GPUs" in said and "\nGPU 1  leased by" in said
    assert machine.berth("why", "--job", first).out.startswith(said.split("\n")[0] + "\n\nAsked for: ")
    behind = submit(machine, "-n", "2", "--", "true")
    said = machine.berth("why", behind).out
    assert said.startswith(f"job {behind} is waiting: another job of yours asks for the same")
    assert "Asked for" not in said
    after = submit(machine, "--after", first, "--", "true")
    assert machine.berth("why", after).out == f"job {after} is waiting: comes after job {first}\n"
    held = submit(machine, "--at", "8h", "--", "true")
    machine.berth("edit", held, "--hold")
    assert f"held: `berth edit {held} --no-hold` lets it go" in machine.berth("why", held).out
    sweep = submit(machine, "--array", "0-3%2", "--at", "8h", "--", "true")
    said = machine.berth("why", sweep).out
    assert said.startswith(f"job {sweep} is an array of which 4 of 4 tasks wait: starts at ")
    assert machine.berth("why", f"{sweep}.1").out.startswith(f"job {sweep}.1 is waiting: starts at ")
    runs = holders[0]
    assert (
        machine.berth("why", runs).out
        == f"job {runs} does not wait: it is running; `berth jobs {runs}` shows it\n"
    )


@pytest.mark.parametrize("words", [("-n", "2"), ("--json",), ("1",), ("--anywhere",)])
def test_a_job_is_asked_about_by_itself(machine, words):
    number = submit(machine, "--at", "8h", "--", "true")
    answer = machine.berth("why", number, *words)
    assert (answer.status, answer.out) == (2, "")


def test_where_jobs_wait_outside_of_the_queue_it_says_so(machine):
    submit(machine, "--at", "8h", "--", "true")
    assert machine.berth("queue").out == (
        "nobody waits\n1 job of yours waits for something else; `berth jobs` says for what\n"
    )
    held = submit(machine, "--at", "9h", "--", "true")
    machine.berth("edit", held, "--hold")
    assert "2 jobs of yours wait for something else" in machine.berth("queue").out
    assert job(machine, held)["held"]


@pytest.mark.parametrize("text", ["tonight", "yesterday", "25:00", "soon:1"])
def test_a_time_that_is_none_is_refused_with_an_example(machine, text):
    answer = machine.berth("submit", "--at", text, "--", "true")
    assert (
        answer.status == 2 and "must be a time of the day such as 22:00, or a span such as 2h" in answer.err
    )


def test_the_run_that_ended_last_is_shown_and_a_row_has_the_newest_command(machine):
    assert machine.berth("receipt", "--last").out.startswith("no runs yet")
    for word in ("one", "two"):
        assert machine.berth("run", "--", "sh", "-c", f": {word}").status == 0
    # The record is written by a process that nobody waits for.
    eventually(lambda: len(machine.berth("receipt", "--json").json["runs"]) == 2)
    assert "sh -c : two" in machine.berth("receipt", "--last").out
    (run,) = machine.berth("receipt", "--last", "--json").json["runs"]
    assert run["command"] == "sh -c : two"
    assert "sh -c : two" in machine.berth("receipt").out
    for words in (("--last", "1"), ("--last", "--forget")):
        assert machine.berth("receipt", *words).status == 2


def test_a_gpu_that_is_excluded_has_its_reason_in_the_list_and_users_learn_who_ends_that(make_machine):
    machine = make_machine("2xH100")
    site = machine.directory / "site.toml"
    site.write_text('[[excluded]]\ndevice = 1\nreason = "fan is broken"\n')
    assert "excluded: fan is broken" in machine.berth("list").out
    said = machine.berth("include", "1").err
    assert said == (
        "berth: GPU 1 is excluded by the site: fan is broken. Only root ends that: sudo berth include 1, "
        "or its [[excluded]] in the site file\n"
    )
