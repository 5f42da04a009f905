"""When somebody starts and ends: all who tell of it read the same value."""

import json
import random
import re
import signal

import pytest
from clock import told_time
from jobs import Job, holder, waiter
from simulated_machine import DEADLINE_S, Answer, Machine

REFUSED = 75


@pytest.fixture
def four(make_machine) -> Machine:
    return make_machine("4xH100")


def document(machine: Machine, *words):
    answer = machine.berth(*words, "--json")
    assert answer.status == 0, answer.err
    return json.loads(answer.out)


def queue(machine: Machine) -> list[dict]:
    return document(machine, "queue")["waiters"]


def leaves(job: Job) -> None:
    """The queue, so that nobody is behind it any more."""
    job.signal(signal.SIGINT).process.wait(DEADLINE_S)


def words_of(refusal: Answer) -> str:
    """Without how long ago something was."""
    return re.sub(r" \(\d+ \w+\)", "", refusal.err)


def test_a_lease_with_a_time_says_its_end(four):
    timed = holder(four, "--time", "2h")
    holder(four)
    said, silent = sorted(document(four, "list")["leases"], key=lambda lease: lease["since_s"])
    assert said["time_s"] == 7200
    assert abs(said["until_s"] - said["since_s"] - 7200) <= 1
    assert silent["time_s"] is None
    assert silent["until_s"] is None
    table = four.berth("list", "-l").out
    assert " END " in table
    assert told_time(said["until_s"]) in table
    assert four.berth("extend", said["id"], "1h").status == 0
    (extended,) = (lease for lease in document(four, "list")["leases"] if lease["id"] == said["id"])
    assert extended["until_s"] == said["until_s"] + 3600
    timed.ends()
    assert " END " not in four.berth("list", "-l").out


def test_who_waits_for_leases_with_times_is_told_when_it_starts(four):
    holder(four, "-n", "3", "--time", "2h")
    holder(four, "--time", "1h")
    ends = sorted(lease["until_s"] for lease in document(four, "list")["leases"])
    first = waiter(four, "-n", "1", "--time", "3h").says("to start about")
    whole = waiter(four, "-n", "4").says(f"to start about {told_time(ends[0] + 3 * 3600)}")
    last = waiter(four).says("no. 3 in line, behind")
    assert [each["starts_at_s"] for each in queue(four)] == [ends[0], ends[0] + 3 * 3600, None]
    table = four.berth("queue").out
    assert " START " in table
    assert told_time(ends[0]) in table
    # The second says no time, so nobody can tell of whoever comes after it.
    why = document(four, "why")
    assert (why["position"], why["starts_at_s"]) == (4, None)
    assert "If you asked now, you would be no. 4 in line, behind" in four.berth("why").out
    for job in (last, whole, first):
        leaves(job)


def test_why_tells_the_start_also_if_nobody_waits(four):
    holder(four, "-n", "2", "--time", "2h")
    holder(four, "--time", "1h")
    ends = sorted(lease["until_s"] for lease in document(four, "list")["leases"])
    for count, start in (("1", None), ("2", ends[0]), ("3", ends[1])):
        why = document(four, "why", "-n", count)
        assert (why["position"], why["starts_at_s"]) == (None, start)
    assert (
        f"\nIf you asked now, it would start about {told_time(ends[1])}.\n"
        in four.berth("why", "-n", "4").out
    )
    holder(four)
    assert document(four, "why", "-n", "3")["starts_at_s"] == ends[1]
    assert document(four, "why", "-n", "4")["starts_at_s"] is None  # nobody knows when the last one ends
    assert "would start" not in four.berth("why", "-n", "4").out


def test_why_tells_no_start_if_more_than_leases_is_in_the_way(make_machine):
    machine = make_machine('[[device]]\nmodel = "H100"\n[[device]]\nmodel = "H100"\nutilization = 90\n')
    holder(machine, "--devices", "0", "--time", "1h")
    (lease,) = document(machine, "list")["leases"]
    assert document(machine, "why", "--util", "5")["starts_at_s"] == lease["until_s"]
    assert document(machine, "why", "--util", "5", "-n", "2")["starts_at_s"] is None
    (machine.directory / "site.toml").write_text("[limits]\ngpus = 2\n")
    assert (
        document(machine, "why", "-n", "2")["starts_at_s"] is None
    )  # nobody knows when the limit lets it pass


def test_what_is_free_and_kept_for_a_waiter_is_offered_to_nobody(in_order):
    four = in_order("4xH100")
    held = holder(four, "--devices", "0")
    whole = waiter(four, "-n", "4").says("first in line")
    assert queue(four)[0]["starts_at_s"] is None  # nobody knows when the other ends
    assert "kept for" in four.berth("list").out
    refused = four.berth("pick")
    assert refused.status == REFUSED
    assert "earlier requests come first: you would be no. 2 in line" in refused.err
    assert "GPU 1-3  kept for" in refused.err
    assert words_of(four.berth("run", "--no-wait", "--", "true")) == words_of(refused)
    leaves(whole)
    assert four.berth("pick").out.strip() == "1"
    held.ends()


@pytest.mark.parametrize("seed", range(6))
def test_pick_list_why_queue_and_run_say_the_same(make_machine, seed):
    """In small worlds drawn at random. What one says can be had is what run gets, and the other way round."""
    dice = random.Random(seed)
    machine = make_machine("4xH100")
    if dice.random() < 0.5:
        (machine.directory / "site.toml").write_text("backfill = false\n")

    def request():
        words = ["-n", str(dice.choice([1, 1, 2, 3]))]
        # Never as long as a lease has left: a moment later that would be another world.
        return words + (["--time", f"{dice.randint(0, 4)}h30m"] if dice.random() < 0.6 else [])

    for device in range(4):
        if dice.random() < 0.6:
            holder(
                machine,
                "--devices",
                str(device),
                *(["--time", f"{dice.randint(1, 5)}h"] if dice.random() < 0.6 else []),
            )
    waiting = [waiter(machine, "-n", "4").says("in line")] if document(machine, "list")["leases"] else []
    for _ in range(4):
        asked = request()
        why = document(machine, "why", *asked)
        pick = machine.berth("pick", *asked)
        listed = document(machine, "list")
        free = [gpu["index"] for gpu in listed["devices"] if gpu["verdict"]["free"]]
        if not any(word == "--time" for word in asked):
            assert [gpu["index"] for gpu in why["devices"] if gpu["verdict"]["free"]] == free
        assert why["satisfied"] == (pick.status == 0)
        ran = machine.berth("run", "--no-wait", *asked, "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES")
        assert ran.status == pick.status, (asked, pick, ran)
        if pick.status == 0:
            assert ran.out == pick.out
            continue
        assert words_of(ran) == words_of(pick)
        before = queue(machine)
        job = waiter(machine, *asked).says("in line")
        mine = next(each for each in queue(machine) if each["id"] not in {other["id"] for other in before})
        assert (mine["behind"], mine["position"]) == (why["behind"], why["position"] or 1)
        assert mine["starts_at_s"] == why["starts_at_s"]
        waiting.append(job)
    for job in reversed(waiting):
        leaves(job)


def test_an_extension_that_would_move_back_a_start_is_refused_with_whose_it_is(four):
    holder(four, "-n", "4", "--time", "1h")
    (lease,) = document(four, "list")["leases"]
    last = waiter(four).says("to start about")
    refused = four.berth("extend", lease["id"], "1h")
    assert refused.status == REFUSED
    start = f"waits and is to start about {told_time(lease['until_s'])}, and more time would delay that"
    assert start in " ".join(refused.err.split())
    (same,) = document(four, "list")["leases"]
    assert same["until_s"] == lease["until_s"]
    leaves(last)
    assert four.berth("extend", lease["id"], "1h").status == 0


def test_an_extension_that_delays_nobody_is_none_of_the_lines_business(four):
    holder(four, "-n", "2", "--time", "1h")
    holder(four, "-n", "2", "--time", "3h")
    early, late = sorted(document(four, "list")["leases"], key=lambda lease: lease["until_s"])
    waiter(four).says("to start about")
    assert four.berth("extend", late["id"], "9h").status == 0
    assert four.berth("extend", early["id"], "1h").status == REFUSED
