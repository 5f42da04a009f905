"""What a user may have, where the site says so: GPUs, requests in the queue, time; by the hour too."""

import getpass
import json
import struct
import subprocess
import time

import pytest
from jobs import Job, eventually, holder, waiter
from lab import Lab

NEVER, NOT_NOW = 69, 75


@pytest.fixture
def limited(make_lab):
    def make(site: str) -> Lab:
        lab = make_lab("4xH100")
        (lab.directory / "site.toml").write_text(site)
        return lab

    return make


def test_who_has_as_many_as_he_may_waits_until_one_of_them_ends(limited):
    lab = limited("[limits]\ngpus = 2\n")
    first = holder(lab, "-n", "2")
    refused = lab.berth("run", "--no-wait", "--", "true")
    assert refused.status == NOT_NOW
    why = "your limit is 2 GPUs at the same time (limits.gpus in the site file), and you have 2"
    assert why in refused.err
    assert why in lab.berth("pick").err
    assert why in lab.berth("why").out
    # A listing is of the machine, whoever asks.
    assert "over your limit" not in lab.berth("list").out
    third = waiter(lab)
    first.ends()
    assert third.starts() in "0123"
    assert third.ends() == 0


def test_who_waits_for_his_own_limit_keeps_nothing_from_others(limited):
    lab = limited("[limits]\ngpus = 2\n")
    holder(lab, "-n", "2")
    waiting = waiter(lab, "-n", "2")
    eventually(lambda: json.loads(lab.berth("queue", "--json").out)["waiters"][0]["held_back"])
    assert "your limit is 2 GPUs at the same time" in lab.berth("queue").out
    # Another user, as far as the rules go: without the limit.
    (lab.directory / "other.toml").write_text("")
    other = Job(lab, "-n", "2", env={"BERTH_SITE_FILE": lab.directory / "other.toml"})
    assert other.starts() == "2,3"
    assert other.ends() == 0
    assert not waiting.has_started()


def test_one_at_his_limit_is_told_so_also_where_nothing_is_free(limited):
    lab = limited("[limits]\ngpus = 2\n")
    (lab.directory / "other.toml").write_text("")
    jobs = [
        holder(lab, "-n", "2"),
        Job(lab, "-n", "2", env={"BERTH_SITE_FILE": lab.directory / "other.toml"}),
    ]
    jobs[1].starts()
    waiting = Job(lab).says("first in line; your limit is 2 GPUs at the same time")
    eventually(lambda: json.loads(lab.berth("queue", "--json").out)["waiters"][0]["held_back"])
    (row,) = json.loads(lab.berth("queue", "--json").out)["waiters"]
    assert row["reason"].startswith("your limit is 2 GPUs at the same time"), row
    for job in jobs:
        job.ends()
    waiting.starts()


def test_one_at_his_limit_is_passed_also_where_fewer_are_free_than_he_wants(limited):
    lab = limited("[limits]\ngpus = 2\n")
    mine = holder(lab, "-n", "2")
    waiting = waiter(lab, "-n", "2")
    (lab.directory / "other.toml").write_text("")
    others = {"BERTH_SITE_FILE": lab.directory / "other.toml"}
    first = Job(lab, env=others)
    assert first.starts() == "2"
    second = Job(lab, env=others)
    assert second.starts() == "3"
    for job in (first, second, mine):
        job.ends()
    waiting.starts()


def test_who_waits_for_his_own_limit_is_told_no_start(limited):
    lab = limited("[limits]\ngpus = 2\n")
    holder(lab, "-n", "2", "--time", "2h")
    waiting = waiter(lab)
    line = waiting.err.line()
    assert "your limit is 2 GPUs at the same time (limits.gpus in the site file), and you have 2" in line
    assert "conditions" not in line
    assert "to start about" not in line


def test_more_than_the_limit_is_never_possible(limited):
    answer = limited("[limits]\ngpus = 2\n").berth("run", "-n", "3", "--", "true")
    assert answer.status == NEVER
    assert (
        "your limit is 2 GPUs at the same time (limits.gpus in the site file), and you have none"
        in answer.err
    )


def test_a_user_has_his_own_limit_before_that_of_a_group_and_that_before_that_of_all(limited):
    me = getpass.getuser()
    lab = limited(f"[limits]\ngpus = 1\n[limits.groups]\n{me} = 2\n")
    assert "limits.groups." + me in lab.berth("run", "-n", "3", "--", "true").err
    (lab.directory / "site.toml").write_text(
        f"[limits]\ngpus = 1\n[limits.groups]\n{me} = 2\n[limits.users]\n{me} = 3\n"
    )
    assert lab.berth("run", "-n", "3", "--", "true").status == 0
    assert "limits.users." + me in lab.berth("run", "-n", "4", "--", "true").err


def test_inside_a_lease_no_limit_counts_again(limited):
    lab = limited("[limits]\ngpus = 2\n")
    answer = lab.berth("run", "-n", "2", "--", lab.program, "run", "-n", "2", "--", "true")
    assert answer.status == 0, answer.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[limits]\ngpus = -1\n", "limits.gpus must be a number of GPUs, 0 to 10000"),
        ('[limits]\ngpus = "2"\n', "limits.gpus must be a number of GPUs, 0 to 10000"),
        ("limits = 3\n", "limits is a table: [limits]"),
        ("[limits]\nusers = 3\n", "limits.users is a table of names: [limits.users]"),
        (
            "[limits]\ncards = 3\n",
            "unknown key 'cards' in [limits]; allowed: gpus, lab_gpus, waiting, time, users, groups, hours",
        ),
        ('[limits]\nwaiting = "2"\n', "limits.waiting must be a number of requests, 0 to 10000"),
        ("[limits]\ntime = 2\n", "limits.time must be a text in quotes"),
        (
            "[limits.users]\nada = { cards = 2 }\n",
            "unknown key 'cards' in limits.users.ada; allowed: gpus, lab_gpus, waiting, time",
        ),
        ("[limits]\nhours = 3\n", "limits.hours is a list of tables: [[limits.hours]]"),
        ("[[limits.hours]]\ngpus = 2\n", "[[limits.hours]] must say when:"),
        ('[[limits.hours]]\nwhen = "at night"\n', "'at night' names no hours of the week"),
        ('[[limits.hours]]\nwhen = "Sat"\ncards = 2\n', "unknown key 'cards' in [[limits.hours]]"),
    ],
)
def test_a_limit_that_cannot_be_read_is_named_with_its_line(limited, text, words):
    answer = limited(text).berth("run", "--", "true")
    assert answer.status != 0
    assert words in answer.err


def test_the_doctor_names_whom_the_machine_does_not_know(limited):
    lab = limited("[limits.users]\nnobody = 2\nada-who-left = 3\n[limits.groups]\nno-such-group = 1\n")
    text = " ".join(lab.berth("doctor").out.split())
    assert "[limits.users] names ada-who-left, and this machine knows no such user" in text
    assert "[limits.groups] names no-such-group, and this machine knows no such group" in text
    assert "names nobody" not in text


def test_the_doctor_says_the_limits(limited):
    lab = limited(
        "[limits]\ngpus = 2\nwaiting = 10\n"
        '[limits.users]\nada = { gpus = 4, time = "8h" }\n'
        "[limits.groups]\nstudents = 1\n"
        '[[limits.hours]]\nwhen = "Sat,Sun"\ngroups.students = 3\n'
    )
    text = " ".join(lab.berth("doctor").out.split())
    assert (
        "a user may have at most 2 GPUs at the same time and 10 requests in the queue; "
        "ada may have at most 4 GPUs at the same time and leases of 8h; "
        "who is in the group students may have at most 1 GPU at the same time; "
        "Sat,Sun: who is in the group students may have at most 3 GPUs at the same time"
    ) in text


def test_one_more_in_the_queue_than_a_user_may_have_is_refused(limited):
    lab = limited("[limits]\nwaiting = 1\n")
    first = holder(lab, "-n", "4")
    second = waiter(lab)
    refused = lab.berth("run", "--", "true")
    assert refused.status == NOT_NOW
    assert (
        "your limit is 1 request in the queue at the same time (limits.waiting in the site file), and you "
        "have 1: ask again when one of them has started"
    ) in " ".join(refused.err.split())
    assert len(json.loads(lab.berth("queue", "--json").out)["waiters"]) == 1
    first.ends()
    second.starts()
    # Who need not wait is not counted.
    assert lab.berth("run", "--", "true").status == 0


def test_a_job_that_gave_way_stands_in_line_again_whatever_his_limit_is(limited):
    lab = limited("[limits]\nwaiting = 0\n")
    job = Job(lab, "-n", "4", "--yield", "--requeue")
    assert job.starts() == "0,1,2,3"
    # Another user, as far as the rules go: without the limit.
    (lab.directory / "other.toml").write_text("")
    other = Job(lab, env={"BERTH_SITE_FILE": lab.directory / "other.toml"})
    other.starts()
    other.ends()
    assert job.starts() == "0,1,2,3"


def test_a_submitted_job_that_is_too_many_in_the_queue_gets_in_line_later(limited):
    lab = limited("[limits]\nwaiting = 1\n")
    first = holder(lab, "-n", "4")
    lab.berth("submit", "--", "true")
    lab.berth("submit", "-n", "2", "--", "true")
    eventually(lambda: "limits.waiting in the site file" in lab.berth("jobs", "--json").out)
    first.ends()
    assert lab.berth("wait", "1", "2").status == 0


def test_the_longest_time_of_a_user_is_refused_told_and_the_default(limited):
    lab = limited('[limits]\ntime = "2h"\n')
    refused = lab.berth("run", "--time", "3h", "--", "true")
    assert refused.status == NEVER
    why = "your limit for one lease is 2h (limits.time in the site file), and the request says 3h"
    assert why in refused.err
    assert why in lab.berth("pick", "--time", "3h").err
    assert lab.berth("pick", "--time", "2h").status == 0
    lease = holder(lab)
    told = json.loads(lab.berth("list", "--json").out)["leases"][0]
    assert 7000 < told["until_s"] - time.time() < 7202
    longer = lab.berth("extend", told["id"], "1h")
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

    def make(site: str) -> Lab:
        lab = limited(site)
        script = lab.directory / "berth"
        script.write_text(ZONED.format(program=lab.program))
        script.chmod(0o755)
        lab.program = script
        return lab

    return make


def zone_where_it_is(lab: Lab, hour: int, minute: int = 30, second: int = 0) -> dict[str, str]:
    """The machine's time zone is one in which it is that time now."""
    now = time.gmtime()
    east = (hour - now.tm_hour) * 3600 + (minute - now.tm_min) * 60 + second - now.tm_sec
    file = lab.directory / f"zone{hour}-{minute}-{second}"
    counts = struct.pack(">6l", 0, 0, 0, 0, 1, 4)
    block = b"TZif2" + bytes(15) + counts + struct.pack(">lBB", east, 0, 0) + b"XYZ\0"
    # East of Greenwich is negative in the rule for all times after the table.
    west = abs(east)
    rule = f"<XYZ>{'-' if east > 0 else ''}{west // 3600}:{west // 60 % 60:02}:{west % 60:02}"
    file.write_bytes(block * 2 + f"\n{rule}\n".encode())
    return {"ZONE": str(file)}


def test_limits_hold_in_their_hours_and_what_others_allow_waits_for_them(zoned):
    lab = zoned('[limits]\ngpus = 4\n[[limits.hours]]\nwhen = "08:00-18:00"\ngpus = 1\ntime = "1h"\n')
    by_day, at_night = zone_where_it_is(lab, 12), zone_where_it_is(lab, 3)
    why = "your limit is 1 GPU at the same time (limits.gpus for 08:00-18:00 in the site file)"
    refused = lab.berth("run", "--no-wait", "-n", "4", "--", "true", env=by_day)
    assert refused.status == NOT_NOW
    assert why in " ".join(refused.err.split())
    assert lab.berth("run", "--no-wait", "-n", "4", "--", "true", env=at_night).status == 0
    assert lab.berth("run", "-n", "5", "--", "true", env=by_day).status == NEVER
    long = lab.berth("run", "--no-wait", "--time", "2h", "--", "true", env=by_day)
    assert long.status == NOT_NOW
    assert "limits.time for 08:00-18:00" in " ".join(long.err.split())
    assert lab.berth("run", "--no-wait", "--time", "2h", "--", "true", env=at_night).status == 0


def test_the_hours_are_those_of_the_machine_whatever_the_user_calls_his_own(zoned):
    lab = zoned('[[limits.hours]]\nwhen = "08:00-18:00"\ngpus = 0\n')
    by_day, at_night = zone_where_it_is(lab, 12), zone_where_it_is(lab, 3)
    for zone in ("UTC", "XYZ8", "XYZ-8", "XYZ12", ":/nowhere"):
        assert lab.berth("run", "--no-wait", "--", "true", env=by_day | {"TZ": zone}).status == NOT_NOW
        assert lab.berth("run", "--no-wait", "--", "true", env=at_night | {"TZ": zone}).status == 0


def test_who_waits_for_other_hours_keeps_nothing_from_others_until_they_come(zoned):
    lab = zoned('[[limits.hours]]\nwhen = "08:00-18:00"\ngpus = 0\n')
    waiting = waiter(lab, env=zone_where_it_is(lab, 12))
    eventually(lambda: json.loads(lab.berth("queue", "--json").out)["waiters"][0]["held_back"])
    assert Job(lab, "-n", "4", env=zone_where_it_is(lab, 3)).starts() == "0,1,2,3"
    assert not waiting.has_started()


def test_who_waits_for_other_hours_starts_when_they_come(zoned):
    lab = zoned('[[limits.hours]]\nwhen = "08:00-18:00"\ngpus = 0\n')
    end = time.time() + 4
    job = Job(lab, env=zone_where_it_is(lab, 17, 59, 56))
    assert job.starts() in "0123"
    assert time.time() >= end - 1
