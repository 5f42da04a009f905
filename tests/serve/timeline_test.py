"""The hours of each GPU: `berth timeline`, an agent and a hub tell the same."""

import json
import re

import pytest
from agent import Agent
from clock import Clock
from fake_agent import answering
from hub import Hub
from jobs import eventually, holder, waiter
from schemas import checked, checked_document


def bars(document: dict, gpu: int) -> list[tuple]:
    """Kind, end and how long it lasts from now on."""
    return [
        (bar["kind"], bar["end"], bar["until_s"] - document["now_s"]) for bar in document["rows"][gpu]["bars"]
    ]


def test_leases_reservations_and_the_past_are_one_value_for_the_command_and_for_http(in_order):
    machine = in_order("2xH100")
    clock = Clock(machine)
    agent = Agent(machine, "--history", machine.directory / "history.db", env=clock.env)
    url = f"http://127.0.0.1:{agent.port}"
    former = holder(machine, "-n", "2", "--note", "before")
    eventually(lambda: len(agent.json("/api/v1/past-leases?since=1h")["leases"]) == 1)
    former.ends()
    lease = holder(machine, "-n", "2", "--time", "2h")
    waiting = waiter(machine, "-n", "1", "--time", "1h")
    # The past is read anew every 30 s.
    clock.set(31, 31)

    def told() -> dict:
        """Once the history knows that the first lease is over."""
        document = checked_document(agent.json("/api/v1/timeline"), "timeline")
        return len(document["rows"][0]["bars"]) == 3 and document["queue"] and document

    document = eventually(told)
    assert document["step_s"] > 0
    assert [bar["end"] for bar in document["rows"][1]["bars"]][:2] == ["over", "limit"]
    assert document["rows"][0]["loads"]
    (first,) = document["queue"]
    (queued,) = agent.json("/api/v1/queue")["waiters"]
    assert first["starts_at_s"] == queued["starts_at_s"] == document["next"]["at_s"]
    uuids = [row["uuid"] for row in document["rows"]]
    assert queued["starts_on"] == [uuids[0]]
    over, held, reserved = document["rows"][0]["bars"]
    assert (over["kind"], held["kind"], reserved["kind"]) == ("lease", "lease", "reservation")
    assert reserved["from_s"] == first["starts_at_s"]
    assert reserved["until_s"] == reserved["from_s"] + 3600

    own = checked(machine.berth("timeline", "--json", "--url", url), "timeline")
    assert own["rows"][0]["bars"][1:] == document["rows"][0]["bars"][1:]
    assert [bar["user"] for bar in own["rows"][0]["bars"]] == [
        bar["user"] for bar in document["rows"][0]["bars"]
    ]
    assert (own["queue"], own["next"], own["step_s"]) == (
        document["queue"],
        document["next"],
        document["step_s"],
    )

    hub = Hub(machine, f"far={url}")
    hub.sees("far")
    forwarded = checked_document(hub.json("/api/v1/hosts/far/timeline"), "timeline")
    assert forwarded["rows"][0]["bars"][1:] == document["rows"][0]["bars"][1:]
    assert agent.json(f"/api/v1/hosts/{agent.json('/api/v1/health')['hostname']}/timeline")["rows"]
    for job in (lease, waiting):
        job.may_end()
    for job in (lease, waiting):
        job.ends()


def test_without_a_history_the_rest_is_told_and_a_sentence_says_what_is_missing(machine):
    job = holder(machine, "-n", "1")
    agent = Agent(machine, "--no-history")
    document = checked_document(agent.json("/api/v1/timeline"), "timeline")
    assert document["step_s"] == 0 and bars(document, 0) == [("lease", "open", 6 * 3600)]
    answer = machine.berth("timeline", "--url", f"http://127.0.0.1:{agent.port}")
    assert answer.status == 0
    assert "no history is kept here" in answer.err
    assert "The past is not known" in answer.out
    job.ends()


def test_a_hub_takes_no_hours_that_are_none_and_names_who_does_not_tell_them(machine, fake, document):
    silly = fake(answering(json.dumps(document)))
    hub = Hub(machine, f"silly={silly.url}", "own=self", "gone=http://127.0.0.1:1")
    hub.sees("silly")
    silly.reply = answering('{"kind": "berth-timeline", "version": 1, "from_s": 3, "now_s": 2, "to_s": 1}')
    status, _, text = hub.get("/api/v1/hosts/silly/timeline")
    assert status == 502 and "must be between the ends" in text
    assert hub.get("/api/v1/hosts/gone/timeline")[0] == 502
    assert hub.get("/api/v1/hosts/nobody/timeline")[0] == 404
    # The page asks for those of the hub's own machine without a name.
    status, _, text = hub.get("/api/v1/hosts/own/timeline")
    assert status == 404 and "there is /api/v1/timeline" in text
    assert checked_document(hub.json("/api/v1/timeline"), "timeline")["rows"]


def test_a_lease_that_is_over_has_its_energy_and_is_not_clean_where_a_stranger_was_seen(make_machine):
    powered = '[[device]]\nmodel = "A100"\npower_w = 100\n'
    machine = make_machine(powered * 2)
    clock = Clock(machine)
    agent = Agent(machine, "--history", machine.directory / "history.db", env=clock.env)
    stranger = machine.start("sleep", "infinity")
    lease = holder(machine, "-n", "2")

    def past() -> dict:
        (told,) = checked_document(agent.json("/api/v1/past-leases?since=1h"), "past-leases")["leases"]
        return told

    eventually(lambda: agent.json("/api/v1/past-leases?since=1h")["leases"])
    visited = f"{powered}[[device.process]]\npid = {stranger.pid}\nused_mib = 100\n{powered}"
    for ahead_s in (11, 22, 33, 44):
        machine.change(visited if ahead_s == 22 else powered * 2)
        seen_s = agent.json("/api/v1/health")["taken_at_s"]
        # The agent asks for the energy every ten seconds.
        clock.set(ahead_s, ahead_s)
        eventually(lambda seen_s=seen_s: agent.json("/api/v1/health")["taken_at_s"] >= seen_s + 11)
    assert past()["used"] == []
    lease.ends()
    eventually(lambda: past()["used"])
    told = past()
    cleanness = sorted((used["clean"] for used in told["used"]), key=str)
    assert cleanness == [False, None], "looks are eleven seconds apart"
    for used in told["used"]:
        assert 33 * 100_000 <= used["energy_mj"] <= (told["ended_s"] - told["begun_s"] + 2) * 101_000


@pytest.mark.parametrize("hours", ["0", "73", "x", "-1"])
def test_how_many_hours_there_may_be_is_said(machine, hours):
    answer = machine.berth("timeline", f"--hours={hours}")
    assert answer.status == 2
    assert "must be a number from 1 to 72" in answer.err


def test_loads_come_only_to_those_who_ask_for_them(machine):
    """A Berth that does not know them asks for none, and its reader would take no list of lists."""
    clock = Clock(machine)
    agent = Agent(machine, "--history", machine.directory / "history.db", env=clock.env)
    without = agent.json("/api/v1/past-leases?since=1h")
    assert not {"loads", "memories", "step_s"} & without.keys()
    checked_document(without, "past-leases")
    assert agent.get("/api/v1/past-leases?points=1")[0] == 400
    # A sample is of ten seconds.
    clock.set(11, 11)
    eventually(lambda: agent.json("/api/v1/past-leases?since=1h&points=10")["devices"])
    told = checked_document(agent.json("/api/v1/past-leases?since=1h&points=10"), "past-leases")
    assert [len(rows) for rows in told["loads"]] == [len(rows) for rows in told["memories"]] != []


def test_plain_characters_alone_are_enough(machine):
    """So does what is cut, as the words with a date are."""
    job = holder(machine, "-n", "1", "--time", "30h")
    answer = machine.berth("timeline", "--ascii")
    assert answer.status == 0
    assert re.search("[^ ~]~$", answer.out, re.M)
    assert answer.out.isascii()
    assert "=====" in answer.out
    assert len(answer.out.splitlines()) <= 24
    job.ends()
