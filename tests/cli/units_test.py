"""Sizes and times where people type them: a number without a unit means something else to each reader, and is refused."""

from lease_jobs import holder, leases
from submitted import told

ODD = ["--", "true"]


def test_a_number_without_a_unit_is_refused_with_its_likeliest_meanings(machine):
    for words, asked in (
        (["pick", "--free", "20"], "--free 20: 20 of what? write 20G or 20M"),
        (["run", "--time", "2:30", *ODD], "--time 2:30: 2:30 of what? write 2h30m or 2m30s"),
        (["extend", "2"], "2 of what? write 2h or 2m"),
        (["simulate", "--jobs", "x", "--assumed-time", "2"], "--assumed-time 2: 2 of what? write 2h or 2m"),
        (["usage", "--since", "7"], "--since 7: 7 of what? write 7h or 7m"),
    ):
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


def test_a_time_may_be_written_as_a_clock_shows_it(machine):
    answer = machine.berth("run", "--time", "1-12:00:00", "--", machine.program, "list", "--json")
    (lease,) = answer.json["leases"]
    assert lease["time_s"] == 36 * 3600


def test_nothing_and_for_ever_need_no_unit(make_machine):
    machine = make_machine("1xT4")
    holder(machine)
    assert machine.berth("run", "--wait", "0", "--", "true").status == 75
    assert machine.berth("run", "--", "true", env={"BERTH_WAIT": "0"}).status == 75
    (machine.directory / "site.toml").write_text('default_wait = "0"\nkeep_jobs = "forever"\n')
    assert machine.berth("run", "--", "true").status == 75


def test_the_site_file_says_units_too(machine):
    (machine.directory / "site.toml").write_text("\ntime = 1-00:00:00 # a day\n")
    answer = machine.berth("run", "--", "true")
    told_so = 'time = 1-00:00:00: a time needs quotes: time = "1-00:00:00"'
    assert answer.status == 1
    assert answer.err == f"berth: {machine.directory / 'site.toml'}:2: {told_so}\n"
