"""Sizes and times where people type them: a number without a unit means something else to each reader, and is refused."""

import json

import pytest
from lease_jobs import holder, leases
from submitted import as_version_1, kill, log, spool, submit, told

ODD = ["--", "true"]


@pytest.mark.parametrize(
    "words, asked",
    [
        (["pick", "--memory", "20"], "--memory 20: 20 of what? write 20G or 20M"),
        (["pick", "--free", "20"], "--free 20: 20 of what? write 20G or 20M"),
        (["pick", "--total=8192"], "--total 8192: 8192 of what? write 8192M or 8192K"),
        (
            ["why", "--free", "21474836480"],
            "--free 21474836480: 21474836480 of what? write 21474836480B or 21474836480K",
        ),
        (["pick", "--hold", "2"], "--hold 2: 2 of what? write 2h or 2m"),
        (["pick", "--time", "90"], "--time 90: 90 of what? write 90s or 90m"),
        (["run", "--time", "2", *ODD], "--time 2: 2 of what? write 2h or 2m"),
        (["run", "--time", "2:30", *ODD], "--time 2:30: 2:30 of what? write 2h30m or 2m30s"),
        (["run", "--wait", "10", *ODD], "--wait 10: 10 of what? write 10h or 10m"),
        (["run", "--yield=30", *ODD], "--yield 30: 30 of what? write 30s or 30m"),
        (["claim", "--time", "4"], "--time 4: 4 of what? write 4h or 4m"),
        (["shell", "--time", "4"], "--time 4: 4 of what? write 4h or 4m"),
        (["extend", "2"], "2 of what? write 2h or 2m"),
        (["release", "--wait", "20", "0"], "--wait 20: 20 of what? write 20h or 20m"),
        (["cancel", "--wait", "30", "1"], "--wait 30: 30 of what? write 30s or 30m"),
        (["submit", "--time", "2", *ODD], "--time 2: 2 of what? write 2h or 2m"),
        (["submit", "--at", "22", *ODD], "--at 22: 22 of what? write 22:00 or 22h"),
        (["submit", "--at", "90", *ODD], "--at 90: 90 of what? write 90s or 90m"),
        (["submit", "--memory", "20", *ODD], "--memory 20: 20 of what? write 20G or 20M"),
        (["submit", "--output-limit", "5", *ODD], "--output-limit 5: 5 of what? write 5G or 5M"),
        (["each", "--time", "2", "commands"], "--time 2: 2 of what? write 2h or 2m"),
        (["simulate", "--jobs", "x", "--assumed-time", "2"], "--assumed-time 2: 2 of what? write 2h or 2m"),
        (["usage", "--since", "7"], "--since 7: 7 of what? write 7h or 7m"),
        (["mcp", "--time", "2"], "--time 2: 2 of what? write 2h or 2m"),
        (["mcp", "--grace", "60"], "--grace 60: 60 of what? write 60s or 60m"),
        (["prolog", "--wait", "10"], "--wait 10: 10 of what? write 10h or 10m"),
    ],
)
def test_a_number_without_a_unit_is_refused_with_its_likeliest_meanings(machine, words, asked):
    answer = machine.berth(*words)
    assert (answer.status, answer.err.splitlines()[0]) == (2, f"berth: {asked}")
    assert leases(machine) == [] and told(machine) == []


def test_what_a_variable_or_a_script_says_is_typed_too(machine):
    answer = machine.berth("run", "--", "true", env={"BERTH_WAIT": "10"})
    assert (answer.status, "BERTH_WAIT" in answer.err, "10 of what?" in answer.err) == (2, True, True)
    answer = machine.berth("run", "--", "true", env={"BERTH_VERIFY": "20"})
    assert (answer.status, "20 of what?" in answer.err) == (2, True)
    script = machine.directory / "job.sh"
    script.write_text("#!/bin/sh\n#BERTH --time 2\ntrue\n")
    answer = machine.berth("submit", script)
    assert answer.status == 2 and "line 2: --time 2: 2 of what? write 2h or 2m" in answer.err
    assert told(machine) == []


@pytest.mark.parametrize("typed, seconds", [("0:30:00", 1800), ("1-12:00:00", 36 * 3600), ("1h30m", 5400)])
def test_a_time_may_be_written_as_a_clock_shows_it(machine, typed, seconds):
    answer = machine.berth("run", "--time", typed, "--", machine.program, "list", "--json")
    (lease,) = answer.json["leases"]
    assert lease["time_s"] == seconds


def test_nothing_and_for_ever_need_no_unit(make_machine):
    machine = make_machine("1xT4")
    holder(machine)
    assert machine.berth("run", "--wait", "0", "--", "true").status == 75
    assert machine.berth("run", "--", "true", env={"BERTH_WAIT": "0"}).status == 75
    (machine.directory / "site.toml").write_text('default_wait = "0"\nkeep_jobs = "forever"\n')
    assert machine.berth("run", "--", "true").status == 75


@pytest.mark.parametrize(
    "line, told_so",
    [
        ('default_wait = "600"', 'default_wait: 600 of what? write 600s or 600m, or "forever"'),
        ("default_wait = 2h", 'default_wait = 2h: a time needs quotes: default_wait = "2h"'),
        ("time = 1-00:00:00 # a day", 'time = 1-00:00:00: a time needs quotes: time = "1-00:00:00"'),
        ("default_wait = forever", 'default_wait = forever: a text needs quotes: default_wait = "forever"'),
        ("job_output = 2G", 'job_output = 2G: a size needs quotes: job_output = "2G"'),
        ("time = 7200", 'time must be a text in quotes, with its unit: time = "2h"'),
        ('hidden_tolerance = "512"', "hidden_tolerance: 512 of what? write 512G or 512M"),
        ('job_output = "100"', "job_output: 100 of what? write 100G or 100M"),
        ('limits.time = "8"', "limits.time: 8 of what? write 8h or 8m"),
    ],
)
def test_the_site_file_says_units_too(machine, line, told_so):
    (machine.directory / "site.toml").write_text(f"\n{line}\n")
    answer = machine.berth("run", "--", "true")
    assert answer.status == 1
    assert answer.err == f"berth: {machine.directory / 'site.toml'}:2: {told_so}\n"


def test_a_job_that_an_earlier_version_has_stored_runs_as_it_was_meant(make_machine):
    """It took plain numbers, and stored them as they were typed."""
    machine = make_machine("1xH100")
    gate = holder(machine)
    first = submit(machine, "--", "true")
    # It comes after one that waits: so nobody has read it, or reads it while it is written anew.
    number = submit(
        machine, "--after", first, "--time", "2h", "--memory", "30G", "--yield=45s", "--", machine.program, "list", "--json"
    )  # fmt: skip
    kill(machine, "runner")
    file = spool(machine) / number / "job"
    as_version_1(file, "--time=7200", f"--memory={30 << 30}", "--yield=45")
    gate.kill()
    assert machine.berth("wait", number).status == 0
    (lease,) = json.loads(log(machine, number))["leases"]
    assert (lease["time_s"], lease["promise_bytes"], lease["yield_s"]) == (7200, 30 << 30, 45)
