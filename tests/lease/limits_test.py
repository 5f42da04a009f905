"""What a user may have, where the site says so: GPUs, requests in the queue, time; by the hour too."""

import getpass
import json
import struct
import subprocess
import time

import pytest
from jobs import Job, eventually, holder, waiter
from simulated_machine import Machine

NEVER, NOT_NOW = 69, 75


@pytest.fixture
def limited(make_machine):
    def make(site: str) -> Machine:
        machine = make_machine("4xH100")
        (machine.directory / "site.toml").write_text(site)
        return machine

    return make


def test_who_has_as_many_as_he_may_waits_until_one_of_them_ends(limited):
    machine = limited("[limits]\ngpus = 2\n")
    first = holder(machine, "-n", "2")
    refused = machine.berth("run", "--no-wait", "--", "true")
    assert refused.status == NOT_NOW
    why = "your limit is 2 GPUs at the same time (limits.gpus in the site file), and you have 2"
    assert why in refused.err
    assert why in machine.berth("pick").err
    assert why in machine.berth("why").out
    # A listing is of the machine, whoever asks.
    assert "over your limit" not in machine.berth("list").out
    third = waiter(machine)
    first.ends()
    assert third.starts() in "0123"
    assert third.ends() == 0


def test_who_waits_for_his_own_limit_keeps_nothing_from_others(limited):
    machine = limited("[limits]\ngpus = 2\n")
    holder(machine, "-n", "2")
    waiting = waiter(machine, "-n", "2")
    eventually(lambda: json.loads(machine.berth("queue", "--json").out)["waiters"][0]["held_back"])
    assert "your limit is 2 GPUs at the same time" in machine.berth("queue").out
    # Another user, as far as the rules go: without the limit.
    (machine.directory / "other.toml").write_text("")
    other = Job(machine, "-n", "2", env={"BERTH_SITE_FILE": machine.directory / "other.toml"})
    assert other.starts() == "2,3"
    assert other.ends() == 0
    assert not waiting.has_started()


def test_one_at_his_limit_is_told_so_also_where_nothing_is_free(limited):
    machine = limited("[limits]\ngpus = 2\n")
    (machine.directory / "other.toml").write_text("")
    jobs = [
        holder(machine, "-n", "2"),
        Job(machine, "-n", "2", env={"BERTH_SITE_FILE": machine.directory / "other.toml"}),
    ]
    jobs[1].starts()
    waiting = Job(machine).says("first in line; your limit is 2 GPUs at the same time")
    eventually(lambda: json.loads(machine.berth("queue", "--json").out)["waiters"][0]["held_back"])
    (row,) = json.loads(machine.berth("queue", "--json").out)["waiters"]
    assert row["reason"].startswith("your limit is 2 GPUs at the same time"), row
    for job in jobs:
        job.ends()
    waiting.starts()


def test_one_at_his_limit_is_passed_also_where_fewer_are_free_than_he_wants(limited):
    machine = limited("[limits]\ngpus = 2\n")
    mine = holder(machine, "-n", "2")
    waiting = waiter(machine, "-n", "2")
    (machine.directory / "other.toml").write_text("")
    others = {"BERTH_SITE_FILE": machine.directory / "other.toml"}
    first = Job(machine, env=others)
    assert first.starts() == "2"
    second = Job(machine, env=others)
    assert second.starts() == "3"
    for job in (first, second, mine):
        job.ends()
    waiting.starts()


def test_who_waits_for_his_own_limit_is_told_no_start(limited):
    machine = limited("[limits]\ngpus = 2\n")
    holder(machine, "-n", "2", "--time", "2h")
    waiting = waiter(machine)
    line = waiting.err.line()
    assert "your limit is 2 GPUs at the same time (limits.gpus in the site file), and you have 2" in line
    assert "conditions" not in line
    assert "to start about" not in line


def test_more_than_the_limit_is_never_possible(limited):
    machine = limited("[limits]\ngpus = 2\n")
    limit = "your limit is 2 GPUs at the same time (limits.gpus in the site file), and this asks for 3"
    answer = machine.berth("run", "-n", "3", "--", "true")
    assert answer.status == NEVER
    assert limit in answer.err
    # Inside of a lease no limit counts: what cannot be had there is more than the lease has.
    # Whoever asks next outside is told the limit.
    inside = machine.berth("run", "-n", "2", "--", machine.program, "why", "-n", "3")
    outside = "your limit is 2 GPUs at the same time (limits.gpus in the site file)"
    assert "Never possible in this lease: 3 wanted, 2 could serve the request." in inside.out
    assert f"Outside of it {outside}." in inside.out
    inside = machine.berth("run", "-n", "2", "--", machine.program, "run", "-n", "3", "--", "true")
    assert inside.status == NEVER
    assert f"it has 2 GPUs; outside of it {outside}\n" in inside.err
    within_limit = machine.berth("run", "--", machine.program, "why", "-n", "2")
    assert "Never possible in this lease" in within_limit.out and "limit" not in within_limit.out
    # Also if no GPU is free: the limit is the reason, not whoever has the GPUs.
    others = {"BERTH_SITE_FILE": machine.directory / "other.toml"}
    (machine.directory / "other.toml").write_text("")
    Job(machine, "-n", "4", env=others).starts()
    answer = machine.berth("run", "-n", "3", "--", "true")
    assert answer.status == NEVER
    assert f"this can never be satisfied (3 whole GPUs): {limit}\n" in answer.err
    assert f"Never possible for you: 3 wanted, and {limit}." in machine.berth("why", "-n", "3").out


def test_a_user_has_his_own_limit_before_that_of_a_group_and_that_before_that_of_all(limited):
    me = getpass.getuser()
    machine = limited(f"[limits]\ngpus = 1\n[limits.groups]\n{me} = 2\n")
    assert "limits.groups." + me in machine.berth("run", "-n", "3", "--", "true").err
    (machine.directory / "site.toml").write_text(
        f"[limits]\ngpus = 1\n[limits.groups]\n{me} = 2\n[limits.users]\n{me} = 3\n"
    )
    assert machine.berth("run", "-n", "3", "--", "true").status == 0
    assert "limits.users." + me in machine.berth("run", "-n", "4", "--", "true").err


def test_inside_a_lease_no_limit_counts_again(limited):
    machine = limited("[limits]\ngpus = 2\n")
    answer = machine.berth("run", "-n", "2", "--", machine.program, "run", "-n", "2", "--", "true")
    assert answer.status == 0, answer.err


def test_a_limit_that_cannot_be_read_is_named_with_its_line(limited):
    answer = limited("[limits]\ngpus = -1\n").berth("run", "--", "true")
    assert answer.status != 0
    assert "site.toml:2: limits.gpus must be a number of GPUs, 0 to 10000" in answer.err


def test_the_doctor_names_whom_the_machine_does_not_know(limited):
    machine = limited("[limits.users]\nnobody = 2\nada-who-left = 3\n[limits.groups]\nno-such-group = 1\n")
    text = " ".join(machine.berth("doctor").out.split())
    assert "[limits.users] names ada-who-left, and this machine knows no such user" in text
    assert "[limits.groups] names no-such-group, and this machine knows no such group" in text
    assert "names nobody" not in text


def test_the_doctor_says_the_limits(limited):
    machine = limited(
        "[limits]\ngpus = 2\nwaiting = 10\n"
        '[limits.users]\nada = { gpus = 4, time = "8h" }\n'
        "[limits.groups]\nstudents = 1\n"
        '[[limits.hours]]\nwhen = "Sat,Sun"\ngroups.students = 3\n'
    )
    text = " ".join(machine.berth("doctor").out.split())
    assert (
        "a user may have at most 2 GPUs at the same time and 10 requests in the queue; "
        "ada may have at most 4 GPUs at the same time and leases of 8h; "
        "who is in the group students may have at most 1 GPU at the same time; "
        "Sat,Sun: who is in the group students may have at most 3 GPUs at the same time"
    ) in text


def test_one_more_in_the_queue_than_a_user_may_have_is_refused(limited):
    machine = limited("[limits]\nwaiting = 1\n")
    first = holder(machine, "-n", "4")
    second = waiter(machine)
    refused = machine.berth("run", "--", "true")
    assert refused.status == NOT_NOW
    assert (
        "your limit is 1 request in the queue at the same time (limits.waiting in the site file), and you "
        "have 1: ask again when one of them has started"
    ) in " ".join(refused.err.split())
    assert len(json.loads(machine.berth("queue", "--json").out)["waiters"]) == 1
    first.ends()
    second.starts()
    # Who need not wait is not counted.
    assert machine.berth("run", "--", "true").status == 0


def test_a_job_that_gave_way_stands_in_line_again_whatever_his_limit_is(limited):
    machine = limited("[limits]\nwaiting = 0\n")
    job = Job(machine, "-n", "4", "--yield", "--requeue")
    assert job.starts() == "0,1,2,3"
    # Another user, as far as the rules go: without the limit.
    (machine.directory / "other.toml").write_text("")
    other = Job(machine, env={"BERTH_SITE_FILE": machine.directory / "other.toml"})
    other.starts()
    other.ends()
    assert job.starts() == "0,1,2,3"


def test_a_submitted_job_that_is_too_many_in_the_queue_gets_in_line_later(limited):
    machine = limited("[limits]\nwaiting = 1\n")
    first = holder(machine, "-n", "4")
    machine.berth("submit", "--", "true")
    machine.berth("submit", "-n", "2", "--", "true")
    eventually(lambda: "limits.waiting in the site file" in machine.berth("jobs", "--json").out)
    first.ends()
    assert machine.berth("wait", "1", "2").status == 0


def test_the_longest_time_of_a_user_is_refused_told_and_the_default(limited):
    machine = limited('[limits]\ntime = "2h"\n')
    refused = machine.berth("run", "--time", "3h", "--", "true")
    assert refused.status == NEVER
    why = "your limit for one lease is 2h (limits.time in the site file), and the request says 3h"
    assert why in refused.err
    assert why in machine.berth("pick", "--time", "3h").err
    assert machine.berth("pick", "--time", "2h").status == 0
    lease = holder(machine)
    told = json.loads(machine.berth("list", "--json").out)["leases"][0]
    assert 7000 < told["until_s"] - time.time() < 7202
    longer = machine.berth("extend", told["id"], "1h")
    assert "would have 3h: a lease here lasts 2h at most (limits.time in the site file)" in " ".join(
        longer.err.split()
    )
    lease.ends()


ZONED = """#!/bin/sh
test -n "$ZONE" || exec {program} "$@"
exec unshare --mount sh -c 'mount --bind "$ZONE" /etc/localtime && exec "$0" "$@"' {program} "$@"
"""


@pytest.fixture
def zoned(limited):
    """As `limited`, on a machine whose clock shows what `zone_where_it_is` says."""
    if subprocess.run(
        ["unshare", "--mount", "test", "-e", "/etc/localtime"], stderr=subprocess.DEVNULL
    ).returncode:
        pytest.skip("needs the right to mount, and a time zone of the machine")

    def make(site: str) -> Machine:
        machine = limited(site)
        script = machine.directory / "berth"
        script.write_text(ZONED.format(program=machine.program))
        script.chmod(0o755)
        machine.program = script
        return machine

    return make


def zone_where_it_is(machine: Machine, hour: int, minute: int = 30, second: int = 0) -> dict[str, str]:
    """The machine's time zone is one in which it is that time now."""
    now = time.gmtime()
    east = (hour - now.tm_hour) * 3600 + (minute - now.tm_min) * 60 + second - now.tm_sec
    file = machine.directory / f"zone{hour}-{minute}-{second}"
    counts = struct.pack(">6l", 0, 0, 0, 0, 1, 4)
    block = b"TZif2" + bytes(15) + counts + struct.pack(">lBB", east, 0, 0) + b"XYZ\0"
    # East of Greenwich is negative in the rule for all times after the table.
    west = abs(east)
    rule = f"<XYZ>{'-' if east > 0 else ''}{west // 3600}:{west // 60 % 60:02}:{west % 60:02}"
    file.write_bytes(block * 2 + f"\n{rule}\n".encode())
    return {"ZONE": str(file)}


def test_limits_hold_in_their_hours_and_what_others_allow_waits_for_them(zoned):
    machine = zoned('[limits]\ngpus = 4\n[[limits.hours]]\nwhen = "08:00-18:00"\ngpus = 1\ntime = "1h"\n')
    by_day, at_night = zone_where_it_is(machine, 12), zone_where_it_is(machine, 3)
    why = "your limit is 1 GPU at the same time (limits.gpus for 08:00-18:00 in the site file)"
    refused = machine.berth("run", "--no-wait", "-n", "4", "--", "true", env=by_day)
    assert refused.status == NOT_NOW
    assert why in " ".join(refused.err.split())
    assert machine.berth("run", "--no-wait", "-n", "4", "--", "true", env=at_night).status == 0
    assert machine.berth("run", "-n", "5", "--", "true", env=by_day).status == NEVER
    long = machine.berth("run", "--no-wait", "--time", "2h", "--", "true", env=by_day)
    assert long.status == NOT_NOW
    assert "limits.time for 08:00-18:00" in " ".join(long.err.split())
    assert machine.berth("run", "--no-wait", "--time", "2h", "--", "true", env=at_night).status == 0


def test_the_hours_are_those_of_the_machine_whatever_the_user_calls_his_own(zoned):
    machine = zoned('[[limits.hours]]\nwhen = "08:00-18:00"\ngpus = 0\n')
    by_day, at_night = zone_where_it_is(machine, 12), zone_where_it_is(machine, 3)
    for zone in ("UTC", "XYZ8", "XYZ-8", "XYZ12", ":/nowhere"):
        assert machine.berth("run", "--no-wait", "--", "true", env=by_day | {"TZ": zone}).status == NOT_NOW
        assert machine.berth("run", "--no-wait", "--", "true", env=at_night | {"TZ": zone}).status == 0


def test_who_waits_for_other_hours_keeps_nothing_from_others_until_they_come(zoned):
    machine = zoned('[[limits.hours]]\nwhen = "08:00-18:00"\ngpus = 0\n')
    waiting = waiter(machine, env=zone_where_it_is(machine, 12))
    eventually(lambda: json.loads(machine.berth("queue", "--json").out)["waiters"][0]["held_back"])
    assert Job(machine, "-n", "4", env=zone_where_it_is(machine, 3)).starts() == "0,1,2,3"
    assert not waiting.has_started()


def test_who_waits_for_other_hours_starts_when_they_come(zoned):
    machine = zoned('[[limits.hours]]\nwhen = "08:00-18:00"\ngpus = 0\n')
    end = time.time() + 4
    job = Job(machine, env=zone_where_it_is(machine, 17, 59, 56))
    assert job.starts() in "0123"
    assert time.time() >= end - 1
