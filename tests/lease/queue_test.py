"""berth queue: who waits, in which place, and for what."""

import json
import os
import re
import signal

from lease_jobs import holder, leases, plain_words, waiter, waiting
from schemas import checked


def test_nobody_waits(machine):
    answer = machine.berth("queue")
    assert (answer.status, answer.out, answer.err) == (0, "nobody waits\n", "")
    assert checked(machine.berth("queue", "--json"), "queue")["waiters"] == []


def test_the_first_waits_for_devices_and_the_next_for_the_first(make_machine):
    machine = make_machine("2xH100")
    holder(machine, "-n", "2")
    waiter(machine, "-n", "2", "--note", "sweep")
    waiter(machine)
    lines = plain_words(machine.berth("queue").out).splitlines()
    assert lines[0].split() == [
        "POS",
        "ID",
        "USER",
        "PID",
        "WAITED",
        "BEHIND",
        "REQUEST",
        "COMMAND",
        "REASON",
    ]
    first, second = waiting(machine)
    assert lines[1].split()[:2] == ["1", first[-6:]] and lines[2].split()[:2] == ["2", second[-6:]]
    assert "2 whole GPUs" in lines[1]
    assert '"sweep" bash' in lines[1]
    assert lines[1].endswith("0 of 2 free; GPU 0,1 leased root N s")
    assert first[-6:] in lines[2].split()[2:]
    assert lines[2].endswith("behind root (bash)")


def test_who_waits_for_a_share_is_told_how_much_is_left_of_which_card(make_machine):
    machine = make_machine("1xH100")
    holder(machine, "--memory", "60G")
    waiter(machine, "--memory", "30G")
    line = plain_words(machine.berth("queue").out).splitlines()[1]
    assert re.search(r"1 shared GPU, 30 GiB of memory each", line)
    assert re.search(r"0 of 1 free for 30 GiB; GPU 0 leased root N s, 1\d\.\d GiB left$", line)


def test_json_has_every_waiter(make_machine):
    machine = make_machine("1xH100")
    holder(machine)
    jobs = [waiter(machine, "--note", "sweep"), waiter(machine)]
    rows = checked(machine.berth("queue", "--json"), "queue")["waiters"]
    assert [row["id"] for row in rows] == waiting(machine)
    assert [row["position"] for row in rows] == [1, 2]
    assert [row["pid"] for row in rows] == [job.pid for job in jobs]
    assert [row["behind"] for row in rows] == [None, rows[0]["id"]]
    assert [row["note"] for row in rows] == ["sweep", None]


def test_requests_for_other_devices_do_not_stand_behind_each_other(make_machine):
    machine = make_machine("2xH100")
    holder(machine, "-n", "2")
    waiter(machine, "--devices", "0")
    waiter(machine, "--devices", "1")
    rows = machine.berth("queue", "--json").json["waiters"]
    assert [row["position"] for row in rows] == [1, 1]
    assert rows[1]["reason"].startswith("0 of 1 free; GPU 1 leased ")


def test_one_that_is_stopped_is_named_and_skipped(make_machine):
    machine = make_machine("1xH100")
    holder(machine)
    first = waiter(machine)
    waiter(machine)
    os.kill(first.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, first.pid, os.WSTOPPED | os.WNOWAIT)
    rows = machine.berth("queue", "--json").json["waiters"]
    assert [row["stopped"] for row in rows] == [True, False]
    assert [row["position"] for row in rows] == [1, 1]
    assert rows[0]["reason"].startswith("stopped")


def test_the_listing_counts_those_who_wait(make_machine):
    machine = make_machine("1xH100")
    assert checked(machine.berth("list", "--json"), "list")["waiting"] == 0
    holder(machine)
    waiter(machine)
    assert checked(machine.berth("list", "--json"), "list")["waiting"] == 1
    assert machine.berth("list").out.startswith("1 GPU, none free, 1 waiting\n")


def test_watching_shows_it_again_and_again(make_machine):
    machine = make_machine("1xH100")
    holder(machine)
    watch = machine.start_berth("queue", "--json", "--watch", "1")
    assert json.loads(watch.stdout.readline())["waiters"] == []
    waiter(machine)
    while not json.loads(watch.stdout.readline())["waiters"]:
        pass
    assert len(leases(machine)) == 1


def test_a_terminal_gets_lines_of_its_width(make_machine):
    from terminal import on_terminal, plain

    machine = make_machine("1xH100")
    holder(machine)
    waiter(machine)
    status, text = on_terminal(machine, "queue", columns=60)
    assert status == 0
    assert all(len(line) <= 60 for line in plain(text).splitlines())


def test_a_refusal_names_the_looser_request_that_would_succeed(make_machine):
    machine = make_machine("2xH100")
    holder(machine)
    answer = machine.berth("run", "-n", "2", "--no-wait", "--", "true")
    assert (answer.status, answer.out) == (75, "")
    assert answer.err.endswith("\nThese would succeed now:\n  1 GPU instead of 2\n")
    assert machine.berth("run", "-n", "1", "--no-wait", "--", "true").status == 0
    assert "1 GPU instead of 2" in machine.berth("run", "-n", "2", "--wait", "0s", "--", "true").err


def test_it_names_none_that_would_stand_behind_a_waiter(in_order):
    machine = in_order("2xH100")
    holder(machine)
    waiter(machine, "-n", "2")
    for words in (["run", "-n", "2", "--no-wait", "--", "true"], ["why", "-n", "2"], ["pick", "-n", "2"]):
        answer = machine.berth(*words)
        assert "would succeed" not in answer.out + answer.err
    assert machine.berth("run", "--no-wait", "--", "true").status == 75


def test_a_refusal_because_of_the_line_names_who_is_before(in_order):
    machine = in_order("2xH100")
    holder(machine, "--devices", "0")
    waiter(machine, "-n", "2")
    answer = machine.berth("run", "--no-wait", "--", "true")
    assert answer.status == 75
    first, _, second = answer.err.splitlines()
    assert re.fullmatch(
        r"berth: not now: 1 whole GPU wanted, none free; earlier requests come first: you would be no\. 2 in line, behind \S+ \(\S.*\)",
        first,
    )
    assert second.startswith("GPU 1  kept for")
