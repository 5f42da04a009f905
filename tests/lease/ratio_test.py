"""`expect = "limits"` or `"runs"`: who has waited longest in relation to its length comes first."""

import json
import re
import signal
import subprocess
import time

import pytest
from clock import told_time
from jobs import DEADLINE_S, Job, close_input, eventually, holder, waiter


def site(machine, text: str) -> None:
    (machine.directory / "site.toml").write_text(text)


@pytest.fixture
def two(make_machine):
    """Two H100 at a site where limits count."""
    machine = make_machine("2xH100")
    site(machine, 'expect = "limits"\n')
    return machine


def queue(machine) -> list[dict]:
    return machine.berth("queue", "--json").json["waiters"]


def pids(machine) -> list[int]:
    """Who waits, the first first."""
    return [each["pid"] for each in queue(machine)]


def comes_before(machine, first: Job, second: Job) -> None:
    """A short one needs some moments to pass a long one."""
    eventually(lambda: pids(machine) == [first.pid, second.pid])


def words(machine, folder: str) -> dict:
    """Of the ticket that is there."""
    (path,) = (machine.leases / folder).iterdir()
    lines = [line.partition("=") for line in path.read_text().splitlines()]
    return {key: value for key, _, value in lines}


@pytest.mark.parametrize("backfill", ["true", "false"])
def test_a_short_request_passes_a_long_one_that_came_before(two, backfill):
    site(two, f'expect = "limits"\nbackfill = {backfill}\n')
    held = holder(two, "-n", "2")
    large = waiter(two, "-n", "2", "--time", "10h")
    quick = waiter(two, "-n", "2", "--time", "1m")
    comes_before(two, quick, large)
    held.ends()
    assert quick.starts() == "0,1"
    assert not large.has_started()
    quick.ends()
    large.starts()
    large.ends()


def test_without_the_key_it_is_as_it_came_and_tickets_say_nothing_of_it(make_machine):
    machine = make_machine("1xH100")
    held = holder(machine)
    assert not {"expected", "likely", "longest_wait"} & words(machine, "leases").keys()
    large = waiter(machine, "--time", "10h")
    quick = waiter(machine, "--time", "1m").says("no. 2 in line")
    assert pids(machine) == [large.pid, quick.pid]
    assert all("expected_s" not in each for each in queue(machine))
    held.ends()
    large.starts()
    large.ends()
    quick.starts()
    quick.ends()


def test_whom_nothing_is_known_of_waits_as_it_came(two):
    held = holder(two, "-n", "2")
    first, second = waiter(two, "-n", "2"), waiter(two, "-n", "2")
    assert pids(two) == [first.pid, second.pid]
    held.ends()
    first.starts()
    first.ends()
    second.starts()
    second.ends()


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL, signal.SIGSTOP])
def test_when_the_short_one_gives_up_the_long_one_starts(two, end):
    held = holder(two, "--time", "2h")
    both_free = holder(two)
    large = waiter(two, "--time", "10h")
    quick = waiter(two, "-n", "2", "--time", "1m")
    comes_before(two, quick, large)
    both_free.ends()
    assert not large.has_started()
    quick.signal(end)
    large.starts()
    large.ends()
    held.ends()


def test_a_request_that_is_passed_is_told_both_lengths_and_from_when_on_it_comes_first(two):
    held = holder(two, "-n", "2")
    first = waiter(two, "-n", "2", "--time", "10h")
    # It takes nine times as long as it came later until the shorter one comes first.
    eventually(lambda: time.time() - queue(two)[0]["since_s"] > 3)
    later = waiter(two, "-n", "2", "--time", "9h")
    reason = next(each["reason"] for each in queue(two) if each["pid"] == later.pid)
    assert re.search(
        r"behind root \(bash\); expected to take 9 h \(its time limit\), and root's request 10 h "
        r"\(its time limit\); of those who wait now, it comes first from about \d\d:\d\d on",
        reason,
    ), reason
    # A shorter one comes first for as long as it waits.
    quick = waiter(two, "-n", "2", "--time", "1m")
    eventually(lambda: pids(two)[0] == quick.pid)
    assert all("comes first from" not in each["reason"] for each in queue(two) if each["pid"] != quick.pid)
    for job in (quick, later, first):
        job.signal(signal.SIGINT).process.wait(DEADLINE_S)
    held.ends()


def test_a_limit_of_claim_is_no_length(two):
    held = holder(two, "-n", "2")
    large = waiter(two, "-n", "2")
    shell = two.start("sleep", "1000")
    claimed = two.start(two.program, "claim", "-n", "2", "--time", "1m", "--pid", str(shell.pid))
    eventually(lambda: len(queue(two)) == 2)
    assert [each["expected_s"] for each in queue(two)] == [6 * 3600] * 2
    for process in (claimed, shell):
        process.terminate()
        process.communicate()
    held.ends()
    large.starts()
    large.ends()


def test_a_limit_counts_wherever_berth_ends_the_job(two):
    held = holder(two, "-n", "2")
    run = waiter(two, "--time", "10m")
    shell = two.start(two.program, "shell", "--time", "20m", stdin=subprocess.PIPE)
    commands = two.directory / "commands"
    commands.write_text("true\n")
    assert two.berth("submit", "--time", "30m", "--", "true").status == 0
    each_line = two.start(two.program, "each", "--time", "40m", commands)
    eventually(lambda: sorted(one["expected_s"] for one in queue(two)) == [600, 1200, 1800, 2400])
    close_input(shell)
    held.ends()
    run.starts()
    assert run.ends() == 0
    assert shell.wait(DEADLINE_S) == each_line.wait(DEADLINE_S) == 0
    eventually(lambda: queue(two) == [])


def test_waiters_agree_while_the_site_changes_its_mind(make_machine):
    machine = make_machine("1xH100")
    held = holder(machine)
    old = waiter(machine, "--time", "10h")
    site(machine, 'expect = "limits"\n')
    large = waiter(machine, "--time", "10h")
    quick = waiter(machine, "--time", "1m")
    eventually(lambda: pids(machine) == [old.pid, quick.pid, large.pid])
    site(machine, 'order = "fair"\n')
    last = waiter(machine, "--time", "1m")
    assert pids(machine) == [old.pid, quick.pid, large.pid, last.pid]
    held.ends()
    for each in (old, quick, large, last):
        each.starts()
        assert each.ends() == 0


def test_who_passed_another_by_its_limit_cannot_extend_while_that_one_waits(two):
    held = holder(two, "-n", "2")
    large = waiter(two, "-n", "2", "--time", "10h")
    quick = waiter(two, "-n", "2", "--time", "1h")
    comes_before(two, quick, large)
    held.ends()
    quick.starts()
    (lease,) = two.berth("list", "--json").json["leases"]
    refused = two.berth("extend", lease["id"], "1h")
    assert refused.status == 75
    assert "asked before you" in refused.err and "its time limit is short" in refused.err
    large.signal(signal.SIGINT).process.wait()
    assert two.berth("extend", lease["id"], "1h").status == 0
    quick.ends()


def test_a_waiter_is_told_that_its_place_is_one_of_now_and_what_is_expected_of_it(two):
    held = holder(two, "-n", "2")
    first = waiter(two, "-n", "2")
    second = waiter(two, "-n", "2", "--time", "10h").says("1 before you now")
    one, other = queue(two)
    assert (one["expected_s"], one["expected_by"]) == (6 * 3600, "nothing")
    assert (other["expected_s"], other["expected_by"]) == (36_000, "limit")
    assert "expected to take 10 h (its time limit)" in other["reason"]
    assert "expected to take 6 h (nothing is known of it)" in one["reason"]
    asked = two.berth("why", "-n", "2")
    assert "you would be no. 3 in line" in asked.out
    for each in (held, first, second):
        each.ends()


def runs_of(machine, lasted_s: list[int]) -> None:
    """Runs of this user that lasted so long, in the record."""
    assert machine.berth("run", "--", "bash", "-c", "true").status == 0
    (path,) = (machine.directory / "home/.local/state/berth/receipts").iterdir()
    (line,) = path.read_text().splitlines()
    lines = []
    for seconds in lasted_s:
        fields = [
            f"lasted_ms={seconds * 1000}" if field.startswith("lasted_ms=") else field
            for field in line.split("\t")
        ]
        lines.append("\t".join(fields))
    path.write_text("".join(f"{each}\n" for each in lines))


def test_earlier_runs_say_what_to_expect(make_machine):
    machine = make_machine("1xH100")
    site(machine, 'expect = "runs"\n')
    runs_of(machine, [600, 900, 7200])
    held = holder(machine)
    says = words(machine, "leases")
    assert (says["expected"], says["likely"], says["longest_wait"]) == ("7200", "21600", "1814400")
    assert "time" not in says
    last = waiter(machine)
    (told,) = queue(machine)
    assert (told["expected_s"], told["expected_by"]) == (7200, "runs")
    held.ends()
    last.starts()
    last.ends()


def test_the_hours_say_about_when_a_lease_without_a_limit_ends(make_machine):
    machine = make_machine("1xH100")
    site(machine, 'expect = "runs"\n')
    runs_of(machine, [600, 900, 7200])
    held = holder(machine)
    document = machine.berth("timeline", "--json").json
    (bar,) = document["rows"][0]["bars"]
    assert (bar["end"], bar["expected_s"] - bar["from_s"]) == ("open", 7200)
    assert (document["next"]["at_s"], document["next"]["expected"]) == (bar["expected_s"], True)
    told = machine.berth("timeline").out
    end = re.escape(told_time(bar["expected_s"]))
    assert re.search(rf"You have GPU 0 until about {end}\.", told)
    assert re.search(rf"Next: GPU 0, about {end}, going by earlier runs\.", told)
    assert "╍" in told.split("to its limit")[0]
    held.ends()


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"\xff\x00garbage" * 1000,
        b"berth-receipt 2\tlease=0000000000000001\tlasted_ms=60000\tend\n",
        b"berth-receipt 1\tlease=0000000000000001\tlasted_ms=99999999999999999999999\tend\n" * 50,
        b"berth-receipt 1\tlease=00000000000",
    ],
)
def test_a_record_that_says_nothing_costs_nothing_but_the_expectation(make_machine, record):
    machine = make_machine("1xH100")
    site(machine, 'expect = "runs"\n')
    runs_of(machine, [600])
    (path,) = (machine.directory / "home/.local/state/berth/receipts").iterdir()
    path.write_bytes(record)
    held = holder(machine)
    assert words(machine, "leases")["expected"] == str(6 * 3600)
    held.ends()


def test_the_keys_are_the_sites_alone_and_say_what_they_must_be(make_machine):
    machine = make_machine("1xH100")
    site(machine, 'expect = "guesses"\n')
    assert 'must be "none", "limits" or "runs"' in machine.berth("run", "--", "true").err
    site(machine, 'longest_wait = "2h"\n')
    assert "longest_wait must be at least" in machine.berth("run", "--", "true").err
    site(machine, 'expect = "runs"\nlongest_wait = "7d"\n')
    assert "by time limits and earlier runs, and after 7d" in machine.berth("doctor").out
    assert json.loads(machine.berth("queue", "--json").out)["waiters"] == []
