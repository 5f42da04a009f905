"""`berth exclude` takes GPUs out until root includes them."""

import fcntl
import os
import pathlib
import stat
import time

import pytest
from jobs import DEADLINE_S, eventually, holder, queue, waiter
from submitted import job, submit, told, wait_for

KEEPS = "it keeps its place until its GPUs can be used again"


def test_a_gpu_that_is_excluded_is_granted_to_nobody_and_says_why_until_it_is_included(make_machine):
    machine = make_machine("2xA100")
    site = machine.directory / "site.toml"
    site.write_text('[[excluded]]\ndevice = 1\nreason = "by hand"\n')
    reason = 'its "fan"; C:\\ repair'
    answer = machine.berth("exclude", "0", "--because", reason)
    assert (answer.status, answer.err) == (0, "")
    assert answer.out == "excluded GPU 0 for all users; `sudo berth include` ends that\n"
    for index, words in enumerate((reason, "by hand")):
        verdict = machine.berth("list", "--json").json["devices"][index]["verdict"]
        assert (verdict["clause"], verdict["reason"]) == ("not_excluded", f"excluded by the site: {words}")
    assert "fan" in machine.berth("run", "--no-wait", "--", "true").err
    # A later reason takes the place of the one before.
    assert machine.berth("exclude", "0", "--because", "on loan").status == 0
    assert (machine.directory / "site.excluded.toml").read_text().count("[[excluded]]") == 1
    assert machine.berth("include", "0").err == ""
    assert not (machine.directory / "site.excluded.toml").exists()
    assert machine.berth("run", "--", "true").status == 0
    # What people have written stays.
    assert "GPU 1 is excluded by the site: by hand" in machine.berth("include", "1").err
    assert "by hand" in machine.berth("why").out


def test_a_request_that_waits_does_not_get_what_is_excluded_meanwhile(make_machine):
    machine = make_machine("2xA100")
    first, second = holder(machine, "--devices", "0"), holder(machine, "--devices", "1")
    waiting = waiter(machine)
    assert machine.berth("exclude", "0", "--because", "its fan").status == 0
    first.ends()
    end = time.monotonic() + 1
    while time.monotonic() < end:
        assert not waiting.has_started()
        time.sleep(0.05)
    second.ends()
    assert waiting.starts() == "1"


def test_who_waits_for_what_is_excluded_waits_on_and_is_told_why(make_machine):
    machine = make_machine("2xA100")
    holding = holder(machine, "--devices", "0")
    waiting = waiter(machine, "--devices", "0").says("first in line")
    number = submit(machine, "-n", "2", "--", "true")
    eventually(lambda: len(queue(machine)) == 2)
    assert machine.berth("exclude", "0", "--because", "its fan: back in an hour").status == 0
    holding.ends()
    line = waiting.err.line()
    assert KEEPS in line and "excluded by the site: its fan: back in an hour" in line, line
    # Nobody waits behind them.
    assert machine.berth("run", "--wait", "20s", "--", "true").status == 0
    # A request that begins now is refused.
    assert machine.berth("run", "--devices", "0", "--", "true").status == 69
    assert len(queue(machine)) == 2
    assert machine.berth("include", "0").status == 0
    assert waiting.starts() == "0"
    assert waiting.ends() == 0
    assert machine.berth("wait", number).status == 0


def test_a_job_that_begins_while_its_gpu_is_excluded_waits_until_it_is_included(make_machine):
    machine = make_machine("1xA100")
    go = machine.directory / "go"
    first = submit(machine, "--", "sh", "-c", f"until [ -e {go} ]; do sleep 0.05; done")
    later = submit(machine, "--after", first, "--", "true")
    wait_for(machine, first, "running")
    assert machine.berth("exclude", "0", "--because", "its fan").status == 0
    # A job for later is taken on: its GPU may be back by then.
    other = submit(machine, "--after", first, "--", "true")
    assert machine.berth("submit", "--", "true").status == 69
    go.touch()
    assert machine.berth("wait", first).status == 0
    for each in (later, other):
        time.sleep(1)
        assert job(machine, each)["state"] not in ("running", "failed", "done"), told(machine)
    assert machine.berth("include", "0").status == 0
    for each in (later, other):
        assert machine.berth("wait", each).status == 0


@pytest.mark.parametrize(
    "reason", [b"a\x7fb", b"a\xffb", b"a\xc2\x9bb", b'say "no" \\ c:\\x', b"\xe2\x80\xae back"]
)
def test_no_reason_makes_a_file_that_stops_all_grants(make_machine, reason):
    machine = make_machine("2xA100")
    assert machine.berth("exclude", "0", "--because", os.fsdecode(reason)).status == 0
    assert machine.berth("pick").out == "1\n"
    assert machine.berth("include", "0").status == 0
    assert machine.berth("pick").out == "0\n"


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("0",),
        ("--because", "x"),
        ("0", "--because", " "),
        ("0", "--because", "a\nb"),
        ("9", "--because", "x"),
    ],
)
def test_what_cannot_be_meant_changes_nothing(make_machine, words):
    machine = make_machine("2xA100")
    answer = machine.berth("exclude", *words)
    assert answer.status == 2 and answer.err
    assert not (machine.directory / "site.excluded.toml").exists()


def test_only_who_may_write_beside_the_site_file_excludes(make_machine):
    machine = make_machine("2xA100")
    assert (
        machine.berth("exclude", "0", "--because", "x", env={"BERTH_SITE_FILE": "/proc/berth.toml"}).status
        == 1
    )


def test_what_several_change_at_once_is_all_kept(make_machine):
    machine = make_machine("4xA100")
    excluded = machine.directory / "site.excluded.toml"
    machine.berth("exclude", "3", "--because", "its fan")
    with (machine.directory / "site.excluded.toml.lock").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        before = excluded.read_text()
        # All have come before the first one may change anything.
        changes = [machine.start_berth("exclude", str(index), "--because", "x") for index in range(3)]
        changes.append(machine.start_berth("include", "3"))
        eventually(lambda: len(waits_for(file.fileno())) == len(changes))
        assert excluded.read_text() == before
    assert [change.wait(DEADLINE_S) for change in changes] == [0] * 4
    devices = machine.berth("list", "--json").json["devices"]
    assert [each["verdict"]["clause"] == "not_excluded" for each in devices] == [True, True, True, False]
    names = {path.name for path in machine.directory.glob("site.*")}
    assert names == {"site.toml", "site.excluded.toml", "site.excluded.toml.lock"}
    assert stat.S_IMODE((machine.directory / "site.excluded.toml.lock").stat().st_mode) == 0o600


def test_what_a_change_that_was_killed_has_left_goes_with_the_next(make_machine):
    machine = make_machine("2xA100")
    half = machine.directory / "site.excluded.toml.new-a1B2c3"
    other = machine.directory / "other.toml.new-a1B2c3"
    for file in (half, other):
        file.write_text("[[exclu")
    assert machine.berth("exclude", "0", "--because", "its fan").status == 0
    assert (half.exists(), other.exists()) == (False, True)


def test_who_waits_for_another_change_for_long_says_which_file_is_locked(make_machine):
    machine = make_machine("2xA100")
    machine.berth("exclude", "1", "--because", "its fan")
    with (machine.directory / "site.excluded.toml.lock").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        answer = machine.berth("exclude", "0", "--because", "x")
    assert answer.status == 75
    assert "another process has been changing" in answer.err and "site.excluded.toml.lock" in answer.err


def waits_for(file: int) -> list[str]:
    """The processes that wait for its lock, as /proc/locks has them."""
    inode = f":{os.fstat(file).st_ino} "
    return [
        line
        for line in pathlib.Path("/proc/locks").read_text().splitlines()
        if " -> " in line and inode in f"{line} "
    ]
